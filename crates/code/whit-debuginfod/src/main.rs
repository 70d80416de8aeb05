//! `whit-debuginfod`: fetches debug information from debuginfod's servers into the cache of elfutils' client.
//!
//! `whit` starts it where the user wants names from servers. It is a program of its own, so that neither `whit` nor
//! the recorder carries a client of networks. Requests come as lines on standard input, answers go as lines to
//! standard output ([`whit_companion`]). Variables of the environment are those of `debuginfod-find(1)`.
//!
//! # Invariants
//!
//! - A file gets its name in the cache when it is whole and looked at, never before.
//! - Each wait has a bound, and so has each answer. An answer that is not about the build id is not kept.
//! - The end of standard input, and `SIGINT`, end all requests; those that remain are answered.
#![forbid(unsafe_code)]

mod answer_check;
mod cleaning;
mod client;
mod fetch;
mod settings;
mod stop;
mod store;

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use fetch::{FetchError, Fetcher};
use settings::Settings;
use stop::Stop;
use whit_companion::{Answer, End, News, PROGRAM, Request};
use whit_sys::{Signal, SignalFd};

/// Most requests of one run.
const MAX_REQUESTS: usize = 4096;

/// As shells say that a command was ended by SIGINT.
const INTERRUPTED: u8 = 130;

const USAGE: &str = "\
whit starts this program to fetch debug information (whit report --debuginfod).
It reads lines `BUILDID symbols|debug|symbols,debug|whole` and `end` from standard
input, and asks the servers of $DEBUGINFOD_URLS. Its variables and its cache are
those of debuginfod-find(1).";

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        None => {}
        Some("--version") => {
            println!("{PROGRAM} {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Some(argument) => {
            let is_help = matches!(argument, "-h" | "--help");
            eprintln!("{USAGE}");
            return ExitCode::from(if is_help { 0 } else { 2 });
        }
    }
    match run() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("{PROGRAM}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<u8, Box<dyn std::error::Error>> {
    // Before any other thread begins: all of them leave the signal to the one that watches for it.
    let _signals = SignalFd::block(&[Signal::Interrupt])?;
    let settings = Settings::from_variables(&|name| std::env::var_os(name))?;
    let requests = requests(&mut io::stdin().lock())?;
    let stop = Stop::watch()?;
    let mut fetcher = Fetcher::new(settings, stop.clone())?;
    for request in requests {
        let id = request.id;
        let report = |news| say(&Answer { id, news });
        let end = match fetcher.fetch(request, &report) {
            Ok(fetched_bytes) => End::Here { fetched_bytes },
            Err(FetchError::Stopped) => End::Stopped,
            Err(error) => End::Failed(error.to_string()),
        };
        say(&Answer { id, news: News::End(end) });
    }
    Ok(if stop.is_stopped() { INTERRUPTED } else { 0 })
}

/// Up to the last line.
fn requests(input: &mut dyn BufRead) -> Result<Vec<Request>, String> {
    let mut requests = Vec::new();
    for line in input.lines() {
        let line = line.map_err(|error| format!("cannot read the requests: {error}"))?;
        if line == Request::LAST {
            return Ok(requests);
        }
        let request = Request::parse(&line);
        requests.push(request.ok_or_else(|| format!("no request: {line:?}\n{USAGE}"))?);
        if requests.len() > MAX_REQUESTS {
            return Err(format!("more than {MAX_REQUESTS} requests at a time"));
        }
    }
    Err(format!("the requests end without the line `{}`", Request::LAST))
}

/// Where nobody reads any more, the end of standard input says so too.
fn say(answer: &Answer) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{answer}").and_then(|()| out.flush());
}
