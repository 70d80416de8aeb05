//! The structures that programs and loader exchange, byte by byte: those of `bpf/stacks.bpf.c` and
//! `bpf/unwind_state.h`.

use super::{Counts, InterpreterNumber, Mapping, NativeStayed, StopReason, TableNumber};

/// Limit of the words of all tables in the kernel.
pub const TABLE_MEMORY_MAX_BYTES: usize = 256 << 20;
/// [`TABLE_MEMORY_MAX_BYTES`] in chunks.
pub(super) const CHUNKS_MAX: usize = TABLE_MEMORY_MAX_BYTES / (CHUNK_WORDS * 4);
/// Binaries that have a table at a time.
pub(super) const TABLES_MAX: usize = 16384;
/// Rules of all tables.
pub(super) const RULES_MAX: usize = 1 << 19;
/// Words of a chunk of table memory.
pub(super) const CHUNK_WORDS: usize = 65536;
/// Bits of a process's value that hold how many mappings it has.
const PROCESS_COUNT_BITS: u64 = 0xffff;
const PROCESS_IS_TARGET: u64 = 1 << 16;
const PROCESS_AWAITS_EXEC: u64 = 1 << 17;
const PROCESS_FIRST_SHIFT: u32 = 32;
/// Words of `struct counts` in front of the reasons.
const COUNT_WORDS: usize = 12;

/// Words for reasons: `UNWIND_REASONS_ROOM`.
const REASON_WORDS: usize = 32;

/// `struct unwind_mapping`.
pub(super) fn mapping(mapping: &Mapping) -> [u8; 32] {
    let words = [mapping.start, mapping.end, mapping.bias, mapping.table.0];
    let mut bytes = [0; 32];
    for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *place = word.to_ne_bytes();
    }
    bytes
}

/// The arguments of `name_file`.
pub(super) fn naming(address: u64, bias: u64, table: TableNumber) -> [u8; 24] {
    let mut bytes = [0; 24];
    let words = [address, bias, table.0];
    for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *place = word.to_ne_bytes();
    }
    bytes
}

/// `struct file_table`.
pub(super) fn file_table(bias: u64, table: TableNumber) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&bias.to_ne_bytes());
    bytes[8..].copy_from_slice(&table.0.to_ne_bytes());
    bytes
}

/// `struct unwind_table`.
pub(super) fn table(
    start: u64,
    [buckets, index, rows, rules]: [u32; 4],
    interpreter: Option<InterpreterNumber>,
    generation: u32,
) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&start.to_ne_bytes());
    let interpreter = interpreter.map_or(0, |it| it.0);
    let numbers = [buckets, index, rows, rules, interpreter, generation];
    for (place, number) in bytes[8..].as_chunks_mut::<4>().0.iter_mut().zip(numbers) {
        *place = number.to_ne_bytes();
    }
    bytes
}

/// The same of the command that has not begun yet.
pub(super) fn awaiting_process(first: u32, count: u32) -> [u8; 8] {
    let value = u64::from_ne_bytes(process(first, count, true));
    (value | PROCESS_AWAITS_EXEC).to_ne_bytes()
}

/// The value of a process.
pub(super) fn process(first: u32, count: u32, is_target: bool) -> [u8; 8] {
    let target = if is_target { PROCESS_IS_TARGET } else { 0 };
    let count = u64::from(count) & PROCESS_COUNT_BITS;
    (u64::from(first) << PROCESS_FIRST_SHIFT | target | count).to_ne_bytes()
}

/// `struct counts`, at the beginning of a CPU's `struct scratch`; missing bytes are zero.
pub(super) fn counts(scratch: &[u8]) -> Counts {
    let words = scratch.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
    let interpreted = COUNT_WORDS + REASON_WORDS;
    let words: Vec<u64> = words.take(interpreted + 2 + NativeStayed::ALL.len()).collect();
    let word = |at: usize| words.get(at).copied().unwrap_or(0);
    let mut counts = Counts {
        runs: word(0),
        lost: word(1),
        lost_stacks: word(2),
        announced: word(3),
        walks: word(4),
        memo_hits: word(5),
        frames: word(6),
        kernel_failures: word(7),
        kernel_memo_hits: word(8),
        from_idle: word(9),
        late: word(10),
        learned: word(11),
        reasons: [0; StopReason::ALL.len()],
        interpreted: word(interpreted),
        // The first reason is none.
        native_stayed: std::array::from_fn(|at| word(interpreted + 2 + at)),
    };
    for (at, reason) in counts.reasons.iter_mut().enumerate() {
        *reason = word(COUNT_WORDS + at);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_as_the_programs_have_them() {
        let bytes = mapping(&Mapping { start: 1, end: 2, bias: 3, table: TableNumber(4) });
        assert_eq!((bytes[0], bytes[8], bytes[16], bytes[24]), (1, 2, 3, 4));
        let bytes = naming(7, 8, TableNumber(9));
        assert_eq!([bytes[0], bytes[8], bytes[16]], [7, 8, 9]);
        assert_eq!((file_table(5, TableNumber(6))[0], file_table(5, TableNumber(6))[8]), (5, 6));
        let bytes = table(1, [2, 3, 4, 5], Some(InterpreterNumber(6)), 7);
        let numbers = [8, 12, 16, 20, 24, 28].map(|at| bytes[at]);
        assert_eq!((bytes[0], numbers), (1, [2, 3, 4, 5, 6, 7]));
        let again = TableNumber::new(4, 5);
        assert_eq!((again.number(), file_table(1, again)[8], file_table(1, again)[12]), (4, 4, 5));
        assert_eq!(u64::from_ne_bytes(process(7, 3, true)), 7 << 32 | 1 << 16 | 3);
        assert_eq!(u64::from_ne_bytes(process(7, 3, false)), 7 << 32 | 3);
    }

    #[test]
    fn counts_are_read_in_order() {
        let words: Vec<u8> = (1..=49u64).flat_map(u64::to_ne_bytes).collect();
        let found = counts(&words);
        assert_eq!((found.runs, found.kernel_failures), (1, 8));
        assert_eq!((found.reasons[0], found.reasons[16]), (13, 29));
        assert_eq!((found.interpreted, found.native_stayed), (45, [47, 48, 49]));
        assert_eq!(counts(&words[..20]).announced, 0);
    }
}
