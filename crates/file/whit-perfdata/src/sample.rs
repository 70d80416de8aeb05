//! Samples and sample ids: where each field stands, given the event's `sample_type`.
//!
//! Field order is the kernel's: `perf_output_sample` in `kernel/events/core.c`. All slices point
//! into the record; nothing is copied.

use crate::attr::{Attr, BRANCH_COUNTERS, BRANCH_HW_INDEX, ReadFormat, SampleType};
use crate::bytes::{Cursor, u64_at};
use crate::dump_rest::DumpRest;
use std::ops::Range;
use whit_types::{Avma, CpuId, Pid, Tid, TimestampNs};

/// Markers inside a call chain that switch between kernel and user addresses.
pub mod context {
    /// Hypervisor addresses follow.
    pub const HV: u64 = -32i64 as u64;
    /// Kernel addresses follow.
    pub const KERNEL: u64 = -128i64 as u64;
    /// User addresses follow.
    pub const USER: u64 = -512i64 as u64;
    /// User addresses follow in a record of their own.
    pub const USER_DEFERRED: u64 = -640i64 as u64;
    /// Guest addresses follow.
    pub const GUEST: u64 = -2048i64 as u64;
    /// Guest kernel addresses follow.
    pub const GUEST_KERNEL: u64 = -2176i64 as u64;
    /// Guest user addresses follow.
    pub const GUEST_USER: u64 = -2560i64 as u64;
    /// Every value from here up is a marker.
    pub const MAX: u64 = -4095i64 as u64;
}

/// The attributes that decide the layout of an event's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleLayout {
    /// Fields.
    pub sample_type: SampleType,
    /// Layout of the READ field.
    pub read_format: ReadFormat,
    /// True where every record ends in a sample id.
    pub sample_id_all: bool,
    branch_sample_type: u64,
    user_regs_mask: u64,
    intr_regs_mask: u64,
    id_offset: Option<usize>,
    time_offset: Option<usize>,
    cpu_offset: Option<usize>,
    trailer_time_offset: Option<usize>,
    trailer_cpu_offset: Option<usize>,
    id_trailer_size_bytes: usize,
}

/// Where in a sample's body the fields are that tell its callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StackFields {
    pub(crate) chain: Range<usize>,
    pub(crate) branches: Range<usize>,
    /// User registers and dump.
    pub(crate) dump: Range<usize>,
}

/// Counts of events in a sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadField<'a> {
    bytes: &'a [u8],
    /// Words of each count, its value the first.
    words: usize,
    /// The place of the id among them, if there is one.
    id_word: usize,
}

impl<'a> ReadField<'a> {
    /// Id and value of each count. Only layouts with ids have them.
    pub(crate) fn counts(self) -> impl Iterator<Item = (u64, u64)> + use<'a> {
        let word = |count: &[u8], word: usize| u64_at(count, word * 8).unwrap_or(0);
        let counts = self.bytes.chunks_exact(self.words * 8);
        counts.map(move |count| (word(count, self.id_word), word(count, 0)))
    }
}

/// Dumped registers: values in the order of the set bits of the mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers<'a> {
    /// Which registers, numbered per architecture (`arch/*/include/uapi/asm/perf_regs.h`).
    pub mask: u64,
    /// 1: 32-bit process, 2: 64-bit.
    pub abi: u64,
    values: &'a [u8],
}

impl Registers<'_> {
    /// The value of register number `index`, if it was dumped.
    #[inline]
    pub fn get(&self, index: u32) -> Option<u64> {
        let bit = 1u64.checked_shl(index)?;
        if self.mask & bit == 0 {
            return None;
        }
        u64_at(self.values, (self.mask & (bit - 1)).count_ones() as usize * 8)
    }

    /// The values, in the order of the set bits of the mask.
    #[inline]
    pub fn values(&self) -> impl Iterator<Item = u64> {
        Words(self.values).iter()
    }
}

/// One entry of a branch stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchEntry {
    /// Address of the branch.
    pub from: Avma,
    /// Its target.
    pub to: Avma,
    /// Bits: 0 mispredicted, 1 predicted, 2 in transaction, 3 abort, 4–19 cycles, 20–23 type.
    pub flags: u64,
}

impl BranchEntry {
    /// Bits that say whether the branch was predicted.
    pub const PREDICTION: u64 = 0b11;
    /// The branch was part of a transaction.
    pub const IN_TRANSACTION: u64 = 1 << 2;
    /// It aborted a transaction.
    pub const ABORT: u64 = 1 << 3;
    /// Bits of the cycles since the branch before.
    pub const CYCLES: u64 = 0xffff << 4;

    /// Cycles since the branch before; zero where the CPU does not count them.
    pub fn cycles(self) -> u64 {
        (self.flags & BranchEntry::CYCLES) >> 4
    }
}

/// An array of `u64` inside a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    /// The whole words in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Words<'a> {
        Words(bytes)
    }

    /// The values.
    #[inline]
    pub fn iter(self) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator + use<'a> {
        self.0.as_chunks::<8>().0.iter().map(|c| u64::from_le_bytes(*c))
    }

    /// Number of values.
    pub fn len(self) -> usize {
        self.0.len() / 8
    }

    /// True without values.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

/// The branch stack of a sample, most recent branch first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BranchStack<'a> {
    /// Index of the newest entry in the hardware's buffer, where recorded.
    pub hw_index: Option<u64>,
    entries: Words<'a>,
}

impl<'a> BranchStack<'a> {
    /// The entries.
    pub fn iter(self) -> impl Iterator<Item = BranchEntry> + use<'a> {
        self.entries.0.as_chunks::<24>().0.iter().map(|entry| {
            let word = |at: usize| u64_at(entry, at).unwrap_or(0);
            BranchEntry { from: Avma(word(0)), to: Avma(word(8)), flags: word(16) }
        })
    }

    /// Number of entries.
    pub fn len(self) -> usize {
        self.entries.0.len() / 24
    }

    /// True without entries.
    pub fn is_empty(self) -> bool {
        self.entries.is_empty()
    }
}

/// One sample. A field is `None` (or empty) where the event did not ask for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample<'a> {
    /// Event id (IDENTIFIER or ID).
    pub id: Option<u64>,
    /// Instruction pointer.
    pub ip: Option<Avma>,
    /// Process and thread.
    pub pid_tid: Option<(Pid, Tid)>,
    /// By the clock of the recording.
    pub time: Option<TimestampNs>,
    /// Data address.
    pub addr: Option<u64>,
    /// The id of the opened event itself.
    pub stream_id: Option<u64>,
    /// The CPU that the sample was taken on.
    pub cpu: Option<CpuId>,
    /// Events since the sample before.
    pub period: Option<u64>,
    /// Call chain, innermost first, with [`context`] markers.
    pub callchain: Words<'a>,
    /// Raw bytes of the tracepoint.
    pub raw: Option<&'a [u8]>,
    /// Taken branches, newest first.
    pub branch_stack: BranchStack<'a>,
    /// User registers; `None` in kernel threads too.
    pub user_regs: Option<Registers<'a>>,
    /// Dump of the user stack, from the stack pointer up, cut to the bytes that the kernel could
    /// copy.
    pub user_stack: &'a [u8],
    /// Where the dump goes on in the file, if only its beginning [was read](crate::stream::Block).
    pub user_stack_rest: Option<DumpRest<'a>>,
    /// Weight; of the one in three parts the first.
    pub weight: Option<u64>,
    /// Second of three parts of the weight: latency of the instruction.
    pub instruction_latency: u16,
    /// Where the data of the access came from (`union perf_mem_data_src`).
    pub data_src: Option<u64>,
    /// Why a transaction ended (`PERF_TXN_*`).
    pub transaction: Option<u64>,
    /// Registers at the interrupt.
    pub intr_regs: Option<Registers<'a>>,
    /// Physical data address.
    pub phys_addr: Option<u64>,
    /// Id of the cgroup that the thread was in.
    pub cgroup: Option<u64>,
    /// Size of the page of the data address.
    pub data_page_size_bytes: Option<u64>,
    /// Size of the page of the instruction.
    pub code_page_size_bytes: Option<u64>,
}

impl Sample<'_> {
    /// Whether a user stack was dumped, wherever its bytes are.
    #[inline]
    pub fn has_user_stack(&self) -> bool {
        !self.user_stack.is_empty() || self.user_stack_rest.is_some()
    }
}

/// The trailer of records that are not samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleId {
    /// Process and thread.
    pub pid_tid: Option<(Pid, Tid)>,
    /// By the clock of the recording.
    pub time: Option<TimestampNs>,
    /// Event id.
    pub id: Option<u64>,
    /// The CPU that wrote the record.
    pub cpu: Option<CpuId>,
}

impl SampleLayout {
    /// The layout that an event's attributes ask for.
    pub fn new(attr: &Attr) -> SampleLayout {
        use SampleType as T;
        let has = |field| attr.sample_type.contains(field);
        let size = |fields: &[SampleType]| fields.iter().filter(|field| has(**field)).count() * 8;
        let sample_id_all = attr.has(crate::attr::AttrFlags::SAMPLE_ID_ALL);
        let id_offset = match (has(T::IDENTIFIER), has(T::ID)) {
            (true, _) => Some(0),
            (false, true) => Some(size(&[T::IP, T::TID, T::TIME, T::ADDR])),
            (false, false) => None,
        };
        let before_cpu = [T::IDENTIFIER, T::IP, T::TID, T::TIME, T::ADDR, T::ID, T::STREAM_ID];
        let trailer = [T::TID, T::TIME, T::ID, T::STREAM_ID, T::CPU, T::IDENTIFIER];
        SampleLayout {
            sample_type: attr.sample_type,
            read_format: attr.read_format,
            sample_id_all,
            branch_sample_type: attr.branch_sample_type,
            user_regs_mask: attr.sample_regs_user,
            intr_regs_mask: attr.sample_regs_intr,
            id_offset,
            time_offset: has(T::TIME).then(|| size(&[T::IDENTIFIER, T::IP, T::TID])),
            cpu_offset: has(T::CPU).then(|| size(&before_cpu)),
            trailer_time_offset: (sample_id_all && has(T::TIME)).then(|| size(&trailer[..1])),
            trailer_cpu_offset: (sample_id_all && has(T::CPU)).then(|| size(&trailer[..4])),
            id_trailer_size_bytes: if sample_id_all { size(&trailer) } else { 0 },
        }
    }

    fn has(&self, field: SampleType) -> bool {
        self.sample_type.contains(field)
    }

    /// Offset of the event id in a sample's body, if it carries one.
    pub fn id_offset(&self) -> Option<usize> {
        self.id_offset
    }

    /// Offset of the time stamp in a sample's body, if it carries one.
    pub fn time_offset(&self) -> Option<usize> {
        self.time_offset
    }

    /// The time stamp of a sample, without decoding the rest.
    #[inline]
    pub fn sample_time(&self, body: &[u8]) -> Option<TimestampNs> {
        u64_at(body, self.time_offset?).map(TimestampNs)
    }

    /// Process and thread of a sample, without decoding the rest.
    #[inline]
    pub fn sample_thread(&self, body: &[u8]) -> Option<(Pid, Tid)> {
        let has = |field| usize::from(self.has(field));
        let at = 8 * (has(SampleType::IDENTIFIER) + has(SampleType::IP));
        u64_at(body, at).filter(|_| self.has(SampleType::TID)).map(thread)
    }

    /// The cgroup of a sample, without decoding the rest: it stands near the end, where no AUX data follow.
    #[inline]
    pub fn sample_cgroup(&self, body: &[u8]) -> Option<u64> {
        let has = |field| usize::from(self.has(field));
        let behind = has(SampleType::DATA_PAGE_SIZE) + has(SampleType::CODE_PAGE_SIZE);
        let at = body.len().checked_sub(8 * (1 + behind))?;
        u64_at(body, at).filter(|_| self.has(SampleType::CGROUP) && !self.has(SampleType::AUX))
    }

    /// The CPU on which a sample was taken, without decoding the rest.
    #[inline]
    pub fn sample_cpu(&self, body: &[u8]) -> Option<CpuId> {
        u64_at(body, self.cpu_offset?).map(|word| CpuId(word as u32))
    }

    /// The id of a sample's event, without decoding the rest.
    #[inline]
    pub fn sample_id(&self, body: &[u8]) -> Option<u64> {
        u64_at(body, self.id_offset?)
    }

    /// Size of the sample id trailer; zero without `sample_id_all`.
    pub fn id_trailer_size_bytes(&self) -> usize {
        self.id_trailer_size_bytes
    }

    /// Whether samples have dumps of user stacks.
    #[inline]
    pub fn has_user_stack(&self) -> bool {
        self.has(SampleType::STACK_USER)
    }

    /// Where in a sample's body its dump is, all bytes that were set aside for it. The first bytes of
    /// the body may suffice; `None` where they do not.
    pub fn user_stack_at(&self, body: &[u8]) -> Option<Range<usize>> {
        let (mut cursor, mut sample) = (Cursor::new(body), Sample::default());
        self.parse_fixed(&mut cursor, &mut sample)?;
        self.parse_before_stack(&mut cursor, &mut sample)?;
        let size = usize::try_from(cursor.u64()?).ok()?;
        let start = body.len() - cursor.rest().len();
        Some(start..start.checked_add(size)?)
    }

    /// Where in a sample's body its call chain and its branch records are, and its user registers with the
    /// dump. `None` where the body is shorter than its fields say.
    pub(crate) fn stack_fields(&self, body: &[u8]) -> Option<StackFields> {
        let (mut cursor, mut sample) = (Cursor::new(body), Sample::default());
        let at = |cursor: &Cursor<'_>| body.len() - cursor.rest().len();
        self.parse_fixed(&mut cursor, &mut sample)?;
        if self.has(SampleType::READ) {
            self.skip_read(&mut cursor)?;
        }
        let start = at(&cursor);
        if self.has(SampleType::CALLCHAIN) {
            words(&mut cursor)?;
        }
        let chain = start..at(&cursor);
        if self.has(SampleType::RAW) {
            let size = cursor.u32()? as usize;
            cursor.take(size)?;
        }
        let start = at(&cursor);
        if self.has(SampleType::BRANCH_STACK) {
            self.parse_branch_stack(&mut cursor)?;
        }
        let branches = start..at(&cursor);
        if self.has(SampleType::REGS_USER) {
            parse_regs(&mut cursor, self.user_regs_mask)?;
        }
        if self.has(SampleType::STACK_USER) {
            parse_stack(&mut cursor)?;
        }
        Some(StackFields { chain, dump: branches.end..at(&cursor), branches })
    }

    /// The time in the trailer of a record that is not a sample.
    #[inline]
    pub fn trailer_time(&self, body: &[u8]) -> Option<TimestampNs> {
        let start = body.len().checked_sub(self.id_trailer_size_bytes)?;
        u64_at(body, start + self.trailer_time_offset?).map(TimestampNs)
    }

    /// The CPU in the trailer of a record that is not a sample.
    #[inline]
    pub fn trailer_cpu(&self, body: &[u8]) -> Option<CpuId> {
        let start = body.len().checked_sub(self.id_trailer_size_bytes)?;
        u64_at(body, start + self.trailer_cpu_offset?).map(|cpu| CpuId(cpu as u32))
    }

    /// The fields of a trailer.
    pub(crate) fn trailer(&self) -> (usize, [bool; 6]) {
        use SampleType as T;
        let fields = [T::TID, T::TIME, T::ID, T::STREAM_ID, T::CPU, T::IDENTIFIER];
        (self.id_trailer_size_bytes, fields.map(|field| self.has(field)))
    }

    /// Decodes the trailer of a record that is not a sample.
    pub fn parse_id_trailer(&self, body: &[u8]) -> Option<SampleId> {
        let size = self.id_trailer_size_bytes();
        let mut c = Cursor::new(body.get(body.len().checked_sub(size)?..)?);
        let mut id = SampleId::default();
        if size == 0 {
            return Some(id);
        }
        if self.has(SampleType::TID) {
            id.pid_tid = Some(thread(c.u64()?));
        }
        if self.has(SampleType::TIME) {
            id.time = Some(TimestampNs(c.u64()?));
        }
        if self.has(SampleType::ID) {
            id.id = Some(c.u64()?);
        }
        if self.has(SampleType::STREAM_ID) {
            c.u64()?;
        }
        if self.has(SampleType::CPU) {
            id.cpu = Some(CpuId(c.u64()? as u32));
        }
        if self.has(SampleType::IDENTIFIER) {
            id.id = Some(c.u64()?);
        }
        Some(id)
    }

    /// Decodes the body of a SAMPLE record. `None` where it is shorter than its fields say.
    pub fn parse<'a>(&self, body: &'a [u8]) -> Option<Sample<'a>> {
        let mut sample = Sample::default();
        self.parse_into(body, &mut sample)?;
        Some(sample)
    }

    /// Decodes the body of a SAMPLE record into an empty `sample`, which stays where it is: a move
    /// copies 400 bytes. `None` where the body is shorter than its fields say.
    pub fn parse_into<'a>(&self, body: &'a [u8], sample: &mut Sample<'a>) -> Option<()> {
        let mut cursor = Cursor::new(body);
        self.parse_fixed(&mut cursor, sample)?;
        self.parse_variable(&mut cursor, sample)
    }

    fn parse_fixed(&self, c: &mut Cursor<'_>, s: &mut Sample<'_>) -> Option<()> {
        if self.has(SampleType::IDENTIFIER) {
            s.id = Some(c.u64()?);
        }
        if self.has(SampleType::IP) {
            s.ip = Some(Avma(c.u64()?));
        }
        if self.has(SampleType::TID) {
            s.pid_tid = Some(thread(c.u64()?));
        }
        if self.has(SampleType::TIME) {
            s.time = Some(TimestampNs(c.u64()?));
        }
        if self.has(SampleType::ADDR) {
            s.addr = Some(c.u64()?);
        }
        if self.has(SampleType::ID) {
            s.id = Some(c.u64()?);
        }
        if self.has(SampleType::STREAM_ID) {
            s.stream_id = Some(c.u64()?);
        }
        if self.has(SampleType::CPU) {
            s.cpu = Some(CpuId(c.u64()? as u32));
        }
        if self.has(SampleType::PERIOD) {
            s.period = Some(c.u64()?);
        }
        Some(())
    }

    fn parse_before_stack<'a>(&self, c: &mut Cursor<'a>, s: &mut Sample<'a>) -> Option<()> {
        if self.has(SampleType::READ) {
            self.skip_read(c)?;
        }
        if self.has(SampleType::CALLCHAIN) {
            s.callchain = words(c)?;
        }
        if self.has(SampleType::RAW) {
            // The size word counts the bytes behind it; both together are padded to eight bytes.
            let size = c.u32()? as usize;
            s.raw = Some(c.take(size)?);
        }
        if self.has(SampleType::BRANCH_STACK) {
            s.branch_stack = self.parse_branch_stack(c)?;
        }
        if self.has(SampleType::REGS_USER) {
            s.user_regs = parse_regs(c, self.user_regs_mask)?;
        }
        Some(())
    }

    fn parse_variable<'a>(&self, c: &mut Cursor<'a>, s: &mut Sample<'a>) -> Option<()> {
        self.parse_before_stack(c, s)?;
        if self.has(SampleType::STACK_USER) {
            s.user_stack = parse_stack(c)?;
        }
        if self.has(SampleType::WEIGHT) {
            s.weight = Some(c.u64()?);
        } else if self.has(SampleType::WEIGHT_STRUCT) {
            let parts = c.u64()?;
            s.weight = Some(parts & u64::from(u32::MAX));
            s.instruction_latency = (parts >> 32) as u16;
        }
        if self.has(SampleType::DATA_SRC) {
            s.data_src = Some(c.u64()?);
        }
        if self.has(SampleType::TRANSACTION) {
            s.transaction = Some(c.u64()?);
        }
        if self.has(SampleType::REGS_INTR) {
            s.intr_regs = parse_regs(c, self.intr_regs_mask)?;
        }
        if self.has(SampleType::PHYS_ADDR) {
            s.phys_addr = Some(c.u64()?);
        }
        if self.has(SampleType::CGROUP) {
            s.cgroup = Some(c.u64()?);
        }
        if self.has(SampleType::DATA_PAGE_SIZE) {
            s.data_page_size_bytes = Some(c.u64()?);
        }
        if self.has(SampleType::CODE_PAGE_SIZE) {
            s.code_page_size_bytes = Some(c.u64()?);
        }
        Some(())
    }

    fn skip_read(&self, c: &mut Cursor<'_>) -> Option<()> {
        self.take_read(c).map(|_| ())
    }

    /// The counts, with the cursor at the end of the fields of one word.
    pub(crate) fn take_read<'a>(&self, c: &mut Cursor<'a>) -> Option<ReadField<'a>> {
        let has = |bit| usize::from(self.read_format.contains(bit));
        let times = has(ReadFormat::TOTAL_TIME_ENABLED) + has(ReadFormat::TOTAL_TIME_RUNNING);
        let per_value = 1 + has(ReadFormat::ID) + has(ReadFormat::LOST);
        if has(ReadFormat::GROUP) == 1 {
            let values = usize::try_from(c.u64()?).ok()?;
            c.take(times * 8)?;
            let bytes = c.take(values.checked_mul(per_value)?.checked_mul(8)?)?;
            return Some(ReadField { bytes, words: per_value, id_word: 1 });
        }
        let words = times + per_value;
        Some(ReadField { bytes: c.take(words * 8)?, words, id_word: 1 + times })
    }

    fn parse_branch_stack<'a>(&self, c: &mut Cursor<'a>) -> Option<BranchStack<'a>> {
        let entries = usize::try_from(c.u64()?).ok()?;
        let hw_index =
            if self.branch_sample_type & BRANCH_HW_INDEX != 0 { Some(c.u64()?) } else { None };
        let stack = BranchStack { hw_index, entries: Words(c.take(entries.checked_mul(24)?)?) };
        if self.branch_sample_type & BRANCH_COUNTERS != 0 {
            c.take(entries.checked_mul(8)?)?;
        }
        Some(stack)
    }
}

/// The task in a word of a sample or a trailer. Linux 3.4 to 3.14 names a process with the idle task, which
/// belongs to none.
#[inline]
pub(crate) fn thread(word: u64) -> (Pid, Tid) {
    let (pid, tid) = (Pid(word as u32 as i32), Tid((word >> 32) as u32 as i32));
    (if pid.0 > 0 && tid.0 == 0 { Pid(0) } else { pid }, tid)
}

pub(crate) fn words<'a>(c: &mut Cursor<'a>) -> Option<Words<'a>> {
    let len = usize::try_from(c.u64()?).ok()?;
    c.take(len.checked_mul(8)?).map(Words)
}

/// Outer `None`: too short. Inner `None`: no registers (ABI 0, a kernel thread).
fn parse_regs<'a>(c: &mut Cursor<'a>, mask: u64) -> Option<Option<Registers<'a>>> {
    let abi = c.u64()?;
    if abi == 0 {
        return Some(None);
    }
    let values = c.take(mask.count_ones() as usize * 8)?;
    Some(Some(Registers { mask, abi, values }))
}

fn parse_stack<'a>(c: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let size = usize::try_from(c.u64()?).ok()?;
    if size == 0 {
        return Some(&[]);
    }
    let dump = c.take(size)?;
    let dumped = usize::try_from(c.u64()?).ok()?;
    Some(&dump[..dumped.min(size)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::AttrFlags;

    fn layout(sample_type: SampleType) -> SampleLayout {
        SampleLayout::new(&Attr {
            sample_type,
            flags: AttrFlags::SAMPLE_ID_ALL,
            sample_regs_user: 0b1100_0001,
            ..Attr::default()
        })
    }

    fn body(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    #[test]
    fn registers_are_found_by_their_bit() {
        let layout = layout(SampleType::IP | SampleType::REGS_USER | SampleType::STACK_USER);
        let bytes = body(&[0x1000, 2, 10, 20, 30, 16, 0xaaaa, 0xbbbb, 8]);
        let sample = layout.parse(&bytes).unwrap();
        let regs = sample.user_regs.unwrap();
        assert_eq!([regs.get(0), regs.get(6), regs.get(7)], [Some(10), Some(20), Some(30)]);
        assert_eq!([regs.get(1), regs.get(8), regs.get(64)], [None; 3]);
        assert_eq!(sample.user_stack, 0xaaaau64.to_le_bytes(), "cut to what was dumped");
    }

    #[test]
    fn kernel_threads_have_neither_registers_nor_stack() {
        let layout = layout(SampleType::IP | SampleType::REGS_USER | SampleType::STACK_USER);
        let bytes = body(&[0x1000, 0, 0]);
        let sample = layout.parse(&bytes).unwrap();
        assert!(sample.user_regs.is_none() && sample.user_stack.is_empty());
    }

    #[test]
    fn lengths_from_the_file_cannot_reach_past_the_record() {
        for lie in [1, 1 << 61, u64::MAX] {
            assert!(layout(SampleType::CALLCHAIN).parse(&body(&[lie])).is_none());
            assert!(layout(SampleType::BRANCH_STACK).parse(&body(&[lie])).is_none());
            assert!(layout(SampleType::STACK_USER).parse(&body(&[lie])).is_none());
        }
    }

    #[test]
    fn the_idle_task_belongs_to_no_process() {
        let layout = layout(SampleType::IP | SampleType::TID | SampleType::TIME);
        let idle = body(&[0x1000, 943, 99]);
        let task = Some((Pid(0), Tid(0)));
        assert_eq!(layout.parse(&idle).unwrap().pid_tid, task);
        assert_eq!(layout.sample_thread(&idle).map(|of| of.0), Some(Pid(0)));
        assert_eq!(layout.parse_id_trailer(&idle[8..]).unwrap().pid_tid, task);
        // Mappings of the kernel belong to no process either, and say so.
        let kernel = body(&[0x1000, u64::from(u32::MAX), 99]);
        assert_eq!(layout.parse(&kernel).unwrap().pid_tid, Some((Pid(-1), Tid(0))));
        let thread = body(&[0x1000, 944 << 32 | 943, 99]);
        assert_eq!(layout.parse(&thread).unwrap().pid_tid, Some((Pid(943), Tid(944))));
    }

    #[test]
    fn trailer_is_at_the_end() {
        let layout = layout(SampleType::IP | SampleType::TID | SampleType::TIME | SampleType::CPU);
        let bytes = body(&[7, 7, 7, 0x0000_0002_0000_0001, 99, 3]);
        let id = layout.parse_id_trailer(&bytes).unwrap();
        assert_eq!(id.pid_tid, Some((Pid(1), Tid(2))));
        assert_eq!((id.time, id.cpu), (Some(TimestampNs(99)), Some(CpuId(3))));
        assert!(layout.parse_id_trailer(&bytes[..16]).is_none());
    }

    #[test]
    fn id_and_time_offsets() {
        use SampleType as T;
        assert_eq!(layout(T::IP | T::TID | T::TIME | T::ID).id_offset(), Some(24));
        assert_eq!(layout(T::IP | T::IDENTIFIER).id_offset(), Some(0));
        assert_eq!(layout(T::IP | T::TID | T::TIME | T::IDENTIFIER).time_offset(), Some(24));
        assert_eq!(layout(T::IP).id_offset(), None);
        let fields = T::IP | T::TID | T::TIME | T::STREAM_ID | T::CPU | T::IDENTIFIER;
        let words = body(&[7, 0x1000, 1, 99, 8, 0x1_0000_0003]);
        assert_eq!(layout(fields).sample_cpu(&words), Some(CpuId(3)));
        assert_eq!(layout(T::IP | T::TID).sample_cpu(&words), None);
    }
}
