//! `whit serve`, which becomes `whit-serve`: the page of a recording for a browser, over loopback.

use crate::export::firefox;
use crate::heading;
use crate::input::{self, InputArgs};
use crate::interface;
use crate::message;
use crate::output;
use crate::page;
use crate::progress::LoadProgress;
use crate::symbol_args::LoadArgs;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tempfile::NamedTempFile;
use whit_perfdata::reader::Recording;
use whit_profile::model::{DsoId, Profile};
use whit_profile::switches::Switches;
use whit_profile::{CodeFinder, LoadOptions, SinglesWanted, WantedFacets};
use whit_serve::{Bounds, Library, Server, Site, Symbols, Token, firefox_profiler_url};
use whit_sys::{Signal, SignalFd};

/// The program, which lies beside this one.
const PROGRAM: &str = "whit-serve";

/// Samples up to which each keeps its time, in 28 bytes of memory.
const MAX_SAMPLES: u64 = 16_000_000;

const EXAMPLES: &str = "\
Examples:
  whit serve                        # prints the address of the page
  whit serve big.data --open        # and opens the browser
  whit serve --firefox              # and the address in Firefox Profiler
  ssh -L 8080:127.0.0.1:8080 host whit serve --port 8080";

/// Arguments of `whit serve`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// The same as -i FILE
    #[arg(value_name = "FILE", conflicts_with = "input")]
    file: Option<PathBuf>,
    #[command(flatten)]
    input: InputArgs,
    /// Listen on this port [default: a free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true, help_heading = heading::OUTPUT)]
    port: u16,
    /// Listen on this address; on others than loopback, the network sees all that is served
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), help_heading = heading::OUTPUT)]
    listen: IpAddr,
    /// Open the page in the browser, where there is a display
    #[arg(long, help_heading = heading::OUTPUT)]
    open: bool,
    /// Serve the profile for Firefox Profiler as well, and print the address that opens it there
    #[arg(long, help_heading = heading::OUTPUT)]
    firefox: bool,
    /// Print only the addresses
    #[arg(short, long, help_heading = heading::OUTPUT)]
    quiet: bool,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
}

/// Becomes the server.
pub(crate) fn start(args: &ServeArgs) -> Result<u8> {
    let advice = "the server is a program of its own; `cargo build --release -p whit` in whit's repository makes both: \
                  put it beside whit";
    interface::become_reader(PROGRAM, &args.load.symbols, advice)
}

/// Serves until a signal ends it.
pub(crate) fn run(args: &ServeArgs) -> Result<u8> {
    let recording = match &args.file {
        Some(path) => input::open(path)?,
        None => args.input.open()?,
    };
    // A taken address ends the program before the recording is read.
    let address = SocketAddr::new(args.listen, args.port);
    let token = Token::random().context("the kernel gives no random numbers (/dev/urandom)")?;
    let server = Server::bind(address, token, Bounds::default()).with_context(|| {
        format!("cannot listen on {address}: choose another one with --port or --listen")
    })?;
    let mut options = args.load.options(&recording)?;
    page::load(&recording, &mut options, true);
    options.singles = Some(SinglesWanted::UpTo(MAX_SAMPLES));
    // Shares of lines have intervals.
    options.blocks = true;
    let progress = LoadProgress::new("reading", args.quiet);
    let update = |done, total| progress.update(done, total);
    let loaded = page::load_parts(&recording, &options, !args.load.chooses_cpus(), &update);
    progress.finish();
    let loaded = loaded?;
    let firefox = args
        .firefox
        .then(|| firefox_file(&recording, &loaded.profile, loaded.switches.as_ref()))
        .transpose()?;
    let mut written = Vec::new();
    let ranges = page::write_for_server(&loaded, &mut written)?;
    drop(loaded);
    let site = Site {
        page: written.into(),
        ranges: Box::new(|range| ranges.columns(range)),
        lanes: Box::new(|range, thread| ranges.lane(range, thread)),
        firefox,
        symbols: Symbols::new(Box::new(|| {
            binaries(&recording, &options).map_err(|error| format!("{error:#}"))
        })),
    };
    // After all threads of the loader have ended, and before those of the server begin.
    let signals = SignalFd::block(&[Signal::Interrupt, Signal::Terminate, Signal::HangUp])?;
    let _pointer = args.tell(&server, &signals)?;
    server.run(&site, &signals).context("the server's socket failed")?;
    Ok(0)
}

impl ServeArgs {
    /// Prints the addresses; gives the file that points the browser to the page.
    fn tell(&self, server: &Server, signals: &SignalFd) -> Result<Option<NamedTempFile>> {
        let url = server.url();
        if !self.listen.is_loopback() {
            message::warning(format_args!(
                "everyone who reaches {} and learns the address reads this recording and the sources that it names, \
                 unencrypted: without --listen, only this machine does",
                server.address()
            ));
        }
        output::line(format_args!("{url}/"))?;
        if self.firefox {
            output::line(format_args!("{}", firefox_profiler_url(&url)))?;
        }
        io::stdout().flush()?;
        if !self.quiet {
            message::answer("Ctrl-C ends the server");
        }
        if self.open { open(&format!("{url}/"), signals) } else { Ok(None) }
    }
}

/// Has the browser open the page. Other users see the arguments of a browser, so these name a file of this user's that
/// leads to the page.
fn open(url: &str, signals: &SignalFd) -> Result<Option<NamedTempFile>> {
    let has_display =
        ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if !has_display {
        message::note("--open does nothing: there is no display ($DISPLAY, $WAYLAND_DISPLAY)");
        return Ok(None);
    }
    let mut pointer = tempfile::Builder::new().prefix("whit-serve-").suffix(".html").tempfile()?;
    write!(pointer, "<!DOCTYPE html><meta http-equiv=\"refresh\" content=\"0;url={url}\">")?;
    let mut command = Command::new("xdg-open");
    command.arg(pointer.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    signals.leave_out_of(&mut command);
    match command.spawn() {
        Ok(mut child) => {
            // It ends when the browser has started, or with it.
            std::thread::spawn(move || child.wait());
            Ok(Some(pointer))
        }
        Err(error) => {
            message::warning(format_args!(
                "xdg-open does not start ({error}): open the address yourself"
            ));
            Ok(None)
        }
    }
}

/// The profile for Firefox Profiler, in a file without a name.
fn firefox_file(
    recording: &Recording,
    profile: &Profile,
    switches: Option<&Switches>,
) -> Result<(Arc<File>, u64)> {
    let file = tempfile::tempfile()
        .context("cannot make a temporary file for Firefox Profiler's profile")?;
    let mut out = BufWriter::new(&file);
    firefox(recording, profile, switches, &mut out)?;
    out.flush()?;
    drop(out);
    let size_bytes = file.metadata()?.len();
    Ok((Arc::new(file), size_bytes))
}

/// The code of the recording, with the names by which Firefox Profiler asks for it.
fn binaries(recording: &Recording, options: &LoadOptions) -> Result<(Vec<Library>, CodeFinder)> {
    let mut options =
        LoadOptions { singles: None, facets: WantedFacets::default(), ..options.clone() };
    options.names_kernel = false;
    let (profile, code) = whit_profile::load_code(recording, &options, &|_, _| {})?;
    if profile.dsos.is_empty() {
        bail!("the recording names no binary");
    }
    let library = |(index, dso): (usize, &whit_profile::model::DsoInfo)| Library {
        dso: DsoId(index as u32),
        debug_name: dso.short_name.exact().to_owned(),
        debug_id: whit_export::debug_id(dso),
    };
    Ok((profile.dsos.iter().enumerate().map(library).collect(), code))
}
