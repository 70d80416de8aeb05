//! Results on a terminal: colours, and a pager as git starts it.

use crate::heading;
use crate::output;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use whit_view::stdio::Colour;
use whit_view::width::{cut_line, fit_line};

/// Where neither `WHIT_PAGER` nor `PAGER` names one.
const DEFAULT_PAGER: &str = "less";
/// For `less`: end at once if the text fits the screen, keep colours, leave the text there.
const LESS: &str = "FRX";
/// Lines are cut at no less.
const MIN_WIDTH: usize = 20;

#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum When {
    #[default]
    Auto,
    Always,
    Never,
}

/// Options of commands that print long results.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct TerminalArgs {
    /// Print colours: auto (on a terminal, unless NO_COLOR is set), always, or never
    #[arg(long, value_name = "WHEN", default_value = "auto", hide_possible_values = true,
          num_args = 0..=1, require_equals = true, default_missing_value = "always",
          help_heading = heading::GENERAL)]
    color: When,
    /// Do not start a pager ($WHIT_PAGER, $PAGER or less) on a terminal
    #[arg(long, help_heading = heading::GENERAL)]
    no_pager: bool,
}

impl TerminalArgs {
    /// Whether to print colours.
    pub(crate) fn colour(&self) -> Colour {
        let no_color = std::env::var("NO_COLOR").ok();
        match self.color {
            When::Auto => Colour::for_output(io::stdout().is_terminal(), no_color.as_deref()),
            When::Always => Colour::for_output(true, None),
            When::Never => Colour::for_output(false, None),
        }
    }

    /// Whether the user wants lines of text, which no pager holds.
    pub(crate) fn has_no_pager(&self) -> bool {
        self.no_pager
    }

    /// Whether a pager takes the screen, where a progress bar would spoil it.
    pub(crate) fn pages(&self) -> bool {
        !self.no_pager && io::stdout().is_terminal() && pager().is_some()
    }

    /// Standard output, through a pager where it is a terminal.
    pub(crate) fn output(&self) -> Paged {
        let child = self.pages().then(|| pager()?.spawn().ok()).flatten();
        let paged = child.and_then(|mut child| Some((child.stdin.take()?, child)));
        match paged {
            Some((stdin, child)) => Paged::Pager(Some(BufWriter::new(stdin)), child),
            None => Paged::Stdout(output::stdout()),
        }
    }
}

/// The width of lines.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct WidthArgs {
    /// Cut lines at N columns, shorten the names in them; 0 leaves them whole [default: the terminal's width; whole
    /// lines elsewhere]
    #[arg(long, value_name = "N", help_heading = heading::OUTPUT)]
    width: Option<usize>,
}

impl WidthArgs {
    /// The width to which lines are cut; `None` leaves them whole.
    pub(crate) fn columns(self) -> Option<usize> {
        match self.width {
            Some(0) => None,
            Some(width) => Some(width.max(MIN_WIDTH)),
            None => terminal_width().map(|width| width.max(MIN_WIDTH)),
        }
    }

    /// The result, with its lines cut where they are text for people.
    pub(crate) fn fit<W: Write>(self, out: W, is_text: bool) -> Fitted<W> {
        Fitted { out, width: self.columns().filter(|_| is_text), fit: fit_line, line: Vec::new() }
    }
}

/// The width of lines that end with no name.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct LineWidthArgs {
    /// Cut lines at N columns; 0 leaves them whole [default: the terminal's width; whole lines elsewhere]
    #[arg(long, value_name = "N", conflicts_with = "wide", help_heading = heading::OUTPUT)]
    width: Option<usize>,
    /// Leave lines whole on a terminal, too
    #[arg(short, long, help_heading = heading::OUTPUT)]
    wide: bool,
}

impl LineWidthArgs {
    /// The result, with its lines cut where they are text for people.
    pub(crate) fn fit<W: Write>(self, out: W, is_text: bool) -> Fitted<W> {
        let width = WidthArgs { width: if self.wide { Some(0) } else { self.width } };
        Fitted { fit: cut_line, ..width.fit(out, is_text) }
    }
}

/// Writes a result to its end: as JSON with the end of a line, or as text.
pub(crate) fn show<W: Write>(
    mut out: W,
    is_json: bool,
    write_json: impl FnOnce(&mut W) -> io::Result<()>,
    write_text: impl FnOnce(&mut W) -> io::Result<()>,
) -> io::Result<()> {
    if is_json {
        write_json(&mut out)?;
        writeln!(out)?;
    } else {
        write_text(&mut out)?;
    }
    out.flush()
}

/// The width of standard output, if it is a terminal that says so.
fn terminal_width() -> Option<usize> {
    let (terminal_size::Width(width), _) = terminal_size::terminal_size_of(io::stdout())?;
    (width > 0).then_some(usize::from(width))
}

/// A result whose lines are cut.
pub(crate) struct Fitted<W> {
    out: W,
    width: Option<usize>,
    fit: fn(&str, usize) -> String,
    /// The beginning of a line.
    line: Vec<u8>,
}

impl<W: Write> Write for Fitted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(width) = self.width else { return self.out.write(bytes) };
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if self.line.pop_if(|byte| *byte == b'\n').is_some() {
                let line = (self.fit)(&String::from_utf8_lossy(&self.line), width);
                self.line.clear();
                writeln!(self.out, "{line}")?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(width) = self.width.filter(|_| !self.line.is_empty()) {
            let line = (self.fit)(&String::from_utf8_lossy(&self.line), width);
            self.line.clear();
            self.out.write_all(line.as_bytes())?;
        }
        self.out.flush()
    }
}

/// The command of the pager; `None` if the user wants none.
fn pager() -> Option<Command> {
    let named = |name| std::env::var_os(name);
    let mut command = match named("WHIT_PAGER").or_else(|| named("PAGER")) {
        Some(own) if own.is_empty() || own == "cat" => return None,
        // May have arguments, as in git.
        Some(own) => {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(own);
            shell
        }
        None => Command::new(DEFAULT_PAGER),
    };
    if named("LESS").is_none() {
        command.env("LESS", LESS);
    }
    command.stdin(Stdio::piped());
    Some(command)
}

/// A buffered result.
pub(crate) enum Paged {
    Stdout(BufWriter<StdoutLock<'static>>),
    Pager(Option<BufWriter<ChildStdin>>, Child),
}

impl Write for Paged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Paged::Stdout(out) => out.write(bytes),
            Paged::Pager(Some(out), _) => out.write(bytes),
            Paged::Pager(None, _) => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Paged::Stdout(out) => out.flush(),
            Paged::Pager(Some(out), _) => out.flush(),
            Paged::Pager(None, _) => Ok(()),
        }
    }
}

impl Drop for Paged {
    /// The shell would take the terminal back from a pager that is still in use.
    fn drop(&mut self) {
        if let Paged::Pager(stdin, child) = self {
            drop(stdin.take());
            let _ = child.wait();
        }
    }
}
