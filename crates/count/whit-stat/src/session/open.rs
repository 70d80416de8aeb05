//! Chooses the targets of a count, and the source that counts each of them.

use whit_host::processes;
use whit_host::target::{CpuScope, Plan, Target, ThreadScope};
use whit_sys::Workload;
use whit_types::{Pid, Tid};

use super::Session;
use super::watch::Watch;
use crate::bpf::BpfSource;
use crate::cgroups;
use crate::counter::{Absence, Counter};
use crate::error::StatError;
use crate::notice::{Listener, Notice};
use crate::options::{BpfCounters, Start};
use crate::perf::{PerfSource, Request};
use crate::source::Source;
use crate::table::Aggregation;

/// How often cgroups are listed at most, where some of them go away all the time.
const LISTINGS_MAX: usize = 20;

/// Says each notice once, however often events are opened.
struct Once<'a> {
    announced: &'a mut Vec<Notice>,
    listener: &'a mut dyn Listener,
}

impl Listener for Once<'_> {
    fn notice(&mut self, notice: Notice) {
        if !self.announced.contains(&notice) {
            self.announced.push(notice.clone());
            self.listener.notice(notice);
        }
    }
}

impl Session<'_> {
    /// The open events, and whom to watch for the end.
    pub(super) fn open(
        &mut self,
        workload: Option<&Workload>,
    ) -> Result<(Box<dyn Source>, Watch), StatError> {
        let plan = self.plan(workload.map(|workload| Pid(workload.pid())))?;
        let source = self.source_of_listed(&plan)?;
        // SIGCHLD reports the end of a command, and CPUs do not end.
        let is_watched = self.options.target != Target::Command && !plan.is_system_wide();
        let watch = Watch::new(if is_watched { plan.threads.named() } else { &[] });
        Ok((source, watch))
    }

    /// The source for the listed cgroups. A listed cgroup may be gone when it is opened; they are
    /// listed again then. A cgroup that is still missing was named by the user.
    fn source_of_listed(&mut self, plan: &Plan) -> Result<Box<dyn Source>, StatError> {
        let on_exec = self.switches_on_at_exec();
        let list = |session: &Self| {
            cgroups::expand(session.counters(), &session.options.cgroups, session.roots)
        };
        let mut counters = list(self)?;
        for _ in 1..LISTINGS_MAX {
            let request = Request { counters: counters.clone(), plan, on_exec, roots: self.roots };
            match self.source(request) {
                Err(error) if error.is_missing_cgroup() => {
                    let before = std::mem::replace(&mut counters, list(self)?);
                    if counters == before {
                        return Err(error);
                    }
                }
                done => return done,
            }
        }
        self.source(Request { counters, plan, on_exec, roots: self.roots })
    }

    /// The source: BPF if there are cgroups and the kernel allows it, else the kernel's events.
    fn source(&mut self, request: Request<'_>) -> Result<Box<dyn Source>, StatError> {
        let mode = self.options.bpf_counters;
        let has_cgroups = request.counters.iter().any(|counter| counter.cgroup.is_some());
        if mode == BpfCounters::On && !has_cgroups {
            self.announce(Notice::NothingForBpf);
        }
        if has_cgroups && mode != BpfCounters::Off && !self.is_bpf_refused {
            let at_once = self.options.start == Start::AtOnce;
            let mut listener = Once { announced: &mut self.announced, listener: self.listener };
            match BpfSource::open(request.clone(), at_once, &mut listener) {
                Ok(Some(source)) => return Ok(Box::new(source)),
                Ok(None) => {}
                Err(StatError::Bpf(refusal)) if mode == BpfCounters::Auto => {
                    self.is_bpf_refused = true;
                    self.announce(Notice::BpfRefused { reason: refusal.brief() });
                }
                Err(error) => return Err(error),
            }
        }
        let mut listener = Once { announced: &mut self.announced, listener: self.listener };
        Ok(Box::new(PerfSource::open(request, &mut listener)?))
    }

    /// Prints a notice once for all runs.
    fn announce(&mut self, notice: Notice) {
        Once { announced: &mut self.announced, listener: self.listener }.notice(notice);
    }

    /// Whether the exec of the command switches events on, so that nothing before it is counted.
    pub(super) fn switches_on_at_exec(&self) -> bool {
        self.options.target == Target::Command && self.options.start == Start::AtOnce
    }

    /// The requested counters. Measurements of a command need a command.
    fn counters(&self) -> Vec<Counter> {
        let mut counters = self.options.counters.clone();
        for counter in &mut counters {
            if counter.event.tool.is_some_and(super::tool::needs_command)
                && self.options.target != Target::Command
            {
                counter.absence = Some(Absence::NoCommand);
            }
        }
        counters
    }

    fn plan(&self, command: Option<Pid>) -> Result<Plan, StatError> {
        let options = self.options;
        let by_thread = options.aggregation == Aggregation::Thread;
        let mut plan = Plan::resolve(&options.target, command, options.inherit, false, self.roots)?;
        // Unlike a recorder's, these events need no ring: children of threads are counted too.
        plan.inherit = options.inherit;
        if by_thread && plan.is_system_wide() {
            plan.threads = ThreadScope::Each(self.all_threads()?);
        }
        if !plan.is_system_wide() && !options.aggregation.needs_cpus() {
            plan.cpus = CpuScope::Any;
        }
        Ok(plan)
    }

    fn all_threads(&self) -> Result<Vec<Tid>, StatError> {
        let all = processes::all(self.roots)?;
        Ok(all.into_iter().flat_map(|pid| processes::threads(self.roots, pid)).collect())
    }
}
