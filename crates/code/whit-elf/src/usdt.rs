//! Probes that a program was built with (USDT): the notes that `sys/sdt.h` leaves.
//!
//! Layout: <https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation>.

use crate::image::ElfImage;
use whit_types::Svma;

const SECTION: &str = ".note.stapsdt";
/// Its address when the program was linked says by how much the notes are off.
const BASE_SECTION: &str = ".stapsdt.base";
const OWNER: &[u8] = b"stapsdt\0";
const KIND: u32 = 3;
const WORD_BYTES: usize = 8;
/// Notes begin at multiples of it.
const ALIGNMENT: usize = 4;

/// One place of a probe. A probe has several where the function that holds it was inlined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UsdtProbe {
    /// The program's own group of probes.
    pub provider: String,
    /// Name in the group.
    pub name: String,
    /// The instruction.
    pub location: Svma,
    /// A counter that is above zero while somebody probes; the program may prepare arguments only then.
    pub semaphore: Option<Svma>,
    /// Where each argument is: `SIZE@OPERAND` in the assembler's words, separated by blanks; negative sizes are signed.
    pub arguments: String,
}

impl ElfImage {
    /// All probes of a little-endian 64-bit program.
    pub fn usdt_probes(&self) -> Vec<UsdtProbe> {
        let bytes = self.section(SECTION).and_then(|section| self.section_bytes(section));
        let base = self.section(BASE_SECTION).map(|section| section.svma);
        match bytes {
            Some(bytes) if self.is_64() => notes(&bytes).filter_map(|it| probe(it, base)).collect(),
            _ => Vec::new(),
        }
    }
}

/// Descriptions of the notes of USDT.
fn notes(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        loop {
            let (head, rest) = bytes.split_at_checked(12)?;
            let word = |at: usize| {
                u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
            };
            let (owner_bytes, size) = (word(0) as usize, word(4) as usize);
            let (owner, rest) = rest.split_at_checked(owner_bytes.next_multiple_of(ALIGNMENT))?;
            let description = rest.get(..size)?;
            bytes = rest.get(size.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
            if word(8) == KIND && owner.starts_with(OWNER) {
                return Some(description);
            }
        }
    })
}

fn probe(description: &[u8], base: Option<u64>) -> Option<UsdtProbe> {
    let word = |number: usize| {
        let at = number * WORD_BYTES;
        Some(u64::from_le_bytes(description.get(at..at + WORD_BYTES)?.try_into().ok()?))
    };
    let (location, linked_base, semaphore) = (word(0)?, word(1)?, word(2)?);
    // Where the program was linked again (prelink), everything has moved alike.
    let moved = base.map_or(0, |base| base.wrapping_sub(linked_base));
    let mut texts = description.get(3 * WORD_BYTES..)?.split(|byte| *byte == 0);
    let mut text = || Some(String::from_utf8_lossy(texts.next()?).into_owned());
    Some(UsdtProbe {
        provider: text()?,
        name: text()?,
        arguments: text()?,
        location: Svma(location.wrapping_add(moved)),
        semaphore: (semaphore != 0).then(|| Svma(semaphore.wrapping_add(moved))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn note(words: [u64; 3], texts: &[u8]) -> Vec<u8> {
        let mut description = Vec::new();
        words.iter().for_each(|word| description.extend(word.to_le_bytes()));
        description.extend(texts);
        let mut note = Vec::new();
        for word in [OWNER.len() as u32, description.len() as u32, KIND] {
            note.extend(word.to_le_bytes());
        }
        note.extend(OWNER);
        note.extend(description);
        note.resize(note.len().next_multiple_of(ALIGNMENT), 0);
        note
    }

    #[test]
    fn notes_say_where_probes_and_arguments_are() {
        let mut bytes = note([0x1000, 0x2000, 0], b"server\0begin\08@%rdi -4@$7\0");
        bytes.extend(note([0x1010, 0x2000, 0x3000], b"server\0end\0\0"));
        let probes: Vec<_> = notes(&bytes).filter_map(|it| probe(it, Some(0x2100))).collect();
        let [begin, end] = &probes[..] else { panic!("{probes:?}") };
        assert_eq!((&*begin.provider, &*begin.name), ("server", "begin"));
        assert_eq!((begin.location, begin.semaphore), (Svma(0x1100), None));
        assert_eq!(begin.arguments, "8@%rdi -4@$7");
        assert_eq!((end.location, end.semaphore), (Svma(0x1110), Some(Svma(0x3100))));
        assert_eq!(end.arguments, "");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = notes(&bytes).filter_map(|it| probe(it, None)).count();
        }

        #[test]
        fn a_note_that_is_cut_is_none(cut in 0usize..60) {
            let bytes = note([1, 2, 3], b"a\0b\0c\0");
            let cut = cut.min(bytes.len());
            // Head, owner, words and texts; then zeros up to the next note.
            let whole = 12 + OWNER.len() + 3 * WORD_BYTES + 6;
            prop_assert_eq!(notes(&bytes[..cut]).count(), usize::from(cut >= whole));
        }
    }
}
