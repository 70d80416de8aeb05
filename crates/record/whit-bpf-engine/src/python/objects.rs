//! Code objects, strings and names of modules in the memory of a process.

use whit_bpf::stacks::{Announcement, MetFunction, PythonIdentity, identity};
use whit_perfdata::interpreted::InterpretedFunction;
use whit_sys::process_files::ProcessFile;
use whit_types::Pid;

use super::layout::ObjectLayout;
use super::lines;

/// Bytes of a name or path that are read.
const NAME_MAX_BYTES: u64 = 4096;
/// Bytes of a table of lines that are read.
const LINES_MAX_BYTES: u64 = 1 << 20;
/// Code units of a function.
const UNITS_MAX: u64 = 1 << 24;
/// Entries of a module's dictionary that are looked at: its name is among the first.
const ENTRIES_MAX: u64 = 64;
/// Bytes of a code unit.
const UNIT_BYTES: u64 = 2;

/// Bits of the word of references at the front of an object that no object has set. Where memory is free, the word is
/// 0 or the address of other free memory, which has some of them.
const NO_REFERENCES: u64 = 0xffff << 32;
/// Where objects have the number of their elements: code objects, strings of bytes.
const SIZE_AT: u64 = 16;
/// Where strings of bytes have these.
const BYTES_AT: u64 = 32;
/// Where strings have their length and their kind.
const LENGTH_AT: u64 = 16;
const STATE_AT: u64 = 32;
/// In a dictionary, the keys. The keys have the size of their index as
/// a power of two, a kind, the number of entries, the index, and the entries.
const KEYS_AT: u64 = 32;
const INDEX_BYTES_AT: u64 = 9;
const KEYS_KIND_AT: u64 = 10;
const ENTRIES_AT: u64 = 24;
const INDEX_AT: u64 = 32;
/// The kind of keys with a hash beside each.
const GENERAL_KEYS: u8 = 0;
const MODULE_NAME: &[u8] = b"__name__";

/// Where the memory of a process comes from.
pub(super) trait Source {
    /// Whether another object can be at an address by now.
    const MAY_CHANGE: bool;

    /// Reads memory. Whether all of it was there.
    fn read(&self, at: u64, bytes: &mut [u8]) -> bool;

    /// How many bytes from an address on can be there, no more than `most`.
    fn known_bytes(&self, _at: u64, most: u64) -> u64 {
        most
    }
}

/// `/proc/PID/mem`.
impl Source for ProcessFile {
    const MAY_CHANGE: bool = true;

    fn read(&self, at: u64, bytes: &mut [u8]) -> bool {
        self.read_exact_at(bytes, at).is_ok()
    }
}

impl Source for Announcement {
    const MAY_CHANGE: bool = false;

    fn read(&self, at: u64, bytes: &mut [u8]) -> bool {
        self.copy(at, bytes)
    }

    fn known_bytes(&self, at: u64, most: u64) -> u64 {
        self.known_bytes(at, most)
    }
}

/// A function, as far as its memory was there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ReadFunction {
    pub(super) function: InterpretedFunction,
    /// Its module and all its lines were there.
    pub(super) is_whole: bool,
    /// Its name has that of its module.
    pub(super) has_module: bool,
}

/// The memory of a process.
pub(super) struct Memory<'a, S>(pub(super) &'a S);

impl<S: Source> Memory<'_, S> {
    fn array<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read(at, &mut bytes).then_some(bytes)
    }

    fn word(&self, at: u64) -> Option<u64> {
        self.array(at).map(u64::from_le_bytes)
    }

    fn half(&self, at: u64) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    fn bytes(&self, at: u64, count: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![0; count as usize];
        self.0.read(at, &mut bytes).then_some(bytes)
    }

    /// Whether an object has references. A freed one may have all the rest of its memory still.
    fn is_alive(&self, object: u64) -> Option<bool> {
        self.word(object).map(|word| word != 0 && word & NO_REFERENCES == 0)
    }

    /// The number that differs between code objects that one address has in turn.
    fn identity(&self, code: u64, kind: PythonIdentity) -> Option<u64> {
        let word = |offset: u64| self.word(code.checked_add(offset)?);
        match kind {
            PythonIdentity::Version => Some(identity([word(PythonIdentity::VERSION_AT)?])),
            PythonIdentity::Parts => {
                let parts = PythonIdentity::PARTS.step_by(8).map(word);
                let mut words = parts.collect::<Option<Vec<u64>>>()?;
                let name = word(PythonIdentity::NAME_AT)?;
                words.push(self.word(name.checked_add(PythonIdentity::HASH_AT)?)?);
                Some(identity(words))
            }
        }
    }

    /// A string, cut where it is long.
    fn text(&self, at: u64, layout: &ObjectLayout) -> Option<Vec<u8>> {
        let state = self.half(at.checked_add(STATE_AT)?)?;
        let (kind, is_compact, is_ascii) = (state >> 2 & 7, state >> 5 & 1, state >> 6 & 1);
        if is_compact == 0 || !matches!(kind, 1 | 2 | 4) {
            return None;
        }
        let length = self.word(at.checked_add(LENGTH_AT)?)?;
        let data = at.checked_add(if is_ascii == 1 { layout.ascii } else { layout.other })?;
        let units = length.min(NAME_MAX_BYTES / 4);
        let bytes = self.bytes(data, units * u64::from(kind))?;
        let characters = bytes.chunks_exact(kind as usize).map(|unit| {
            let number = unit.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte));
            char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
        });
        Some(characters.collect::<String>().into_bytes())
    }

    /// The name of the module that has these names.
    fn module(&self, globals: u64, layout: &ObjectLayout) -> Option<Vec<u8>> {
        let keys = self.word(globals.checked_add(KEYS_AT)?)?;
        let [index_bytes] = self.array(keys.checked_add(INDEX_BYTES_AT)?)?;
        let [kind] = self.array(keys.checked_add(KEYS_KIND_AT)?)?;
        let count = self.word(keys.checked_add(ENTRIES_AT)?)?.min(ENTRIES_MAX);
        let index = 1u64.checked_shl(index_bytes.into()).filter(|_| index_bytes < 32)?;
        let entries = keys.checked_add(INDEX_AT)?.checked_add(index)?;
        let (size, key_at) = if kind == GENERAL_KEYS { (24, 8) } else { (16, 0) };
        (0..count).find_map(|number| {
            let entry = entries.checked_add(number * size)?.checked_add(key_at)?;
            let key = self.word(entry).filter(|key| *key != 0)?;
            let is_name = self.text(key, layout)? == MODULE_NAME;
            is_name.then(|| self.text(self.word(entry + 8)?, layout)).flatten()
        })
    }

    /// A function that the programs have met. Nothing where its code object is gone, or another is there by now.
    pub(super) fn function(
        &self,
        met: &MetFunction,
        layout: &ObjectLayout,
    ) -> Option<ReadFunction> {
        let at = |offset: u64| met.code.checked_add(offset);
        let is_it = || {
            let is_it = || Some(self.identity(met.code, layout.identity)? == met.identity);
            !S::MAY_CHANGE || (is_it() == Some(true) && self.is_alive(met.code) == Some(true))
        };
        if !is_it() {
            return None;
        }
        let units = self.word(at(SIZE_AT)?)?.min(UNITS_MAX);
        let first_line = self.half(at(layout.first_line)?)?;
        let file = self.text(self.word(at(layout.filename)?)?, layout)?;
        let qualified = self.text(self.word(at(layout.qualname)?)?, layout)?;
        let table = self.word(at(layout.linetable)?)?;
        let table_bytes = self.word(table.checked_add(SIZE_AT)?)?.min(LINES_MAX_BYTES);
        let table = table.checked_add(BYTES_AT)?;
        let known_bytes = self.0.known_bytes(table, table_bytes);
        let table = self.bytes(table, known_bytes)?;
        // Code may outlive its module, and another one then has the address.
        let module = if S::MAY_CHANGE { None } else { self.module(met.globals, layout) };
        if !is_it() {
            return None;
        }
        let has_module = module.is_some();
        let is_whole = has_module && known_bytes == table_bytes;
        let decode = if known_bytes == table_bytes { lines::decode } else { lines::decode_front };
        let unit_at = |unit: u32| (layout.instructions as u32).saturating_add(unit * 2);
        let decoded = decode(&table, first_line);
        // A function that has not begun is at the unit in front of its first.
        let lines = [(0, first_line)].into_iter();
        let behind = decoded.into_iter().filter(|(unit, _)| u64::from(*unit) < UNITS_MAX);
        let lines = lines.chain(behind.map(|(unit, line)| (unit_at(unit), line)));
        let size_bytes = layout.instructions + units * UNIT_BYTES;
        let last = MetFunction::FRAMES_BYTES as u32 - 2;
        // The last address is that of all instructions behind it.
        let beyond = (size_bytes > MetFunction::FRAMES_BYTES).then_some((last, 0));
        let lines = lines.take_while(|(offset, _)| *offset < last).chain(beyond).collect();
        let function = InterpretedFunction {
            pid: Pid(met.pid as i32),
            start: met.frames_start(),
            size_bytes: size_bytes.min(MetFunction::FRAMES_BYTES),
            name: name(module.as_deref(), &qualified, &file),
            file,
            lines,
        };
        Some(ReadFunction { function, is_whole, has_module })
    }
}

/// `py::module.function`; without the module's name, that of its file stands for it.
fn name(module: Option<&[u8]>, qualified: &[u8], file: &[u8]) -> Vec<u8> {
    let of_file = file.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let of_file = of_file.strip_suffix(b".py").unwrap_or(of_file);
    [b"py::", module.unwrap_or(of_file), b".", qualified].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BASE: u64 = 0x10_0000;
    const LAYOUT: ObjectLayout = ObjectLayout {
        filename: 112,
        qualname: 128,
        linetable: 136,
        first_line: 68,
        instructions: 192,
        identity: PythonIdentity::Version,
        ascii: 40,
        other: 56,
    };
    const IDENTITY: u64 = 0x1234_0000_0001;

    /// Memory that is put together.
    #[derive(Clone)]
    struct Heap(Vec<u8>);

    impl Heap {
        fn room(&mut self, bytes: usize) -> u64 {
            let at = self.0.len().next_multiple_of(8);
            self.0.resize(at + bytes, 0);
            BASE + at as u64
        }

        fn put(&mut self, at: u64, bytes: &[u8]) {
            let at = (at - BASE) as usize;
            self.0[at..at + bytes.len()].copy_from_slice(bytes);
        }

        fn read_word(&self, at: u64) -> u64 {
            Memory(self).word(at).expect("a word")
        }

        fn word(&mut self, at: u64, word: u64) {
            self.put(at, &word.to_le_bytes());
        }

        /// Characters of one, two or four bytes each.
        fn text(&mut self, text: &str, kind: u32) -> u64 {
            let is_ascii = text.is_ascii();
            let data = if is_ascii { LAYOUT.ascii } else { LAYOUT.other };
            let units =
                text.chars().flat_map(|c| (c as u32).to_le_bytes().into_iter().take(kind as usize));
            let units: Vec<u8> = units.collect();
            let at = self.room(data as usize + units.len());
            self.word(at + LENGTH_AT, text.chars().count() as u64);
            let state = kind << 2 | 1 << 5 | u32::from(is_ascii) << 6;
            self.put(at + STATE_AT, &state.to_le_bytes());
            self.put(at + data, &units);
            at
        }

        /// A module's dictionary with some names in front of its own.
        fn globals(&mut self, module: u64, general: bool) -> u64 {
            let names = ["__doc__", "__loader__", "__name__"];
            let (size, key_at) = if general { (24, 8) } else { (16, 0) };
            let keys = self.room(32 + 8 + 5 * 24);
            self.put(keys + INDEX_BYTES_AT, &[3, u8::from(!general)]);
            self.word(keys + ENTRIES_AT, 4);
            for (number, name) in (1u64..).zip(names) {
                let name = self.text(name, 1);
                // The first entry is empty.
                let entry = keys + 32 + 8 + number * size + key_at;
                self.word(entry, name);
                self.word(entry + 8, module);
            }
            let globals = self.room(48);
            self.word(globals + KEYS_AT, keys);
            globals
        }

        fn code(&mut self, name: u64, file: u64) -> u64 {
            let table = [0x80 | 13 << 3, 4, 0x80 | 11 << 3 | 1, 1, 2];
            let lines = self.room(BYTES_AT as usize + table.len());
            self.word(lines + SIZE_AT, table.len() as u64);
            self.put(lines + BYTES_AT, &table);
            let code = self.room(LAYOUT.instructions as usize + 6);
            self.word(code, 1);
            self.word(code + SIZE_AT, 3);
            self.put(code + LAYOUT.first_line, &40u32.to_le_bytes());
            self.word(code + PythonIdentity::VERSION_AT, IDENTITY);
            self.word(code + LAYOUT.filename, file);
            self.word(code + LAYOUT.qualname, name);
            self.word(code + LAYOUT.linetable, lines);
            code
        }

        fn function(code: u64, globals: u64) -> MetFunction {
            let identity = identity([IDENTITY]);
            MetFunction { pid: 7, interpreter: 1, code, identity, globals }
        }

        fn read(&self, code: u64, globals: u64) -> Option<InterpretedFunction> {
            let read = Memory(self).function(&Heap::function(code, globals), &LAYOUT);
            read.map(|read| read.function)
        }

        /// The function, with pieces of memory: addresses, and numbers of bytes.
        fn announce(&self, (code, globals): (u64, u64), pieces: &[(u64, usize)]) -> Announcement {
            let piece = |(at, bytes): &(u64, usize)| {
                let from = (at - BASE) as usize;
                let to = (from + bytes).min(self.0.len());
                (*at, self.0[from..to].into())
            };
            let pieces = pieces.iter().map(piece).collect();
            Announcement::new(Heap::function(code, globals), pieces)
        }
    }

    impl Source for Heap {
        const MAY_CHANGE: bool = true;

        fn read(&self, at: u64, bytes: &mut [u8]) -> bool {
            let from = at.checked_sub(BASE).and_then(|at| self.0.get(at as usize..));
            from.and_then(|from| from.get(..bytes.len())).is_some_and(|from| {
                bytes.copy_from_slice(from);
                true
            })
        }
    }

    fn name_of(function: Option<InterpretedFunction>) -> Option<String> {
        function.map(|function| String::from_utf8_lossy(&function.name).into_owned())
    }

    #[test]
    fn a_function_has_name_file_and_lines() {
        for general in [false, true] {
            let mut heap = Heap(Vec::new());
            let (name, module) = (heap.text("Shop.sell", 1), heap.text("shop.stock", 1));
            let file = heap.text("/srv/shop/stock.py", 1);
            let (globals, code) = (heap.globals(module, general), heap.code(name, file));
            let function = heap.read(code, globals).expect("a function");
            let announced = heap.announce((code, globals), &[(BASE, heap.0.len())]);
            let copied = Memory(&announced).function(&announced.function, &LAYOUT);
            let copied = copied.map(|copied| copied.function);
            assert_eq!(name_of(copied), Some("py::shop.stock.Shop.sell".to_owned()));
            // In living memory, the module may be another one by now.
            assert_eq!(function.name, b"py::stock.Shop.sell");
            assert_eq!((function.file, function.pid), (b"/srv/shop/stock.py".to_vec(), Pid(7)));
            assert_eq!(function.start, Heap::function(code, globals).frames_start());
            assert_eq!(function.size_bytes, 198);
            assert_eq!(function.lines, [(0, 40), (192, 42), (194, 43)]);
        }
    }

    #[test]
    fn names_of_other_scripts_and_without_a_module() {
        let mut heap = Heap(Vec::new());
        let file = heap.text("/srv/läden.py", 1);
        for (text, kind) in [("größe", 1), ("名前", 2), ("𝔫ame", 4)] {
            let name = heap.text(text, kind);
            let code = heap.code(name, file);
            assert_eq!(name_of(heap.read(code, 0)), Some(format!("py::läden.{text}")));
        }
    }

    #[test]
    fn another_code_object_is_not_taken_for_it() {
        let mut heap = Heap(Vec::new());
        let (name, file) = (heap.text("f", 1), heap.text("f.py", 1));
        let code = heap.code(name, file);
        assert!(heap.read(code, 0).is_some());
        heap.word(code + PythonIdentity::VERSION_AT, IDENTITY + 1);
        assert_eq!(heap.read(code, 0), None);
    }

    #[test]
    fn a_freed_code_object_has_no_name() {
        let mut heap = Heap(Vec::new());
        let (name, file) = (heap.text("f", 1), heap.text("f.py", 1));
        let code = heap.code(name, file);
        // References: of 3.11; immortal, of 3.12 and of 3.14, which has flags in the upper bits.
        for references in [3, 0xffff_ffff, 0x0005_0000_c000_0000] {
            heap.word(code, references);
            assert!(heap.read(code, 0).is_some(), "{references:#x}");
        }
        // Its memory is the last free one, or others follow.
        for next in [0, 0x7f3a_1234_5670, 0x5581_0000_1230] {
            heap.word(code, next);
            assert_eq!(heap.read(code, 0), None, "{next:#x}");
        }
    }

    #[test]
    fn an_identity_is_of_all_its_words_and_of_a_text() {
        let mut heap = Heap(Vec::new());
        let (name, other) = (heap.text("f", 1), heap.text("g", 1));
        heap.word(name + PythonIdentity::HASH_AT, 1);
        heap.word(other + PythonIdentity::HASH_AT, 2);
        let code = heap.code(name, name);
        heap.word(code + PythonIdentity::NAME_AT, name);
        let parts = PythonIdentity::Parts;
        let now = |heap: &Heap| Memory(heap).identity(code, parts).expect("an identity");
        let mut seen = vec![now(&heap)];
        // Each word alone, the name alone, and the name's hash alone.
        for at in [56, 96, 136] {
            heap.word(code + at, 77);
            seen.push(now(&heap));
        }
        heap.word(code + PythonIdentity::NAME_AT, other);
        seen.push(now(&heap));
        heap.word(other + PythonIdentity::HASH_AT, 3);
        seen.push(now(&heap));
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
        heap.word(code + 48, 1);
        assert!(seen.contains(&now(&heap)), "a word in front of it does not belong to it");
    }

    #[test]
    fn copied_memory_names_a_function_that_is_gone() {
        let mut heap = Heap(Vec::new());
        let (name, module) = (heap.text("Shop", 1), heap.text("shop.stock", 1));
        let file = heap.text("/srv/shop/stock.py", 1);
        let (globals, code) = (heap.globals(module, false), heap.code(name, file));
        let all = (BASE, heap.0.len());
        let read = |pieces: &[(u64, usize)]| {
            let announced = heap.announce((code, globals), pieces);
            Memory(&announced).function(&announced.function, &LAYOUT)
        };
        let whole = read(&[all]).expect("a function");
        assert!(whole.is_whole);
        let with_module = Some("py::shop.stock.Shop".to_owned());
        assert_eq!(name_of(Some(whole.function)), with_module);
        // Without the module's names, that of its file stands for it.
        let table = heap.read_word(code + LAYOUT.linetable);
        let parts = [(code, 192), (name, 64), (file, 80)];
        let mut without_module = parts.to_vec();
        without_module.push((table, 64));
        let function = read(&without_module).expect("a function");
        assert_eq!(
            (function.is_whole, name_of(Some(function.function))),
            (false, Some("py::stock.Shop".to_owned()))
        );
        // The table of lines is cut behind its first entry.
        let mut cut = parts.to_vec();
        cut.push((table, BYTES_AT as usize + 3));
        let function = read(&cut).expect("a function").function;
        assert_eq!(function.lines, [(0, 40), (192, 42), (194, 0)]);
        assert_eq!(function.line(function.start + 192), Some(42));
        assert_eq!(function.line(function.start + 194), None);
        assert_eq!(read(&parts), None);
    }

    proptest! {
        #[test]
        fn arbitrary_memory_is_survived(
            words in prop::collection::vec(
                prop_oneof![BASE..BASE + 0x800, any::<u64>(), Just(IDENTITY), 0u64..100],
                0..256,
            ),
            (code, globals) in (BASE..BASE + 0x800, any::<u64>()),
        ) {
            let heap = Heap(words.iter().flat_map(|word| word.to_le_bytes()).collect());
            heap.read(code, globals);
            let announced = heap.announce((code, globals), &[(BASE, 0x400)]);
            Memory(&announced).function(&announced.function, &LAYOUT);
        }
    }
}
