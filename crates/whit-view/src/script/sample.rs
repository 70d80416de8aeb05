//! One sample with everything that can be printed of it.

use std::fmt;

use whit_perfdata::sample::{BranchStack, Registers};
use whit_print_format::{TraceContext, TraceFormat};
use whit_types::{Arch, Avma, CpuId, OutsideText, Pid, Tid, TimestampNs};

/// A code or data location.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScriptFrame<'a> {
    /// The address as it is to be printed: in the process (as most versions of perf do it) or in
    /// the binary (perf 6.0 to 6.3, for frames of call chains).
    pub ip: u64,
    /// Function or variable, where known.
    pub symbol: Option<OutsideText<&'a str>>,
    /// Distance of the address from the symbol's start.
    pub symbol_offset: u64,
    /// Path of the binary, or a bracketed name; `None` prints `[unknown]`.
    pub dso: Option<OutsideText<&'a str>>,
    /// Source file and line, where known. Only the file's name is printed, not its folder.
    pub source: Option<(OutsideText<&'a str>, u32)>,
    /// True where the function was inlined into that of the next frame.
    pub inlined: bool,
}

/// Hands on the code at an address.
pub type CodeAt<'a> = dyn Fn(Avma, &mut dyn FnMut(&ScriptFrame<'_>)) + 'a;

/// Appends the bytes of the code at an address, at most so many, and tells the width of its addresses in bits. Nothing
/// where the binary is not at hand.
pub type CodeBytes<'a> = dyn Fn(Avma, usize, &mut Vec<u8>) -> Option<u32> + 'a;

/// A tracepoint's record.
#[derive(Clone, Copy, Debug)]
pub struct TraceRecord<'a> {
    /// How it is printed.
    pub format: &'a TraceFormat,
    /// The sample's raw bytes.
    pub raw: &'a [u8],
    /// Data outside the record that its text refers to.
    pub context: TraceContext<'a>,
}

/// One sample. Strings are borrowed; what no selected field asks for may be left empty.
#[derive(Clone, Copy)]
pub struct ScriptSample<'a> {
    /// Command name at the time of the sample.
    pub comm: OutsideText<&'a str>,
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// CPU, where recorded.
    pub cpu: Option<CpuId>,
    /// Time stamp.
    pub time: TimestampNs,
    /// Address of the executing instruction, where recorded.
    pub ip: Option<Avma>,
    /// Events since the sample before.
    pub period: u64,
    /// Event name.
    pub event: OutsideText<&'a str>,
    /// A tracepoint's record, where its format is known.
    pub trace: Option<TraceRecord<'a>>,
    /// Flags of a synthesized branch, in text.
    pub flags: &'a str,
    /// Data address.
    pub addr: u64,
    /// The function at the data address, for the events (page faults, breakpoints, branches) whose
    /// address perf resolves.
    pub addr_frame: Option<ScriptFrame<'a>>,
    /// Weight by the hardware: for a memory access, its latency.
    pub weight: u64,
    /// Physical data address.
    pub phys_addr: u64,
    /// `misc` of the record.
    pub misc: u16,
    /// Where the data of an access came from.
    pub data_src: u64,
    /// Cycles that the instruction took.
    pub instruction_latency: u16,
    /// Sizes of the pages of the data and of the instruction.
    pub page_sizes_bytes: (u64, u64),
    /// Bytes that a BPF program wrote; `None` for other events.
    pub bpf_output: Option<&'a [u8]>,
    /// Path of the cgroup, where recorded; `None` prints `unknown`.
    pub cgroup: Option<OutsideText<&'a str>>,
    /// Registers at the interrupt.
    pub intr_regs: Option<Registers<'a>>,
    /// User registers.
    pub user_regs: Option<Registers<'a>>,
    /// The machine that the registers belong to; without it they have no names.
    pub arch: Option<Arch>,
    /// Taken branches, newest first.
    pub branch_stack: BranchStack<'a>,
    /// The code at an address, for [`Fields::BRSTACKSYM`](super::Fields::BRSTACKSYM) and for the
    /// binaries of branches.
    pub code_at: &'a CodeAt<'a>,
    /// The bytes of the code at an address, for the instructions between branches.
    pub code_bytes: &'a CodeBytes<'a>,
    /// Appends the text of the call chain, executing function first, as
    /// [`append_frame`](super::append_frame) makes it of each frame; of events without call chains
    /// the one executing location.
    pub frames: &'a dyn Fn(&mut Vec<u8>),
}

impl fmt::Debug for ScriptSample<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (event, time, tid) = (self.event, self.time, self.tid);
        write!(f, "ScriptSample {{ {event} {time:?} {tid:?} .. }}")
    }
}
