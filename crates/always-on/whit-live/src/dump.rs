//! A recording in the form of a file. It is written while its newest records are still to come.

use crate::frozen::Frozen;
use crate::piece::Piece;
use std::io::{self, IoSlice, Seek, Write};
use std::sync::Arc;
use whit_perfdata::feature::Features;
use whit_perfdata::reader::pipe_head;
use whit_perfdata::writer::FileWriter;

/// Records that came behind those of a [`Frozen`].
#[derive(Clone, Debug)]
pub struct Newer {
    pub(crate) pieces: Vec<Arc<Piece>>,
    pub(crate) sampled_since_ns: Option<u64>,
}

impl Newer {
    /// Bytes of records.
    pub fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.bytes.len()).sum()
    }
}

/// A file that has its records up to a moment.
#[derive(Debug)]
pub struct Dump<W> {
    writer: FileWriter<W>,
    frozen: Frozen,
}

impl Frozen {
    /// Begins a recording in the form of a file, with all of these records.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn begin_file<W: Write + Seek>(self, out: W) -> io::Result<Dump<W>> {
        let (events, _) = pipe_head(&self.head);
        let mut writer = FileWriter::create(out, &events)?;
        let state = self.state();
        append(&mut writer, &state, &self.pieces)?;
        Ok(Dump { writer, frozen: self })
    }
}

impl<W: Write + Seek> Dump<W> {
    /// The records that it has.
    pub fn frozen(&self) -> &Frozen {
        &self.frozen
    }

    /// Appends the records that came since.
    ///
    /// # Errors
    /// Those of the output.
    pub fn add(&mut self, newer: Newer) -> io::Result<()> {
        append(&mut self.writer, &[], &newer.pieces)?;
        self.frozen.sampled_since_ns = self.frozen.sampled_since_ns.or(newer.sampled_since_ns);
        self.frozen.pieces.extend(newer.pieces);
        Ok(())
    }

    /// Completes the file. Its header gets what the stream said of itself, and `more`. Gives the output back.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(self, more: &Features) -> io::Result<W> {
        let (_, mut features) = pipe_head(&self.frozen.head);
        more.iter().for_each(|(feature, bytes)| features.set(feature, bytes.to_vec()));
        self.frozen.describe_compression(&mut features);
        self.frozen.let_go.iter().for_each(|let_go| features.set_let_go(let_go));
        self.writer.finish(&features)
    }
}

/// Pieces go to the output as they lie in memory, many in one call.
fn append<W: Write + Seek>(
    writer: &mut FileWriter<W>,
    state: &[u8],
    pieces: &[Arc<Piece>],
) -> io::Result<()> {
    let pieces = pieces.iter().map(|piece| IoSlice::new(&piece.bytes));
    let mut parts: Vec<_> = std::iter::once(IoSlice::new(state)).chain(pieces).collect();
    writer.append_all(&mut parts)
}
