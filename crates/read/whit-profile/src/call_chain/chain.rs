//! From a sample to its call chain: addresses, innermost first.

use crate::blocks::deferred::UserChain;
use crate::call_chain::branch_chain;
use crate::call_chain::chain_entry::{ChainEntry, Side};
use crate::machine_model::binaries::Binaries;
use crate::machine_model::dso_index::DsoIndex;
use crate::machine_model::dso_table::{DsoTable, RecordedKind};
use crate::machine_model::process::{Epoch, ProcessModel, SpaceId};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::sync::Arc;
use whit_perfdata::attr::{Attr, BRANCH_CALL_STACK};
use whit_perfdata::chained::UserAddress;
use whit_perfdata::dump_rest::DumpRest;
use whit_perfdata::interpreted::is_interpreted;
use whit_perfdata::record::misc;
use whit_perfdata::sample::{Sample, Words, context};
use whit_types::{Arch, Avma, Pid, TimestampNs};
use whit_unwind::{
    AddressSpace, Bias, DeeperStack, FrameKind, ModuleUnwindInfo, StackDump, StopReason, Unwinder,
    UserFrame, UserRegs,
};

/// Frames that a call chain may have, as `perf report --max-stack` has it by default.
pub(crate) const DEFAULT_MAX_STACK: usize = 127;

/// Mappings that one thread keeps ready for unwinding, in all address spaces together.
const MAX_PREPARED_MAPPINGS: usize = 1 << 18;

/// Bytes of a dump that a report reads with the sample: most walks look no further.
pub(crate) const KEPT_DUMP_BYTES: usize = 4 << 10;

/// A walk that looks further reads multiples of this.
const DEEPER_STEP_BYTES: usize = 4 << 10;

/// Number of arm64's link register in recordings.
const ARM64_LR: u32 = 30;

/// `PERF_SAMPLE_REGS_ABI_64`: the process was a 64-bit one. whit unwinds no others.
const ABI_64: u64 = 2;

/// A call chain, and how its unwinding went.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chain {
    /// Innermost first; never empty for a sample that has an instruction pointer.
    pub entries: Vec<ChainEntry>,
    /// Why unwinding ended, where the stack was unwound.
    pub stop: Option<StopReason>,
    /// True where a stack was dumped that whit cannot unwind: of a 32-bit process, or of a machine
    /// that it does not know.
    pub is_foreign: bool,
    /// True where branch records continue the unwound frames.
    pub is_continued: bool,
}

impl Chain {
    /// The place that was executing, alone.
    pub(crate) fn set_leaf(&mut self, ip: Avma, cpu_mode: u16) {
        *self = Chain { entries: std::mem::take(&mut self.entries), ..Chain::default() };
        self.entries.clear();
        self.entries.push(ChainEntry::exact(ip, side_of(cpu_mode)));
    }
}

/// Where code lies: a binary and a place in it. The place is an offset into the file for files, a
/// stated address for the vdso, and an address in memory for everything else.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct CodePlace {
    /// Binary.
    pub dso: DsoIndex,
    /// Address of the code.
    pub place: u64,
    /// True for code of the kernel.
    pub kernel: bool,
}

impl CodePlace {
    /// For a sample that does not say where it was.
    pub(crate) const NOWHERE: CodePlace =
        CodePlace { dso: DsoIndex::UNKNOWN, place: 0, kernel: false };
}

/// The inputs that the chains of all samples share.
#[derive(Clone, Copy)]
pub(crate) struct ChainContext<'a> {
    /// Processes.
    pub model: &'a ProcessModel,
    /// Binaries' names.
    pub dsos: &'a DsoTable,
    /// Binaries' contents.
    pub binaries: &'a Binaries,
    /// Instruction set of the recorded machine, where whit can unwind it.
    pub arch: Option<Arch>,
    /// Longest chain.
    pub max_stack: usize,
    /// The recording [was written again](crate::ChainedRecords) with chains in the place of dumps.
    pub was_chained: bool,
}

/// Makes call chains. One per thread.
pub(crate) struct ChainMaker<'a> {
    context: ChainContext<'a>,
    unwinder: Unwinder,
    prepared: FxHashMap<SpaceId, Arc<AddressSpace>>,
    prepared_mappings: usize,
    unwound: Vec<UserFrame>,
    /// Bytes of the dump at hand that were read because the walk came to them.
    deeper: Vec<u8>,
}

/// The part of a dump that is read when the walk comes to it.
struct DeeperDump<'a> {
    rest: DumpRest<'a>,
    /// The first bytes of the whole dump.
    bytes: RefCell<&'a mut Vec<u8>>,
}

impl DeeperStack for DeeperDump<'_> {
    fn read(&self, offset: usize, size: usize) -> Option<u64> {
        let end = offset.checked_add(size).filter(|end| *end <= self.rest.size_bytes())?;
        let mut bytes = self.bytes.borrow_mut();
        if bytes.len() < end {
            let wanted = end.max(bytes.len() * 2).next_multiple_of(DEEPER_STEP_BYTES);
            if !self.rest.read(wanted, &mut bytes) {
                // The caller of the pass gets the error: `Prepared::check_dumps`.
                bytes.clear();
                return None;
            }
        }
        let word = bytes.get(offset..end)?;
        Some(word.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }
}

impl<'a> ChainMaker<'a> {
    /// With empty caches.
    pub(crate) fn new(context: ChainContext<'a>) -> Self {
        ChainMaker {
            context,
            unwinder: Unwinder::new(),
            prepared: FxHashMap::default(),
            prepared_mappings: 0,
            unwound: Vec::new(),
            deeper: Vec::new(),
        }
    }

    /// Fills `chain` with the call chain of a sample.
    pub(crate) fn make(
        &mut self,
        sample: &Sample<'_>,
        cpu_mode: u16,
        attr: &Attr,
        epoch: Option<&Epoch>,
        deferred: Option<UserChain<'_>>,
        chain: &mut Chain,
    ) {
        chain.entries.clear();
        chain.stop = None;
        chain.is_foreign = false;
        chain.is_continued = false;
        let side = side_of(cpu_mode);
        let has_calls =
            attr.branch_sample_type & BRANCH_CALL_STACK != 0 && !sample.branch_stack.is_empty();
        self.add_recorded(sample.callchain, side, has_calls, &mut chain.entries);
        if self.context.was_chained && attr.has_unwound_dumps() {
            restore_return_addresses(&mut chain.entries);
        }
        if let Some(deferred) = deferred {
            self.add_recorded(deferred.addresses, Side::User, has_calls, &mut chain.entries);
        }
        if sample.has_user_stack() {
            self.add_unwound(sample, epoch, chain);
        }
        if has_calls {
            let entries = &mut chain.entries;
            let room = self.context.max_stack.saturating_sub(entries.len());
            match chain.stop {
                Some(stop) => {
                    chain.is_continued = branch_chain::continue_chain(sample, stop, room, entries);
                }
                None => branch_chain::add(sample, side, entries),
            }
        } else if !sample.has_user_stack()
            && let Some(epoch) = epoch
        {
            self.add_leaf_caller(sample, epoch, chain);
        }
        if let Some(ip) = sample.ip {
            match chain.entries.first_mut() {
                // With precise sampling the recorded chain starts where the interrupt arrived.
                Some(first) if first.side == side => first.address = ip,
                Some(_) => chain.entries.insert(0, ChainEntry::exact(ip, side)),
                None => chain.entries.push(ChainEntry::exact(ip, side)),
            }
        }
        chain.entries.truncate(self.context.max_stack.max(1));
    }

    /// Takes a chain, or a part of one, that the kernel recorded.
    fn add_recorded(
        &self,
        words: Words<'_>,
        first_side: Side,
        kernel_only: bool,
        out: &mut Vec<ChainEntry>,
    ) {
        let mut side = first_side;
        // The first address on each side is where execution stood, not a return address.
        let mut exact = true;
        for word in words.iter() {
            if word >= context::MAX {
                side = match word {
                    context::KERNEL => Side::Kernel,
                    context::USER => Side::User,
                    // A cookie follows.
                    context::USER_DEFERRED => break,
                    context::GUEST | context::GUEST_KERNEL | context::GUEST_USER => Side::Guest,
                    // The hypervisor's, or a marker that this version does not know.
                    _ => side,
                };
                exact = true;
                continue;
            }
            if (kernel_only && side != Side::Kernel) || out.len() >= self.context.max_stack {
                continue;
            }
            out.push(ChainEntry { address: Avma(word), is_return_address: !exact, side });
            exact = false;
        }
    }

    fn add_unwound(&mut self, sample: &Sample<'_>, epoch: Option<&Epoch>, chain: &mut Chain) {
        let Some(regs) = sample.user_regs else { return };
        let Some(arch) = self.context.arch.filter(|_| regs.abi == ABI_64) else {
            chain.is_foreign = true;
            return;
        };
        let Some(epoch) = epoch else { return };
        let regs = UserRegs::from_perf(arch, regs.mask, regs.values());
        let Some(sp) = regs.sp() else { return };
        let space = self.prepare(epoch);
        self.deeper.clear();
        let deeper = sample
            .user_stack_rest
            .map(|rest| DeeperDump { rest, bytes: RefCell::new(&mut self.deeper) });
        let rest = deeper.as_ref().map(|deeper| deeper as &dyn DeeperStack);
        let stack = StackDump { sp: Avma(sp), bytes: sample.user_stack, rest };
        let room = self.context.max_stack.saturating_sub(chain.entries.len());
        self.unwound.clear();
        chain.stop = Some(self.unwinder.unwind(&space, &regs, stack, room, &mut self.unwound));
        // The unwound frames replace the kernel's own, which it found by frame pointers.
        chain.entries.retain(|entry| entry.side != Side::User);
        chain.entries.extend(self.unwound.iter().map(|frame| ChainEntry {
            address: frame.address,
            is_return_address: frame.kind == FrameKind::ReturnAddress,
            side: Side::User,
        }));
    }

    /// On arm64, frame pointers pass over the caller of a function that has made no frame of its own
    /// yet. Its return address is in the link register, which perf records for this since Linux 5.18;
    /// whether it still is there, the unwind information says.
    fn add_leaf_caller(&mut self, sample: &Sample<'_>, epoch: &Epoch, chain: &mut Chain) {
        let (Some(regs), Some(Arch::Aarch64)) = (sample.user_regs, self.context.arch) else {
            return;
        };
        let leaf = chain.entries.iter().position(|entry| entry.side == Side::User);
        let (Some(leaf), Some(lr), ABI_64) = (leaf, regs.get(ARM64_LR), regs.abi) else { return };
        let ip = chain.entries[leaf].address;
        // No stack was dumped: any address serves as its pointer, and every read of the stack fails.
        let regs = UserRegs::new(Arch::Aarch64).with_ip(ip.0).with_lr(lr).with_sp(ip.0);
        let stack = StackDump { sp: ip, bytes: &[], rest: None };
        let space = self.prepare(epoch);
        self.unwound.clear();
        self.unwinder.unwind(&space, &regs, stack, 2, &mut self.unwound);
        let Some(caller) = self.unwound.get(1).map(|frame| frame.address) else { return };
        if chain.entries.get(leaf + 1).is_none_or(|entry| entry.address != caller) {
            let entry = ChainEntry { address: caller, is_return_address: true, side: Side::User };
            chain.entries.insert(leaf + 1, entry);
        }
    }

    fn prepare(&mut self, epoch: &Epoch) -> Arc<AddressSpace> {
        if let Some(space) = self.prepared.get(&epoch.id) {
            return space.clone();
        }
        if self.prepared_mappings >= MAX_PREPARED_MAPPINGS {
            self.prepared.clear();
            self.prepared_mappings = 0;
        }
        let mut space = AddressSpace::new();
        for mapping in epoch.map.iter() {
            let dso = self.context.dsos.get(mapping.dso);
            if let RecordedKind::Anonymous(pid) = dso.kind {
                let binaries = self.context.binaries;
                let info = binaries.jit_unwind_info(pid, mapping.dso, self.context.arch);
                let info = info.unwrap_or_else(|| ModuleUnwindInfo::none(Arch::X86_64));
                space.map(mapping.start..mapping.end, Bias(0), info);
                continue;
            }
            let unwinds = matches!(dso.kind, RecordedKind::File | RecordedKind::Vdso);
            let binary = unwinds.then(|| self.context.binaries.get(mapping.dso)).flatten();
            let (bias, info) =
                crate::machine_model::binaries::unwind_info(binary, mapping, self.context.arch);
            space.map(mapping.start..mapping.end, bias, info);
        }
        // One for the space itself, which costs memory even if it is empty.
        self.prepared_mappings += space.len() + 1;
        let space = Arc::new(space);
        self.prepared.insert(epoch.id, space.clone());
        space
    }

    /// Where an address of a chain lies.
    pub(crate) fn locate(
        &self,
        entry: ChainEntry,
        pid: Pid,
        epoch: Option<&Epoch>,
        time: TimestampNs,
    ) -> CodePlace {
        let address = entry.lookup_address();
        match entry.side {
            Side::Kernel => {
                let dso = self.context.model.kernel_at(address);
                CodePlace { dso, place: address.0, kernel: true }
            }
            Side::Guest => unknown(address),
            Side::User => self.locate_user(address, pid, epoch, time),
        }
    }

    fn locate_user(
        &self,
        address: Avma,
        pid: Pid,
        epoch: Option<&Epoch>,
        time: TimestampNs,
    ) -> CodePlace {
        let jit = |dso, place| CodePlace { dso, place, kernel: false };
        if is_interpreted(address.0) {
            let dso = self.context.dsos.interpreted(pid);
            return dso.map_or_else(|| unknown(address), |dso| jit(dso, address.0));
        }
        let mapping = epoch.and_then(|epoch| epoch.map.find(address));
        let kind = mapping.map(|m| self.context.dsos.get(m.dso).kind);
        match (mapping, kind) {
            (Some(m), Some(RecordedKind::File | RecordedKind::Vdso)) => CodePlace {
                dso: m.dso,
                place: (address.0 - m.start.0).wrapping_add(m.file_offset),
                kernel: false,
            },
            (Some(m), Some(RecordedKind::Anonymous(_))) => {
                match self.context.binaries.locate_jitted(pid, address, time) {
                    Some((dso, offset)) => jit(dso, offset.0),
                    None => jit(m.dso, address.0),
                }
            }
            _ => unknown(address),
        }
    }
}

/// Undoes the form of addresses in chains that were made of dumps.
fn restore_return_addresses(entries: &mut [ChainEntry]) {
    let callers = entries.iter_mut().filter(|e| e.side == Side::User && e.is_return_address);
    callers.for_each(|caller| caller.address.0 = UserAddress::from_written(caller.address.0));
}

fn unknown(address: Avma) -> CodePlace {
    CodePlace { dso: DsoIndex::UNKNOWN, place: address.0, kernel: false }
}

pub(crate) fn side_of(cpu_mode: u16) -> Side {
    match cpu_mode {
        misc::KERNEL | misc::HYPERVISOR => Side::Kernel,
        misc::GUEST_KERNEL | misc::GUEST_USER => Side::Guest,
        _ => Side::User,
    }
}
