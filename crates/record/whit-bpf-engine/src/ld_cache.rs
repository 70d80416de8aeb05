//! The dynamic linker's list of libraries, `/etc/ld.so.cache`, as glibc 2.2 and newer write it.
//!
//! A header of 48 bytes begins with a magic of 20 bytes, the number of entries (4) and the length of the
//! strings (4); the rest is not used here. Entries of 24 bytes follow: the kind of library (4), the places
//! of its name and its path (4 each, counted from the header), and unused bytes. All numbers are in the
//! machine's byte order. An older list may stand in front.

/// First bytes of the list.
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const HEADER_BYTES: usize = 48;
const ENTRY_BYTES: usize = 24;
/// A library of the C library's (3), for x86-64 (0x300) or arm64 (0xa00).
const LIBRARY: u32 = if cfg!(target_arch = "aarch64") { 0xa03 } else { 0x303 };
/// Longest name and path.
const TEXT_MAX_BYTES: usize = 4096;

/// The paths that a library's name stands for: several where there are variants for newer CPUs.
pub(super) fn paths<'a>(cache: &'a [u8], name: &[u8]) -> Vec<&'a [u8]> {
    let start = cache.windows(MAGIC.len()).step_by(8).position(|window| window == MAGIC);
    let list = start.map_or(&[][..], |start| &cache[start * 8..]);
    let entries = list.get(HEADER_BYTES..).unwrap_or_default().chunks_exact(ENTRY_BYTES);
    let count = word(list, MAGIC.len()).unwrap_or(0) as usize;
    let entries = entries.take(count);
    let found = entries.filter(|entry| {
        let is_library = word(entry, 0) == Some(LIBRARY);
        is_library && word(entry, 4).and_then(|at| text(list, at)) == Some(name)
    });
    found.filter_map(|entry| text(list, word(entry, 8)?)).collect()
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_ne_bytes(*word))
}

fn text(list: &[u8], at: u32) -> Option<&[u8]> {
    let rest = list.get(at as usize..)?;
    let end = rest.iter().take(TEXT_MAX_BYTES).position(|byte| *byte == 0)?;
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A list, behind something older of 16 bytes.
    fn cache(entries: &[(u32, &str, &str)]) -> Vec<u8> {
        let mut strings = Vec::new();
        let mut list = MAGIC.to_vec();
        list.extend((entries.len() as u32).to_ne_bytes());
        list.resize(HEADER_BYTES, 0);
        let base = HEADER_BYTES + entries.len() * ENTRY_BYTES;
        for (kind, name, path) in entries {
            let mut put = |text: &str| {
                let at = (base + strings.len()) as u32;
                strings.extend(text.as_bytes());
                strings.push(0);
                at
            };
            let (name, path) = (put(name), put(path));
            [*kind, name, path, 0, 0, 0].iter().for_each(|w| list.extend(w.to_ne_bytes()));
        }
        [vec![7; 16], list, strings].concat()
    }

    #[test]
    fn a_name_means_the_paths_of_its_kind() {
        let bytes = cache(&[
            (LIBRARY, "libc.so.6", "/lib64/libc.so.6"),
            (3, "libc.so.6", "/lib/libc.so.6"),
            (LIBRARY, "libm.so.6", "/lib64/v3/libm.so.6"),
            (LIBRARY, "libm.so.6", "/lib64/libm.so.6"),
        ]);
        assert_eq!(paths(&bytes, b"libc.so.6"), [b"/lib64/libc.so.6"]);
        let both: [&[u8]; 2] = [b"/lib64/v3/libm.so.6", b"/lib64/libm.so.6"];
        assert_eq!(paths(&bytes, b"libm.so.6"), both);
        assert!(paths(&bytes, b"libx.so").is_empty() && paths(&[], b"libc.so.6").is_empty());
    }

    proptest! {
        #[test]
        fn damaged_lists_are_survived(
            places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
            length in any::<prop::sample::Index>(),
        ) {
            let mut bytes = cache(&[(LIBRARY, "a", "/a"), (LIBRARY, "b", "/b")]);
            for (place, byte) in places {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            bytes.truncate(length.index(bytes.len() + 1));
            prop_assert!(paths(&bytes, b"a").len() <= 2);
        }
    }
}
