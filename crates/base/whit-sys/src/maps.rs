//! Lines of `/proc/PID/maps`.

use std::ops::Range;

use whit_types::FileId;

/// Permissions and sharing as `mmap(2)` numbers them.
pub mod flag {
    /// `PROT_READ`: `r` in the file.
    pub const PROT_READ: u32 = 1;
    /// `PROT_WRITE`: `w` in the file.
    pub const PROT_WRITE: u32 = 2;
    /// `PROT_EXEC`: `x` in the file.
    pub const PROT_EXEC: u32 = 4;
    /// `MAP_SHARED`: `s` in the file.
    pub const MAP_SHARED: u32 = 1;
    /// `MAP_PRIVATE`: `p` in the file.
    pub const MAP_PRIVATE: u32 = 2;
}

/// The name that the kernel's own records give to memory without a file.
pub const ANONYMOUS: &[u8] = b"//anon";

/// One mapping of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapsLine<'a> {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// `PROT_*`.
    pub protection: u32,
    /// `MAP_SHARED` or `MAP_PRIVATE`.
    pub flags: u32,
    /// Offset into the file in bytes.
    pub file_offset: u64,
    /// Major device number.
    pub major: u32,
    /// Minor device number.
    pub minor: u32,
    /// 0 for memory without a file.
    pub inode: u64,
    /// Path, name in brackets, or nothing. The kernel writes a line break in it as `\012`.
    pub path: &'a [u8],
}

impl<'a> MapsLine<'a> {
    /// Reads one line without its line break; `None` for anything else.
    pub fn parse(line: &'a [u8]) -> Option<MapsLine<'a>> {
        let (range, rest) = split_word(line)?;
        let (permissions, rest) = split_word(rest)?;
        let (offset, rest) = split_word(rest)?;
        let (device, rest) = split_word(rest)?;
        let (inode, rest) = split_word(rest)?;
        let (start, end) = split_pair(range, b'-')?;
        let (major, minor) = split_pair(device, b':')?;
        let (start, end) = (hex(start)?, hex(end)?);
        let bit = |i: usize, letter: u8, bit: u32| {
            if permissions.get(i) == Some(&letter) { bit } else { 0 }
        };
        (start < end).then_some(MapsLine {
            start,
            end,
            protection: bit(0, b'r', flag::PROT_READ)
                | bit(1, b'w', flag::PROT_WRITE)
                | bit(2, b'x', flag::PROT_EXEC),
            flags: if permissions.get(3) == Some(&b's') {
                flag::MAP_SHARED
            } else {
                flag::MAP_PRIVATE
            },
            file_offset: hex(offset)?,
            major: u32::try_from(hex(major)?).ok()?,
            minor: u32::try_from(hex(minor)?).ok()?,
            inode: std::str::from_utf8(inode).ok()?.parse().ok()?,
            path: rest.trim_ascii_start(),
        })
    }

    /// Whether code can run in it.
    pub fn is_executable(&self) -> bool {
        self.protection & flag::PROT_EXEC != 0
    }

    /// Whether a file on disk stands behind it.
    pub fn is_file(&self) -> bool {
        self.path.starts_with(b"/") && self.inode != 0
    }

    /// The file as the kernel names it.
    pub fn file_id(&self) -> FileId {
        FileId { device: (self.major, self.minor), inode: self.inode }
    }

    /// The addresses.
    pub fn range(&self) -> Range<u64> {
        self.start..self.end
    }

    /// The path as records carry it: never empty.
    pub fn record_path(&self) -> &'a [u8] {
        if self.path.is_empty() { ANONYMOUS } else { self.path }
    }
}

fn split_word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let end = text.iter().position(|b| *b == b' ').unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn split_pair(text: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|b| *b == separator)?;
    Some((&text[..at], &text[at + 1..]))
}

fn hex(text: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_a_path_that_holds_spaces() {
        let line =
            b"556bc787d000-556bc7881000 r-xp 00002000 fe:00 247849        /usr/lib/a b (deleted)";
        let map = MapsLine::parse(line).unwrap();
        assert_eq!((map.start, map.end), (0x556b_c787_d000, 0x556b_c788_1000));
        assert_eq!(map.protection, flag::PROT_READ | flag::PROT_EXEC);
        assert_eq!((map.flags, map.file_offset), (flag::MAP_PRIVATE, 0x2000));
        assert_eq!((map.major, map.minor, map.inode), (0xfe, 0, 247_849));
        assert_eq!(map.path, b"/usr/lib/a b (deleted)");
        assert!(map.is_executable() && map.is_file());
    }

    #[test]
    fn anonymous_and_bracketed_maps_are_no_files() {
        let anonymous = MapsLine::parse(b"1000-2000 rw-s 00000000 00:00 0 ").unwrap();
        assert_eq!(anonymous.record_path(), ANONYMOUS);
        assert_eq!(anonymous.flags, flag::MAP_SHARED);
        assert!(!anonymous.is_file() && !anonymous.is_executable());
        let vdso = MapsLine::parse(b"1000-2000 r-xp 00000000 00:00 0    [vdso]").unwrap();
        assert_eq!(vdso.record_path(), b"[vdso]");
        assert!(!vdso.is_file());
    }

    #[test]
    fn cut_lines_are_refused() {
        let line = b"1000-2000 r-xp 00002000 fe:00 247849 /x";
        for cut in 0..=33 {
            assert_eq!(MapsLine::parse(&line[..cut.min(30)]), None, "{cut}");
        }
        assert_eq!(MapsLine::parse(b"2000-1000 r-xp 0 fe:00 1 /x"), None);
        assert_eq!(MapsLine::parse(b"zz-1000 r-xp 0 fe:00 1 /x"), None);
    }

    #[test]
    fn every_line_of_this_process_is_read() {
        let text = std::fs::read("/proc/self/maps").unwrap();
        let lines: Vec<_> = text.split(|b| *b == b'\n').filter(|l| !l.is_empty()).collect();
        assert!(lines.len() > 5);
        assert!(lines.iter().all(|line| MapsLine::parse(line).is_some()));
    }
}
