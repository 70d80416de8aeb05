//! The image of this kernel's vdso.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use whit_types::{Arch, Svma};
use whit_unwind::Bytes;

use crate::{ElfImage, TableKind};

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

/// The function of arm64's vdso that handlers of signals return to (`arch/arm64/kernel/vdso/sigreturn.S`). The vdso of
/// Linux 6.1 has no call frame information at all.
const SIGNAL_RETURN: &[u8] = b"__kernel_rt_sigreturn";
/// Its bytes, where the symbol does not say them: two instructions.
const SIGNAL_RETURN_BYTES: u64 = 8;
/// The instruction in front of it, which belongs to it: the address before a return address is looked up.
const IN_FRONT_BYTES: u64 = 4;

impl ElfImage {
    /// Where handlers of signals return to on arm64; nothing for other binaries than its vdso.
    pub(crate) fn signal_returns(&self) -> Vec<Range<Svma>> {
        let mut found = Vec::new();
        if self.arch() != Some(Arch::Aarch64) {
            return found;
        }
        let Some(names) = self.string_table(TableKind::Dynsym) else { return found };
        self.for_each_symbol(TableKind::Dynsym, |symbol| {
            let name = names.get(symbol.name as usize..).unwrap_or_default();
            if name.split(|byte| *byte == 0).next() != Some(SIGNAL_RETURN) {
                return;
            }
            let start = symbol.value.saturating_sub(IN_FRONT_BYTES);
            let end = symbol.value.saturating_add(symbol.size.max(SIGNAL_RETURN_BYTES));
            // One function has this name.
            found = vec![Svma(start)..Svma(end)];
        });
        found
    }
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

    #[test]
    fn the_own_vdso_gives_the_time() {
        let image = ElfImage::from_bytes(Path::new("[vdso]"), own_vdso().unwrap()).unwrap();
        let names = image.string_table(TableKind::Dynsym).unwrap();
        let mut has_clock = false;
        image.for_each_symbol(TableKind::Dynsym, |symbol| {
            has_clock |= names[symbol.name as usize..].starts_with(b"clock_gettime\0");
        });
        assert!(has_clock);
        let sections = image.unwind_sections().unwrap();
        match image.arch() {
            // The entry of the return from signals, which has no other description there.
            Some(Arch::Aarch64) => assert_eq!(sections.stack_switches.signal.len(), 1),
            _ => assert!(sections.eh_frame.is_some()),
        }
    }
}
