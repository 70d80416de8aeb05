//! CPUs that go offline or come online while they are recorded.
//!
//! The kernel takes all events of a CPU off it when it goes offline, and does not put them back when it is online
//! again. Their rings fall silent, which looks like a CPU without work. One event of our own for each CPU tells: it
//! counts nothing, and the time for which it has been enabled stands still once the kernel has taken it off.

use std::time::{Duration, Instant};

use whit_host::cpus;
use whit_host::open::{self, EventTarget, Tasks};
use whit_host::roots::Roots;
use whit_host::target::{CpuScope, Plan};
use whit_perfdata::attr::{Attr, AttrFlags, ReadFormat, pmu_type};
use whit_sys::{Errno, PerfEventFd};
use whit_types::{CpuId, TimestampNs};

use super::reader_share::{ReaderShare, each_end};
use super::unreported_loss::{Losses, UnreportedLoss};
use crate::event::software;
use crate::notice::{Listener, Notice};

/// Some machines have a scheduler clock that advances with the timer only, at 100 Hz or faster.
const CLOCK_STEP_MAX: Duration = Duration::from_millis(20);
/// Count, time enabled.
const WORDS: usize = 2;
/// The first moment: a reader takes 0 for a time that nobody knows.
const BEGINNING: TimestampNs = TimestampNs(1);

/// Notices CPUs whose events are gone, and CPUs that have none.
#[derive(Debug, Default)]
pub(super) struct CpuWatch {
    watched: Vec<Watched>,
    /// CPUs that have events of their own; `None` where events follow threads to any CPU.
    covered: Option<Vec<CpuId>>,
    /// When recording began.
    begin: Option<Instant>,
    /// CPUs whose events the kernel has taken off.
    gone: Vec<CpuId>,
    /// CPUs that came online later.
    late: Vec<CpuId>,
}

#[derive(Debug)]
struct Watched {
    cpu: CpuId,
    event: PerfEventFd,
    opened: Instant,
}

impl Watched {
    fn enabled_ns(&self) -> Option<u64> {
        let mut words = [0; WORDS];
        (self.event.read(&mut words).ok()? == WORDS).then_some(words[1])
    }
}

impl CpuWatch {
    /// Watches the CPUs of a plan, and those `beside`. With `on_cpus`, there are events that count every
    /// thread of a CPU. Events of threads survive when their CPU goes offline.
    pub(super) fn open(
        plan: &Plan,
        outside: &[CpuId],
        on_cpus: bool,
        listener: &mut dyn Listener,
    ) -> CpuWatch {
        let CpuScope::Each(cpus) = &plan.cpus else { return CpuWatch::default() };
        let mut covered: Vec<CpuId> = cpus.iter().chain(outside).copied().collect();
        let mut watched = Vec::new();
        if on_cpus {
            covered.retain(|&cpu| match open_one(cpu) {
                Ok(one) => {
                    watched.push(one);
                    true
                }
                // It is offline, which the first event on it will say.
                Err(Errno::NODEV) => false,
                Err(errno) => {
                    let what = format!("watching whether CPU {} stays online", cpu.0);
                    listener.notice(Notice::Skipped { what, why: errno.to_string() });
                    true
                }
            });
        }
        CpuWatch { watched, covered: Some(covered), ..CpuWatch::default() }
    }

    pub(super) fn begins(&mut self, now: Instant) {
        self.begin = Some(now);
    }

    /// Looks which CPUs have gone and come so far, and says so of each once.
    pub(super) fn look(&mut self, roots: &Roots, listener: &mut dyn Listener) {
        for (cpu, at) in self.stopped() {
            let after = self.begin.map(|begin| at.saturating_duration_since(begin));
            listener.notice(Notice::CpuLost { cpu, after });
            self.gone.push(cpu);
        }
        let Some(covered) = &self.covered else { return };
        let online = cpus::online(roots).unwrap_or_default();
        for cpu in online.into_iter().filter(|cpu| !covered.contains(cpu)) {
            if !self.late.contains(&cpu) {
                listener.notice(Notice::CpuLate { cpu });
                self.late.push(cpu);
            }
        }
    }

    /// A loss without end for each CPU that is not recorded any more, from the last record of its ring, and one of
    /// the whole recording for each that never was.
    pub(super) fn unrecorded(
        &self,
        losses: Losses<'_>,
        shares: &[ReaderShare],
    ) -> Vec<UnreportedLoss> {
        let mut all = Vec::new();
        for &cpu in &self.gone {
            let ends = each_end(shares).filter(|(_, _, end)| end.cpu == Some(cpu));
            let before = all.len();
            all.extend(ends.map(|(reader, _, end)| losses.behind(reader, end)));
            if all.len() == before {
                all.push(losses.nothing_of(cpu));
            }
        }
        all.extend(self.late.iter().map(|cpu| losses.nothing_of(*cpu)));
        all.iter_mut().for_each(|unreported_loss| unreported_loss.begin_at_least(BEGINNING));
        all
    }

    /// CPUs whose events have stopped since the last look, and when.
    fn stopped(&mut self) -> Vec<(CpuId, Instant)> {
        let first: Vec<_> = self.watched.iter().map(Watched::enabled_ns).collect();
        let second: Vec<_> = self.watched.iter().map(Watched::enabled_ns).collect();
        if first.iter().zip(&second).all(|(first, second)| first != second) {
            return Vec::new();
        }
        std::thread::sleep(CLOCK_STEP_MAX);
        let mut first = first.into_iter();
        let mut stopped = Vec::new();
        self.watched.retain(|watched| {
            let enabled_ns = watched.enabled_ns();
            let is_stopped = first.next() == Some(enabled_ns);
            if is_stopped {
                let enabled = Duration::from_nanos(enabled_ns.unwrap_or(0));
                stopped.push((watched.cpu, watched.opened + enabled));
            }
            !is_stopped
        });
        stopped
    }

    /// CPUs that have gone, and CPUs that came late.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.gone.len() as u64, self.late.len() as u64)
    }
}

fn open_one(cpu: CpuId) -> Result<Watched, Errno> {
    let attr = Attr {
        pmu_type: pmu_type::SOFTWARE,
        config: software::DUMMY,
        flags: AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV,
        read_format: ReadFormat::TOTAL_TIME_ENABLED,
        ..Attr::default()
    };
    let target = EventTarget { cpu: Some(cpu), tasks: Tasks::All };
    let opened = Instant::now();
    let event = open::open(&attr.to_bytes(), target, None)?;
    Ok(Watched { cpu, event, opened })
}
