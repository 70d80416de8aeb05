//! Records that the bound of a window in memory took (`WHIT_LET_GO`).

use crate::bytes::Cursor;
use crate::feature::{Feature, Features};
use whit_types::TimestampNs;

const VERSION: u32 = 1;

/// Records that were recorded, and went before they were written. A LOST record stands for them, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LetGo {
    /// Records that no later one is looked up in.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The time of the last one, which is that of the LOST record.
    pub until: TimestampNs,
}

impl Features {
    /// WHIT_LET_GO.
    pub fn let_go(&self) -> Option<LetGo> {
        let mut c = Cursor::new(self.get(Feature::WHIT_LET_GO)?);
        let (VERSION.., _) = (c.u32()?, c.u32()?) else { return None };
        Some(LetGo { records: c.u64()?, bytes: c.u64()?, until: TimestampNs(c.u64()?) })
    }

    /// Sets WHIT_LET_GO.
    pub fn set_let_go(&mut self, let_go: &LetGo) {
        let LetGo { records, bytes, until } = let_go;
        let mut out = VERSION.to_le_bytes().to_vec();
        out.extend([0; 4]);
        out.extend([*records, *bytes, until.0].iter().flat_map(|it| it.to_le_bytes()));
        self.set(Feature::WHIT_LET_GO, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_counts_are_read() {
        let mut features = Features::default();
        assert_eq!(features.let_go(), None);
        let let_go = LetGo { records: 7, bytes: 700, until: TimestampNs(u64::MAX) };
        features.set_let_go(&let_go);
        assert_eq!(features.let_go(), Some(let_go));
        let bytes = features.get(Feature::WHIT_LET_GO).unwrap().to_vec();
        for len in 0..bytes.len() {
            features.set(Feature::WHIT_LET_GO, bytes[..len].to_vec());
            assert_eq!(features.let_go(), None, "{len}");
        }
        // Later versions append fields.
        let mut later = bytes;
        later[0] = 2;
        later.extend([7; 9]);
        features.set(Feature::WHIT_LET_GO, later);
        assert_eq!(features.let_go(), Some(let_go));
    }
}
