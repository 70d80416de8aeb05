//! Call chains by frame pointers of programs that have none: they end behind the first frame.

use crate::model::{EventId, NodeId, Profile};
use crate::reading::Reading;
use crate::samples::Samples;
use crate::warning::Warning;

/// Fewer chains say nothing of the programs.
const CHAINS_MIN: u64 = 20;

/// Says that most user call chains have one frame. Stacks that the BPF engine walked, and dumps, have accounts of their
/// own of those that are cut.
pub(crate) fn warning(
    reading: Reading<'_>,
    question: &Samples,
    profile: &Profile,
) -> Option<Warning> {
    let is_walked = profile.ledger.as_ref().is_some_and(|ledger| ledger.stacks.walks > 0);
    if is_walked || question.leaves || reading.options.max_stack < 2 {
        return None;
    }
    let has_chains = |event: EventId| {
        reading
            .recording
            .events
            .get(event.index())
            .is_some_and(|event| event.attr.has_user_chains())
    };
    let (mut chains, mut of_one_frame) = (0u64, 0u64);
    for row in profile.rows.iter().filter(|row| has_chains(row.event)) {
        match user_frames(profile, row.node) {
            0 => {}
            1 => (chains, of_one_frame) = (chains + row.samples, of_one_frame + row.samples),
            _ => chains += row.samples,
        }
    }
    (chains >= CHAINS_MIN && of_one_frame > chains / 2)
        .then_some(Warning::OneFrameChains { chains, of_one_frame })
}

/// Frames in user mode of a call chain, without inlined ones; 2 stands for all numbers above.
fn user_frames(profile: &Profile, leaf: NodeId) -> u32 {
    let (mut frames, mut at) = (0, leaf);
    while let (Some(node), 0 | 1) = (profile.nodes.get(at.index()), frames) {
        let frame = profile.frames[node.frame.index()];
        frames += u32::from(!frame.kernel && !frame.inlined);
        at = node.parent;
    }
    frames
}
