//! The branch stack of a sample.

use super::fields::Fields;
use super::text::{append_dso, append_symbol, decimal, hex};
use whit_perfdata::sample::BranchEntry;
use whit_profile::script::ScriptedSample;
use whit_types::Avma;

/// `PERF_BR_*`, by number; the last says that the kind stands in the field for further ones.
const KINDS: [&str; 16] = [
    "",
    "COND",
    "UNCOND",
    "IND",
    "CALL",
    "IND_CALL",
    "RET",
    "SYSCALL",
    "SYSRET",
    "COND_CALL",
    "COND_RET",
    "ERET",
    "IRQ",
    "SERROR",
    "NO_TX",
    "",
];
/// `PERF_BR_NEW_*`.
const FURTHER_KINDS: [&str; 8] =
    ["FAULT_ALGN", "FAULT_DATA", "FAULT_INST", "ARCH_1", "ARCH_2", "ARCH_3", "ARCH_4", "ARCH_5"];
/// `PERF_BR_EXTEND_ABI`.
const EXTENDED: usize = 15;
/// `PERF_BR_SPEC_*`.
const SPECULATION: [&str; 4] =
    ["-", "SPEC_WRONG_PATH", "NON_SPEC_CORRECT_PATH", "SPEC_CORRECT_PATH"];

/// Appends all branches: by address, or by symbol with [`Fields::BRSTACKSYM`] alone.
pub(super) fn append_branches(out: &mut Vec<u8>, sample: &ScriptedSample<'_>, fields: Fields) {
    for entry in sample.sample.branch_stack.iter() {
        if fields.has(Fields::BRSTACK) {
            out.push(b' ');
        }
        append_end(out, entry.from, sample, fields);
        out.push(b'/');
        append_end(out, entry.to, sample, fields);
        append_flags(out, entry);
    }
}

fn append_end(out: &mut Vec<u8>, address: Avma, sample: &ScriptedSample<'_>, fields: Fields) {
    let by_address = fields.has(Fields::BRSTACK);
    if by_address {
        out.extend_from_slice(b"0x");
        hex(out, address.0, 0);
        if !fields.has(Fields::DSO) {
            return;
        }
    }
    let code = sample.lookup.code_at(address);
    let frame = code.frame(address);
    if !by_address {
        // A blank stands before symbols elsewhere, not here.
        let start = out.len();
        append_symbol(out, &frame, Fields::SYM | Fields::SYMOFF);
        out.remove(start);
    }
    if fields.has(Fields::DSO) {
        let start = out.len();
        append_dso(out, &frame, fields);
        out.remove(start);
    }
}

/// `/P/-/-/0/CALL/- `: predicted, in a transaction, aborted, cycles, kind, speculation.
fn append_flags(out: &mut Vec<u8>, entry: BranchEntry) {
    let field = |shift: u32, bits: u32| (entry.flags >> shift & ((1 << bits) - 1)) as usize;
    let predicted = match field(0, 2) {
        0 => b'-',
        1 => b'M',
        _ => b'P',
    };
    let letter = |set: usize, letter: u8| if set == 0 { b'-' } else { letter };
    for letter in [predicted, letter(field(2, 1), b'X'), letter(field(3, 1), b'A')] {
        out.extend([b'/', letter]);
    }
    out.push(b'/');
    decimal(out, field(4, 16) as u64, 0);
    let kind = match field(20, 4) {
        EXTENDED => FURTHER_KINDS.get(field(26, 4)).copied().unwrap_or(""),
        kind => KINDS[kind],
    };
    for text in [kind, SPECULATION[field(24, 2)]] {
        out.push(b'/');
        out.extend_from_slice(text.as_bytes());
    }
    out.push(b' ');
}
