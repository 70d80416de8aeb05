//! Host perf events as counters: what the vCPU's thread does while it is in the guest.
//!
//! # System calls
//!
//! | the device does | calls | with a readable page |
//! |---|---|---|
//! | open | `perf_event_open`, 2 × `fcntl`, `mmap` | the same |
//! | read | `read` | – |
//! | pause | `read` | – |
//! | resume, where the guest wrote the counter | `read`, PERIOD | PERIOD |
//! | resume, else | `read` | – |
//! | stop what a pause left running, once | DISABLE, `read` | DISABLE |
//! | resume after that | PERIOD where the guest wrote the counter, ENABLE | the same |
//!
//! KVM's way is DISABLE, read, RESET in a pause and PERIOD, ENABLE in a resume. Saved system calls:
//!
//! - RESET: the last count that was read is subtracted instead.
//! - `read`: where the event's page says the count (hardware events, `cap_user_rdpmc`), that is read.
//! - DISABLE and ENABLE: a guest that stops its counters starts them again soon, as an interrupt
//!   handler does. So a pause lets the event run on, and drops its counts until the resume. It is
//!   stopped when a tick comes or when it gives notice meanwhile.
//! - PERIOD: an event that goes on where it was is at the right distance from its overflow. Counts
//!   that were dropped in pauses make its notice come early by as much, once; the device arms it
//!   anew then. Nor does one whose overflow is over 2^32 events away need its distance exactly, as
//!   that of an event which is only counted.

mod attribute;
mod calls;
mod event;

use crate::event::EventConfig;
use crate::source::{Arm, CounterSource, OpenError, Reading, SourceError};

use whit_sys::{CounterPage, Errno, OpenFlags, PerfEventFd, system};

pub use attribute::{HostEvent, attribute};
pub use calls::HostCalls;
pub use event::HostPerfEvent;
pub use whit_sys::OverflowSignal;

/// The current thread, as `perf_event_open` takes it.
const THIS_THREAD: i32 = 0;
/// On any CPU that the thread runs on.
const ANY_CPU: i32 = -1;

/// Shortest period of clocks: a guest's overflow is noticed so much later, at most. The kernel's own limit is a
/// timer every 10 µs, which a guest could keep the CPU busy with; of hardware events it limits the
/// interrupts (`perf_event_max_sample_rate`).
pub const CLOCK_PERIOD_MIN_NS: u64 = 100_000;

/// Which host event stands for a guest's.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum EventMap {
    /// The same hardware event (`PERF_TYPE_RAW`): guest and host have PMUs of the same kind.
    #[default]
    Raw,
    /// Those in the list, by the guest's [`EventConfig::select`]; others cannot be counted.
    Table(Vec<(u64, HostEvent)>),
}

impl EventMap {
    fn get(&self, config: &EventConfig) -> Option<HostEvent> {
        match self {
            EventMap::Raw => Some(HostEvent::raw(config.select)),
            EventMap::Table(table) => {
                table.iter().find(|(select, _)| *select == config.select).map(|(_, event)| *event)
            }
        }
    }
}

/// How host events are opened.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostOptions {
    /// Count while the thread is in a guest alone (`exclude_host`). Software events know no such difference.
    pub guest_only: bool,
    /// Counters of the host are the guest's as long as its event is open (`pinned`); where there is none, its
    /// counter stands still and says so.
    pub pinned: bool,
    /// Read counts from the event's page where the kernel allows it.
    pub page: bool,
    /// Let paused events run on until a tick.
    pub linger: bool,
    /// Keep one event open all the time, so that none of the guest's is the first on the machine, for
    /// which the kernel waits for a grace period (20 to over 200 ms).
    pub anchor: bool,
}

impl Default for HostOptions {
    /// Every option is on.
    fn default() -> HostOptions {
        HostOptions { guest_only: true, pinned: true, page: true, linger: true, anchor: true }
    }
}

/// Counters of one vCPU, made and used on its thread.
///
/// The thread gets [`OverflowSignal::NUMBER`] when a period is over, which ends KVM_RUN. It has to be blocked
/// by [`OverflowSignal::block`] before the first event is opened; [`Vpmu::poll_overflows`](crate::Vpmu::poll_overflows) then
/// says which counter it was.
#[derive(Debug)]
pub struct HostPerf {
    map: EventMap,
    options: HostOptions,
    thread: i32,
    calls: HostCalls,
    anchor: Option<PerfEventFd>,
}

impl HostPerf {
    /// Counters of the current thread.
    ///
    /// # Errors
    /// Where not even the anchor can be opened.
    pub fn for_this_thread(map: EventMap, options: HostOptions) -> Result<HostPerf, OpenError> {
        let mut calls = HostCalls::default();
        let anchor = if options.anchor {
            calls.open += 1;
            let attr = attribute::of_anchor();
            let opened = PerfEventFd::open(&attr, THIS_THREAD, ANY_CPU, None, OpenFlags::default());
            Some(opened.map_err(open_error)?)
        } else {
            None
        };
        Ok(HostPerf { map, options, thread: system::thread_id(), calls, anchor })
    }

    /// System calls so far.
    #[must_use]
    pub const fn calls(&self) -> &HostCalls {
        &self.calls
    }

    /// Whether the permanent event is there.
    #[must_use]
    pub const fn has_anchor(&self) -> bool {
        self.anchor.is_some()
    }

    fn open_fd(&mut self, attr: &[u8]) -> Result<PerfEventFd, Errno> {
        self.calls.open += 1;
        PerfEventFd::open(attr, THIS_THREAD, ANY_CPU, None, OpenFlags::default())
    }

    /// The kernel says "not supported" for features that a PMU lacks, and while a VM with a
    /// mediated vPMU runs. In the latter case the same event without guests opens.
    fn why_not_supported(&mut self, host: HostEvent, config: &EventConfig) -> OpenError {
        let attr = attribute::without_guests(host, config);
        match self.open_fd(&attr) {
            Ok(_) => OpenError::MediatedHost,
            Err(_) => OpenError::Unsupported,
        }
    }
}

impl CounterSource for HostPerf {
    type Event = HostPerfEvent;

    fn open(&mut self, config: &EventConfig, arm: Arm) -> Result<HostPerfEvent, OpenError> {
        let host = self.map.get(config).ok_or(OpenError::Unsupported)?;
        let period_min = if host.is_clock() { CLOCK_PERIOD_MIN_NS } else { 1 };
        let attr = attribute(host, config, arm.left.max(period_min), &self.options);
        let fd = match self.open_fd(&attr) {
            Ok(fd) => fd,
            Err(Errno::OPNOTSUPP) if self.options.guest_only => {
                return Err(self.why_not_supported(host, config));
            }
            Err(error) => return Err(open_error(error)),
        };
        self.calls.control += 2;
        fd.notify_thread(self.thread).map_err(open_error)?;
        // The kernel keeps no page for software events.
        let page = if self.options.page && !host.is_software() {
            self.calls.map += 1;
            // Without it counts are read, as where the allowance of locked memory is used up.
            CounterPage::map(&fd).ok()
        } else {
            None
        };
        Ok(HostPerfEvent::new(fd, page, arm.left, period_min))
    }

    fn read(&mut self, event: &mut HostPerfEvent) -> Result<Reading, SourceError> {
        event.read(&mut self.calls)
    }

    fn pause(&mut self, event: &mut HostPerfEvent) -> Result<Reading, SourceError> {
        event.pause(self.options.linger, &mut self.calls)
    }

    fn resume(&mut self, event: &mut HostPerfEvent, arm: Arm) -> Result<(), SourceError> {
        event.resume(arm, &mut self.calls)
    }

    fn rearm(&mut self, event: &mut HostPerfEvent, arm: Arm) -> Result<(), SourceError> {
        event.arm(arm.left, &mut self.calls)
    }

    fn settle(&mut self, event: &mut HostPerfEvent) -> bool {
        event.settle(&mut self.calls)
    }

    fn close(&mut self, event: HostPerfEvent) {
        self.calls.close += 1 + u64::from(event.has_page());
    }
}

fn open_error(error: Errno) -> OpenError {
    match error {
        Errno::MFILE | Errno::NFILE => OpenError::TooManyOpen,
        Errno::ACCESS | Errno::PERM => OpenError::NotPermitted,
        Errno::NOENT | Errno::NODEV | Errno::INVAL | Errno::OPNOTSUPP => OpenError::Unsupported,
        other => OpenError::Host(other.raw_os_error()),
    }
}
