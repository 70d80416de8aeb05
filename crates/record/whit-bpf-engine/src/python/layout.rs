//! Where CPython has its data.
//!
//! Each binary with the interpreter has a section with the state of its runtime. From 3.13 on, that begins with a
//! table of offsets. Before, the offsets are those of the minor version: the structures do not change within one.

use std::collections::BTreeMap;

use whit_bpf::stacks::{Interpreter, PythonIdentity, PythonLayout, PythonRunEnd};
use whit_elf::{ElfImage, TableKind};
use whit_types::Svma;
use whit_unwind::ModuleUnwindInfo;

/// The section with the state of the runtime.
const RUNTIME_SECTION: &str = ".PyRuntime";
const LOOP: &[u8] = b"_PyEval_EvalFrameDefault";
const CODE_TYPE: &[u8] = b"PyCode_Type";
const VERSION: &[u8] = b"Py_Version";
/// The first bytes of a runtime that has a table of offsets.
const COOKIE: &[u8] = b"xdebugpy";
/// Jumps that show where a part of the loop is.
const COLD_JUMPS_MIN: usize = 2;
/// The last byte of a version: releases have at least this. Before, structures changed.
const FINAL: u64 = 0xf0;

/// Where code objects and strings have their data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ObjectLayout {
    pub(crate) filename: u64,
    pub(crate) qualname: u64,
    pub(crate) linetable: u64,
    pub(crate) first_line: u64,
    pub(crate) instructions: u64,
    /// How code objects differ that one address has in turn.
    pub(crate) identity: PythonIdentity,
    /// Where the characters of strings are: of ASCII, and of others.
    pub(crate) ascii: u64,
    pub(crate) other: u64,
}

/// An interpreter in a binary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Python {
    pub(crate) interpreter: Interpreter,
    pub(crate) objects: ObjectLayout,
}

/// The layouts of 3.11 and 3.12. They hold for later versions where the table of these has no offset.
fn layouts(minor: u64) -> Option<(PythonLayout, ObjectLayout)> {
    let v11 = PythonLayout {
        interpreters: 40,
        next_interpreter: 0,
        threads: 16,
        next_thread: 8,
        native_thread: 160,
        current: 56,
        cframe: Some((8, 16)),
        previous: 48,
        code: 32,
        instruction: 56,
        globals: 8,
        end: 68,
        run_end: PythonRunEnd::Function(1),
        identity: PythonIdentity::Parts,
        filename: 112,
        qualname: 128,
        linetable: 136,
    };
    let v12 = PythonLayout {
        threads: 72,
        native_thread: 144,
        cframe: Some((0, 8)),
        previous: 8,
        code: 0,
        globals: 24,
        end: 70,
        run_end: PythonRunEnd::OwnFrame(3),
        identity: PythonIdentity::Version,
        ..v11
    };
    let o11 = ObjectLayout {
        filename: 112,
        qualname: 128,
        linetable: 136,
        first_line: 72,
        instructions: 184,
        identity: PythonIdentity::Parts,
        ascii: 48,
        other: 72,
    };
    let o12 = ObjectLayout {
        first_line: 68,
        instructions: 192,
        identity: PythonIdentity::Version,
        ascii: 40,
        other: 56,
        ..o11
    };
    match minor {
        11 => Some((v11, o11)),
        12 => Some((v12, o12)),
        13 | 14 => Some((PythonLayout { cframe: None, ..v12 }, o12)),
        _ => None,
    }
}

/// Words of the table in front of the thread's: the state of an interpreter has more of them from 3.14 on.
const WORDS_BEFORE_THREADS: [(u64, usize); 2] = [(13, 19), (14, 22)];
/// Words of a thread's state in the table, and of a frame.
const THREAD_WORDS: usize = 9;
const FRAME_WORDS: [(u64, usize); 2] = [(13, 6), (14, 8)];

/// Takes offsets from the table at the beginning of the runtime. Nothing for one that is not as expected, and for
/// interpreters without a global lock, whose frames are other ones.
fn from_table(
    minor: u64,
    runtime: &[u8],
    (mut layout, mut objects): (PythonLayout, ObjectLayout),
) -> Option<(PythonLayout, ObjectLayout)> {
    let word = |at: usize| {
        let bytes = runtime.get(at * 8..)?.first_chunk()?;
        Some(u64::from_le_bytes(*bytes))
    };
    let offset = |at: usize| word(at)?.try_into().ok().filter(|offset: &u32| *offset < 1 << 20);
    let of = |table: [(u64, usize); 2]| {
        table.iter().find(|(of, _)| *of == minor).map(|(_, words)| *words)
    };
    if !runtime.starts_with(COOKIE) || word(1)? >> 16 != 0x300 | minor || word(2)? != 0 {
        return None;
    }
    layout.interpreters = offset(5)?;
    layout.next_interpreter = offset(8)?;
    layout.threads = offset(9)?;
    let thread = of(WORDS_BEFORE_THREADS)?;
    layout.next_thread = offset(thread + 2)?;
    layout.current = offset(thread + 4)?;
    layout.native_thread = offset(thread + 6)?;
    let frame = thread + THREAD_WORDS;
    layout.previous = offset(frame + 1)?;
    layout.code = offset(frame + 2)?;
    layout.instruction = offset(frame + 3)?;
    layout.end = offset(frame + 5)?;
    let code = frame + of(FRAME_WORDS)?;
    layout.filename = offset(code + 1)?;
    layout.qualname = offset(code + 3)?;
    layout.linetable = offset(code + 4)?;
    objects.filename = layout.filename.into();
    objects.qualname = layout.qualname.into();
    objects.linetable = layout.linetable.into();
    objects.first_line = offset(code + 5)?.into();
    objects.instructions = offset(code + 9)?.into();
    Some((layout, objects))
}

/// The interpreter in a binary; nothing where there is none that is known.
pub(crate) fn find(image: &ElfImage) -> Option<Python> {
    let section = image.section(RUNTIME_SECTION)?;
    let (loop_start, loop_bytes) = symbol(image, LOOP)?;
    let (version, _) = symbol(image, VERSION)?;
    let at = image.file_offset_of(Svma(version))?.0 as usize;
    let version = u64::from_le_bytes(*image.bytes().get(at..)?.first_chunk()?);
    let minor = version >> 16 & 0xff;
    if version >> 24 != 3 || version & 0xff < FINAL {
        return None;
    }
    let mut known = layouts(minor)?;
    if minor >= 13 {
        known = from_table(minor, &image.section_bytes(section)?, known)?;
    }
    let (layout, objects) = known;
    let loop_range = (loop_start, loop_start.checked_add(loop_bytes)?);
    let cold_range = cold_part(image, loop_range).unwrap_or_default();
    let code_type = symbol(image, CODE_TYPE).map_or(0, |(address, _)| address);
    let runtime = section.svma;
    let interpreter = Interpreter { loop_range, cold_range, runtime, code_type, layout };
    Some(Python { interpreter, objects })
}

/// The part of the loop that the compiler has put elsewhere. Its name is in no stripped binary, but conditional jumps
/// lead there, to other places than the beginnings of functions.
fn cold_part(image: &ElfImage, (start, end): (u64, u64)) -> Option<(u64, u64)> {
    let code = image.code_at(Svma(start), end - start)?;
    let info = ModuleUnwindInfo::new(image.unwind_sections()?);
    let mut hits: BTreeMap<(u64, u64), usize> = BTreeMap::new();
    for target in conditional_jumps(&code, start) {
        if (start..end).contains(&target) {
            continue;
        }
        let Some(range) = info.function_range(Svma(target)) else { continue };
        if range.start.0 < target {
            *hits.entry((range.start.0, range.end.0)).or_default() += 1;
        }
    }
    let (part, count) = hits.into_iter().max_by_key(|(_, count)| *count)?;
    (count >= COLD_JUMPS_MIN).then_some(part)
}

/// Targets of the conditional jumps of x86-64 with a distance of 32 bits, and of bytes that look like some.
fn conditional_jumps(code: &[u8], start: u64) -> impl Iterator<Item = u64> + '_ {
    (start..).zip(code.windows(6)).filter_map(|(at, bytes)| match *bytes {
        [0x0f, 0x80..=0x8f, a, b, c, d] => {
            let distance = i32::from_le_bytes([a, b, c, d]);
            Some(at.wrapping_add(6).wrapping_add(i64::from(distance) as u64))
        }
        _ => None,
    })
}

/// Stated address and size of a symbol.
fn symbol(image: &ElfImage, name: &[u8]) -> Option<(u64, u64)> {
    [TableKind::Dynsym, TableKind::Symtab].into_iter().find_map(|kind| {
        let names = image.string_table(kind)?;
        let mut found = None;
        image.for_each_symbol(kind, |symbol| {
            let text = names.get(symbol.name as usize..).unwrap_or_default();
            let is_it = text.strip_prefix(name).is_some_and(|rest| rest.first() == Some(&0));
            if is_it && symbol.section != 0 {
                found = Some((symbol.value, symbol.size));
            }
        });
        found
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A table as a runtime of this version begins: the offset of each field is 8 times its place.
    fn table(minor: u64, words: usize) -> Vec<u8> {
        let mut table = COOKIE.to_vec();
        table.extend((0x300_00f0 | minor << 16).to_le_bytes());
        table.extend(0u64.to_le_bytes());
        (3..words as u64).for_each(|place| table.extend((place * 8).to_le_bytes()));
        table
    }

    #[test]
    fn tables_are_read_by_version() {
        for (minor, thread, code) in [(13, 19, 34), (14, 22, 39)] {
            let known = layouts(minor).expect("a layout");
            let (layout, objects) = from_table(minor, &table(minor, 60), known).expect("offsets");
            assert_eq!((layout.interpreters, layout.threads), (40, 72));
            assert_eq!(layout.current, (thread + 4) * 8);
            assert_eq!(layout.native_thread, (thread + 6) * 8);
            assert_eq!((layout.previous, layout.end), ((thread + 10) * 8, (thread + 14) * 8));
            assert_eq!(objects.instructions, (code + 9) * 8);
        }
    }

    #[test]
    fn conditional_jumps_are_followed() {
        let mut code = vec![0x90, 0x0f, 0x84];
        code.extend(0x100i32.to_le_bytes());
        code.extend([0x0f, 0x8f]);
        code.extend((-0x20i32).to_le_bytes());
        code.extend([0xe9, 0, 0, 0, 0, 0x0f, 0x85, 1]);
        let targets: Vec<_> = conditional_jumps(&code, 0x1000).collect();
        assert_eq!(targets, [0x1107, 0xfed]);
    }

    #[test]
    fn other_tables_are_refused() {
        let known = layouts(13).expect("a layout");
        let refused = |table: &[u8]| from_table(13, table, known).is_none();
        assert!(refused(&table(14, 60)) && refused(&table(13, 30)) && refused(b""));
        let mut without_lock = table(13, 60);
        without_lock[16] = 1;
        assert!(refused(&without_lock));
        let mut far = table(13, 60);
        far[5 * 8 + 3] = 1;
        assert!(refused(&far));
        for minor in 0..30u8 {
            let is_walked = whit_types::PYTHON_WALKED.contains(&minor);
            assert_eq!(layouts(minor.into()).is_some(), is_walked, "{minor}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_tables_are_survived(
            minor in 13u64..15,
            words in prop::collection::vec(prop_oneof![0u64..500, any::<u64>()], 0..60),
        ) {
            let mut table = table(minor, 3);
            table.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            let found = layouts(minor).and_then(|known| from_table(minor, &table, known));
            prop_assert!(found.is_none_or(|(layout, _)| layout.current < 1 << 20));
        }
    }
}
