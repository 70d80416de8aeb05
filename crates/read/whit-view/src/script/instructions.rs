//! The instructions that ran between the branches of a sample, in the order in which they ran.

use std::io::Write;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use whit_perfdata::sample::BranchEntry;
use whit_profile::script::ScriptedSample;
use whit_types::Avma;

use super::text::left;

/// A longer way between two branches is not printed, as in perf. In bytes.
const BLOCK_BYTES_MAX: u64 = 16384 - INSTRUCTION_BYTES_MAX;
/// An x86 instruction has at most so many bytes.
const INSTRUCTION_BYTES_MAX: u64 = 15;
/// Where the sample stands before the last target, a branch is missing: it is sought in so many bytes.
const SEARCHED_BYTES: u64 = 128;
/// Bits of [`BranchEntry::PREDICTION`].
const MISPREDICTED: u64 = 1;
const PREDICTED: u64 = 1 << 1;
/// Width of an instruction with a branch, up to the properties of the branch.
const BRANCH_WIDTH: usize = 30;

/// Appends the instructions of all blocks of code, from the oldest branch to the sample.
pub(super) fn append_instructions(out: &mut Vec<u8>, sample: &ScriptedSample<'_>) {
    // Newest first.
    let entries: Vec<BranchEntry> = sample.sample.branch_stack.iter().collect();
    let (Some(newest), Some(oldest)) = (entries.first(), entries.last()) else { return };
    out.push(b'\n');
    let mut listing =
        Listing { out, sample, function_start: None, cycles: 0, code: Vec::new(), bits: 64 };
    // The beginning of the block with the oldest branch is unknown.
    if listing.read(oldest.from, oldest.from) == Read::Code {
        listing.function(oldest.from);
        listing.branch(oldest.from, 0, *oldest, 0);
    }
    let mut index = entries.len() - 1;
    while index > 0 {
        let start = entries[index].to;
        index -= 1;
        let mut read = listing.read(start, entries[index].from);
        if read == Read::TwoModes && index > 0 {
            // The branch back from the kernel was not recorded.
            index -= 1;
            read = listing.read(start, entries[index].from);
        }
        if read == Read::Code {
            listing.block(start, entries[index]);
        }
    }
    listing.up_to_sample(*newest);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    Code,
    /// One end is in the kernel, the other is not.
    TwoModes,
    Nothing,
}

struct Listing<'a, 'o> {
    out: &'o mut Vec<u8>,
    sample: &'a ScriptedSample<'a>,
    /// Start of the function that was named last.
    function_start: Option<u64>,
    /// Sum of the cycles of the branches so far.
    cycles: u64,
    /// Bytes of the block that is being printed.
    code: Vec<u8>,
    bits: u32,
}

fn is_kernel(address: Avma) -> bool {
    address.0 >> 63 != 0
}

impl Listing<'_, '_> {
    /// Reads the code from `start` to the end of the instruction at `end`.
    fn read(&mut self, start: Avma, end: Avma) -> Read {
        self.code.clear();
        if start.0 == 0 || end.0 == 0 {
            return Read::Nothing;
        }
        if is_kernel(start) != is_kernel(end) {
            return Read::TwoModes;
        }
        let length_bytes = end.0.wrapping_sub(start.0);
        if length_bytes > BLOCK_BYTES_MAX {
            return Read::Nothing;
        }
        let most = (length_bytes + INSTRUCTION_BYTES_MAX) as usize;
        match self.sample.lookup.code_bytes(start, most, &mut self.code) {
            Some(bits) => {
                self.bits = bits;
                Read::Code
            }
            None => Read::Nothing,
        }
    }

    /// Names the function, where it is another one than before.
    fn function(&mut self, address: Avma) {
        let code = self.sample.lookup.code_at(address);
        let start = address.0.wrapping_sub(code.function_offset);
        let Some(function) = code.function.filter(|_| self.function_start != Some(start)) else {
            return;
        };
        self.out.push(b'\t');
        function.append_to(self.out);
        if code.function_offset > 0 {
            // Writing to a Vec cannot fail.
            let _ = write!(self.out, "+{}", code.function_offset);
        }
        self.out.extend_from_slice(b":\n");
        self.function_start = Some(start);
    }

    fn decode(&self, address: Avma, at: usize) -> Option<Instruction> {
        let code = self.code.get(at..).filter(|code| !code.is_empty())?;
        let instruction =
            Decoder::with_ip(self.bits, code, address.0, DecoderOptions::NONE).decode();
        (!instruction.is_invalid()).then_some(instruction)
    }

    fn text(&self, instruction: Option<&Instruction>, at: usize) -> String {
        let Some(instruction) = instruction else { return "<bad>".to_owned() };
        let mut text = "insn: ".to_owned();
        for byte in &self.code[at..at + instruction.len()] {
            text.push_str(&format!("{byte:02x} "));
        }
        text
    }

    /// A line with an instruction; `None` where there is none.
    fn instruction(&mut self, address: Avma, at: usize) -> Option<Instruction> {
        let instruction = self.decode(address, at);
        let text = self.text(instruction.as_ref(), at);
        let _ = writeln!(self.out, "\t{:016x}\t{text}", address.0);
        instruction
    }

    /// A line with a branch, which is the `number`th instruction since the branch before; 0 where that is not known.
    fn branch(&mut self, address: Avma, at: usize, entry: BranchEntry, number: u64) {
        let instruction = self.decode(address, at);
        let text = self.text(instruction.as_ref(), at);
        let _ = write!(self.out, "\t{:016x}\t", address.0);
        left(self.out, &text, BRANCH_WIDTH);
        self.out.extend_from_slice(b"\t#");
        let flags = [
            (PREDICTED, " PRED"),
            (MISPREDICTED, " MISPRED"),
            (BranchEntry::IN_TRANSACTION, " INTX"),
            (BranchEntry::ABORT, " ABORT"),
        ];
        for (flag, name) in flags {
            if entry.flags & flag != 0 {
                self.out.extend_from_slice(name.as_bytes());
            }
        }
        let cycles = (entry.flags & BranchEntry::CYCLES) >> BranchEntry::CYCLES.trailing_zeros();
        if cycles > 0 {
            self.cycles += cycles;
            let _ = write!(self.out, " {cycles} cycles [{}]", self.cycles);
            if number > 0 {
                // perf divides with single precision.
                let _ = write!(self.out, " {:.2} IPC", number as f32 / cycles as f32);
            }
        }
        self.out.push(b'\n');
    }

    /// The block of code that ends with a branch.
    fn block(&mut self, start: Avma, entry: BranchEntry) {
        let (mut at, mut number) = (0, 0);
        while at < self.code.len() {
            let address = Avma(start.0 + at as u64);
            self.function(address);
            number += 1;
            if address == entry.from {
                return self.branch(address, at, entry, number);
            }
            match self.instruction(address, at) {
                Some(instruction) => at += instruction.len(),
                None => break,
            }
        }
        self.out.extend_from_slice(b"\tmismatch of LBR data and executable\n");
    }

    /// The block of code between the newest branch and the sample.
    fn up_to_sample(&mut self, newest: BranchEntry) {
        let ip = self.sample.sample.ip.unwrap_or(Avma(0));
        if newest.from == ip || newest.flags & BranchEntry::ABORT != 0 {
            return;
        }
        let start = newest.to;
        let end = if ip < start { Avma(start.0.saturating_add(SEARCHED_BYTES)) } else { ip };
        let read = self.read(start, end);
        self.function(start);
        if read != Read::Code {
            if self.read(ip, ip) == Read::Code {
                self.instruction(ip, 0);
            }
            return;
        }
        let mut at = 0;
        while at as u64 <= end.0 - start.0 {
            let address = Avma(start.0 + at as u64);
            let Some(instruction) = self.instruction(address, at) else { return };
            if is_branch(&instruction) && address != ip {
                // A branch that was not recorded.
                self.out.extend_from_slice(b"\t... not reaching sample ...\n");
                return;
            }
            at += instruction.len();
        }
    }
}

fn is_branch(instruction: &Instruction) -> bool {
    use FlowControl as F;
    matches!(
        instruction.flow_control(),
        F::UnconditionalBranch
            | F::IndirectBranch
            | F::ConditionalBranch
            | F::Return
            | F::Call
            | F::IndirectCall
            | F::Interrupt
    )
}
