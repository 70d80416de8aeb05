//! Interrupts whose overflows an earlier one has handled.
//!
//! Each overflow asks for one interrupt. Interrupts collapse, and one handler run may find several
//! overflows; then an interrupt comes for which nothing is left. It must be claimed, or the system
//! takes it for a sign of broken hardware.
//!
//! Runs that handle *k* > 0 overflows leave *k* − 1 interrupts that may still come. There is one overflow
//! for every interrupt, and runs that find nothing are interrupts of overflows that other runs have
//! handled; so the sum of *k* − 1 over the former bounds the number of the latter, at every moment. It is
//! only a bound: dropped and collapsed interrupts never come. So claims expire, like those that Linux
//! makes on AMD.

/// How long after an overflow its interrupt may come.
pub const CLAIM_WINDOW_NS: u64 = 100_000_000;

/// Interrupts that may still come.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Claims {
    owed: u32,
    /// The end of the window; `None`: it begins with the next interrupt, whose time will be known.
    expires_ns: Option<u64>,
}

impl Claims {
    pub(super) const fn new() -> Claims {
        Claims { owed: 0, expires_ns: Some(0) }
    }

    /// `count` more, from now on. Where no time is known the window begins with the next interrupt.
    pub(crate) const fn owe(&mut self, count: u32) {
        if count > 0 {
            self.owed = self.owed.saturating_add(count);
            self.expires_ns = None;
        }
    }

    /// An interrupt at a time handled so many overflows; true where it is claimed.
    pub(crate) fn settle(&mut self, handled: u32, now_ns: u64) -> bool {
        let expires_ns = *self.expires_ns.get_or_insert(now_ns.saturating_add(CLAIM_WINDOW_NS));
        if now_ns > expires_ns {
            self.owed = 0;
        }
        match handled {
            0 if self.owed == 0 => false,
            0 => {
                self.owed -= 1;
                true
            }
            _ => {
                self.owed = self.owed.saturating_add(handled - 1);
                self.expires_ns = Some(now_ns.saturating_add(CLAIM_WINDOW_NS));
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_as_many_as_overflows_beyond_the_first_and_expire() {
        let mut claims = Claims::new();
        assert!(!claims.settle(0, 5), "nothing is owed");
        assert!(claims.settle(3, 10));
        assert!(claims.settle(0, 20) && claims.settle(0, 30));
        assert!(!claims.settle(0, 40));
        assert!(claims.settle(2, 50));
        assert!(!claims.settle(0, 51 + CLAIM_WINDOW_NS));
        claims.owe(1);
        assert!(claims.settle(0, u64::MAX), "its window begins now");
        assert!(!claims.settle(0, u64::MAX));
    }
}
