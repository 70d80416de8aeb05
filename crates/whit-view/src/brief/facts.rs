//! The facts, as they are counted and as JSON has them.

use super::advice::ChosenByCpu;
use super::{MAX_SENTENCE, VERSION, advice, name_of, path, shares, shortened, waits};
use crate::hists::{self, HistsOptions, SortKey};
use crate::json::{EventPrecision, Losses};
use crate::stdio::loss_line;
use crate::warning::warning_text;
use serde::Serialize;
use whit_profile::handle::{self, Handles};
use whit_profile::model::{EventId, FunctionId, Profile};
use whit_profile::switches::Switches;
use whit_types::OutsideText;

/// `whit report --brief --json`: one object. Members may be added; `version` grows when one changes its meaning or
/// goes away. Names of more than 100 characters have `…` in their middle.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Brief {
    /// `whit-brief`.
    format: &'static str,
    /// Version of this form.
    version: u32,
    pub(super) recorded: Recorded,
    /// The event that shares are of; `null` where the recording has no samples.
    pub(super) event: Option<EventFacts>,
    /// The other events with samples.
    pub(super) other_events: List<OtherEvent>,
    pub(super) losses: LossFacts,
    pub(super) warnings: List<String>,
    /// The functions with the largest shares of their own.
    pub(super) functions: List<FunctionShare>,
    /// The functions with the largest shares together with all that they call.
    pub(super) totals: List<FunctionShare>,
    /// From the outermost function on, always the callee with the largest share; `null` without call chains.
    pub(super) hottest_path: Option<HottestPath>,
    /// Where there are several.
    pub(super) processes: List<ProcessShare>,
    /// Where there are several.
    pub(super) threads: List<ThreadShare>,
    /// Where they were recorded.
    pub(super) cgroups: List<CgroupShare>,
    /// `null` where context switches were not recorded, or samples are chosen by CPU.
    pub(super) waits: Option<waits::WaitFacts>,
    /// The lacks of the recording.
    pub(super) missing: List<Missing>,
    /// Handles in this document that several functions share: their names tell them apart.
    pub(super) shared_handles: Vec<String>,
    /// Commands that tell more of these facts.
    pub(super) next: List<String>,
    /// Entries that the budget leaves out.
    pub(super) left_off: u64,
}

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
        list.first.truncate(super::MAX_LIST);
        list
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

impl Brief {
    /// Collects the facts. `switches` are those of the same recording, with locks, where it may have any.
    pub fn new(profile: &Profile, switches: Result<Option<&Switches>, ChosenByCpu>) -> Brief {
        let wanted = switches.map(|it| it.filter(|switches| switches.sources.tells_switches()));
        let switches = wanted.ok().flatten();
        let event = main_event(profile, switches);
        let rows = event.map(|event| {
            let options = HistsOptions {
                sort: vec![SortKey::Dso, SortKey::Symbol],
                chains: hists::ChainOptions {
                    mode: hists::ChainMode::None,
                    ..hists::ChainOptions::default()
                },
                intervals: profile.blocks.is_some(),
                ..HistsOptions::default()
            };
            hists::hists(profile, event, &options)
        });
        let (functions, totals) =
            rows.map_or((List::none(), List::none()), |rows| shares::functions(profile, &rows));
        let warnings: Vec<_> =
            profile.warnings.iter().map(|it| warning_text(it).into_exact()).collect();
        let waits = switches.map(|switches| waits::facts(profile, switches));
        let mut brief = Brief {
            format: "whit-brief",
            version: VERSION,
            recorded: recorded(profile),
            event: event.map(|event| event_facts(profile, event)),
            other_events: other_events(profile, event),
            losses: LossFacts {
                numbers: Losses::of(&profile.losses),
                text: loss_line(&profile.losses),
            },
            warnings: List::of(warnings.iter().map(|it| shortened(it, MAX_SENTENCE)).collect()),
            functions,
            totals,
            hottest_path: event.and_then(|event| path::hottest(profile, event)),
            processes: event.map_or(List::none(), |event| shares::processes(profile, event)),
            threads: event.map_or(List::none(), |event| shares::threads(profile, event)),
            cgroups: event.map_or(List::none(), |event| shares::cgroups(profile, event)),
            waits,
            missing: List::none(),
            shared_handles: Vec::new(),
            next: List::none(),
            left_off: 0,
        };
        brief.missing = List::of(advice::missing(profile, event, wanted));
        brief.next = List::of(advice::next(&brief));
        brief.shared_handles = brief.find_shared(profile);
        brief
    }

    /// The handles of shown functions that stand for other functions, too.
    fn find_shared(&self, profile: &Profile) -> Vec<String> {
        let handles = Handles::new(profile);
        let rows = self.functions.first.iter().chain(&self.totals.first).map(|row| &row.function);
        let steps = self.hottest_path.iter().flat_map(|path| &path.innermost);
        let all = rows.chain(steps.map(|step| &step.function));
        let mut shared: Vec<_> =
            all.map(|it| it.handle.clone()).filter(|handle| handles.is_shared(handle)).collect();
        shared.sort();
        shared.dedup();
        shared
    }
}

/// The event whose samples tell where CPU time goes.
fn main_event(profile: &Profile, switches: Option<&Switches>) -> Option<EventId> {
    let of_switches = switches.and_then(|switches| switches.sources.samples);
    let has_samples = |event: &EventId| profile.events[event.index()].samples > 0;
    let mut all = (0..profile.events.len() as u32).map(EventId);
    of_switches.filter(has_samples).or_else(|| all.find(has_samples))
}

fn recorded(profile: &Profile) -> Recorded {
    let info = &profile.recording;
    let words = info.cmdline.iter().map(OutsideText::exact);
    let sampled = info.first_sample.zip(info.last_sample);
    Recorded {
        path: shortened(info.path.exact(), MAX_SENTENCE),
        command: shortened(&advice::quoted(words), MAX_SENTENCE),
        hostname: name_of(&info.hostname),
        os_release: name_of(&info.os_release),
        cpus: info.nr_cpus.map(|cpus| cpus.0),
        sampled_ns: sampled.map(|(first, last)| last.since(first)),
    }
}

fn event_facts(profile: &Profile, event: EventId) -> EventFacts {
    let info = &profile.events[event.index()];
    EventFacts {
        name: name_of(&info.name),
        samples: info.samples,
        period: info.period,
        lost_samples: info.lost_samples,
        precision: EventPrecision::of(info.precision),
    }
}

fn other_events(profile: &Profile, event: Option<EventId>) -> List<OtherEvent> {
    let others = profile.events.iter().enumerate();
    let others = others.filter(|(at, it)| it.samples > 0 && event.is_none_or(|e| e.index() != *at));
    List::of(
        others.map(|(_, it)| OtherEvent { name: name_of(&it.name), samples: it.samples }).collect(),
    )
}

#[cfg(test)]
mod schema {
    use super::*;

    #[test]
    fn the_schema_is_published() {
        whit_schemas::assert_schema::<Brief>("docs/schemas/brief.json");
    }
}
