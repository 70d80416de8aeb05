//! Unwind tables from call frame information of any bytes: they can be built or not, within bounds, and
//! every look-up in one ends at a rule.
//!
//! An input is: options (1 byte: bit 0 `.eh_frame`, bit 1 `.debug_frame`), length of `.eh_frame` (2), where
//! the code starts and how long it is (8 each), `.eh_frame`, and `.debug_frame` up to the end.
#![no_main]

use whit_fuzz::fuzz_target;
use whit_types::{Arch, Svma};
use whit_unwind::table::{BUCKET_BYTES, ROWS_MAX, RULES_MAX, SPAN_MAX_BYTES, UnwindTable, wire};
use whit_unwind::{Bytes, ModuleSections, ModuleUnwindInfo, Section};

/// Where `.eh_frame` says that it lies.
const SECTION: Svma = Svma(0x600);
/// Look-ups in one table.
const LOOKUPS: u64 = 4096;

fn piece<'a>(data: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (head, tail) = data.split_at_checked(len)?;
    *data = tail;
    Some(head)
}

fn word(data: &mut &[u8]) -> Option<u64> {
    piece(data, 8)?.first_chunk().map(|word| u64::from_le_bytes(*word))
}

fn run(mut data: &[u8]) -> Option<()> {
    let head = piece(&mut data, 3)?;
    let (start, length) = (word(&mut data)?, word(&mut data)?);
    let eh_frame = piece(&mut data, usize::from(u16::from_le_bytes([head[1], head[2]])))?;
    let mut sections = ModuleSections::none(Arch::X86_64);
    sections.text = Some(Svma(0x200));
    sections.eh_frame = (head[0] & 1 != 0)
        .then(|| Section { start: SECTION, bytes: Bytes::from(eh_frame.to_vec()) });
    sections.debug_frame = (head[0] & 2 != 0).then(|| Bytes::from(data.to_vec()));
    let code = [Svma(start)..Svma(start.saturating_add(length))];
    let module = ModuleUnwindInfo::new(sections);
    let Ok(table) = UnwindTable::build(Arch::X86_64, &module, &code) else { return Some(()) };
    assert!((1..=ROWS_MAX).contains(&table.rows().len()));
    assert!((1..=RULES_MAX).contains(&table.rules().len()));
    let range = table.range();
    let size = range.end.0 - range.start.0;
    // The rows end with one that says that nothing is covered from there on.
    assert!(size <= SPAN_MAX_BYTES + 2 * BUCKET_BYTES, "{size:#x}");
    for svma in (range.start.0..range.end.0).step_by((size / LOOKUPS).max(1) as usize) {
        assert!(table.find(Svma(svma)).is_some(), "{svma:#x}");
    }
    assert_eq!(table.find(range.end), None);
    assert_eq!(wire::decode(&wire::encode(&table)).as_ref(), Ok(&table));
    Some(())
}

fuzz_target!(|data| {
    let _ = run(data);
});
