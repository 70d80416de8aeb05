//! Samples with call chains in the place of stack dumps.
//!
//! A dump that was unwound is of no more use, and makes up nearly all of a sample. Without it, the sample has the form
//! of one whose chain the kernel took itself, which each reader of perf.data knows.
//!
//! perf looks a frame of the user up at its address as it stands, and so unwinds to one byte before the return address:
//! behind a call that is the last of its function stands another function. Chains of unwound dumps are
//! [written so](UserAddress), and the size of the dumps stays in the attribute for readers to tell.

use crate::attr::{Attr, AttrFlags, BRANCH_CALL_STACK, SampleType};
use crate::encode::{MAX_RECORD_SIZE_BYTES, push_record};
use crate::feature::EventDesc;
use crate::record::{HEADER_SIZE_BYTES, RawRecord};
use crate::sample::SampleLayout;

/// Form of the user's return addresses in chains that were made of dumps.
pub struct UserAddress;

impl UserAddress {
    /// The address that is written for a return address.
    pub fn to_written(return_address: u64) -> u64 {
        return_address.wrapping_sub(1)
    }

    /// The return address for which one was written.
    pub fn from_written(written: u64) -> u64 {
        written.wrapping_add(1)
    }
}

/// Writes the samples of an event that has stack dumps.
#[derive(Clone, Copy, Debug)]
pub struct ChainedForm {
    layout: SampleLayout,
    /// Branch records that are calls are part of the chains by then.
    has_calls: bool,
}

impl ChainedForm {
    /// `None` for an event without dumps, whose samples stay as they are.
    pub fn new(attr: &Attr) -> Option<ChainedForm> {
        let has_calls = has_calls(attr);
        let layout = SampleLayout::new(attr);
        layout.has_user_stack().then_some(ChainedForm { layout, has_calls })
    }

    /// Appends a sample of the event with a call chain, innermost first, with
    /// [markers](crate::sample::context). The chain is cut where the record would be too long. `false` where the sample
    /// is shorter than its fields say; nothing is appended then.
    #[must_use]
    pub fn push(&self, record: RawRecord<'_>, chain: &[u64], out: &mut Vec<u8>) -> bool {
        let body = record.body;
        let Some(fields) = self.layout.stack_fields(body) else { return false };
        let branches = if self.has_calls { &[] } else { &body[fields.branches.clone()] };
        let before = &body[..fields.chain.start];
        let between = &body[fields.chain.end..fields.branches.start];
        let behind = &body[fields.dump.end..];
        let others = before.len() + between.len() + branches.len() + behind.len();
        let room = MAX_RECORD_SIZE_BYTES.saturating_sub(HEADER_SIZE_BYTES + 8 + others) / 8;
        let chain = &chain[..chain.len().min(room)];
        let mut new = Vec::with_capacity(others + 8 + 8 * chain.len());
        new.extend_from_slice(before);
        new.extend_from_slice(&(chain.len() as u64).to_le_bytes());
        new.extend(chain.iter().flat_map(|word| word.to_le_bytes()));
        [between, branches, behind].into_iter().for_each(|part| new.extend_from_slice(part));
        push_record(out, record.header.kind, record.header.misc, &new);
        true
    }
}

fn has_calls(attr: &Attr) -> bool {
    attr.branch_sample_type & BRANCH_CALL_STACK != 0
}

/// The events of a recording whose samples are written in this form.
pub fn chained_events(events: &[EventDesc]) -> Vec<EventDesc> {
    let event = |event: &EventDesc| EventDesc { attr: chained_attr(&event.attr), ..event.clone() };
    events.iter().map(event).collect()
}

fn chained_attr(attr: &Attr) -> Attr {
    let mut new = attr.clone();
    if !attr.sample_type.contains(SampleType::STACK_USER) {
        return new;
    }
    let dumped = SampleType::STACK_USER | SampleType::REGS_USER;
    new.sample_type = attr.sample_type.with(dumped, false).with(SampleType::CALLCHAIN, true);
    new.sample_regs_user = 0;
    new.flags = attr.flags.with(AttrFlags::EXCLUDE_CALLCHAIN_USER, false);
    if has_calls(attr) {
        new.sample_type = new.sample_type.with(SampleType::BRANCH_STACK, false);
        new.branch_sample_type = 0;
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::record_type;
    use crate::sample::Sample;
    use proptest::prelude::*;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// A recorded chain, two branches, two registers, a dump of 16 bytes, and a weight behind them.
    fn dumped(branch_sample_type: u64) -> (Attr, Vec<u8>) {
        use SampleType as T;
        let sample_type = T::IP | T::PERIOD | T::CALLCHAIN | T::BRANCH_STACK | T::REGS_USER;
        let attr = Attr {
            sample_type: sample_type | T::STACK_USER | T::WEIGHT,
            sample_regs_user: 0b11,
            sample_stack_user_bytes: 16,
            branch_sample_type,
            flags: AttrFlags::EXCLUDE_CALLCHAIN_USER,
            ..Attr::default()
        };
        let mut words = vec![0x1000, 99, 1, 0x2000];
        words.extend([2, 1, 2, 3, 4, 5, 6]);
        words.extend([2, 70, 71, 16, 80, 81, 8, 77]);
        (attr, bytes(&words))
    }

    fn rewritten(attr: &Attr, body: &[u8], chain: &[u64]) -> Option<Vec<u8>> {
        let mut record = Vec::new();
        push_record(&mut record, record_type::SAMPLE, 2, body);
        let (record, _) = RawRecord::split(&record)?;
        let mut out = Vec::new();
        ChainedForm::new(attr)?.push(record, chain, &mut out).then_some(out)
    }

    #[test]
    fn the_chain_takes_the_place_of_the_dump() {
        for (branch_sample_type, branches) in [(0, 2), (BRANCH_CALL_STACK, 0)] {
            let (attr, body) = dumped(branch_sample_type);
            let out = rewritten(&attr, &body, &[7, 8, 9]).unwrap();
            let (record, rest) = RawRecord::split(&out).unwrap();
            assert_eq!((record.header.misc, rest), (2, &[][..]));
            let event = EventDesc { attr: attr.clone(), ..EventDesc::default() };
            let new = &chained_events(&[event])[0].attr;
            let sample: Sample<'_> = SampleLayout::new(new).parse(record.body).unwrap();
            assert_eq!(sample.callchain.iter().collect::<Vec<_>>(), [7, 8, 9]);
            assert_eq!((sample.ip.unwrap().0, sample.period), (0x1000, Some(99)));
            assert_eq!((sample.branch_stack.len(), sample.weight), (branches, Some(77)));
            assert!(!sample.has_user_stack() && sample.user_regs.is_none());
            assert!(!new.has(AttrFlags::EXCLUDE_CALLCHAIN_USER));
            assert!(ChainedForm::new(new).is_none(), "nothing is left to be done");
            assert!(new.has_unwound_dumps() && !attr.has_unwound_dumps());
        }
    }

    #[test]
    fn a_chain_that_is_too_long_is_cut_to_the_room() {
        let (attr, body) = dumped(0);
        let out = rewritten(&attr, &body, &[5; 9000]).unwrap();
        assert!(out.len() <= MAX_RECORD_SIZE_BYTES && out.len() + 8 > MAX_RECORD_SIZE_BYTES);
    }

    proptest! {
        #[test]
        fn no_sample_makes_it_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let (attr, whole) = dumped(BRANCH_CALL_STACK);
            let _ = rewritten(&attr, &body, &[1]);
            // Behind the dump stands the weight.
            let cut = whole.len().min(body.len());
            prop_assert_eq!(rewritten(&attr, &whole[..cut], &[1]).is_some(), cut + 8 >= whole.len());
        }
    }
}
