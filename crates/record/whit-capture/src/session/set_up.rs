//! Before anything is recorded: what to record is found out, events are opened, rings mapped.

use std::collections::HashMap;
use std::fs::File;

use whit_engine_api::event_plan::EventPlan;
use whit_engine_api::open_event::{ConfiguredEvent, OpenEvent};
use whit_engine_api::rings::MappedRing;
use whit_engine_api::{Engine, PrivateEvent};
use whit_events::Sampling;
use whit_host::advice::{Refusal, advice};
use whit_host::cgroup::Hierarchy;
use whit_host::rights::Rights;
use whit_host::roots::Roots;
use whit_host::target::{self, Plan, Target};
use whit_perfdata::attr::pmu_type;
use whit_types::{Arch, CpuId, Pid};

use super::cpu_watch::CpuWatch;
use super::mapping_watch::{self, MappingRings};
use super::names;
use crate::configure;
use crate::error::CaptureError;
use crate::event::EventSpec;
use crate::features::KernelFeatures;
use crate::notice::{Listener, Notice};
use crate::open::{self, Opener};
use crate::plan::RingPlan;
use crate::ring_set;

/// Rings for mappings: each takes 32 KiB of locked memory and a descriptor. Threads that are named may be thousands.
const MAPPING_RINGS_MAX: usize = 1024;

/// Open events, and the rings that they write into.
type Opened = (Vec<OpenEvent>, Vec<MappedRing>);

/// Events and rings, ready to run.
pub(super) struct Ready {
    pub(super) plan: Plan,
    pub(super) events: Vec<OpenEvent>,
    pub(super) rings: Vec<MappedRing>,
    /// Notices CPUs that go and come.
    pub(super) cpu_watch: CpuWatch,
    /// The event that the engine reads by itself.
    pub(super) private: Option<Opened>,
    /// Mappings of code alone.
    pub(super) mappings: Option<MappingRings>,
}

/// The facts that stay the same in all attempts to open events.
struct OpenContext {
    plan: Plan,
    /// CPUs whose sideband alone is recorded.
    outside: Vec<CpuId>,
    rights: Rights,
    kernel: KernelFeatures,
    rate: (Sampling, bool),
    cgroups: HashMap<String, File>,
    /// Those that all events are limited to.
    chosen: Vec<File>,
}

pub(super) struct SetUp<'a> {
    pub(super) events: &'a EventPlan,
    pub(super) engine: &'a dyn Engine,
    pub(super) rings: RingPlan,
    /// Files are opened as soon as they are mapped.
    pub(super) watches_mappings: bool,
    pub(super) roots: &'a Roots,
    pub(super) listener: &'a mut dyn Listener,
}

impl SetUp<'_> {
    pub(super) fn run(mut self, command_pid: Option<Pid>) -> Result<Ready, CaptureError> {
        let (wanted, roots) = (self.events, self.roots);
        let rights = Rights::of_process(roots);
        let mut kernel = self.probe(rights)?;
        let plan =
            Plan::resolve(&wanted.target, command_pid, wanted.inherit, wanted.per_thread, roots)?;
        let rate = configure::checked_rate(wanted.rate, roots, self.listener)?;
        let on_cpus = plan.is_system_wide() || self.engine.capabilities().needs_cpus;
        // The sideband, and the watch over CPUs.
        let extra_events = 1 + usize::from(on_cpus) + usize::from(self.watches_mappings);
        let chosen = names::directories(wanted, self.engine)?;
        let events = wanted.specs.len() * chosen.len().max(1) + extra_events;
        let plan = open::fit_descriptors(plan, events, self.listener)?;
        let outside = target::outside(&wanted.target, roots);
        let cgroups = self.cgroups()?;
        let specs = self.specs(plan.inherit, &mut kernel);
        let context = OpenContext { plan, outside, rights, kernel, rate, cgroups, chosen };
        // Before the events, so that none of them is lost unseen.
        let cpu_watch = CpuWatch::open(&context.plan, &context.outside, on_cpus, self.listener);
        let ((events, rings), private) = self.open_supported(&context, specs)?;
        let private = private.map(|private| self.open_private(&context, private));
        let private = private.transpose()?;
        let mappings = self.open_mappings(&context);
        Ok(Ready { plan: context.plan, events, rings, private, mappings, cpu_watch })
    }

    /// Where they cannot be opened, or would be many, files are looked at whenever the rings of samples are drained. The
    /// same with counts by thread: Linux 6.18 loses parts of these where tasks have one more inherited event.
    fn open_mappings(&mut self, context: &OpenContext) -> Option<MappingRings> {
        let are_many = context.plan.nr_rings() > MAPPING_RINGS_MAX;
        if !self.watches_mappings || are_many || self.events.counts.by_thread {
            return None;
        }
        let event = mapping_watch::event(context.plan.inherit);
        let private = PrivateEvent { event, pages: mapping_watch::PAGES };
        let opened = self.open_private(context, private);
        let skipped = |error: &CaptureError| {
            let what = "opening files as soon as they are mapped".to_owned();
            Notice::Skipped { what, why: error.to_string() }
        };
        opened.inspect_err(|error| self.listener.notice(skipped(error))).ok()
    }

    fn open_private(
        &mut self,
        context: &OpenContext,
        PrivateEvent { event, pages }: PrivateEvent,
    ) -> Result<Opened, CaptureError> {
        let mut opener = Opener {
            plan: &context.plan,
            outside: &context.outside,
            rights: context.rights,
            roots: self.roots,
            cgroups: &context.cgroups,
            chosen: &[],
            listener: &mut *self.listener,
        };
        let open = opener.open_all(vec![event])?;
        let rings = ring_set::map_rings(&context.outside, &open, pages, self.listener)?;
        Ok((open, rings))
    }

    fn probe(&mut self, rights: Rights) -> Result<KernelFeatures, CaptureError> {
        let mut kernel =
            KernelFeatures::probe(self.listener).map_err(|errno| CaptureError::Open {
                event: "dummy".to_owned(),
                place: "for this process".to_owned(),
                errno,
                advice: advice(&Refusal::new("recording", errno, rights, pmu_type::SOFTWARE)),
            })?;
        if let Some(clock) = self.events.clock {
            KernelFeatures::check_clock(clock).map_err(|source| CaptureError::Clock {
                clock: clock.name().map_or_else(|| clock.0.to_string(), str::to_owned),
                source,
            })?;
        }
        if self.events.chains.is_deferred && !kernel.probe_deferred_chains() {
            self.listener.notice(Notice::ChainsNotDeferred);
        }
        if self.events.tracking.cgroups && !kernel.has_cgroups() {
            let (feature, since) = ("cgroups of samples", "5.7");
            self.listener.notice(Notice::FeatureMissing { feature, since });
        }
        Ok(kernel)
    }

    /// The events to record. It finds the probes in user mode among them, and says where the kernel cannot keep the probes
    /// of one process apart from those of another.
    fn specs(&mut self, inherit: bool, kernel: &mut KernelFeatures) -> Vec<EventSpec> {
        let mut specs = self.events.specs.clone();
        let tracefs = specs.iter().any(EventSpec::is_tracepoint).then(|| self.roots.tracefs());
        let Some(tracefs) = tracefs.flatten() else { return specs };
        let probes = whit_host::user_probe::numbers(&tracefs);
        for spec in specs.iter_mut().filter(|spec| spec.is_tracepoint()) {
            spec.is_user_probe = probes.contains(&spec.event.config[0]);
        }
        let is_inherited = inherit && specs.iter().any(|spec| spec.is_user_probe);
        if is_inherited && !kernel.probe_inherited_reads() {
            self.listener.notice(Notice::ProbesMayEnd);
        }
        specs
    }

    /// The directories of the cgroups that events name.
    fn cgroups(&self) -> Result<HashMap<String, File>, CaptureError> {
        let events = &self.events.specs;
        if events.iter().all(|event| event.cgroup.is_none()) {
            return Ok(HashMap::new());
        }
        if !matches!(self.events.target, Target::SystemWide(_)) {
            return Err(CaptureError::CgroupNeedsCpus);
        }
        for event in events {
            let leader = event.leader.map_or(event, |leader| &events[leader]);
            if leader.cgroup != event.cgroup {
                return Err(CaptureError::GroupAcrossCgroups { event: leader.name().to_owned() });
            }
        }
        let names = events.iter().filter_map(|event| event.cgroup.clone());
        Ok(Hierarchy::find(self.roots)?.open_all(names)?)
    }

    /// With `--skip-unsupported`, leaves out one event after the other that this machine does not
    /// have, until the rest can be opened.
    fn open_supported(
        &mut self,
        context: &OpenContext,
        mut specs: Vec<EventSpec>,
    ) -> Result<(Opened, Option<PrivateEvent>), CaptureError> {
        let mut said = DedupListener { listener: &mut *self.listener, notices: Vec::new() };
        loop {
            let set_up = SetUp {
                events: self.events,
                engine: self.engine,
                rings: self.rings,
                watches_mappings: self.watches_mappings,
                roots: self.roots,
                listener: &mut said,
            };
            match set_up.open(context, &specs) {
                Err(CaptureError::Unsupported { index, refusal })
                    if self.events.skip_unsupported && index < specs.len() =>
                {
                    let (event, why) = (specs[index].name().to_owned(), refusal.short());
                    leave_out(&mut specs, index);
                    said.notice(Notice::EventLeftOut { event, why });
                    if specs.is_empty() {
                        return Err(CaptureError::NothingSupported);
                    }
                }
                Err(CaptureError::Unsupported { refusal, .. }) => return Err(*refusal),
                other => return other,
            }
        }
    }

    fn open(
        mut self,
        context: &OpenContext,
        specs: &[EventSpec],
    ) -> Result<(Opened, Option<PrivateEvent>), CaptureError> {
        let OpenContext { plan, kernel, rate, .. } = context;
        let arch = Arch::native();
        let (events, private) = configure::configure(
            configure::Planned { plan: self.events, engine: self.engine },
            specs,
            plan.inherit,
            *rate,
            kernel,
            arch,
            self.listener,
        )?;
        let rings = ring_set::count(plan, &events);
        let pages = ring_set::data_pages(self.rings.size, rings, self.roots, self.listener);
        Ok((self.open_and_map(context, events, pages)?, private))
    }

    /// The mark at which a ring wakes the reader is part of the event. Where rings came out
    /// smaller than planned, the events are opened again for that size.
    fn open_and_map(
        &mut self,
        context: &OpenContext,
        mut events: Vec<ConfiguredEvent>,
        pages: usize,
    ) -> Result<Opened, CaptureError> {
        let page = whit_sys::system::page_size();
        let mut pages = pages;
        loop {
            for event in &mut events {
                configure::set_wakeup(&mut event.attr, pages * page, self.rings.choices);
            }
            let mut opener = Opener {
                plan: &context.plan,
                outside: &context.outside,
                rights: context.rights,
                roots: self.roots,
                cgroups: &context.cgroups,
                chosen: &context.chosen,
                listener: &mut *self.listener,
            };
            let open = opener.open_all(events)?;
            let rings = ring_set::map_rings(&context.outside, &open, pages, self.listener)?;
            let mapped = rings.first().map_or(pages, |r| r.ring.data_size_bytes() / page);
            if mapped == pages {
                return Ok((open, rings));
            }
            pages = mapped;
            events = open.iter().map(|event| event.event.clone()).collect();
        }
    }
}

/// Passes each notice on once, though events are opened again when one is left out.
struct DedupListener<'a> {
    listener: &'a mut dyn Listener,
    notices: Vec<Notice>,
}

impl Listener for DedupListener<'_> {
    fn notice(&mut self, notice: Notice) {
        if !self.notices.contains(&notice) {
            self.notices.push(notice.clone());
            self.listener.notice(notice);
        }
    }
}

/// Takes an event out. Where it led a group, its first member does so then.
fn leave_out(specs: &mut Vec<EventSpec>, index: usize) {
    let heir =
        specs.iter().enumerate().position(|(i, spec)| i != index && spec.leader == Some(index));
    let removed = specs.remove(index);
    let new_index = |old: usize| if old > index { old - 1 } else { old };
    for spec in specs.iter_mut() {
        spec.leader = match (spec.leader, heir) {
            (Some(leader), Some(heir)) if leader == index => Some(new_index(heir)),
            (leader, _) => leader.map(new_index),
        };
    }
    if let Some(heir) = heir {
        let heir = &mut specs[new_index(heir)].event;
        heir.sample_read |= removed.event.sample_read;
        heir.pinned |= removed.event.pinned;
        heir.exclusive |= removed.event.exclusive;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specs(leaders: &[Option<usize>]) -> Vec<EventSpec> {
        let spec = |(index, leader): (usize, &Option<usize>)| {
            let event = EventSpec::new(&format!("e{index}"), pmu_type::SOFTWARE, index as u64);
            let mut spec = EventSpec { leader: *leader, ..event };
            spec.event.pinned = *leader == Some(index);
            spec
        };
        leaders.iter().enumerate().map(spec).collect()
    }

    fn left(leaders: &[Option<usize>], index: usize) -> Vec<(String, Option<usize>, bool)> {
        let mut specs = specs(leaders);
        leave_out(&mut specs, index);
        specs.into_iter().map(|spec| (spec.event.name, spec.leader, spec.event.pinned)).collect()
    }

    #[test]
    fn groups_survive_the_events_that_are_left_out() {
        let leaders = [None, Some(1), Some(1), Some(1), None];
        let named = |list: &[(&str, Option<usize>, bool)]| {
            list.iter().map(|(name, l, p)| ((*name).to_owned(), *l, *p)).collect::<Vec<_>>()
        };
        let without_first = [
            ("e1", Some(0), true),
            ("e2", Some(0), false),
            ("e3", Some(0), false),
            ("e4", None, false),
        ];
        assert_eq!(left(&leaders, 0), named(&without_first));
        let without_leader = [
            ("e0", None, false),
            ("e2", Some(1), true),
            ("e3", Some(1), false),
            ("e4", None, false),
        ];
        assert_eq!(left(&leaders, 1), named(&without_leader));
        let without_member = [
            ("e0", None, false),
            ("e1", Some(1), true),
            ("e3", Some(1), false),
            ("e4", None, false),
        ];
        assert_eq!(left(&leaders, 2), named(&without_member));
    }
}
