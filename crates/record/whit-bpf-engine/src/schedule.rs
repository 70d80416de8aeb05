//! Functions of the kernel by which stacks are recognized. A stack from a switch or wake-up begins with
//! frames of the program itself, which are left out; that of a wake-up shows whether it came from an
//! interrupt.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::ops::Range;

use whit_host::roots::Roots;
use whit_sys::capability::Capability;
use whit_sys::privilege;

/// How much of `/proc/kallsyms` is read at once.
const BUFFER_BYTES: usize = 256 * 1024;
/// Frames that a stack may begin with before the scheduler's.
const OWN_FRAMES_MAX: usize = 8;

/// The part that a function has in scheduling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchedulerSymbol {
    /// It switches to another thread.
    Switch,
    /// It makes a thread runnable.
    Wake,
    /// The kernel is entered there by an interrupt of a device, the timer or another CPU.
    Interrupt,
    /// It does what interrupts have left to be done later.
    Softirq,
    /// On the way out of an interrupt: work there belongs to the thread.
    Exit,
}

impl SchedulerSymbol {
    fn of(name: &[u8]) -> Option<SchedulerSymbol> {
        Some(match name {
            b"__schedule" => SchedulerSymbol::Switch,
            b"try_to_wake_up" => SchedulerSymbol::Wake,
            b"asm_common_interrupt" => SchedulerSymbol::Interrupt,
            b"handle_softirqs" | b"__do_softirq" => SchedulerSymbol::Softirq,
            b"irqentry_exit" | b"irqentry_exit_to_user_mode" | b"exit_to_user_mode_loop" => {
                SchedulerSymbol::Exit
            }
            name if name.starts_with(b"asm_sysvec_") => SchedulerSymbol::Interrupt,
            _ => return None,
        })
    }
}

/// The context in the kernel: that of a thread, or of an interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Context {
    /// In its own name.
    #[default]
    Thread,
    /// In the handler of a hardware interrupt.
    Interrupt,
    /// In work that interrupts have deferred.
    Softirq,
}

/// Where these functions are; none where the kernel hides it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SchedulerSymbols(Vec<(SchedulerSymbol, Range<u64>)>);

impl SchedulerSymbols {
    /// A stack without the frames in front of the scheduler's function.
    pub(super) fn trim<'a>(
        &self,
        frames: &'a [u64],
        scheduler: Option<SchedulerSymbol>,
    ) -> &'a [u64] {
        let is_there = |frame: &u64| {
            let mut found = self.0.iter().filter(|(landmark, _)| Some(*landmark) == scheduler);
            found.any(|(_, range)| range.contains(frame))
        };
        let first = frames.iter().take(OWN_FRAMES_MAX).position(is_there);
        &frames[first.unwrap_or(0)..]
    }

    /// The context of a stack of the kernel, by the innermost frame that shows it.
    pub(super) fn context(&self, frames: &[u64]) -> Context {
        let context_of = |frame: &u64| {
            let (landmark, _) = self.0.iter().find(|(_, range)| range.contains(frame))?;
            match landmark {
                SchedulerSymbol::Interrupt => Some(Context::Interrupt),
                SchedulerSymbol::Softirq => Some(Context::Softirq),
                SchedulerSymbol::Exit => Some(Context::Thread),
                SchedulerSymbol::Switch | SchedulerSymbol::Wake => None,
            }
        };
        frames.iter().find_map(context_of).unwrap_or_default()
    }
}

/// Looks them up: all, or just the one that switches. `None` where the kernel hides them.
pub(super) fn find(roots: &Roots, all: bool) -> Option<SchedulerSymbols> {
    let file = {
        // The kernel decides at the opening whether addresses are shown.
        let _in_force = privilege::raise(&[Capability::Syslog]);
        File::open(roots.proc.join("kallsyms")).ok()?
    };
    find_in(BufReader::with_capacity(BUFFER_BYTES, file), all).ok()
}

/// Symbols come in the order of their addresses: the next one is the end.
fn find_in(mut kallsyms: impl BufRead, all: bool) -> io::Result<SchedulerSymbols> {
    let (mut line, mut started, mut found) = (Vec::new(), None, Vec::new());
    loop {
        line.clear();
        let is_enough = !all && !found.is_empty();
        if is_enough || kallsyms.read_until(b'\n', &mut line)? == 0 {
            return Ok(SchedulerSymbols(found));
        }
        let mut words = line.trim_ascii_end().split(|byte| *byte == b' ');
        let (digits, name) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
        let wanted =
            SchedulerSymbol::of(name).filter(|what| all || *what == SchedulerSymbol::Switch);
        if started.is_none() && wanted.is_none() {
            continue;
        }
        let digits = std::str::from_utf8(digits).ok();
        let address = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0);
        if let Some((landmark, start)) = started
            && address > start
        {
            found.push((landmark, start..address));
            started = None;
        }
        match wanted {
            Some(_) if address == 0 => return Ok(SchedulerSymbols::default()),
            Some(landmark) if started.is_none() => started = Some((landmark, address)),
            _ => {}
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// As the kernel shows them; what matters of Linux 6.18.
    const SHOWN: &[u8] = b"ffffffff81000000 T _text
ffffffff81000d40 T asm_common_interrupt
ffffffff81000df0 T asm_sysvec_apic_timer_interrupt
ffffffff81000e10 T asm_exc_page_fault
ffffffff81360020 t handle_softirqs
ffffffff81360400 t other
ffffffff813a8510 T try_to_wake_up
ffffffff813a8a00 t other
ffffffff821f1000 T irqentry_exit
ffffffff821f1100 t other
ffffffff821f7c80 t __pfx___schedule
ffffffff821f7c90 t __schedule
ffffffff821f7c90 t alias
ffffffff821f8be0 T schedule
";
    pub(crate) const IN_SCHEDULE: u64 = 0xffff_ffff_821f_8298;
    pub(crate) const IN_WAKE_UP: u64 = 0xffff_ffff_813a_8600;
    pub(crate) const IN_TIMER: u64 = 0xffff_ffff_8100_0df9;
    const IN_PAGE_FAULT: u64 = 0xffff_ffff_8100_0e1a;
    const IN_SOFTIRQS: u64 = 0xffff_ffff_8136_0111;
    const IN_EXIT: u64 = 0xffff_ffff_821f_1011;

    pub(crate) fn scheduler_symbols() -> SchedulerSymbols {
        find_in(SHOWN, true).unwrap()
    }

    #[test]
    fn functions_end_where_the_next_symbol_begins() {
        let schedule = (SchedulerSymbol::Switch, 0xffff_ffff_821f_7c90..0xffff_ffff_821f_8be0);
        let all = scheduler_symbols();
        assert_eq!((all.0.len(), all.0.last()), (6, Some(&schedule)));
        assert_eq!(find_in(SHOWN, false).unwrap(), SchedulerSymbols(vec![schedule]));
        let hidden = &b"0000000000000000 t __schedule\n"[..];
        assert_eq!(find_in(hidden, true).unwrap(), SchedulerSymbols::default());
        assert_eq!(find_in(&b""[..], true).unwrap(), SchedulerSymbols::default());
    }

    #[test]
    fn stacks_begin_with_the_scheduler() {
        let frames = [1, 2, IN_SCHEDULE, 3, IN_WAKE_UP];
        let all = scheduler_symbols();
        assert_eq!(all.trim(&frames, Some(SchedulerSymbol::Switch)), &frames[2..]);
        assert_eq!(all.trim(&frames, Some(SchedulerSymbol::Wake)), &frames[4..]);
        assert_eq!(all.trim(&frames, None), &frames);
        assert_eq!(all.trim(&frames[..2], Some(SchedulerSymbol::Switch)), &frames[..2]);
        assert_eq!(
            SchedulerSymbols::default().trim(&frames, Some(SchedulerSymbol::Switch)),
            &frames
        );
    }

    #[test]
    fn interrupts_are_distinguished_from_threads() {
        let context = |frames: &[u64]| scheduler_symbols().context(frames);
        assert_eq!(context(&[IN_WAKE_UP, 7, IN_TIMER, 8]), Context::Interrupt);
        assert_eq!(context(&[IN_WAKE_UP, IN_SOFTIRQS, IN_TIMER]), Context::Softirq);
        assert_eq!(context(&[IN_WAKE_UP, IN_EXIT, IN_TIMER]), Context::Thread);
        assert_eq!(context(&[IN_WAKE_UP, IN_PAGE_FAULT]), Context::Thread);
        assert_eq!(context(&[]), Context::Thread);
    }
}
