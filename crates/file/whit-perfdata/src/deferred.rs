//! User call chains that the kernel takes when a thread returns to user mode (Linux 6.19).
//!
//! The call chain of a sample then ends in [`context::USER_DEFERRED`] and a cookie. The user's part
//! follows in a CALLCHAIN_DEFERRED record of the same thread with the same cookie; several samples of
//! one stay in the kernel share it. Kernel source: `perf_callchain_deferred_output` in
//! `kernel/events/core.c`.

use crate::bytes::Cursor;
use crate::sample::{Sample, Words, context, words};

/// The body of a CALLCHAIN_DEFERRED record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeferredChain<'a> {
    /// Names the chain in the samples that await it; unique among the chains of a thread.
    pub cookie: u64,
    /// Addresses, innermost first; without a marker, but readers accept them.
    pub addresses: Words<'a>,
}

impl<'a> DeferredChain<'a> {
    /// Decodes a body; `None` where it is shorter than its fields say.
    pub fn parse(body: &'a [u8]) -> Option<DeferredChain<'a>> {
        let mut c = Cursor::new(body);
        Some(DeferredChain { cookie: c.u64()?, addresses: words(&mut c)? })
    }
}

impl Sample<'_> {
    /// The cookie of the user call chain that the sample awaits.
    #[inline]
    pub fn deferred_cookie(&self) -> Option<u64> {
        let mut from_end = self.callchain.iter().rev();
        let cookie = from_end.next()?;
        (from_end.next()? == context::USER_DEFERRED).then_some(cookie)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_record_has_cookie_and_addresses() {
        // The trailer of `sample_id_all` follows.
        let bytes = body(&[7, 2, 0x1000, 0x2000, 99]);
        let chain = DeferredChain::parse(&bytes).unwrap();
        assert_eq!(chain.cookie, 7);
        assert_eq!(chain.addresses.iter().collect::<Vec<_>>(), [0x1000, 0x2000]);
        for short in [&[][..], &[7], &[7, 1], &[7, 1 << 61], &[7, u64::MAX, 1]] {
            assert_eq!(DeferredChain::parse(&body(short)), None, "{short:?}");
        }
    }

    #[test]
    fn only_the_last_word_but_one_announces_a_cookie() {
        let cookie = |chain: &[u64]| {
            let bytes = body(chain);
            Sample { callchain: Words::new(&bytes), ..Sample::default() }.deferred_cookie()
        };
        assert_eq!(cookie(&[context::KERNEL, 1, context::USER_DEFERRED, 7]), Some(7));
        assert_eq!(cookie(&[context::USER_DEFERRED, 7]), Some(7));
        assert_eq!(cookie(&[context::USER_DEFERRED, 7, 8]), None);
        assert_eq!(cookie(&[context::USER_DEFERRED]), None);
        assert_eq!(cookie(&[]), None);
    }
}
