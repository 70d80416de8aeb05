//! Debug information from servers: the options, and the program that fetches.

use crate::failure::usage;
use crate::heading;
use crate::message;
use crate::sibling;
use anyhow::{Result, anyhow};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::HashMap;
use std::io::{self, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use whit_companion::{Answer, Cache, End, News, PROGRAM, Request, URLS, shown_url};
use whit_profile::companions::{Companions, Fetch, Wanted};
use whit_profile::warning::NotFetched;
use whit_sys::{Poller, Signal, SignalFd};
use whit_types::{BuildId, OutsideText, escape};

/// Tokens of the descriptors that are waited for.
const ANSWERS: u64 = 0;
const SIGNALS: u64 = 1;

/// Longest output of the program without an end of line.
const MAX_LINE_BYTES: usize = 64 << 10;

/// Whether servers are asked, and for which binaries.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct DebuginfodArgs {
    /// Fetch debug information of stripped binaries from these servers, separated by spaces [default: those of
    /// $DEBUGINFOD_URLS, which are asked without this option, too]
    #[arg(long, value_name = "URLS", num_args = 0..=1, require_equals = true, default_missing_value = "",
          overrides_with = "no_debuginfod", help_heading = heading::SYMBOLS)]
    debuginfod: Option<String>,
    /// Ask no server, and use nothing that was fetched
    #[arg(long, overrides_with = "debuginfod", help_heading = heading::SYMBOLS)]
    no_debuginfod: bool,
    /// Fetch for binaries with at least this share of the samples
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = percent, help_heading = heading::SYMBOLS)]
    debuginfod_limit: f64,
}

fn percent(text: &str) -> Result<f64, &'static str> {
    let number: f64 = text.strip_suffix('%').unwrap_or(text).parse().unwrap_or(f64::NAN);
    if (0.0..=100.0).contains(&number) { Ok(number) } else { Err("give a share, such as 1%") }
}

impl DebuginfodArgs {
    /// No server is asked.
    pub(crate) fn none() -> DebuginfodArgs {
        DebuginfodArgs { debuginfod: None, no_debuginfod: true, debuginfod_limit: 100.0 }
    }

    /// Whether the user asks for fetches in this command.
    pub(crate) fn is_given(&self) -> bool {
        self.debuginfod.is_some()
    }

    /// Whether companions are fetched, and the cache that is looked into then.
    ///
    /// # Errors
    /// No server is named.
    pub(crate) fn companions(&self, debug_info: bool) -> Result<(Companions, Option<Cache>)> {
        let variable = |name: &str| std::env::var_os(name);
        let of_environment = variable(URLS).unwrap_or_default().to_string_lossy().into_owned();
        let urls = match &self.debuginfod {
            _ if self.no_debuginfod => return Ok((Companions::Off, None)),
            Some(urls) if !urls.trim().is_empty() => urls.clone(),
            _ => of_environment,
        };
        if urls.trim().is_empty() {
            return match self.debuginfod {
                None => Ok((Companions::Offer, None)),
                Some(_) => Err(usage(anyhow!(
                    "--debuginfod without servers takes those of {URLS}, which is not set: name one, as in \
                     --debuginfod=https://debuginfod.elfutils.org"
                ))),
            };
        }
        let cache = Cache::standard(&variable).ok_or_else(|| {
            usage(anyhow!("there is no place for fetched files: set HOME or DEBUGINFOD_CACHE_PATH"))
        })?;
        let by = Arc::new(Fetcher { urls, cache: cache.clone() });
        let least_share = self.debuginfod_limit / 100.0;
        Ok((Companions::Fetch { by, least_share, debug_info }, Some(cache)))
    }
}

/// Fetches with the program.
#[derive(Debug)]
struct Fetcher {
    urls: String,
    cache: Cache,
}

impl Fetch for Fetcher {
    fn fetch(&self, wanted: &[Wanted]) -> Vec<Result<(), NotFetched>> {
        let mut ends = HashMap::new();
        let failure = self.run(wanted, &mut ends).err();
        let result = |wanted: &Wanted| match ends.get(&wanted.lack.id) {
            Some(End::Here { .. }) => Ok(()),
            Some(End::Stopped) => Err(NotFetched::Stopped),
            Some(End::Failed(reason)) => {
                Err(NotFetched::Failed { reason: OutsideText::from(reason.as_str()) })
            }
            None => Err(failure.clone().unwrap_or(NotFetched::Stopped)),
        };
        wanted.iter().map(result).collect()
    }

    fn folder(&self, id: BuildId) -> PathBuf {
        self.cache.folder(id)
    }
}

impl Fetcher {
    fn run(&self, wanted: &[Wanted], ends: &mut HashMap<BuildId, End>) -> Result<(), NotFetched> {
        // While the program runs, a key ends it, and not this process.
        let failed =
            |error: &dyn std::fmt::Display| NotFetched::Failed { reason: error.to_string().into() };
        let signals = SignalFd::block(&[Signal::Interrupt]).map_err(|error| failed(&error))?;
        let mut child = self.start(wanted)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            return Err(failed(&"it has no pipes"));
        };
        let mut display = Display::new(wanted, &self.urls);
        let read = listen(wanted, stdin, stdout, &signals, &mut |answer| {
            display.show(&answer);
            if let News::End(end) = answer.news {
                ends.insert(answer.id, end);
            }
        });
        display.finish(ends);
        let said = end_of(child).map_err(|error| failed(&error))?;
        read.map_err(|error| failed(&error))?;
        if said.is_empty() { Ok(()) } else { Err(failed(&said)) }
    }

    fn start(&self, wanted: &[Wanted]) -> Result<Child, NotFetched> {
        let path = sibling::path(PROGRAM).unwrap_or_else(|| PROGRAM.into());
        let started = Command::new(&path)
            .env(URLS, &self.urls)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        started.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => NotFetched::NoProgram { path },
            _ => NotFetched::Failed {
                reason: format!(
                    "cannot run {} for {} binaries: {error}",
                    path.display(),
                    wanted.len()
                )
                .into(),
            },
        })
    }
}

/// Writes the requests and takes the answers, until there are no more. Where the user wants an end, the program's
/// standard input ends, and it answers the rest at once.
fn listen(
    wanted: &[Wanted],
    mut stdin: ChildStdin,
    mut stdout: ChildStdout,
    signals: &SignalFd,
    take: &mut dyn FnMut(Answer),
) -> io::Result<()> {
    let requests = wanted.iter().map(|it| Request { id: it.lack.id, parts: it.lack.parts });
    let lines: String = requests.map(|request| format!("{request}\n")).collect();
    // The program reads all of them before it answers; where it has gone, its error output says why.
    let _ = stdin.write_all(format!("{lines}{}\n", Request::LAST).as_bytes());
    let mut stdin = Some(stdin);
    let mut poller = Poller::new()?;
    poller.add(&stdout, ANSWERS)?;
    poller.add(signals, SIGNALS)?;
    let (mut waiting, mut buffer) = (Vec::new(), vec![0; 4096]);
    loop {
        for ready in poller.wait(None)? {
            if ready.token == SIGNALS {
                if signals.next()?.is_some() {
                    drop(stdin.take());
                }
                continue;
            }
            let size = stdout.read(&mut buffer)?;
            if size == 0 {
                return Ok(());
            }
            waiting.extend_from_slice(&buffer[..size]);
            while let Some(end) = waiting.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = waiting.drain(..=end).collect();
                Answer::parse(&String::from_utf8_lossy(&line)).into_iter().for_each(&mut *take);
            }
            waiting.truncate(MAX_LINE_BYTES);
        }
    }
}

/// Waits for the program; gives the reason of a failure.
fn end_of(mut child: Child) -> io::Result<String> {
    let mut said = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        stderr.take(MAX_LINE_BYTES as u64).read_to_end(&mut said)?;
    }
    child.wait()?;
    Ok(String::from_utf8_lossy(&said).trim().to_owned())
}

/// Tells the user of the fetch: a bar on a terminal, lines elsewhere.
struct Display<'a> {
    wanted: &'a [Wanted],
    bar: Option<ProgressBar>,
    /// Bytes of the files before the present one.
    before: u64,
    last: u64,
    is_announced: bool,
    servers: String,
}

impl Display<'_> {
    fn new<'a>(wanted: &'a [Wanted], urls: &str) -> Display<'a> {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::no_length();
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
            let form = "fetching {msg}: {bytes} ({elapsed}; Ctrl-C goes on without)";
            if let Ok(style) = ProgressStyle::with_template(form) {
                bar.set_style(style);
            }
            bar
        });
        let servers = urls.split_whitespace().map(shown_url).collect::<Vec<_>>().join(", ");
        Display { wanted, bar, before: 0, last: 0, is_announced: false, servers }
    }

    fn show(&mut self, answer: &Answer) {
        let News::Progress { done_bytes, .. } = answer.news else { return };
        if !self.is_announced && self.bar.is_none() {
            self.is_announced = true;
            message::note(format_args!("fetching debug information from {}", self.servers));
        }
        if done_bytes < self.last {
            self.before += self.last;
        }
        self.last = done_bytes;
        if let Some(bar) = &self.bar {
            let name = self.wanted.iter().find(|wanted| wanted.lack.id == answer.id);
            let name = name.map_or("", |wanted| wanted.name.exact());
            bar.set_message(escape(name).into_owned());
            bar.set_position(self.before + self.last);
        }
    }

    fn finish(self, ends: &HashMap<BuildId, End>) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let fetched = ends.values().filter_map(|end| match end {
            End::Here { fetched_bytes: bytes @ 1.. } => Some(*bytes),
            _ => None,
        });
        let (binaries, bytes) =
            fetched.fold((0, 0), |(count, sum), bytes| (count + 1, sum + bytes));
        if binaries > 0 {
            let mib = bytes as f64 / f64::from(1 << 20);
            message::note(format_args!(
                "fetched {mib:.2} MiB of debug information for {binaries} binaries from {}",
                self.servers
            ));
        }
    }
}
