//! Why a recording was written that is the last while of a longer one (`WHIT_TRIGGER`).

use crate::bytes::Cursor;
use crate::feature::{Feature, Features};

const VERSION: u32 = 1;
/// Longer texts are cut when they are written, and not read.
const TEXT_BYTES_MAX: usize = 4096;

/// An event, and the time before it that the recording has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpCause {
    /// The kind of the event: `pressure`, `signal`, …
    pub kind: String,
    /// The rule and the measured value.
    pub detail: String,
    /// When the event was noticed, in nanoseconds since the epoch.
    pub wall_clock_ns: u64,
    /// The time that the recording was to have.
    pub wanted_ns: u64,
    /// The time before its end from which on it lacks no record.
    pub covered_ns: u64,
}

impl Features {
    /// WHIT_TRIGGER.
    pub fn dump_cause(&self) -> Option<DumpCause> {
        let mut c = Cursor::new(self.get(Feature::WHIT_TRIGGER)?);
        let (VERSION.., _) = (c.u32()?, c.u32()?) else { return None };
        let [wall_clock_ns, wanted_ns, covered_ns] = [c.u64()?, c.u64()?, c.u64()?];
        let [kind, detail] = [text(&mut c)?, text(&mut c)?];
        Some(DumpCause { kind, detail, wall_clock_ns, wanted_ns, covered_ns })
    }

    /// Sets WHIT_TRIGGER.
    pub fn set_dump_cause(&mut self, cause: &DumpCause) {
        let DumpCause { kind, detail, wall_clock_ns, wanted_ns, covered_ns } = cause;
        let mut out = VERSION.to_le_bytes().to_vec();
        out.extend([0; 4]);
        out.extend([wall_clock_ns, wanted_ns, covered_ns].iter().flat_map(|it| it.to_le_bytes()));
        for text in [kind, detail] {
            let mut size = text.len().min(TEXT_BYTES_MAX);
            while !text.is_char_boundary(size) {
                size -= 1;
            }
            let text = &text[..size];
            out.extend((text.len() as u32).to_le_bytes());
            out.extend(text.as_bytes());
        }
        self.set(Feature::WHIT_TRIGGER, out);
    }
}

fn text(c: &mut Cursor<'_>) -> Option<String> {
    let size = c.u32()? as usize;
    let bytes = c.take(size).filter(|_| size <= TEXT_BYTES_MAX)?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_causes_are_read() {
        let mut features = Features::default();
        assert_eq!(features.dump_cause(), None);
        let mut cause = DumpCause {
            kind: "latency".to_owned(),
            detail: "latency:checkout:250ms, took 251ms".to_owned(),
            wall_clock_ns: 1,
            wanted_ns: 2,
            covered_ns: u64::MAX,
        };
        features.set_dump_cause(&cause);
        assert_eq!(features.dump_cause().as_ref(), Some(&cause));
        let bytes = features.get(Feature::WHIT_TRIGGER).unwrap().to_vec();
        for len in 0..bytes.len() {
            features.set(Feature::WHIT_TRIGGER, bytes[..len].to_vec());
            assert_eq!(features.dump_cause(), None, "{len}");
        }
        // Later versions append fields.
        let mut later = bytes.clone();
        later[0] = 2;
        later.extend([7; 9]);
        features.set(Feature::WHIT_TRIGGER, later);
        assert_eq!(features.dump_cause().as_ref(), Some(&cause));
        features.set(Feature::WHIT_TRIGGER, vec![0xff; 64]);
        assert_eq!(features.dump_cause(), None, "a text that nothing stands behind");
        cause.detail = "é".repeat(TEXT_BYTES_MAX);
        features.set_dump_cause(&cause);
        assert_eq!(features.dump_cause().unwrap().detail, "é".repeat(TEXT_BYTES_MAX / 2));
    }
}
