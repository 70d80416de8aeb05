//! Sections of a file, unpacked where they are compressed.

use gimli::{EndianSlice, RunTimeEndian, SectionId};
use rustc_hash::FxHashMap;
use whit_elf::ElfImage;
use whit_unwind::Bytes;

/// Compressed sections above this size are decompressed in a thread of their own.
const OWN_THREAD_BYTES: u64 = 256 << 10;

pub(crate) type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// By name.
pub(crate) type SectionMap = FxHashMap<&'static str, Bytes>;

pub(crate) fn endian_of(image: &ElfImage) -> RunTimeEndian {
    match image.endian() {
        object::Endianness::Little => RunTimeEndian::Little,
        object::Endianness::Big => RunTimeEndian::Big,
    }
}

/// Distributions compress debug sections, and taking them apart is most of the cost of the first look-up in a
/// binary: each larger one but the largest has a thread of its own.
pub(crate) fn sections_of(
    image: &ElfImage,
    wanted: &[SectionId],
    name: impl Fn(SectionId) -> Option<&'static str>,
) -> SectionMap {
    let size = |name: &str| {
        image.section(name).filter(|section| section.compressed).map_or(0, |section| section.size)
    };
    let mut names: Vec<_> = wanted.iter().filter_map(|id| name(*id)).collect();
    names.sort_by_key(|name| std::cmp::Reverse(size(name)));
    let own_thread = |at: usize| at > 0 && size(names[at]) > OWN_THREAD_BYTES;
    let (costly, cheap): (Vec<_>, Vec<_>) = (0..names.len()).partition(|at| own_thread(*at));
    std::thread::scope(|scope| {
        let threads: Vec<_> = costly
            .into_iter()
            .map(|at| names[at])
            .map(|name| (name, scope.spawn(move || image.section_contents(name))))
            .collect();
        let mut map: SectionMap = cheap
            .into_iter()
            .filter_map(|at| Some((names[at], image.section_contents(names[at])?)))
            .collect();
        let joined = threads.into_iter();
        map.extend(joined.filter_map(|(name, thread)| Some((name, thread.join().ok()??))));
        map
    })
}
