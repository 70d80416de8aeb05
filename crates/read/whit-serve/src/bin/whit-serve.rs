//! `whit-serve`, the program that `whit serve` becomes: the page of a recording for a browser, over loopback.
#![forbid(unsafe_code)]

use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use tempfile::NamedTempFile;
use whit_cli::export::firefox;
use whit_cli::page::PageParts;
use whit_cli::program::{exit_code, serve_args};
use whit_cli::progress::answer;
use whit_cli::serve::ServeArgs;
use whit_cli::{message, output, page};
use whit_perfdata::reader::Recording;
use whit_profile::model::{DsoId, Profile};
use whit_profile::switches::Switches;
use whit_profile::{CodeFinder, Reading, Samples, SinglesWanted, WithCode};
use whit_serve::{Bounds, Library, Server, Site, Symbols, Token, firefox_profiler_url};
use whit_sys::{Signal, SignalFd};

/// Samples up to which each keeps its time, in 28 bytes of memory.
const MAX_SAMPLES: u64 = 16_000_000;

fn main() -> ExitCode {
    exit_code(serve_args().and_then(|args| run(&args)))
}

/// Serves until a signal ends it.
fn run(args: &ServeArgs) -> Result<u8> {
    let recording = args.recording()?;
    // A taken address ends the program before the recording is read.
    let address = SocketAddr::new(args.listen, args.port);
    let token = Token::random().context("the kernel gives no random numbers (/dev/urandom)")?;
    let server = Server::bind(address, token, Bounds::default()).with_context(|| {
        format!("cannot listen on {address}: choose another one with --port or --listen")
    })?;
    let options = args.read_options(&recording)?;
    let mut samples = page::samples(&recording, Samples::default(), true);
    samples.singles = Some(SinglesWanted::UpTo(MAX_SAMPLES));
    // Shares of lines have intervals.
    samples.blocks = true;
    let question = PageParts { samples, switches: !args.chooses_cpus() };
    let reading = Reading::open(&recording, &options);
    let loaded = answer(reading, question, args.quiet)?;
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
        symbols: Symbols::new(Box::new(|| binaries(reading).map_err(|error| format!("{error:#}")))),
    };
    // After all threads of the loader have exit_code, and before those of the server begin.
    let signals = SignalFd::block(&[Signal::Interrupt, Signal::Terminate, Signal::HangUp])?;
    let _pointer = say_addresses(args, &server, &signals)?;
    server.run(&site, &signals).context("the server's socket failed")?;
    Ok(0)
}

/// Prints the addresses; gives the file that points the browser to the page.
fn say_addresses(
    args: &ServeArgs,
    server: &Server,
    signals: &SignalFd,
) -> Result<Option<NamedTempFile>> {
    let url = server.url();
    if !args.listen.is_loopback() {
        message::warning(format_args!(
            "everyone who reaches {} and learns the address reads this recording and the sources that it names, \
             unencrypted: without --listen, only this machine does",
            server.address()
        ));
    }
    output::line(format_args!("{url}/"))?;
    if args.firefox {
        output::line(format_args!("{}", firefox_profiler_url(&url)))?;
    }
    io::stdout().flush()?;
    if !args.quiet {
        message::answer("Ctrl-C ends the server");
    }
    if args.open { open(&format!("{url}/"), signals) } else { Ok(None) }
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
fn binaries(reading: Reading<'_>) -> Result<(Vec<Library>, CodeFinder)> {
    let samples = Samples { leaves: true, names_kernel: false, ..Samples::default() };
    let (profile, code) = reading.answer(WithCode(samples))?;
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
