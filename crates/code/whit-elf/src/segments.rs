//! Addresses and offsets of loaded segments, for readers without an image too.

use whit_types::{FileOffset, Svma};

/// A `PT_LOAD` program header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Stated address of the first byte.
    pub svma: Svma,
    /// Offset of the first byte in the file.
    pub offset: FileOffset,
    /// Smaller than in memory where zeros follow.
    pub file_size_bytes: u64,
    /// Size in memory; the part beyond the file is zero.
    pub memory_size_bytes: u64,
    /// True where code may run.
    pub executable: bool,
}

/// The lowest stated address that is loaded.
pub fn base_of(segments: &[Segment]) -> Svma {
    segments.iter().map(|segment| segment.svma).min().unwrap_or_default()
}

/// As [`ElfImage::svma_of`](crate::ElfImage::svma_of).
pub fn svma_in(segments: &[Segment], offset: FileOffset) -> Option<Svma> {
    let holds = |segment: &&Segment| {
        offset.0.checked_sub(segment.offset.0).is_some_and(|at| at < segment.file_size_bytes)
    };
    let holding = || segments.iter().filter(holds);
    let segment = holding().find(|segment| segment.executable).or_else(|| holding().next())?;
    Some(Svma(segment.svma.0.wrapping_add(offset.0 - segment.offset.0)))
}

/// As [`ElfImage::svma_of_mapping`](crate::ElfImage::svma_of_mapping).
pub fn svma_of_mapping_in(
    segments: &[Segment],
    offset: FileOffset,
    size_bytes: u64,
) -> Option<Svma> {
    let end = offset.0.saturating_add(size_bytes);
    let shown = |segment: &Segment| {
        let segment_end = segment.offset.0.saturating_add(segment.file_size_bytes);
        segment_end.min(end).saturating_sub(segment.offset.0.max(offset.0))
    };
    let segment = segments
        .iter()
        .filter(|segment| shown(segment) > 0)
        .max_by_key(|segment| (segment.executable, shown(segment)))?;
    Some(Svma(segment.svma.0.wrapping_add(offset.0).wrapping_sub(segment.offset.0)))
}
