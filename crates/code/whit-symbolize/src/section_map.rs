//! Sections of a file, unpacked where they are compressed.

use gimli::{RunTimeEndian, SectionId};
use rustc_hash::FxHashMap;
use whit_elf::ElfImage;
use whit_unwind::Bytes;

/// Compressed sections above this size are decompressed in a thread of their own.
const OWN_THREAD_BYTES: u64 = 256 << 10;

/// By name.
pub(crate) type SectionMap = FxHashMap<&'static str, Bytes>;

pub(crate) fn endian_of(image: &ElfImage) -> RunTimeEndian {
    match image.endian() {
        object::Endianness::Little => RunTimeEndian::Little,
        object::Endianness::Big => RunTimeEndian::Big,
    }
}

/// The stated contents of compressed sections, where a file of this size may not have so many; zero otherwise.
pub(crate) fn excess_bytes(
    image: &ElfImage,
    wanted: &[SectionId],
    name: impl Fn(SectionId) -> Option<&'static str>,
) -> u64 {
    let sizes = wanted.iter().filter_map(|id| name(*id)).map(|name| image.unpacked_size(name));
    let whole = sizes.fold(0, u64::saturating_add);
    if whole > image.max_unpacked_bytes() { whole } else { 0 }
}

/// Distributions compress debug sections, and taking them apart is most of the cost of the first look-up in a
/// binary: each larger one but the largest has a thread of its own.
pub(crate) fn sections_of(
    image: &ElfImage,
    wanted: &[SectionId],
    name: impl Fn(SectionId) -> Option<&'static str>,
) -> SectionMap {
    if excess_bytes(image, wanted, &name) > 0 {
        return SectionMap::default();
    }
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
