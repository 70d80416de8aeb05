//! The file of a dump. Records that are there are written while the recorder still empties its rings.

use crate::recorder::LiveStream;
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};
use whit_live::{Dump, Frozen};
use whit_perfdata::feature::Features;
use whit_sys::system::reserve;

/// How long the recorder may take to empty its rings. Later, a dump is written without the newest records.
pub(super) const DRAIN_PATIENCE: Duration = Duration::from_millis(500);

/// The last seconds, whose newest records may still be in the recorder's rings.
pub(super) struct Taken {
    stream: LiveStream,
    frozen: Frozen,
    from_ns: u64,
    asked: Instant,
    order: Option<u64>,
    /// The time that it has up to now.
    pub(super) covered: Duration,
}

/// A whole file, except for its header.
pub(super) struct Written {
    dump: Dump<File>,
    /// The time that it has.
    pub(super) covered: Duration,
    /// The recorder has emptied its rings in time.
    pub(super) has_newest: bool,
}

impl Taken {
    /// Asks the recorder for its newest records, and takes those before; `None` where no recording has begun.
    pub(super) fn of(stream: &LiveStream, length: Duration) -> Option<Taken> {
        if !stream.has_begun() || stream.is_over() {
            return None;
        }
        let (asked, order) = (Instant::now(), stream.ask_to_drain());
        let length_ns = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        let (frozen, from_ns, now_ns) = stream.with_window(|window, now_ns| {
            let from_ns = now_ns.saturating_sub(length_ns);
            (window.freeze(from_ns), from_ns, now_ns)
        });
        let covered = covered(&frozen, now_ns);
        Some(Taken { stream: stream.clone(), frozen, from_ns, asked, order, covered })
    }

    /// Bytes of records by now.
    pub(super) fn bytes(&self) -> u64 {
        self.frozen.bytes() as u64
    }

    /// Writes all that is there, and then the newest records.
    pub(super) fn write(self, file: File) -> io::Result<Written> {
        let Taken { stream, frozen, from_ns, asked, order, .. } = self;
        let mut again = file.try_clone()?;
        let mut dump = begin(frozen, file)?;
        let rest = DRAIN_PATIENCE.saturating_sub(asked.elapsed());
        let has_newest = order.is_some_and(|order| stream.wait_for(order, rest));
        let (newer, now_ns) =
            stream.with_window(|window, now_ns| (window.newer_than(dump.frozen()), now_ns));
        match newer {
            Some(newer) => dump.add(newer)?,
            // So much came meanwhile that records between these two moments are gone.
            None => {
                io::Seek::rewind(&mut again)?;
                again.set_len(0)?;
                dump = begin(stream.with_window(|window, _| window.freeze(from_ns)), again)?;
            }
        }
        let covered = covered(dump.frozen(), now_ns);
        Ok(Written { dump, covered, has_newest })
    }
}

impl Written {
    /// Bytes of records.
    pub(super) fn bytes(&self) -> u64 {
        self.dump.frozen().bytes() as u64
    }

    /// Completes the file.
    pub(super) fn finish(self, features: &Features) -> io::Result<File> {
        self.dump.finish(features)
    }
}

/// Room for all of it makes writing several times as fast, and a full disk is known at once.
fn begin(frozen: Frozen, file: File) -> io::Result<Dump<File>> {
    reserve(&file, frozen.bytes() as u64)?;
    frozen.begin_file(file)
}

/// The time up to this moment from which no record is missing.
fn covered(frozen: &Frozen, now_ns: u64) -> Duration {
    let since_ns = frozen.whole_since_ns().unwrap_or(now_ns);
    Duration::from_nanos(now_ns.saturating_sub(since_ns))
}
