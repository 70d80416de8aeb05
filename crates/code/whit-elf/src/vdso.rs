//! The image of this kernel's vdso.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use whit_unwind::Bytes;

/// Largest vdso; real ones have two to four pages.
const MAX_VDSO_BYTES: u64 = 1 << 20;

/// The vdso of this process, which is that of every 64-bit process under this kernel.
pub fn own_vdso() -> io::Result<Bytes> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let absent = || io::Error::new(io::ErrorKind::NotFound, "this process has no vdso");
    let line = maps.lines().find(|line| line.ends_with("[vdso]")).ok_or_else(absent)?;
    let (start, end) = parse_range(line).ok_or_else(absent)?;
    let size = end.checked_sub(start).filter(|size| *size <= MAX_VDSO_BYTES).ok_or_else(absent)?;
    let mut bytes = vec![0; size as usize];
    File::open("/proc/self/mem")?.read_exact_at(&mut bytes, start)?;
    Ok(Bytes::from(bytes))
}

/// `7ffc1c5f2000-7ffc1c5f4000 r-xp …`
fn parse_range(line: &str) -> Option<(u64, u64)> {
    let (start, rest) = line.split_once('-')?;
    let (end, _) = rest.split_once(' ')?;
    Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{ElfImage, TableKind};

    #[test]
    fn the_own_vdso_gives_the_time() {
        let image = ElfImage::from_bytes(Path::new("[vdso]"), own_vdso().unwrap()).unwrap();
        let names = image.string_table(TableKind::Dynsym).unwrap();
        let mut has_clock = false;
        image.for_each_symbol(TableKind::Dynsym, |symbol| {
            has_clock |= names[symbol.name as usize..].starts_with(b"clock_gettime\0");
        });
        assert!(has_clock);
        assert!(image.unwind_sections().is_some_and(|sections| sections.eh_frame.is_some()));
    }
}
