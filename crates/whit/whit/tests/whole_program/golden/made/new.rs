//! As versions of perf write recordings that are newer than the one at hand, and as some will that
//! do not exist yet.

use super::{Made, at, sample};
use crate::golden::encode::{
    Attr, Kernel, Recording, bytes, feature, field, flag, kind, misc, record,
};

/// Compressed as zstd stores bytes that it cannot shrink: a frame of raw blocks (RFC 8878).
fn zstd_frame(blocks: &[&[u8]]) -> Vec<u8> {
    bytes(|b| {
        // No checksum, no size; a window of 256 KiB.
        b.u32(0xfd2f_b528).u8(0).u8(8 << 3);
        for (index, block) in blocks.iter().enumerate() {
            let is_last = index + 1 == blocks.len();
            let header = u32::from(is_last) | (block.len() as u32) << 3;
            b.raw(&header.to_le_bytes()[..3]).raw(block);
        }
    })
}

/// Attributes of 144 bytes with all four configs, records and features of types that are not known,
/// COMPRESSED2, build ids in mappings, one record cut in two by compression.
pub(super) fn perf_7() -> Made {
    let mut attr =
        Attr::software(0, field::IP | field::TID | field::TIME | field::CPU | field::IDENTIFIER);
    (attr.kind, attr.config, attr.config3, attr.config4) = (4, 0x1c2, 3, 4);
    attr.flags |= flag::BUILD_ID;
    let kernel = Kernel::of(&attr);
    let id = at(8300, 8300, 1_000_000);
    let mut inner = kernel.comm("new", true, id);
    inner.extend(kernel.record(kind::MMAP2, misc::USER | misc::MMAP_BUILD_ID, id, |b| {
        b.i32(8300).i32(8300).words(&[0x40_0000, 0x1000, 0]).u8(4).raw(&[0; 3]);
        b.raw(&[1, 2, 3, 4]).raw(&[0; 16]).u32(5).u32(2).c_str("/opt/elsewhere/new", 8);
    }));
    // A type that a future kernel has.
    inner.extend(kernel.record(40, 0, id, |b| {
        b.words(&[1, 2, 3]);
    }));
    for time in [2_000_000, 2_000_100, 2_000_200] {
        inner.extend(sample(misc::USER, |b| {
            b.u64(11).u64(0x40_0208).i32(8300).i32(8300).u64(time).u32(1).u32(0);
        }));
    }
    let half = inner.len() / 2 - 3;
    let frame = zstd_frame(&[&inner[..half], &inner[half..]]);
    let mut data = kernel.kernel_map();
    for part in frame.chunks(frame.len() / 2 + 5) {
        data.extend(record(kind::COMPRESSED2, 0, |b| {
            b.u64(part.len() as u64).raw(part);
            b.0.resize(b.0.len().next_multiple_of(8), 0xcc);
        }));
    }
    // A type that a future perf has.
    data.extend(record(150, 0, |b| {
        b.words(&[1, 2]);
    }));
    let events = vec![(attr, vec![11], "r1c2")];
    let mut recording = Recording::new(events, data).of("x86_64", "7.0.0");
    recording.attr_size = 144;
    recording.features.push((
        feature::COMPRESSED,
        bytes(|b| {
            b.u32(1).u32(1).u32(1).u32(2).u32(528_384);
        }),
    ));
    recording.features.push((40, vec![0xaa; 24]));
    recording.features.push((200, vec![0xbb; 8]));
    Made::file("new-7.0", recording.described())
}
