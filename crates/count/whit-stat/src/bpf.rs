//! Cgroups counted by BPF as a source of counts.
//!
//! Each different event is open once on each CPU, for everything that runs there, and never touched.
//! A BPF program has the kernel read them at each change of cgroup ([`CgroupCounter`]). The counts of
//! a cgroup and of the whole machine are sums of these reads (`docs/cgroup.md`). The kernel's cgroup
//! events count the rest beside it.

use whit_bpf::BpfError;
use whit_bpf::cgroup::{Cgroup, CgroupCounter, Counts};
use whit_host::cpus;
use whit_host::roots::Roots;
use whit_host::target::{CpuScope, Plan, ThreadScope};
use whit_types::CpuId;

use crate::bpf_refusal::BpfRefusal;
use crate::counter::Counter;
use crate::error::StatError;
use crate::note::Note;
use crate::notice::{Listener, Notice};
use crate::perf::{Opened, PerfSource, Request, check_cgroups, switch};
use crate::reading::Reading;
use crate::source::{Slot, Source};

mod cpu;
mod layout;
mod routes;
mod split;

use cpu::{CpuEvents, by_cpu};
use layout::Layout;
use routes::{Cgroups, Route, Routes, Routing};
use split::Split;

/// Cgroups counted by BPF, and the rest by the kernel.
#[derive(Debug)]
pub struct BpfSource {
    counters: Vec<Counter>,
    slots: Vec<Slot>,
    /// One route for each slot.
    routes: Vec<Route>,
    /// Each different event, as it was opened.
    distinct: Vec<Counter>,
    layout: Layout,
    cpus: Vec<CpuEvents>,
    /// CPUs that have gone offline.
    offline: Vec<CpuId>,
    counter: CgroupCounter,
    cgroups: usize,
    /// The kernel's events for everything that BPF does not count.
    rest: Option<PerfSource>,
    rest_readings: Vec<Reading>,
    is_counting: bool,
    roots: Roots,
    notices: Vec<Notice>,
}

impl BpfSource {
    /// Opens what can be opened; `None` where nothing of a cgroup can be counted by BPF. Where
    /// counting begins `at_once`, all that takes time is done here.
    ///
    /// # Errors
    ///
    /// [`StatError::Bpf`] where the kernel refuses BPF; else those of [`PerfSource::open`].
    pub fn open(
        request: Request<'_>,
        at_once: bool,
        listener: &mut dyn Listener,
    ) -> Result<Option<BpfSource>, StatError> {
        let Request { counters, plan, roots, .. } = &request;
        check_cgroups(counters, plan)?;
        let mut split = Split::of(counters);
        if !split.serves_cgroups(counters) {
            return Ok(None);
        }
        let cgroups = Cgroups::of(counters, &split, roots)?;
        let opened = open_shared(std::mem::take(&mut split.distinct), &plan.cpus, roots, listener)?;
        let places = routes::places(&opened);
        let distinct = opened.counters.clone();
        let cpus = by_cpu(opened);
        let layout = Layout::of(&distinct, &cpus);
        let counter = load(&layout, &cgroups.all, &cpus, roots)?;
        let rest = open_rest(&request, &split, listener)?;
        for (why, events) in split.unserved.drain(..) {
            listener.notice(Notice::CountedByKernel { events, why });
        }
        let routing =
            Routing { split: &split, distinct: &distinct, layout: &layout, cgroups: &cgroups };
        let Routes { counters, slots, routes } = routing.of(counters, &places, rest.as_ref());
        let mut source = BpfSource {
            counters,
            slots,
            routes,
            distinct,
            layout,
            cpus,
            offline: Vec::new(),
            counter,
            cgroups: cgroups.all.len(),
            rest,
            rest_readings: Vec::new(),
            is_counting: false,
            roots: (*roots).clone(),
            notices: Vec::new(),
        };
        if at_once {
            source.attach()?;
        }
        Ok(Some(source))
    }

    fn attach(&mut self) -> Result<(), StatError> {
        self.counter.attach().map_err(|error| refused(error, &self.roots))
    }

    fn switch(&mut self, on: bool) -> Result<(), StatError> {
        switch(self.cpus.iter().flat_map(|cpu| &cpu.groups), on)?;
        self.is_counting = on;
        match &mut self.rest {
            Some(rest) if on => rest.start(),
            Some(rest) => rest.stop(),
            None => Ok(()),
        }
    }

    /// Follows CPUs that go offline and come back; says whether there were any. Looks closely where
    /// the events of a CPU seem to stand still, or at all of them.
    fn follow_cpus(&mut self, counts: &Counts, all: bool) -> Result<bool, StatError> {
        let mut gone = counts.offline().to_vec();
        for cpu in &mut self.cpus {
            let enabled_ns = counts.everything(cpu.cpu, 0).enabled_ns;
            let is_suspect = all || enabled_ns == cpu.enabled_ns;
            if self.is_counting && is_suspect && !gone.contains(&cpu.cpu) && cpu.are_dead() {
                gone.push(cpu.cpu);
                self.notices.push(Notice::CpuCountsMissing { cpu: cpu.cpu });
            }
            cpu.enabled_ns = enabled_ns;
        }
        for &cpu in &gone {
            self.retire(cpu)?;
        }
        Ok(self.welcome_back()? || !gone.is_empty())
    }

    fn retire(&mut self, cpu: CpuId) -> Result<(), StatError> {
        let Some(at) = self.cpus.iter().position(|known| known.cpu == cpu) else { return Ok(()) };
        let gone = self.cpus.remove(at);
        let shown = self.layout.shown(&gone.groups);
        self.counter.retire_cpu(cpu, &shown).map_err(|error| refused(error, &self.roots))?;
        self.offline.push(cpu);
        self.notices.push(Notice::CpuWentOffline { cpu });
        Ok(())
    }

    /// Opens the events of CPUs that are online again.
    fn welcome_back(&mut self) -> Result<bool, StatError> {
        if self.offline.is_empty() {
            return Ok(false);
        }
        let online = cpus::online(&self.roots).unwrap_or_default();
        let (back, offline): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.offline).into_iter().partition(|cpu| online.contains(cpu));
        self.offline = offline;
        for &cpu in &back {
            let notices = &mut self.notices;
            let mut listener = |notice| notices.push(notice);
            let distinct = self.distinct.clone();
            let opened =
                open_shared(distinct, &CpuScope::Each(vec![cpu]), &self.roots, &mut listener)?;
            for events in by_cpu(opened) {
                let descriptors = self.layout.descriptors(&events.groups);
                let added = self.counter.add_cpu(cpu, &descriptors);
                added.map_err(|error| refused(error, &self.roots))?;
                if self.is_counting {
                    switch(&events.groups, true)?;
                }
                self.cpus.push(events);
            }
            self.notices.push(Notice::CpuCameBack { cpu });
        }
        Ok(!back.is_empty())
    }

    fn counts(&self) -> Result<Counts, StatError> {
        self.counter.read().map_err(|error| refused(error, &self.roots))
    }
}

impl Source for BpfSource {
    fn counters(&self) -> &[Counter] {
        &self.counters
    }

    fn slots(&self) -> &[Slot] {
        &self.slots
    }

    fn start(&mut self) -> Result<(), StatError> {
        self.attach()?;
        self.switch(true)
    }

    fn stop(&mut self) -> Result<(), StatError> {
        if self.is_counting {
            // Events that are off cannot be told from those that were taken off their CPU.
            let counts = self.counts()?;
            self.follow_cpus(&counts, true)?;
        }
        self.switch(false)
    }

    fn read(&mut self, readings: &mut Vec<Reading>) -> Result<(), StatError> {
        let mut counts = self.counts()?;
        if self.follow_cpus(&counts, false)? {
            counts = self.counts()?;
        }
        if let Some(rest) = &mut self.rest {
            rest.read(&mut self.rest_readings)?;
        }
        readings.clear();
        readings.extend(self.routes.iter().map(|route| match *route {
            Route::Cgroup { cgroup, event, cpu } => reading(counts.cgroup(cgroup, cpu, event)),
            Route::Everything { event, cpu } => reading(counts.everything(cpu, event)),
            Route::Kernel(slot) => self.rest_readings[slot],
            Route::Nothing => Reading::ZERO,
        }));
        Ok(())
    }

    fn take_notices(&mut self) -> Vec<Notice> {
        let mut notices = std::mem::take(&mut self.notices);
        if let Some(rest) = &mut self.rest {
            notices.extend(rest.take_notices());
        }
        notices
    }

    fn notes(&self) -> Vec<Note> {
        let (events, cpus) = (self.layout.how().len(), self.cpus.len());
        let mut notes = vec![Note::ByBpf { cgroups: self.cgroups, events, cpus }];
        if !self.counter.sees_moves() {
            notes.push(Note::MovesAtSwitches);
        }
        // A failed query is ignored here: the read before it has failed, too, and was reported.
        let health = self.counter.health().unwrap_or_default();
        let findings = [
            Note::FailedReads(health.failed_reads),
            Note::UnseenSwitches(health.unseen_switches),
            Note::TooDeep(health.too_deep),
        ];
        notes.extend(findings.into_iter().filter(Note::is_finding));
        notes
    }
}

/// The events that occupy the PMU where BPF counts cgroups: each different event for the whole
/// machine, and the kernel's cgroup events beside them. `None` where BPF counts nothing of a cgroup.
pub fn shared(counters: &[Counter]) -> Option<Vec<Counter>> {
    let split = Split::of(counters);
    if !split.serves_cgroups(counters) {
        return None;
    }
    let rest = split.rest(counters);
    let mut all = split.distinct;
    let offset = all.len();
    let place = |counter: Counter| Counter {
        leader: counter.leader.map(|leader| leader + offset),
        ..counter
    };
    all.extend(rest.into_iter().map(place));
    Some(all)
}

fn reading(count: whit_bpf::cgroup::Count) -> Reading {
    let whit_bpf::cgroup::Count { value, enabled_ns, running_ns } = count;
    Reading { value, enabled_ns, running_ns }
}

fn refused(error: BpfError, roots: &Roots) -> StatError {
    StatError::Bpf(BpfRefusal::new(error, roots))
}

/// Opens each different event on these CPUs.
fn open_shared(
    distinct: Vec<Counter>,
    cpus: &CpuScope,
    roots: &Roots,
    listener: &mut dyn Listener,
) -> Result<Opened, StatError> {
    let plan = Plan { cpus: cpus.clone(), threads: ThreadScope::All, inherit: false };
    let request = Request { counters: distinct, plan: &plan, on_exec: false, roots };
    Opened::open(request, listener)
}

/// Loads the programs and gives them their events.
fn load(
    layout: &Layout,
    cgroups: &[Cgroup],
    cpus: &[CpuEvents],
    roots: &Roots,
) -> Result<CgroupCounter, StatError> {
    let possible: Vec<u32> = cpus::possible(roots)?.iter().map(|cpu| cpu.0).collect();
    let plan = whit_bpf::cgroup::Plan { events: layout.how(), cgroups, possible_cpus: &possible };
    let load = || {
        let mut counter = CgroupCounter::load(&plan)?;
        for cpu in cpus {
            counter.add_cpu(cpu.cpu, &layout.descriptors(&cpu.groups))?;
        }
        Ok(counter)
    };
    load().map_err(|error| refused(error, roots))
}

/// The counters that are the kernel's, open.
fn open_rest(
    request: &Request<'_>,
    split: &Split,
    listener: &mut dyn Listener,
) -> Result<Option<PerfSource>, StatError> {
    let counters = split.rest(&request.counters);
    if counters.is_empty() {
        return Ok(None);
    }
    let Request { plan, on_exec, roots, .. } = *request;
    PerfSource::open(Request { counters, plan, on_exec, roots }, listener).map(Some)
}
