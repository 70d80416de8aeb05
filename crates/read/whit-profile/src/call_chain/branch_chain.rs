//! Call chains from branch records: the LBR in call-stack mode keeps the calls that have not
//! returned, newest first.
//!
//! On its own it is the user side of a chain. Together with a stack dump (*augmented call stacks*:
//! Budankov, "Linux perf advancements for compute intensive and server systems", Linux Piter 2019)
//! it continues the chain where the dump was too small: from the call on that led into the outermost
//! frame that was unwound.

use crate::call_chain::chain_entry::{ChainEntry, Side};
use whit_perfdata::sample::{BranchEntry, Sample};
use whit_types::Avma;
use whit_unwind::StopReason;

/// Size of the longest call instruction, of those that whit knows: x86's.
const CALL_BYTES_MAX: u64 = 15;
/// From here on addresses are the kernel's.
const KERNEL_START: u64 = 1 << 63;

/// The user side of a chain: where execution stood, then the calls that led there, innermost
/// first.
pub(crate) fn add(sample: &Sample<'_>, side: Side, out: &mut Vec<ChainEntry>) {
    let innermost = match side {
        Side::User => sample.ip,
        _ => calls(sample).next().map(|call| call.to),
    };
    out.extend(innermost.map(|address| ChainEntry::exact(address, Side::User)));
    out.extend(calls(sample).map(|call| ChainEntry::exact(call.from, Side::User)));
}

/// Continues a chain that unwinding has left incomplete. True where something was added.
pub(crate) fn continue_chain(
    sample: &Sample<'_>,
    stop: StopReason,
    room: usize,
    chain: &mut Vec<ChainEntry>,
) -> bool {
    if matches!(stop, StopReason::EndOfStack | StopReason::FramesLimit) {
        return false;
    }
    let calls: Vec<BranchEntry> = calls(sample).collect();
    let user = chain.iter().position(|entry| entry.side == Side::User).unwrap_or(chain.len());
    let Some(join) = join(&chain[user..], &calls) else { return false };
    let rest = calls.into_iter().skip(join).take(room);
    let before = chain.len();
    chain.extend(rest.map(|call| ChainEntry::exact(call.from, Side::User)));
    chain.len() > before
}

fn calls<'a>(sample: &Sample<'a>) -> impl Iterator<Item = BranchEntry> + use<'a> {
    sample.branch_stack.iter().filter(|call| call.from.0 < KERNEL_START)
}

/// The first call that is outside of all unwound frames: it stands behind the call of the outermost
/// frame's callee. In a recursion several calls may fit: the one with the most agreeing frames in
/// front of it is taken, and among equals the one at the position of its frame.
fn join(frames: &[ChainEntry], calls: &[BranchEntry]) -> Option<usize> {
    let (_, callers) = frames.split_first()?;
    let Some(outermost) = callers.len().checked_sub(1) else {
        // Nothing but the leaf: its call is the newest, if it stands behind that call's target.
        return (calls.first()?.to <= frames[0].address).then_some(0);
    };
    let agreeing = |call: usize| {
        let pairs = (0..=call.min(outermost)).map(|back| (call - back, outermost - back));
        pairs.take_while(|(call, frame)| returns_to(&calls[*call], callers[*frame].address)).count()
    };
    let all = (0..calls.len()).map(|call| (agreeing(call), call == outermost, call));
    let best = all.max_by_key(|(agree, aligned, call)| (*agree, *aligned, calls.len() - call))?;
    (best.0 > 0).then_some(best.2 + 1)
}

fn returns_to(call: &BranchEntry, address: Avma) -> bool {
    (1..=CALL_BYTES_MAX).contains(&address.0.wrapping_sub(call.from.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(from: u64) -> BranchEntry {
        BranchEntry { from: Avma(from), to: Avma(from & !0xfff), flags: 0 }
    }

    /// A leaf and the return addresses behind calls.
    fn frames(calls: &[u64]) -> Vec<ChainEntry> {
        let leaf = ChainEntry::exact(Avma(0x9_0123), Side::User);
        let caller = |from: &u64| ChainEntry {
            address: Avma(from + 5),
            is_return_address: true,
            side: Side::User,
        };
        std::iter::once(leaf).chain(calls.iter().map(caller)).collect()
    }

    #[test]
    fn a_chain_continues_after_its_last_call() {
        let calls: Vec<_> = [0x1010, 0x2010, 0x3010, 0x4010].map(call).to_vec();
        assert_eq!(join(&frames(&[0x1010, 0x2010]), &calls), Some(2));
        assert_eq!(join(&frames(&[0x1010, 0x2010, 0x3010, 0x4010]), &calls), Some(4));
        assert_eq!(join(&frames(&[0x1010, 0x7010]), &calls), None);
        assert_eq!(join(&[], &calls), None);
    }

    #[test]
    fn calls_that_unwinding_does_not_see_shift_the_rest() {
        // A tail call's frame is gone from the stack; the hardware still has the call.
        let calls: Vec<_> = [0x8010, 0x1010, 0x2010, 0x3010].map(call).to_vec();
        assert_eq!(join(&frames(&[0x1010, 0x2010]), &calls), Some(3));
    }

    #[test]
    fn recursions_are_matched_at_the_same_depth() {
        let calls: Vec<_> = [0x1010, 0x2010, 0x2010, 0x2010, 0x3010].map(call).to_vec();
        assert_eq!(join(&frames(&[0x1010, 0x2010]), &calls), Some(2));
        assert_eq!(join(&frames(&[0x1010, 0x2010, 0x2010]), &calls), Some(3));
        let endless: Vec<_> = [0x2010; 6].map(call).to_vec();
        assert_eq!(join(&frames(&[0x2010, 0x2010]), &endless), Some(2));
    }

    #[test]
    fn a_leaf_alone_is_joined_to_the_newest_call() {
        let near = [BranchEntry { from: Avma(0x1010), to: Avma(0x9_0100), flags: 0 }];
        assert_eq!(join(&frames(&[]), &near), Some(0));
        let behind = [BranchEntry { from: Avma(0x1010), to: Avma(0x9_0200), flags: 0 }];
        assert_eq!(join(&frames(&[]), &behind), None);
    }
}
