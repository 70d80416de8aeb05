//! The facts, as they are counted and as JSON has them.

use super::advice::ChosenByCpu;
use super::critical_path::CriticalPath;
use super::parts::{
    CgroupShare, EventFacts, FunctionShare, HottestPath, List, LossFacts, Missing, OtherEvent,
    ProcessShare, Recorded, ThreadShare,
};
use super::{
    Headline, MAX_SENTENCE, VERSION, advice, critical_path, name_of, path, shares, shortened, waits,
};
use crate::hists::{self, HistsOptions, SortKey};
use crate::json::{EventPrecision, Losses};
use crate::stdio::loss_line;
use crate::warning::warning_text;
use serde::Serialize;
use whit_profile::handle::Handles;
use whit_profile::model::{EventId, Profile};
use whit_profile::switches::Switches;
use whit_types::OutsideText;
use whit_why::Why;

/// Columns of the summary.
const MAX_SUMMARY: usize = 200;

/// `whit report --brief --json`: one object. Members may be added; `version` grows when one changes its meaning or
/// goes away. Names of more than 100 characters have `…` in their middle.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Brief {
    /// `whit-brief`.
    format: &'static str,
    /// Version of this form.
    version: u32,
    /// Busy CPUs, the hottest functions, and the waits that held work up longest, in one line.
    pub(super) summary: String,
    /// The same, for lines of another length.
    #[serde(skip)]
    pub(super) headline: Headline,
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
    /// `null` without context switches and wake-ups, where threads or times are chosen, and for large recordings.
    pub(super) critical_path: Option<CriticalPath>,
    /// The lacks of the recording.
    pub(super) missing: List<Missing>,
    /// Handles in this document that several functions share: their names tell them apart.
    pub(super) shared_handles: Vec<String>,
    /// Commands that tell more of these facts.
    pub(super) next: List<String>,
    /// Entries that the budget leaves out.
    pub(super) left_off: u64,
}

impl Brief {
    /// Collects the facts. `switches` are those of the same recording, with locks, where it may have any.
    pub fn new(profile: &Profile, switches: Result<Option<&Switches>, ChosenByCpu>) -> Brief {
        let wanted = switches.map(|it| it.filter(|switches| switches.sources.has_switches()));
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
        let headline = Headline::new(profile, switches);
        let mut brief = Brief {
            format: "whit-brief",
            version: VERSION,
            summary: headline.line(MAX_SUMMARY),
            headline,
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
            critical_path: None,
            missing: List::none(),
            shared_handles: Vec::new(),
            next: List::none(),
            left_off: 0,
        };
        brief.missing = List::of(advice::missing(profile, event, wanted));
        brief.next = List::of(advice::next(
            &brief.recorded,
            brief.functions.first.first(),
            brief.hottest_path.is_some(),
            brief.waits.as_ref(),
        ));
        brief.shared_handles = brief.find_shared(profile);
        brief
    }

    /// The same with the critical path of an interval, and the name of the request that it is.
    pub fn with_path(mut self, why: &Why, request: Option<&str>) -> Brief {
        self.critical_path = critical_path::facts(why, request);
        if self.critical_path.is_some() {
            self.next.add(advice::path(&self.recorded, request));
        }
        self
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

/// The event whose samples tell where CPU time goes. Stacks of blocked threads tell nothing of it.
pub(super) fn main_event(profile: &Profile, switches: Option<&Switches>) -> Option<EventId> {
    let of_switches = switches.and_then(|switches| switches.sources.samples);
    let has_samples = |event: &EventId| {
        let info = &profile.events[event.index()];
        info.samples > 0 && !info.is_blocked
    };
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
    let is_other = |at: usize| event.is_none_or(|event| event.index() != at);
    let others = others.filter(|(at, it)| it.samples > 0 && !it.is_blocked && is_other(*at));
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
