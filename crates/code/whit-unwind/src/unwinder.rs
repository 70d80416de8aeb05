//! Walks a stack dump outwards, frame by frame.

use gimli::UnwindContext;
use whit_types::{Arch, Avma};

use crate::abi::{Aarch64, Abi, X86_64};
use crate::address_space::{AddressSpace, Mapping};
use crate::general::{self, Row};
use crate::regs::UserRegs;
use crate::rule::{Rule, Saved};
use crate::rule_cache::{CacheStats, RuleCache};
use crate::stack::StackDump;
use crate::stop_reason::StopReason;

/// Meaning of an address of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FrameKind {
    /// The instruction that was executing, or that a signal interrupted.
    InstructionPointer,
    /// The instruction after a call.
    ReturnAddress,
}

/// One frame of a user stack.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UserFrame {
    /// The address as it was found.
    pub address: Avma,
    /// Its meaning.
    pub kind: FrameKind,
}

impl UserFrame {
    /// The address by which to look up the frame's function: inside the call for a return address,
    /// which may itself lie behind the end of its function.
    #[inline]
    pub fn lookup_address(&self) -> Avma {
        match self.kind {
            FrameKind::InstructionPointer => self.address,
            FrameKind::ReturnAddress => Avma(self.address.0.wrapping_sub(1)),
        }
    }
}

/// Unwinds stacks of any number of processes. One per thread; 300 KiB.
pub struct Unwinder {
    cache: RuleCache,
    context: Box<UnwindContext<usize>>,
    /// Mapping in which the last look-up ended.
    hint: usize,
}

impl Default for Unwinder {
    fn default() -> Unwinder {
        Unwinder::new()
    }
}

impl Unwinder {
    /// With an empty cache.
    pub fn new() -> Unwinder {
        Unwinder { cache: RuleCache::new(), context: Box::new(UnwindContext::new()), hint: 0 }
    }

    /// How well the rule cache does.
    pub fn cache_stats(&self) -> CacheStats {
        self.cache.stats
    }

    /// Appends to `out` the frames of the stack, innermost first, at most `max_frames` of them
    /// (perf takes 127), and says why it ended there.
    ///
    /// The first frame is always the recorded instruction pointer; without one nothing is appended.
    pub fn unwind(
        &mut self,
        space: &AddressSpace,
        regs: &UserRegs,
        stack: StackDump<'_>,
        max_frames: usize,
        out: &mut Vec<UserFrame>,
    ) -> StopReason {
        match regs.arch() {
            Arch::X86_64 => Walk::<X86_64>::new(self, space, regs, stack).run(max_frames, out),
            Arch::Aarch64 => Walk::<Aarch64>::new(self, space, regs, stack).run(max_frames, out),
        }
    }
}

/// The registers that a walk follows besides instruction pointer, stack pointer and frame pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Followed {
    /// None after a frame with a compact rule, though more are known.
    Few,
    /// All that functions preserve.
    All,
    /// No more are known.
    NoOthers,
}

/// The walk over one stack.
struct Walk<'a, A> {
    unwinder: &'a mut Unwinder,
    space: &'a AddressSpace,
    regs: UserRegs,
    stack: StackDump<'a>,
    /// Bits of a code address that are the address; the rest may hold a pointer authentication code.
    code_mask: u64,
    kind: FrameKind,
    follows: Followed,
    _abi: std::marker::PhantomData<A>,
}

impl<'a, A: Abi> Walk<'a, A> {
    fn new(
        unwinder: &'a mut Unwinder,
        space: &'a AddressSpace,
        regs: &UserRegs,
        stack: StackDump<'a>,
    ) -> Self {
        let code_mask = if A::LR.is_some() { code_mask(space) } else { u64::MAX };
        let kind = FrameKind::InstructionPointer;
        let _abi = std::marker::PhantomData;
        let others = A::PRESERVED & !(1 << A::IP | 1 << A::SP | 1 << A::FP);
        let follows = if regs.knows_any(others) { Followed::Few } else { Followed::NoOthers };
        Walk { unwinder, space, regs: *regs, stack, code_mask, kind, follows, _abi }
    }

    /// Few frame addresses are made from another register than the stack and the frame pointer. A walk that misses one
    /// is done again, and follows all of them.
    fn run(mut self, max_frames: usize, out: &mut Vec<UserFrame>) -> StopReason {
        let (regs, begin) = (self.regs, out.len());
        let reason = self.walk(max_frames, out);
        if reason != StopReason::MissingRegister || self.follows != Followed::Few {
            return reason;
        }
        out.truncate(begin);
        (self.regs, self.kind) = (regs, FrameKind::InstructionPointer);
        self.follows = Followed::All;
        self.walk(max_frames, out)
    }

    fn walk(&mut self, max_frames: usize, out: &mut Vec<UserFrame>) -> StopReason {
        let Some(mut ip) = self.regs.get(A::IP) else {
            return StopReason::BadRegs;
        };
        let limit = out.len().saturating_add(max_frames);
        loop {
            if out.len() >= limit {
                return StopReason::FramesLimit;
            }
            let frame = UserFrame { address: Avma(ip), kind: self.kind };
            let lookup = frame.lookup_address();
            let mapping = self.space.find(lookup.0, &mut self.unwinder.hint);
            // Every executable mapping is known, so what lies in none is no return address.
            if mapping.is_none() && self.kind == FrameKind::ReturnAddress {
                return StopReason::NoModule;
            }
            out.push(frame);
            ip = match self.step(lookup, mapping) {
                Ok(0) => return StopReason::EndOfStack,
                Ok(ip) => ip,
                Err(reason) => return reason,
            };
        }
    }

    /// From the frame whose code is at `lookup` to its caller; the caller's instruction pointer.
    #[inline]
    fn step(&mut self, lookup: Avma, mapping: Option<&Mapping>) -> Result<u64, StopReason> {
        let sp = self.regs.get(A::SP).ok_or(StopReason::BadRegs)?;
        let Some(mapping) = mapping else {
            return self.step_by_frame_pointer(sp, StopReason::NoModule);
        };
        let module = &mapping.module;
        let svma = mapping.bias.to_svma(lookup).0;
        let rule = match self.unwinder.cache.get(module.id(), svma) {
            Some(rule) => rule,
            None => {
                let rule = general::find_rule::<A>(module, svma, &mut self.unwinder.context);
                self.unwinder.cache.insert(module.id(), svma, rule);
                rule
            }
        };
        match rule {
            Rule::Frame { from_fp, cfa_offset, ra, fp } => {
                let row = (self.follows == Followed::All).then_some(Row { module, svma });
                let others = row.and_then(|row| self.others_of_caller(row));
                let ip = self.step_by_rule(sp, from_fp, cfa_offset, ra, fp)?;
                others.into_iter().for_each(|others| self.regs.take_unknown(&others));
                Ok(ip)
            }
            Rule::Root => Err(StopReason::EndOfStack),
            Rule::Switched => self.step_to_other_stack(),
            Rule::Signal => self.step_out_of_signal(sp),
            Rule::General => {
                let row = Row { module, svma };
                self.step_by_row(sp, row)
            }
            Rule::Uncovered if module.is_unopened() => {
                self.step_by_frame_pointer(sp, StopReason::Unopened)
            }
            Rule::Uncovered if module.is_none() => {
                self.step_by_frame_pointer(sp, StopReason::NoUnwindInfo)
            }
            Rule::Uncovered => self.step_uncovered(sp),
        }
    }

    #[inline]
    fn step_by_rule(
        &mut self,
        sp: u64,
        from_fp: bool,
        cfa_offset: i32,
        ra: Saved,
        fp: Saved,
    ) -> Result<u64, StopReason> {
        let base =
            if from_fp { self.regs.get(A::FP).ok_or(StopReason::MissingRegister)? } else { sp };
        let cfa = base.wrapping_add_signed(i64::from(cfa_offset));
        // A leaf function that keeps its return address in the link register may have no frame;
        // it cannot do so twice in a row, because the link register is forgotten below.
        if cfa < sp || (cfa == sp && ra != Saved::SAME) {
            return Err(StopReason::Loop);
        }
        let ip = match ra.address(cfa) {
            Some(address) => self.stack.read_u64(address)?,
            None => self.link_register()?,
        };
        if let Some(address) = fp.address(cfa) {
            match self.stack.read_u64(address) {
                Ok(value) => self.regs.set(A::FP, value),
                // In an epilogue the register was popped already, though the row, to save space,
                // still says that it lies on the stack, now below the stack pointer.
                Err(StopReason::OutsideStack) => {}
                Err(reason) => return Err(reason),
            }
        }
        Ok(self.arrive(ip, cfa))
    }

    /// Sets the registers of the caller. Only these three are known from now on.
    #[inline]
    fn arrive(&mut self, ip: u64, sp: u64) -> u64 {
        let ip = ip & self.code_mask;
        self.regs.set(A::IP, ip);
        self.regs.set(A::SP, sp);
        self.regs.keep(1 << A::IP | 1 << A::SP | 1 << A::FP);
        self.kind = FrameKind::ReturnAddress;
        ip
    }

    /// The registers of the caller of a frame with a compact rule, which leaves them out.
    #[cold]
    fn others_of_caller(&mut self, row: Row<'_>) -> Option<UserRegs> {
        let stepped = general::step::<A>(row, &self.regs, &self.stack, &mut self.unwinder.context);
        stepped.ok().map(|caller| caller.regs)
    }

    fn link_register(&self) -> Result<u64, StopReason> {
        let register = A::LR.ok_or(StopReason::BadUnwindInfo)?;
        self.regs.get(register).ok_or(StopReason::MissingRegister)
    }

    /// Evaluates the row of call frame information in full.
    #[cold]
    fn step_by_row(&mut self, sp: u64, row: Row<'_>) -> Result<u64, StopReason> {
        let stepped = general::step::<A>(row, &self.regs, &self.stack, &mut self.unwinder.context);
        match stepped {
            Ok(caller) => {
                let new_sp = caller.regs.get(A::SP).ok_or(StopReason::BadUnwindInfo)?;
                // A signal handler may run on a stack of its own, in either direction.
                if new_sp <= sp && !caller.interrupted {
                    return Err(StopReason::Loop);
                }
                self.regs = caller.regs;
                let ip = caller.ip & self.code_mask;
                self.regs.set(A::IP, ip);
                self.kind = if caller.interrupted {
                    FrameKind::InstructionPointer
                } else {
                    FrameKind::ReturnAddress
                };
                Ok(ip)
            }
            Err(reason @ StopReason::MissingRegister) if self.follows == Followed::Few => {
                Err(reason)
            }
            Err(reason @ (StopReason::BadUnwindInfo | StopReason::MissingRegister)) => {
                self.step_by_frame_pointer(sp, reason)
            }
            Err(reason) => Err(reason),
        }
    }

    /// The module has unwind information, though not for this address: most likely an assembly
    /// routine, which mostly have no frame. So try a bare return address first.
    #[cold]
    fn step_uncovered(&mut self, sp: u64) -> Result<u64, StopReason> {
        if self.kind == FrameKind::InstructionPointer {
            let (ip, caller_sp) = match A::LR {
                Some(register) => (self.regs.get(register), sp),
                None => (self.stack.read_u64(sp).ok(), sp.wrapping_add(8)),
            };
            if let Some(ip) = ip.filter(|ip| self.is_plausible(*ip)) {
                return Ok(self.arrive(ip, caller_sp));
            }
        } else if self.regs.get(A::FP) == Some(0) {
            // Processes start with a frame pointer of zero, in assembly that rarely describes itself.
            return Err(StopReason::EndOfStack);
        }
        self.step_by_frame_pointer(sp, StopReason::NoUnwindInfo)
    }

    /// Without unwind information: follows the frame pointer if it points to a frame record above
    /// the stack pointer that holds an address of mapped code. Else stops with `reason`.
    #[cold]
    fn step_by_frame_pointer(&mut self, sp: u64, reason: StopReason) -> Result<u64, StopReason> {
        let fp = self.regs.get(A::FP).ok_or(reason)?;
        if fp < sp || fp % 8 != 0 {
            return Err(reason);
        }
        // A frame record is the same on both architectures: caller's frame pointer, return address.
        let caller_fp = self.stack.read_u64(fp)?;
        let ip = self.stack.read_u64(fp.wrapping_add(8))?;
        if ip == 0 {
            return Err(StopReason::EndOfStack);
        }
        let caller_sp = fp.checked_add(16).ok_or(reason)?;
        if !self.is_plausible(ip) {
            return Err(reason);
        }
        self.regs.set(A::FP, caller_fp);
        Ok(self.arrive(ip, caller_sp))
    }

    /// The frame pointer leads to a frame record on another stack, below or above this one. A dump holds it only
    /// if the two lie close together.
    #[cold]
    fn step_to_other_stack(&mut self) -> Result<u64, StopReason> {
        match self.regs.get(A::FP) {
            None => Err(StopReason::MissingRegister),
            Some(0) => Err(StopReason::EndOfStack),
            Some(_) => match self.step_by_frame_pointer(0, StopReason::OutsideStack) {
                // A longer dump would not hold it either.
                Err(StopReason::StackDumpExhausted) => Err(StopReason::OutsideStack),
                result => result,
            },
        }
    }

    /// To the code that a signal interrupted, with all of its registers. Its stack may be another one.
    #[cold]
    fn step_out_of_signal(&mut self, sp: u64) -> Result<u64, StopReason> {
        let (start, count) = A::SIGNAL_REGISTERS.ok_or(StopReason::BadUnwindInfo)?;
        let start = sp.checked_add(start).ok_or(StopReason::OutsideStack)?;
        for register in 0..count {
            let address = start.wrapping_add(8 * register as u64);
            self.regs.set(register, self.stack.read_u64(address)?);
        }
        self.kind = FrameKind::InstructionPointer;
        self.regs.get(A::IP).ok_or(StopReason::BadUnwindInfo)
    }

    fn is_plausible(&self, ip: u64) -> bool {
        (ip & self.code_mask).checked_sub(1).is_some_and(|address| self.space.contains(address))
    }
}

/// Pointer authentication codes fill the bits above the virtual address, which has 48 bits, or 52
/// where code is mapped that high.
fn code_mask(space: &AddressSpace) -> u64 {
    let address_bits = if space.end() > 1 << 48 { 52 } else { 48 };
    (1 << address_bits) - 1
}

#[cfg(test)]
mod tests;
