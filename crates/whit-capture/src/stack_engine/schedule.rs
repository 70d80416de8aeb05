//! Where the kernel's scheduler is: a stack that is taken within a switch begins with what takes it,
//! which is left out.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::ops::Range;

use whit_sys::capability::Capability;
use whit_sys::privilege;

use crate::roots::Roots;

/// The function that switches.
const SCHEDULE: &[u8] = b"__schedule";
/// How much of `/proc/kallsyms` is read at once.
const BUFFER_BYTES: usize = 256 * 1024;
/// Frames that a stack may begin with before the scheduler's.
const OWN_FRAMES_MAX: usize = 8;

/// The addresses of `__schedule`; `None` where the kernel hides them.
pub(super) fn find(roots: &Roots) -> Option<Range<u64>> {
    let file = {
        // The kernel decides at the opening whether addresses are shown.
        let _in_force = privilege::raise(&[Capability::Syslog]);
        File::open(roots.proc.join("kallsyms")).ok()?
    };
    find_in(BufReader::with_capacity(BUFFER_BYTES, file)).ok()?
}

/// Symbols come in the order of their addresses: the next one is the end.
fn find_in(mut kallsyms: impl BufRead) -> io::Result<Option<Range<u64>>> {
    let (mut line, mut start) = (Vec::new(), None);
    loop {
        line.clear();
        if kallsyms.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.trim_ascii_end().split(|byte| *byte == b' ');
        let (digits, name) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
        if start.is_none() && name != SCHEDULE {
            continue;
        }
        let digits = std::str::from_utf8(digits).ok();
        let address = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0);
        match start {
            None if address == 0 => return Ok(None),
            None => start = Some(address),
            Some(start) if address > start => return Ok(Some(start..address)),
            Some(_) => {}
        }
    }
}

/// A stack without what is in front of the scheduler.
pub(super) fn trim<'a>(frames: &'a [u64], schedule: Option<&Range<u64>>) -> &'a [u64] {
    let Some(schedule) = schedule else { return frames };
    let first = frames.iter().take(OWN_FRAMES_MAX).position(|frame| schedule.contains(frame));
    &frames[first.unwrap_or(0)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_ends_where_the_next_symbol_begins() {
        let shown = b"ffffffff81000000 T _text
ffffffff821f7c80 t __pfx___schedule
ffffffff821f7c90 t __schedule
ffffffff821f7c90 t alias
ffffffff821f8be0 T schedule
" as &[u8];
        let range = 0xffff_ffff_821f_7c90..0xffff_ffff_821f_8be0;
        assert_eq!(find_in(shown).unwrap(), Some(range.clone()));
        assert_eq!(find_in(&b"0000000000000000 t __schedule\n"[..]).unwrap(), None);
        assert_eq!(find_in(&b""[..]).unwrap(), None);

        let frames = [1, 2, 0xffff_ffff_821f_8298, 3];
        assert_eq!(trim(&frames, Some(&range)), &frames[2..]);
        assert_eq!(trim(&frames, None), &frames);
        assert_eq!(trim(&frames[..2], Some(&range)), &frames[..2]);
    }
}
