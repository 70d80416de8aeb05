//! A reader of debug information with bounds on the work, the memory and the stack of those who read through it.
//!
//! gimli and addr2line build what a file says: tables of abbreviations as often as units name them, lists as long as
//! the file is, one call of a function for each level of nested entries. They build from bytes that they read
//! through [`Metered`] alone. So each read is charged here, in whichever form a file asks for too much. A read beyond a
//! bound fails, and the library hands the failure up as if the file ended there.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use gimli::{EndianSlice, Error, Reader, ReaderOffsetId, Result, RunTimeEndian};

/// Steps of reading whose results are kept at a time. The densest things that a file can ask for take some 80 bytes a
/// step, ordinary debug information 10.
const KEPT_STEPS: u64 = 3 << 20;

/// So many bytes of a file allow one more. Ordinary heads of all units take a step for 20 bytes of the file.
const BYTES_A_KEPT_STEP: u64 = 8;

/// The same for files whose size says nothing: sparse ones.
const MAX_KEPT_STEPS: u64 = 1 << 27;

/// Steps for all look-ups in one binary; ten million take a tenth of a second.
const ALL_STEPS: u64 = 64 << 20;

/// Each byte of the file allows so many more: units that were let go are parsed again.
const STEPS_A_BYTE: u64 = 8;

/// The same for sparse files.
const MAX_STEPS: u64 = 1 << 32;

/// Stack that one look-up may take. A level of inlined functions takes a KiB or two, compilers make some dozens, and
/// the smallest stack of a thread here has 2 MiB.
const MAX_STACK_BYTES: usize = 1 << 20;

/// A string is one step, and one more for so many of its bytes.
const STRING_BYTES_A_STEP: usize = 16;

/// Why a look-up was given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// Entries nest too deep.
    Nesting,
    /// Its reading took more than the file's size allows.
    Reading,
}

/// The bounds of one binary. Look-ups in a binary come one at a time, so that its numbers need no order.
pub(crate) struct Meter {
    kept_steps: u64,
    /// Left until everything that was parsed has to go.
    kept_left: AtomicU64,
    /// Left beyond those.
    all_left: AtomicU64,
    /// The lowest address that the stack may reach; stacks grow down on all machines that whit knows.
    stack_end: AtomicUsize,
}

impl Meter {
    /// For a file of this size.
    pub(crate) fn for_file(size_bytes: u64) -> Meter {
        let kept = KEPT_STEPS.saturating_add(size_bytes / BYTES_A_KEPT_STEP).min(MAX_KEPT_STEPS);
        let all = ALL_STEPS.saturating_add(size_bytes.saturating_mul(STEPS_A_BYTE)).min(MAX_STEPS);
        Meter::new(kept, all)
    }

    /// With so many steps whose results are kept at a time, of so many in all.
    pub(crate) fn new(kept: u64, all: u64) -> Meter {
        Meter {
            kept_steps: kept,
            kept_left: AtomicU64::new(kept),
            all_left: AtomicU64::new(all - kept),
            stack_end: AtomicUsize::new(0),
        }
    }

    /// A look-up begins here.
    pub(crate) fn begin(&self) {
        self.stack_end.store(stack_address().saturating_sub(MAX_STACK_BYTES), Relaxed);
    }

    /// True after a read that was refused for its work.
    pub(crate) fn is_used_up(&self) -> bool {
        self.kept_left.load(Relaxed) == 0
    }

    /// Steps until parsed units have to be let go of.
    #[cfg(test)]
    pub(crate) fn kept_left(&self) -> u64 {
        self.kept_left.load(Relaxed)
    }

    /// The results of all reading were let go. False where there may be no more.
    pub(crate) fn renew(&self) -> bool {
        let all = self.all_left.load(Relaxed);
        let kept = self.kept_steps.min(all);
        self.kept_left.store(kept, Relaxed);
        self.all_left.store(all - kept, Relaxed);
        kept > 0
    }

    #[inline]
    fn charge(&self, steps: u64) -> Result<()> {
        if stack_address() < self.stack_end.load(Relaxed) {
            return Err(Error::StackFull);
        }
        let left = self.kept_left.load(Relaxed).saturating_sub(steps);
        self.kept_left.store(left, Relaxed);
        if left == 0 { Err(Error::TooManyIterations) } else { Ok(()) }
    }
}

/// Some address in the frame of the caller.
#[inline(always)]
fn stack_address() -> usize {
    let marker = 0u8;
    std::ptr::from_ref(&marker).addr()
}

/// Bytes of a section, read on account.
#[derive(Clone, Copy)]
pub(crate) struct Metered<'a> {
    bytes: EndianSlice<'a, RunTimeEndian>,
    meter: &'a Meter,
}

impl<'a> Metered<'a> {
    pub(crate) fn new(bytes: &'a [u8], endian: RunTimeEndian, meter: &'a Meter) -> Metered<'a> {
        Metered { bytes: EndianSlice::new(bytes, endian), meter }
    }

    /// The bytes that are left.
    pub(crate) fn slice(&self) -> &'a [u8] {
        self.bytes.slice()
    }

    fn charge_string(&self, size_bytes: usize) -> Result<()> {
        self.meter.charge(1 + (size_bytes / STRING_BYTES_A_STEP) as u64)
    }
}

impl fmt::Debug for Metered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes.fmt(f)
    }
}

impl Reader for Metered<'_> {
    type Endian = RunTimeEndian;
    type Offset = usize;

    #[inline]
    fn endian(&self) -> RunTimeEndian {
        self.bytes.endian()
    }

    #[inline]
    fn len(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    fn empty(&mut self) {
        self.bytes.empty();
    }

    #[inline]
    fn truncate(&mut self, len: usize) -> Result<()> {
        self.bytes.truncate(len)
    }

    #[inline]
    fn offset_from(&self, base: &Self) -> usize {
        self.bytes.offset_from(base.bytes)
    }

    #[inline]
    fn offset_id(&self) -> ReaderOffsetId {
        self.bytes.offset_id()
    }

    #[inline]
    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        self.bytes.lookup_offset_id(id)
    }

    #[inline]
    fn find(&self, byte: u8) -> Result<usize> {
        let found = Reader::find(&self.bytes, byte);
        self.charge_string(found.unwrap_or(self.bytes.len()))?;
        found
    }

    #[inline]
    fn skip(&mut self, len: usize) -> Result<()> {
        self.meter.charge(1)?;
        self.bytes.skip(len)
    }

    #[inline]
    fn split(&mut self, len: usize) -> Result<Self> {
        self.meter.charge(1)?;
        Ok(Metered { bytes: self.bytes.split(len)?, meter: self.meter })
    }

    fn to_slice(&self) -> Result<Cow<'_, [u8]>> {
        self.charge_string(self.bytes.len())?;
        self.bytes.to_slice()
    }

    fn to_string(&self) -> Result<Cow<'_, str>> {
        self.charge_string(self.bytes.len())?;
        Reader::to_string(&self.bytes)
    }

    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        self.charge_string(self.bytes.len())?;
        Reader::to_string_lossy(&self.bytes)
    }

    #[inline]
    fn read_slice(&mut self, buffer: &mut [u8]) -> Result<()> {
        self.meter.charge(1)?;
        Reader::read_slice(&mut self.bytes, buffer)
    }

    #[inline]
    fn read_u8(&mut self) -> Result<u8> {
        self.meter.charge(1)?;
        self.bytes.read_u8()
    }
}
