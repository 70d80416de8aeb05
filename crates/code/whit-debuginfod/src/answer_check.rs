//! Whether an answer is about the thing that was asked for, as far as it shows that itself.

use std::path::Path;

use whit_elf::ElfImage;
use whit_types::BuildId;

/// Bytes of a null symbol, which each table of symbols begins with, in either class.
const NULL_SYMBOL_BYTES: usize = 16;

/// Refuses a whole file that is not that of the build id.
pub(crate) fn check_file(path: &Path, id: BuildId) -> Result<(), String> {
    let image = ElfImage::open(path).map_err(|_| "sent no ELF file".to_owned())?;
    match image.build_id() {
        Some(found) if found == id => Ok(()),
        Some(found) => Err(format!("sent the file of another build id ({found})")),
        None => Err("sent a file without a build id".to_owned()),
    }
}

/// Refuses bytes that cannot be a section of that name. Sections have no build id; whit compares those that come
/// with the binary.
pub(crate) fn check_section(name: &str, bytes: &[u8]) -> Result<(), String> {
    let is_right = match name {
        ".symtab" => bytes.get(..NULL_SYMBOL_BYTES).is_some_and(|it| it.iter().all(|b| *b == 0)),
        ".strtab" => bytes.first() == Some(&0) && bytes.last() == Some(&0),
        ".debug_info" | ".debug_line" | ".debug_aranges" | ".debug_rnglists" | ".debug_addr"
        | ".debug_str_offsets" => is_compressed(bytes) || begins_with_unit(bytes),
        _ => !bytes.is_empty(),
    };
    if is_right { Ok(()) } else { Err(format!("sent bytes that are no section {name}")) }
}

/// `ch_type` of zlib or zstd, in either order of bytes.
fn is_compressed(bytes: &[u8]) -> bool {
    matches!(bytes, [1 | 2, 0, 0, 0, ..] | [0, 0, 0, 1 | 2, ..])
}

/// A unit begins with its length, which ends within the section.
fn begins_with_unit(bytes: &[u8]) -> bool {
    let Some(word) = bytes.first_chunk::<4>() else { return false };
    let rest = bytes.len() as u64 - 4;
    let fits = |length: u32| {
        let is_64 = length == u32::MAX;
        is_64 || (length > 0 && u64::from(length) <= rest)
    };
    fits(u32::from_le_bytes(*word)) || fits(u32::from_be_bytes(*word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sections_have_their_form() {
        let page = b"<html>all is well</html>\n";
        for name in [".symtab", ".strtab", ".debug_info", ".debug_line"] {
            assert!(check_section(name, page).is_err(), "{name}");
            assert!(check_section(name, b"").is_err(), "{name}");
        }
        assert!(check_section(".symtab", &[0; 24]).is_ok());
        assert!(check_section(".strtab", b"\0main\0").is_ok());
        assert!(check_section(".debug_info", &[4, 0, 0, 0, 5, 0, 1, 8]).is_ok());
        assert!(check_section(".debug_info", &[5, 0, 0, 0, 5, 0, 1, 8]).is_err());
        assert!(check_section(".debug_info", &[2, 0, 0, 0, 0, 0, 0, 0, 9]).is_ok());
    }

    proptest! {
        #[test]
        fn arbitrary_answers_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            for name in [".symtab", ".strtab", ".debug_info", ".debug_str"] {
                _ = check_section(name, &bytes);
            }
        }
    }
}
