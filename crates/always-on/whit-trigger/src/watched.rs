//! One rule, and how its event is noticed by now.

use crate::meter::{self, Meter, now_ns};
use crate::pressure::kernel_trigger;
use crate::rule::Rule;
use serde::Serialize;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use whit_host::roots::Roots;
use whit_sys::{Errno, Poller, pidfd};

/// How the event of a rule is noticed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum State {
    /// The kernel tells.
    Kernel,
    /// A file is read several times a second, for this reason.
    Polling {
        /// Why the kernel does not tell.
        reason: String,
    },
    /// An application or a user tells.
    Message,
    /// The recording has it, up to two seconds after the event.
    Recording,
    /// Not now: this is missing, and is looked for once a second.
    Waiting {
        /// The missing thing.
        reason: String,
    },
    /// Never again: the process has ended.
    Over,
}

/// A rule at work.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) rule: Rule,
    pub(crate) state: State,
    pub(crate) events: u64,
    pub(crate) source: Source,
}

/// The thing that tells.
#[derive(Debug)]
pub(crate) enum Source {
    None,
    Kernel { file: File, path: PathBuf },
    Meter(Meter),
    Process(OwnedFd),
}

impl Watched {
    pub(crate) fn new(rule: Rule) -> Watched {
        let reason = "it was not looked for yet".to_owned();
        Watched { rule, state: State::Waiting { reason }, events: 0, source: Source::None }
    }

    /// Finds the file or process of the rule.
    pub(crate) fn look(&mut self, roots: &Roots, poller: &Poller, token: u64) {
        (self.source, self.state) = match &self.rule {
            Rule::Latency { .. } | Rule::Signal => (Source::None, State::Message),
            Rule::Request { .. } => (Source::None, State::Recording),
            Rule::Exit(pid) => process(*pid, poller, token),
            rule => match meter::file(rule, roots) {
                Some(Ok(path)) => of_file(rule, path, poller, token),
                Some(Err(reason)) => (Source::None, State::Waiting { reason }),
                None => return,
            },
        };
    }

    /// The file or process is gone.
    pub(crate) fn is_gone(&mut self, poller: &Poller, reason: String) {
        match &self.source {
            // The kernel lets go of descriptors that are closed.
            Source::Kernel { file, .. } => drop(poller.remove(file)),
            Source::Process(fd) => drop(poller.remove(fd)),
            Source::Meter(_) | Source::None => {}
        }
        self.source = Source::None;
        self.state = match self.rule {
            Rule::Exit(_) => State::Over,
            _ => State::Waiting { reason },
        };
    }

    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting { .. })
    }
}

fn process(pid: i32, poller: &Poller, token: u64) -> (Source, State) {
    let added = pidfd::of_thread(pid).and_then(|fd| poller.add(&fd, token).map(|()| fd));
    match added {
        Ok(fd) => (Source::Process(fd), State::Kernel),
        Err(Errno::SRCH) => {
            (Source::None, State::Waiting { reason: format!("there is no process {pid}") })
        }
        Err(errno) => (Source::None, State::Waiting { reason: format!("process {pid}: {errno}") }),
    }
}

fn of_file(rule: &Rule, path: PathBuf, poller: &Poller, token: u64) -> (Source, State) {
    let reason = match rule {
        Rule::Pressure(pressure) => match kernel_trigger(&path, pressure, poller, token) {
            Ok(file) => return (Source::Kernel { file, path }, State::Kernel),
            Err(error) => format!("the kernel takes no trigger in {}: {error}", path.display()),
        },
        _ => "throttling has no notices".to_owned(),
    };
    // The first reading is what later ones are compared with.
    let Some(mut meter) = Meter::new(rule, &path) else {
        return (Source::None, State::Waiting { reason });
    };
    match meter.read(now_ns()) {
        Ok(_) => (Source::Meter(meter), State::Polling { reason }),
        Err(error) => {
            (Source::None, State::Waiting { reason: format!("{}: {error}", path.display()) })
        }
    }
}
