//! Traces of other recorders in records.
//!
//! The kernel makes a mapping record once and writes it into the rings of all recorders, one after the other. It changes
//! the one header for each of them and does not restore all of it (`perf_event_mmap_output`, `perf_event_ksymbol_output`,
//! `perf_event_bpf_output` and `perf_event_text_poke_output`, at least up to 6.18):
//!
//! - A MMAP2 record keeps [`misc::MMAP_BUILD_ID`] of an event that asked for build ids, and has device and inode of the
//!   events that did not.
//! - KSYMBOL, BPF_EVENT and TEXT_POKE records grow by the sample id of each event. The bytes behind the own sample id
//!   are older contents of the ring.
//!
//! In all other records, the kernel restores the size for each event. The other bits of misc hold for every recorder:
//! that a mapping is of data, that a name comes from an exec, that a thread left its CPU.

use crate::record::{RawRecord, misc, record_type};
use crate::{cpu_account, interpreted, ready_file};

/// Bytes of the body of a KSYMBOL record in front of the name.
const KSYMBOL_NAME_AT: usize = 16;
/// Bytes of the fields of a BPF_EVENT record of the kernel.
const BPF_EVENT_BYTES: usize = 16;
/// Bytes of the body of a TEXT_POKE record in front of its code.
const TEXT_POKE_CODE_AT: usize = 12;
/// Where a MMAP2 record has device and inode, or a build id.
const FILE_ID_AT: usize = 32;
/// Sizes of build ids that are no number of a device: no driver of Linux has 16 or 20 as its major number.
const BUILD_ID_SIZES: [u8; 2] = [16, 20];

/// Bytes of the fields in front of the sample id, for types whose size is not to be trusted. `word` gives eight bytes of
/// the body from an offset on.
#[inline]
pub fn fields_bytes(kind: u32, word: impl Fn(usize) -> Option<u64>) -> Option<usize> {
    match kind {
        record_type::KSYMBOL => {
            let has_zero =
                |at: &usize| word(*at).is_none_or(|word| word.to_le_bytes().contains(&0));
            let last = (KSYMBOL_NAME_AT..).step_by(8).find(has_zero)?;
            word(last).map(|_| last + 8)
        }
        record_type::BPF_EVENT => {
            let is_ours =
                [interpreted::RECORD_TYPE, cpu_account::RECORD_TYPE, ready_file::RECORD_TYPE];
            (!is_ours.contains(&(word(0)? as u16))).then_some(BPF_EVENT_BYTES)
        }
        record_type::TEXT_POKE => {
            let sizes = word(8)?;
            let code = usize::from(sizes as u16) + usize::from((sizes >> 16) as u16);
            Some((TEXT_POKE_CODE_AT + code).next_multiple_of(8))
        }
        _ => None,
    }
}

/// Whether a mapping record whose event did not ask for build ids has one all the same: `perf inject` writes records
/// with build ids and leaves the events as they were.
pub(crate) fn was_given_build_id(record: RawRecord<'_>) -> bool {
    let field = record.body.get(FILE_ID_AT..FILE_ID_AT + 4);
    field.is_some_and(|field| BUILD_ID_SIZES.contains(&field[0]) && field[1..] == [0; 3])
}

/// Whether a mapping record says that it has a build id.
pub(crate) fn says_build_id(record: RawRecord<'_>) -> bool {
    record.header.kind == record_type::MMAP2 && record.header.misc & misc::MMAP_BUILD_ID != 0
}

/// The record of an event that did not ask for build ids.
pub fn without_build_id(mut record: RawRecord<'_>) -> RawRecord<'_> {
    if record.header.kind == record_type::MMAP2 {
        record.header.misc &= !misc::MMAP_BUILD_ID;
    }
    record
}
