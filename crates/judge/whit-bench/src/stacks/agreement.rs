//! How far two chains of frames agree.

use serde::Serialize;

use super::FRAMES_MAX;

/// A chain by an offline unwinder.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Chain {
    /// Addresses, innermost first.
    pub(super) frames: Vec<u64>,
    /// Whether it led to the outermost frame. Otherwise the dump ended, or the unwinder knew no further.
    pub(super) is_complete: bool,
}

/// Sums over all samples.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub(crate) struct Agreement {
    /// Frames that were compared: of two chains, as many as the longer one has; where the offline
    /// unwinder came to no end, as many as it found.
    pub(crate) frames: u64,
    /// Frames among these that are the same and follow upon the same.
    pub(crate) equal: u64,
    /// Chains that are the same in all frames that were compared.
    pub(crate) equal_chains: u64,
    /// Chains that the offline unwinder followed to the outermost frame.
    pub(crate) complete: u64,
    /// Some chains that differ.
    pub(crate) differences: Vec<Difference>,
}

/// Where two chains part.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Difference {
    /// Number of the frame, counted from the innermost.
    pub(crate) frame: usize,
    /// Frames on both sides.
    pub(crate) lengths: (usize, usize),
    /// The program's frame there, and the last one that was the same.
    #[serde(rename = "told")]
    pub(crate) program: Option<u64>,
    /// The offline unwinder's.
    pub(crate) other: Option<u64>,
    /// The frame before, which both have.
    pub(crate) after: Option<u64>,
}

/// Differences that are kept.
const DIFFERENCES_MAX: usize = 20;

impl Agreement {
    /// Share of frames that are equal, between 0 and 1; 1 where there are none.
    pub(crate) fn share(&self) -> f64 {
        if self.frames == 0 { 1.0 } else { self.equal as f64 / self.frames as f64 }
    }

    pub(super) fn add(&mut self, program: &[u64], other: &Chain) {
        let frames = &other.frames[..other.frames.len().min(FRAMES_MAX)];
        let is_whole = other.is_complete && other.frames.len() <= FRAMES_MAX;
        let equal = program.iter().zip(frames).take_while(|(a, b)| a == b).count();
        let compared = if is_whole { program.len().max(frames.len()) } else { frames.len() };
        self.frames += compared as u64;
        self.equal += equal as u64;
        self.equal_chains += u64::from(equal == compared);
        self.complete += u64::from(is_whole);
        if equal < compared && self.differences.len() < DIFFERENCES_MAX {
            self.differences.push(Difference {
                frame: equal,
                lengths: (program.len(), frames.len()),
                program: program.get(equal).copied(),
                other: frames.get(equal).copied(),
                after: equal.checked_sub(1).and_then(|before| program.get(before).copied()),
            });
        }
    }
}
