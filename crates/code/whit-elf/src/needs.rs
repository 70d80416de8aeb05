//! The files that the dynamic linker loads along with a file.

use object::Endianness;
use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn as _, FileHeader, ProgramHeader as _};
use whit_types::Svma;

use crate::image::ElfImage;

/// Most libraries of one file that are looked at.
const LIBRARIES_MAX: usize = 4096;
/// Longest name of a library, and longest list of directories.
const TEXT_MAX_BYTES: usize = 65536;

/// A file's own statements about its libraries. Names and directories are as they stand there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkNeeds {
    /// The dynamic linker (`PT_INTERP`).
    pub interpreter: Option<Vec<u8>>,
    /// Libraries (`DT_NEEDED`): names, or paths where there is a slash.
    pub libraries: Vec<Vec<u8>>,
    /// Directories to look in (`DT_RUNPATH`, or else `DT_RPATH`), with `$ORIGIN` for the file's own.
    pub directories: Vec<Vec<u8>>,
}

impl ElfImage {
    /// Files that are loaded along with it; none for 32-bit and static files, and for damaged ones.
    pub fn link_needs(&self) -> LinkNeeds {
        self.read_needs().unwrap_or_default()
    }

    fn read_needs(&self) -> Option<LinkNeeds> {
        let data: &[u8] = self.bytes();
        let header = FileHeader64::<Endianness>::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let (mut needs, mut entries) = (LinkNeeds::default(), Vec::new());
        for segment in header.program_headers(endian, data).ok()? {
            if let Ok(Some(interpreter)) = segment.interpreter(endian, data) {
                needs.interpreter = Some(interpreter.to_vec());
            }
            if let Ok(Some(dynamic)) = segment.dynamic(endian, data) {
                let entry =
                    |entry: &elf::Dyn64<Endianness>| (entry.d_tag(endian), entry.d_val(endian));
                entries = dynamic.iter().map(entry).take_while(|e| e.0 != elf::DT_NULL).collect();
            }
        }
        let value = |tag| entries.iter().find(|entry| entry.0 == tag).map(|entry| entry.1);
        let Some(strings) = value(elf::DT_STRTAB).and_then(|at| self.file_offset_of(Svma(at)))
        else {
            return Some(needs);
        };
        let text = |offset: u64| {
            let start = usize::try_from(strings.0.checked_add(offset)?).ok()?;
            let rest = data.get(start..)?;
            let end = rest.iter().take(TEXT_MAX_BYTES).position(|byte| *byte == 0)?;
            Some(rest[..end].to_vec())
        };
        let libraries = entries.iter().filter(|entry| entry.0 == elf::DT_NEEDED);
        needs.libraries = libraries.take(LIBRARIES_MAX).filter_map(|entry| text(entry.1)).collect();
        let directories = value(elf::DT_RUNPATH).or_else(|| value(elf::DT_RPATH)).and_then(text);
        let directories = directories.unwrap_or_default();
        let named = directories.split(|byte| *byte == b':').filter(|name| !name.is_empty());
        needs.directories = named.map(<[u8]>::to_vec).collect();
        Some(needs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    #[test]
    #[cfg(target_env = "gnu")]
    fn this_test_program_needs_the_c_library() {
        let image = ElfImage::open(&std::env::current_exe().unwrap()).unwrap();
        let needs = image.link_needs();
        assert!(needs.libraries.iter().any(|name| name.starts_with(b"libc.so.")), "{needs:?}");
        let interpreter = String::from_utf8(needs.interpreter.unwrap()).unwrap();
        assert!(Path::new(&interpreter).exists(), "{interpreter}");
        assert!(needs.directories.is_empty());
    }

    proptest! {
        #[test]
        fn damaged_files_are_survived(places in prop::collection::vec((0usize..8192, any::<u8>()), 1..60)) {
            let mut bytes = std::fs::read("/bin/sh").unwrap();
            for (place, byte) in places {
                let place = place % bytes.len();
                bytes[place] = byte;
            }
            if let Ok(image) = ElfImage::from_bytes(Path::new("sh"), bytes.into()) {
                prop_assert!(image.link_needs().libraries.len() <= LIBRARIES_MAX);
            }
        }
    }
}
