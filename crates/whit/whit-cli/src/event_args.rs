//! `-e`, and the options that speak of the events before them: `--filter`, `-G`, `--exclude-perf`.
//!
//! `whit record` turns them into recorded events, `whit stat` into counters.

use crate::completion;
use crate::failure::{bail_usage, usage};
use anyhow::{Context, Result};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::ops::Range;
use whit_capture::error::CaptureError;
use whit_events::{
    EventList, Item, PmuTable, ResolveError, ResolveErrorKind, ResolvedGroup, TracefsIds, resolve,
};

/// A subcommand's own form of an event.
pub(crate) trait Wanted: Sized {
    /// Converts all events of these groups, in order.
    fn from_groups(groups: Vec<ResolvedGroup>) -> Result<Vec<Self>>;
    /// Name of the event in output, as the user wrote it.
    fn name(&self) -> &str;
    /// Whether it is a tracepoint.
    fn is_tracepoint(&self) -> bool;
    /// A tracepoint's filter expression.
    fn filter(&mut self) -> &mut Option<String>;
    /// Index of the group's leader.
    fn leader(&mut self) -> &mut Option<usize>;
    /// Only this cgroup's tasks.
    fn set_cgroup(&mut self, name: Option<&str>);
    /// Leave the recorder's own threads out; an error where nothing is recorded.
    fn leave_recorder_out(&mut self) -> Result<()>;
}

/// One option, in the order of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Events(String),
    Filter(String),
    Cgroups(String),
    LeaveRecorderOut,
}

type MakeStep = fn(String) -> Step;

/// Options whose order counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventArgs {
    steps: Vec<Step>,
}

impl clap::Args for EventArgs {
    fn augment_args(command: Command) -> Command {
        let many = |id: &'static str, value: &'static str| {
            Arg::new(id).long(id).value_name(value).action(ArgAction::Append)
        };
        command
            .arg(many("event", "EVENT,..").short('e').add(completion::events()).help(
                "Measure these events: names (see `whit list`), cpu/event=0x3c/, \
                 sched:sched_switch, {groups}; may be repeated",
            ))
            .arg(many("filter", "FILTER").allow_hyphen_values(true).help(
                "Filter the tracepoints of the preceding -e; several filters are combined with &&",
            ))
            .arg(many("cgroup", "NAME,..").short('G').add(completion::cgroups()).help(
                "Measure only these cgroups: with -a or -C the first for the first event, and so on; \
                 a single one for all preceding events",
            ))
            .arg(
                Arg::new("exclude-perf")
                    .long("exclude-perf")
                    .action(ArgAction::SetTrue)
                    .help("Exclude the recorder from the tracepoints of the preceding -e"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for EventArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut steps: Vec<(usize, Step)> = Vec::new();
        let kinds: [(&str, MakeStep); 3] =
            [("event", Step::Events), ("filter", Step::Filter), ("cgroup", Step::Cgroups)];
        for (id, step) in kinds {
            let indices = matches.indices_of(id).into_iter().flatten();
            let values = matches.get_many::<String>(id).into_iter().flatten();
            steps.extend(indices.zip(values).map(|(index, value)| (index, step(value.clone()))));
        }
        if matches.value_source("exclude-perf") == Some(ValueSource::CommandLine)
            && let Some(index) = matches.index_of("exclude-perf")
        {
            steps.push((index, Step::LeaveRecorderOut));
        }
        steps.sort_by_key(|(index, _)| *index);
        Ok(EventArgs { steps: steps.into_iter().map(|(_, step)| step).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl EventArgs {
    /// Whether there is an `-e`.
    pub(crate) fn has_events(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Events(_)))
    }

    /// The names of `-G`, which are no longer those of single events.
    pub(crate) fn without_cgroups(&self) -> (EventArgs, Vec<String>) {
        let is_cgroups = |step: &&Step| matches!(step, Step::Cgroups(_));
        let (cgroups, others): (Vec<_>, Vec<_>) = self.steps.iter().partition(is_cgroups);
        let names = cgroups.into_iter().flat_map(|step| match step {
            Step::Cgroups(names) => names.split(',').map(str::to_owned).collect(),
            _ => Vec::new(),
        });
        let names = names.filter(|name| !name.is_empty()).collect();
        (EventArgs { steps: others.into_iter().cloned().collect() }, names)
    }

    /// Whether there is a `-G`.
    pub(crate) fn has_cgroups(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Cgroups(_)))
    }

    /// The events on these PMUs; `default` where there is no `-e`. `skipped` hears of those that this machine
    /// does not have, and why; without it they are errors.
    pub(crate) fn resolve<T: Wanted>(
        &self,
        table: PmuTable,
        default: &str,
        skipped: Option<Skipped<'_>>,
    ) -> Result<Vec<T>> {
        let mut events = Events {
            table,
            tracepoints: TracefsIds::system(),
            skipped,
            slots: Vec::new(),
            last: 0..0,
            cgroups: 0,
        };
        if !self.has_events() {
            events.add(default)?;
        }
        for step in &self.steps {
            match step {
                Step::Events(text) => events.add(text)?,
                Step::Filter(filter) => events.filter(filter)?,
                Step::Cgroups(names) => events.cgroups(names)?,
                Step::LeaveRecorderOut => events.leave_recorder_out()?,
            }
        }
        events.finish()
    }
}

/// Hears of an event that is left out, and why.
pub(crate) type Skipped<'a> = &'a mut dyn FnMut(String, String);

/// Events as they are collected.
struct Events<'a, T> {
    table: PmuTable,
    tracepoints: TracefsIds,
    skipped: Option<Skipped<'a>>,
    /// `None` stands for an event that is left out: cgroups are counted by events as written.
    slots: Vec<Option<T>>,
    /// Those of the last `-e`.
    last: Range<usize>,
    /// Cgroups that were named so far.
    cgroups: usize,
}

impl<T: Wanted> Events<'_, T> {
    fn add(&mut self, text: &str) -> Result<()> {
        let list = whit_events::parse(text)
            .with_context(|| format!("bad event list '{text}'"))
            .map_err(usage)?;
        let start = self.slots.len();
        for item in &list.items {
            self.add_item(&list, item.clone())?;
        }
        self.last = start..self.slots.len();
        Ok(())
    }

    fn add_item(&mut self, list: &EventList, item: Item) -> Result<()> {
        let one = EventList { text: list.text.clone(), items: vec![item] };
        match resolve(&one, &self.table, &mut self.tracepoints) {
            Ok(groups) => {
                let offset = self.slots.len();
                self.slots.extend(T::from_groups(groups)?.into_iter().map(|mut event| {
                    *event.leader() = event.leader().map(|leader| leader + offset);
                    Some(event)
                }));
                Ok(())
            }
            Err(error) if self.skipped.is_some() && is_missing(&error) => {
                self.add_without(list, one, &error)
            }
            Err(error) if is_missing(&error) => Err(error.into()),
            Err(error) => Err(usage(error)),
        }
    }

    /// Adds what an item holds besides events that this machine does not have.
    fn add_without(
        &mut self,
        list: &EventList,
        mut one: EventList,
        error: &ResolveError,
    ) -> Result<()> {
        match one.items.pop() {
            Some(Item::Group(mut group)) if group.events.len() > 1 => {
                let members = std::mem::take(&mut group.events);
                for event in members {
                    let alone = EventList {
                        text: list.text.clone(),
                        items: vec![Item::Event(event.clone())],
                    };
                    match resolve(&alone, &self.table, &mut self.tracepoints) {
                        Err(error) if is_missing(&error) => self.leave_out(&error),
                        _ => group.events.push(event),
                    }
                }
                if group.events.is_empty() {
                    Ok(())
                } else {
                    self.add_item(list, Item::Group(group))
                }
            }
            _ => {
                self.leave_out(error);
                Ok(())
            }
        }
    }

    fn leave_out(&mut self, error: &ResolveError) {
        self.slots.push(None);
        if let Some(skipped) = &mut self.skipped {
            skipped(error.event.clone(), error.kind.to_string());
        }
    }

    /// The tracepoints of the last `-e`.
    fn tracepoints(&mut self, option: &str) -> Result<Vec<&mut T>> {
        if self.last.is_empty() {
            bail_usage!(
                "{option} speaks of the tracepoints of the -e before it: put it behind one"
            );
        }
        let specs: Vec<_> = self.slots[self.last.clone()].iter_mut().flatten().collect();
        if let Some(other) = specs.iter().find(|spec| !spec.is_tracepoint()) {
            bail_usage!(
                "{option} takes tracepoints only, '{}' is none: put it behind an -e that holds \
                 nothing else",
                other.name()
            );
        }
        Ok(specs)
    }

    fn filter(&mut self, filter: &str) -> Result<()> {
        for spec in self.tracepoints("--filter")? {
            *spec.filter() = Some(match spec.filter().take() {
                Some(before) => format!("({before}) && ({filter})"),
                None => filter.to_owned(),
            });
        }
        Ok(())
    }

    fn leave_recorder_out(&mut self) -> Result<()> {
        let mut tracepoints = self.tracepoints("--exclude-perf")?;
        tracepoints.iter_mut().try_for_each(|spec| spec.leave_recorder_out())
    }

    /// As perf: the n-th name of all `-G` is for the n-th event; a first `-G` with a single name is
    /// for all events so far.
    fn cgroups(&mut self, names: &str) -> Result<()> {
        if self.slots.is_empty() {
            bail_usage!("-G speaks of the events before it: put it behind an -e");
        }
        let names: Vec<_> = names.split(',').collect();
        for name in &names {
            let index = self.cgroups;
            self.cgroups += 1;
            if name.is_empty() {
                continue;
            }
            let Some(slot) = self.slots.get_mut(index) else {
                bail_usage!("cgroup '{name}' has no event: it is number {} before -G", index + 1);
            };
            if let Some(spec) = slot {
                spec.set_cgroup(Some(name));
            }
        }
        if self.cgroups == 1 {
            let name = names.first().filter(|name| !name.is_empty());
            for spec in self.slots.iter_mut().flatten() {
                spec.set_cgroup(name.copied());
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<T>> {
        let mut new_index = Vec::with_capacity(self.slots.len());
        let mut count = 0;
        for slot in &self.slots {
            new_index.push(count);
            count += usize::from(slot.is_some());
        }
        let mut events: Vec<_> = self.slots.into_iter().flatten().collect();
        for event in &mut events {
            *event.leader() = event.leader().map(|old| new_index[old]);
        }
        if events.is_empty() {
            return Err(CaptureError::NothingSupported.into());
        }
        Ok(events)
    }
}

/// Whether the event is written well, but not there on this machine.
fn is_missing(error: &ResolveError) -> bool {
    matches!(
        *error.kind,
        ResolveErrorKind::UnknownEvent { .. }
            | ResolveErrorKind::UnknownPmu { .. }
            | ResolveErrorKind::UnknownTerm { .. }
            | ResolveErrorKind::UnknownTracepoint { .. }
            | ResolveErrorKind::Tracepoints(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, FromArgMatches};
    use whit_capture::event::EventSpec;

    const DEFAULT: &str = "cycles:P";

    fn pmus() -> PmuTable {
        PmuTable::from_sysfs(whit_events::SYSFS_PMUS.as_ref()).unwrap()
    }

    fn args(line: &[&str]) -> EventArgs {
        let command = EventArgs::augment_args(Command::new("record"));
        let line = ["record"].iter().chain(line);
        EventArgs::from_arg_matches(&command.try_get_matches_from(line).unwrap()).unwrap()
    }

    fn cgroups(line: &[&str]) -> Vec<Option<String>> {
        let events = args(line).resolve::<EventSpec>(pmus(), DEFAULT, None).unwrap();
        events.into_iter().map(|event| event.cgroup).collect()
    }

    #[test]
    fn options_keep_their_order() {
        let steps = args(&["-e", "a", "--filter", "x", "-e", "b", "--exclude-perf", "-G", "g"]);
        let wanted = [
            Step::Events("a".into()),
            Step::Filter("x".into()),
            Step::Events("b".into()),
            Step::LeaveRecorderOut,
            Step::Cgroups("g".into()),
        ];
        assert_eq!(steps.steps, wanted);
        assert_eq!(args(&[]).steps, []);
    }

    #[test]
    fn cgroups_without_cpus_are_the_target() {
        let line = ["whit", "-e", "cs", "-G", "a,b", "-e", "faults", "--cgroup", "c"];
        let matches = EventArgs::augment_args(Command::new("whit")).get_matches_from(line);
        let args = <EventArgs as clap::FromArgMatches>::from_arg_matches(&matches).unwrap();
        let (events, names) = args.without_cgroups();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(args.has_cgroups() && !events.has_cgroups() && events.has_events());
    }

    #[test]
    fn cgroups_fall_to_events_as_perf_deals_them() {
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(cgroups(&["-e", "cs,faults", "-G", "a,b"]), [some("a"), some("b")]);
        assert_eq!(cgroups(&["-e", "cs", "-e", "faults", "-G", "a"]), [some("a"), some("a")]);
        assert_eq!(cgroups(&["-e", "cs", "-G", "a", "-e", "faults"]), [some("a"), None]);
        assert_eq!(cgroups(&["-e", "cs,faults", "-G", ",b"]), [None, some("b")]);
        let one_by_one = ["-e", "cs", "-G", "a", "-e", "faults", "-G", "b"];
        assert_eq!(cgroups(&one_by_one), [some("a"), some("b")]);
        for wrong in [&["-G", "a", "-e", "cs"][..], &["-e", "cs", "-G", "a,b"]] {
            assert!(args(wrong).resolve::<EventSpec>(pmus(), DEFAULT, None).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn filters_are_for_tracepoints() {
        for option in [&["--filter", "a == 1"][..], &["--exclude-perf"]] {
            let line = [&["-e", "cs"][..], option].concat();
            let error =
                args(&line).resolve::<EventSpec>(pmus(), DEFAULT, None).unwrap_err().to_string();
            assert!(error.contains("'cs' is none"), "{error}");
            let error = args(option).resolve::<EventSpec>(pmus(), DEFAULT, None);
            assert!(error.is_err(), "without -e there is no tracepoint");
        }
    }

    #[test]
    fn missing_events_are_left_out_and_named_on_request() {
        let line = ["-e", "nopmu/event=1/,{cs,nopmu/event=2/,faults},cs", "-G", "a,b,c,d,e"];
        assert!(
            args(&line)
                .resolve::<EventSpec>(pmus(), DEFAULT, None)
                .unwrap_err()
                .to_string()
                .contains("nopmu/event=1/")
        );
        let mut unsupported_options = Vec::new();
        let events = args(&line)
            .resolve::<EventSpec>(
                pmus(),
                DEFAULT,
                Some(&mut |event, _| unsupported_options.push(event)),
            )
            .unwrap();
        assert_eq!(unsupported_options, ["nopmu/event=1/", "nopmu/event=2/"]);
        let leaders: Vec<_> = events.iter().map(|event| event.leader).collect();
        assert_eq!(leaders, [Some(0), Some(0), None]);
        let nothing = args(&["-e", "nopmu/event=1/"]).resolve::<EventSpec>(
            pmus(),
            DEFAULT,
            Some(&mut |_, _| ()),
        );
        assert!(nothing.unwrap_err().to_string().contains("none of the events"));
    }
}
