//! Records as they stood at a moment. They are shared with the window, so that they cost no copy, and the stream goes on
//! while they are written.

use crate::compress;
use crate::piece::Piece;
use crate::sampled::Sampled;
use crate::sideband::Sideband;
use std::io::{self, Write};
use std::sync::Arc;
use whit_perfdata::encode::header_feature;
use whit_perfdata::feature::{CompressedDesc, Features};
use whit_perfdata::let_go::LetGo;

/// The last while of a stream at one moment.
#[derive(Clone, Debug)]
pub struct Frozen {
    pub(crate) head: Vec<u8>,
    /// The state at the beginning of the first piece.
    pub(crate) base: Sideband,
    /// Pieces whose sideband alone is wanted.
    pub(crate) older: Vec<Arc<Piece>>,
    pub(crate) pieces: Vec<Arc<Piece>>,
    /// A record of losses in front of the others.
    pub(crate) lost: Vec<u8>,
    /// The records that it stands for.
    pub(crate) let_go: Option<LetGo>,
    /// The processes whose mappings are wanted; `None` are all.
    pub(crate) sampled: Option<Sampled>,
    pub(crate) sampled_since_ns: Option<u64>,
}

impl Frozen {
    /// The moment from which on no sample is missing; `None` without samples.
    pub fn whole_since_ns(&self) -> Option<u64> {
        let begun_ns = self.pieces.first()?.begun_ns;
        self.sampled_since_ns.map(|since_ns| since_ns.max(begun_ns))
    }

    /// Bytes of records, without those that tell mappings, names and cgroups of before.
    pub fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.bytes.len()).sum()
    }

    /// Writes a recording in the form of a pipe.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        self.write_head(out)?;
        out.write_all(&self.state())?;
        self.pieces.iter().try_for_each(|piece| out.write_all(&piece.bytes))
    }

    /// The same. Each record goes from memory as soon as it is written, where nobody else has it.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn move_to(mut self, out: &mut impl Write) -> io::Result<()> {
        self.write_head(out)?;
        out.write_all(&self.state())?;
        let pieces = std::mem::take(&mut self.pieces);
        drop(self);
        pieces.into_iter().try_for_each(|piece| out.write_all(&piece.bytes))
    }

    fn write_head(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.head)?;
        let mut features = Features::default();
        self.describe_compression(&mut features);
        self.let_go.iter().for_each(|let_go| features.set_let_go(let_go));
        for (feature, content) in features.iter() {
            let mut record = Vec::new();
            if header_feature(&mut record, feature.0, content) {
                out.write_all(&record)?;
            }
        }
        Ok(())
    }

    fn add_sideband(&self, piece: &Piece, out: &mut Vec<u8>) {
        for (record, whole) in piece.sideband() {
            let is_needed = self.sampled.as_ref().is_none_or(|sampled| sampled.needs(record));
            if is_needed && !record.is_budget() {
                out.extend_from_slice(whole);
            }
        }
    }

    /// The settings at the beginning; a history goes back to its first record.
    fn budget(&self) -> Option<&[u8]> {
        let older = self.older.iter().rev().find_map(|piece| last_budget(piece));
        older.or(self.base.budget())
    }

    /// Sets the feature that perf sizes its buffers by, where records are compressed.
    pub(crate) fn describe_compression(&self, features: &mut Features) {
        let compressed = || self.pieces.iter().filter(|piece| piece.compressed_from.is_some());
        let to: usize = compressed().map(|piece| piece.bytes.len()).sum();
        let from: usize = compressed().filter_map(|piece| piece.compressed_from).sum();
        if let Some(ratio) = from.checked_div(to) {
            let (level, ratio) = (compress::LEVEL as u32, ratio as u32);
            let decoded_bytes_max = compress::DECODED_BYTES_MAX as u32;
            features.set_compressed(&CompressedDesc::zstd(level, ratio, decoded_bytes_max));
        }
    }

    /// Records that stand in front of all others: mappings, names, losses.
    pub(crate) fn state(&self) -> Vec<u8> {
        let mut state = Vec::new();
        self.base.write_of(self.sampled.as_ref(), &mut state);
        state.extend_from_slice(self.budget().unwrap_or_default());
        state.extend_from_slice(&self.lost);
        self.older.iter().for_each(|piece| self.add_sideband(piece, &mut state));
        state
    }
}

/// The last record of settings of a piece.
fn last_budget(piece: &Piece) -> Option<&[u8]> {
    let settings = piece.sideband().filter(|(record, _)| record.is_budget());
    settings.last().map(|(_, whole)| whole)
}
