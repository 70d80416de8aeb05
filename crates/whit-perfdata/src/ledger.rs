//! The overhead ledger: what a recording cost, carried in the recording itself.

use crate::bytes::Cursor;

/// What the recording cost. Zero where a figure was not measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// From the first event opened to the last byte written.
    pub wall_ns: u64,
    /// Opening events, mapping rings, synthesizing existing processes.
    pub setup_ns: u64,
    /// From the end of the target to the last byte written.
    pub teardown_ns: u64,
    /// The recorder's own CPU time in user mode.
    pub user_cpu_ns: u64,
    /// The recorder's own CPU time in kernel mode.
    pub system_cpu_ns: u64,
    /// Bytes taken out of the rings.
    pub ring_bytes: u64,
    /// Bytes written to the recording.
    pub written_bytes: u64,
    /// Number of writes.
    pub writes: u64,
    /// Time spent in writes.
    pub write_ns: u64,
    /// Times that a reader was woken.
    pub wakeups: u64,
    /// Samples recorded.
    pub samples: u64,
    /// Records that the kernel reported as lost.
    pub lost_records: u64,
    /// Time during which rings were full, summed over rings.
    pub paused_ns: u64,
    /// Recorded time summed over rings.
    pub elapsed_ns: u64,
    /// Number of rings.
    pub rings: u64,
    /// Size of one ring's data area.
    pub ring_size_bytes: u64,
}

/// Version of the encoding; the first word of the section.
const VERSION: u32 = 1;

impl Ledger {
    /// The fields in the order of the file. New ones go to the end: a reader takes what it knows
    /// and leaves the rest.
    fn fields(&mut self) -> [&mut u64; 16] {
        [
            &mut self.wall_ns,
            &mut self.setup_ns,
            &mut self.teardown_ns,
            &mut self.user_cpu_ns,
            &mut self.system_cpu_ns,
            &mut self.ring_bytes,
            &mut self.written_bytes,
            &mut self.writes,
            &mut self.write_ns,
            &mut self.wakeups,
            &mut self.samples,
            &mut self.lost_records,
            &mut self.paused_ns,
            &mut self.elapsed_ns,
            &mut self.rings,
            &mut self.ring_size_bytes,
        ]
    }

    /// As the feature section holds it: version and number of fields (`u32` each), then the
    /// fields (`u64` each), little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut copy = self.clone();
        let fields = copy.fields();
        let mut out = VERSION.to_le_bytes().to_vec();
        out.extend((fields.len() as u32).to_le_bytes());
        out.extend(fields.iter().flat_map(|field| field.to_le_bytes()));
        out
    }

    /// Decodes the section; fields that it does not have stay zero. `None` for another version.
    pub fn from_bytes(bytes: &[u8]) -> Option<Ledger> {
        let mut c = Cursor::new(bytes);
        if c.u32()? != VERSION {
            return None;
        }
        let count = c.u32()? as usize;
        let mut ledger = Ledger::default();
        for field in ledger.fields().into_iter().take(count) {
            *field = c.u64()?;
        }
        Some(ledger)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_older_shorter_versions() {
        let mut ledger = Ledger::default();
        for (value, field) in (1..).zip(ledger.fields()) {
            *field = value;
        }
        let bytes = ledger.to_bytes();
        assert_eq!(Ledger::from_bytes(&bytes), Some(ledger));
        let mut short = bytes[..24].to_vec();
        short[4] = 2;
        let old = Ledger::from_bytes(&short).unwrap();
        assert_eq!((old.wall_ns, old.setup_ns, old.teardown_ns), (1, 2, 0));
        assert_eq!(Ledger::from_bytes(&bytes[..20]), None);
    }
}
