//! The copied top of a user stack.

use whit_types::Avma;

use crate::stop_reason::StopReason;

/// The kernel's copy of a thread's stack, from the stack pointer upwards.
#[derive(Clone, Copy)]
pub struct StackDump<'a> {
    /// Address of the first byte: the stack pointer at the time of the sample.
    pub sp: Avma,
    /// The bytes, cut to those that the kernel could read (`dyn_size` of the sample).
    pub bytes: &'a [u8],
    /// Where the dump is longer than that.
    pub rest: Option<&'a dyn DeeperStack>,
}

/// A dump whose beginning alone is in memory. The walk asks for other bytes when it comes to them.
pub trait DeeperStack {
    /// Up to eight bytes at a distance from the stack pointer, little-endian and zero-extended.
    /// `None` where the dump ends before them.
    fn read(&self, offset: usize, size: usize) -> Option<u64>;
}

impl StackDump<'_> {
    /// The eight bytes at `address`, little-endian.
    ///
    /// Fails with [`StopReason::StackDumpExhausted`] above the dump and with
    /// [`StopReason::OutsideStack`] below it.
    #[inline]
    pub(crate) fn read_u64(&self, address: u64) -> Result<u64, StopReason> {
        let Some(offset) = address.checked_sub(self.sp.0) else {
            return Err(StopReason::OutsideStack);
        };
        let word = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.bytes.get(offset..)?.first_chunk::<8>());
        match word {
            Some(word) => Ok(u64::from_le_bytes(*word)),
            None => self.read_deeper(offset, 8),
        }
    }

    #[cold]
    fn read_deeper(&self, offset: u64, size: usize) -> Result<u64, StopReason> {
        let offset = usize::try_from(offset).ok();
        let found = self.rest.zip(offset).and_then(|(rest, offset)| rest.read(offset, size));
        found.ok_or(StopReason::StackDumpExhausted)
    }

    /// `size` bytes (at most eight) at `address`, little-endian and zero-extended.
    pub(crate) fn read_sized(&self, address: u64, size: u8) -> Result<u64, StopReason> {
        let offset = address.checked_sub(self.sp.0).ok_or(StopReason::OutsideStack)?;
        let start = usize::try_from(offset).map_err(|_| StopReason::StackDumpExhausted)?;
        let size = usize::from(size.min(8));
        let bytes = start.checked_add(size).and_then(|end| self.bytes.get(start..end));
        let Some(bytes) = bytes else { return self.read_deeper(offset, size) };
        Ok(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_distinguish_below_from_above() {
        let bytes: Vec<u8> = (1..=16).collect();
        let stack = StackDump { sp: Avma(0x1000), bytes: &bytes, rest: None };
        assert_eq!(stack.read_u64(0x1008), Ok(0x100f_0e0d_0c0b_0a09));
        assert_eq!(stack.read_u64(0x1009), Err(StopReason::StackDumpExhausted));
        assert_eq!(stack.read_u64(0xfff), Err(StopReason::OutsideStack));
        assert_eq!(stack.read_u64(u64::MAX), Err(StopReason::StackDumpExhausted));
        assert_eq!(stack.read_sized(0x1000, 2), Ok(0x0201));
        assert_eq!(stack.read_sized(0x100f, 2), Err(StopReason::StackDumpExhausted));
    }
}
