//! Notices files soon after they are mapped as code, however seldom the rings of samples are drained.
//!
//! A library may be deleted right after it was mapped, a program may be in a memory file, and their process may end before
//! the first ring is full. Small rings of their own carry mappings alone, and wake a thread at every record.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use whit_engine_api::event::EventSpec;
use whit_engine_api::open_event::{ConfiguredEvent, OpenEvent};
use whit_engine_api::rings::{AnyRing, MappedRing};
use whit_perfdata::attr::{Attr, AttrFlags};
use whit_perfdata::record::{RawRecord, record_type};
use whit_sys::{Errno, Poller, Waker};

use super::file_watch::FileWatch;
use crate::error::CaptureError;
use crate::mapped_files::MappedFiles;
use crate::perf_maps::compiler_of;

/// Data pages of a ring: some hundred mappings.
pub(super) const PAGES: usize = 8;
/// Between two looks. A machine that starts programs all the time wakes the thread no more often.
const REST: Duration = Duration::from_millis(20);
/// Perf-maps that are missing are looked for so soon, and then in times that double: most are written when code is first
/// made, and some never.
const MAPS_FIRST: Duration = Duration::from_millis(50);
const MAPS_INTERVAL_MAX: Duration = Duration::from_secs(5);
/// Rings that wake nobody any more are looked at so often.
const LEFT_INTERVAL: Duration = Duration::from_secs(1);
/// Token of the waker; rings have their index.
const WAKER: u64 = u64::MAX;

/// The events, open, with their rings.
pub(super) type MappingRings = (Vec<OpenEvent>, Vec<MappedRing>);

/// An event that records mappings of code alone.
pub(super) fn event(inherit: bool) -> ConfiguredEvent {
    let spec = EventSpec::side_band();
    let flags = AttrFlags::MMAP
        | AttrFlags::MMAP2
        | AttrFlags::EXCLUDE_KERNEL
        | AttrFlags::EXCLUDE_HV
        | AttrFlags::WATERMARK;
    let attr = Attr {
        pmu_type: spec.event.pmu_type,
        config: spec.event.config[0],
        sample_period_or_freq: 1,
        flags: flags.with(AttrFlags::INHERIT, inherit),
        wakeup: 1,
        ..Attr::default()
    };
    ConfiguredEvent { is_side_band: true, ..ConfiguredEvent::new(spec, attr) }
}

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct MappingWatch {
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// Works on the thread.
struct Looker {
    events: Vec<OpenEvent>,
    rings: Vec<MappedRing>,
    poller: Poller,
    waker: Waker,
    known: MappedFiles,
    files: FileWatch,
    /// The task of a ring has exited: its children still write there, and wake nobody.
    is_left: bool,
    /// When perf-maps are looked for next, and the time from then to the look after.
    maps_due: Option<(Instant, Duration)>,
}

impl MappingWatch {
    /// Has new files opened by `files`.
    pub(super) fn start(
        (events, rings): MappingRings,
        files: FileWatch,
    ) -> Result<MappingWatch, CaptureError> {
        let failed = CaptureError::system;
        let poller = Poller::new().map_err(failed("create an epoll descriptor"))?;
        let waker = Waker::new().map_err(failed("create an event descriptor"))?;
        poller.add(&waker, WAKER).map_err(failed("wait for mappings"))?;
        for (number, ring) in rings.iter().enumerate() {
            let fd = &ring.members[0].of(&events).fd;
            poller.add(fd, number as u64).map_err(failed("wait for mappings"))?;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let known = MappedFiles::default();
        let maps_due = Some((Instant::now(), MAPS_FIRST));
        let looker = Looker {
            events,
            rings,
            poller,
            waker: waker.clone(),
            known,
            files,
            is_left: false,
            maps_due,
        };
        let seen = stop.clone();
        let work = move || looker.work(&seen);
        let thread = std::thread::Builder::new().name("whit-mapped".to_owned()).spawn(work);
        let thread = Some(thread.map_err(|source| CaptureError::Thread { source })?);
        Ok(MappingWatch { stop, waker, thread })
    }
}

impl Drop for MappingWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // One that has panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Looker {
    fn work(mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::SeqCst) {
            if self.turn().is_err() {
                break;
            }
            std::thread::park_timeout(REST);
        }
    }

    fn turn(&mut self) -> Result<(), Errno> {
        let now = Instant::now();
        if let Some((_, next)) = self.maps_due.take_if(|(due, _)| *due <= now)
            && self.files.look_for_perf_maps()
        {
            self.maps_due = Some((now + next, MAPS_INTERVAL_MAX.min(next * 2)));
        }
        let maps = self.maps_due.map(|(due, _)| due.saturating_duration_since(now));
        let timeout = self.is_left.then_some(LEFT_INTERVAL).into_iter().chain(maps).min();
        for ready in self.poller.wait(timeout)? {
            if ready.token == WAKER {
                let _ = self.waker.clear();
            } else if ready.hung_up
                && let Some(ring) = self.rings.get(ready.token as usize)
            {
                self.is_left = true;
                let _ = self.poller.remove(&ring.members[0].of(&self.events).fd);
            }
        }
        for mapped in &mut self.rings {
            let AnyRing::Forward(ring) = &mut mapped.ring else { continue };
            let bytes = ring.drain(|slices| slices.concat()).unwrap_or_default();
            let mut rest = &bytes[..];
            while let Some((record, behind)) = RawRecord::split(rest) {
                rest = behind;
                if record.header.kind == record_type::MMAP2 {
                    self.known.note(record.body);
                    if let Some(pid) = compiler_of(record.body) {
                        self.files.note_compiler(pid);
                        self.maps_due = Some((Instant::now() + MAPS_FIRST, MAPS_FIRST));
                    }
                }
            }
        }
        self.files.announce(self.known.take_fresh().into_iter());
        Ok(())
    }
}
