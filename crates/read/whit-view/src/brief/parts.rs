//! The parts of a brief: shapes of its facts.

use super::{MAX_LIST, name_of};
use crate::json::{EventPrecision, Losses};
use serde::Serialize;
use whit_profile::handle;
use whit_profile::model::{FunctionId, Profile};

/// The first entries, and how many there are in all.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct List<T> {
    pub(super) count: usize,
    pub(super) first: Vec<T>,
}

impl<T> List<T> {
    pub(super) fn none() -> List<T> {
        List { count: 0, first: Vec::new() }
    }

    pub(super) fn of(all: Vec<T>) -> List<T> {
        let mut list = List { count: all.len(), first: all };
        list.first.truncate(MAX_LIST);
        list
    }

    pub(super) fn add(&mut self, entry: T) {
        self.count += 1;
        self.first.push(entry);
        self.first.truncate(MAX_LIST);
    }

    /// Leaves so many; gives the number of those that it takes away.
    pub(super) fn shorten(&mut self, max: usize) -> u64 {
        let left_off = self.first.len().saturating_sub(max);
        self.first.truncate(max);
        left_off as u64
    }
}

/// The recorded command, and the machine.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Recorded {
    pub(super) path: String,
    /// The command line that recorded, in one line, quoted for a shell.
    pub(super) command: String,
    pub(super) hostname: String,
    pub(super) os_release: String,
    pub(super) cpus: Option<u32>,
    /// From the first sample to the last one.
    pub(super) sampled_ns: Option<u64>,
}

/// The event that shares are of.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct EventFacts {
    pub(super) name: String,
    pub(super) samples: u64,
    pub(super) period: u64,
    pub(super) lost_samples: u64,
    pub(super) precision: EventPrecision,
}

/// Another event.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct OtherEvent {
    pub(super) name: String,
    pub(super) samples: u64,
}

/// Records that the recording lacks.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct LossFacts {
    #[serde(flatten)]
    pub(super) numbers: Losses,
    /// The same for people; `null` where nothing was lost.
    pub(super) text: Option<String>,
}

/// Code under one name in one binary.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Function {
    /// Other commands take it in place of the name.
    pub(crate) handle: String,
    pub(crate) name: String,
    /// File name of the binary.
    pub(crate) binary: String,
}

impl Function {
    pub(crate) fn of(profile: &Profile, id: FunctionId) -> Function {
        let function = &profile.functions[id.index()];
        Function {
            handle: handle::of_function(profile, id),
            name: name_of(&function.name),
            binary: name_of(&profile.dsos[function.dso.index()].short_name),
        }
    }
}

/// A share of the event.
#[derive(Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Share {
    pub(super) percent: f64,
    pub(super) samples: u64,
    /// Lower end of the interval that holds the true share in 95 of 100 recordings; `null` where there are too few
    /// samples.
    pub(super) low_percent: Option<f64>,
    /// Its upper end.
    pub(super) high_percent: Option<f64>,
}

/// The samples in a function, and in all that it calls.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct FunctionShare {
    #[serde(flatten)]
    pub(super) function: Function,
    pub(super) inlined: bool,
    pub(super) kernel: bool,
    #[serde(rename = "self")]
    pub(super) own: Share,
    /// With all that it calls.
    pub(super) total: Share,
}

/// The call path that most samples follow.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct HottestPath {
    /// Share of the event that reaches its innermost function by this path.
    pub(super) percent: f64,
    pub(super) functions: usize,
    /// The innermost functions, from caller to callee.
    pub(super) innermost: Vec<PathStep>,
}

/// A function of the path.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct PathStep {
    #[serde(flatten)]
    pub(super) function: Function,
    /// Share of the event that comes here by this path.
    pub(super) percent: f64,
    /// How often the function stands here, one call directly in the other.
    pub(super) times: usize,
}

/// All threads of a process together.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ProcessShare {
    pub(super) pid: i32,
    pub(super) comm: String,
    pub(super) percent: f64,
    pub(super) samples: u64,
}

/// One of several threads with samples.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ThreadShare {
    /// `--tid` takes it.
    pub(super) handle: String,
    pub(super) pid: i32,
    pub(super) tid: i32,
    pub(super) comm: String,
    pub(super) percent: f64,
    pub(super) samples: u64,
}

/// A cgroup, without those below it.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct CgroupShare {
    pub(super) path: String,
    pub(super) percent: f64,
    pub(super) samples: u64,
}

/// A lack, and the command that gives the missing.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Missing {
    pub(super) lack: String,
    pub(super) command: String,
}
