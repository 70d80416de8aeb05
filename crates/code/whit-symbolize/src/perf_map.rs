//! `perf-PID.map`: names that a JIT compiler gives to its code, one line each: start and size in
//! hexadecimal, and the name (`tools/perf/Documentation/jit-interface.txt`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use memchr::{memchr, memrchr_iter};
use whit_sys::Errno;
use whit_sys::process_files::{ForeignFile, open_as_seen_by, open_foreign};
use whit_types::{Avma, Pid};
use whit_unwind::{Bytes, JitPiece, Trampolines};

use crate::companion::{PROC, sees_other_files};
use crate::kallsyms::parse_hex;
use crate::perf_map_writer::PerfMapWriter;
use crate::read_file::read_end;
use crate::reason::Reason;
use crate::symbol_table::{Names, Symbol, SymbolSource, SymbolTable};

/// Bytes that are read, from the end of a file: its later lines count. Node.js and the JVM write up to some tens of MiB.
const MAX_MAP_BYTES: u64 = 128 << 20;

/// Lines that are read, from the end.
const MAX_LINES: usize = 2 << 20;

impl SymbolTable {
    /// Reads a perf-map. Addresses in it are actual ones.
    pub fn from_perf_map(path: &Path) -> Result<SymbolTable, Reason> {
        let file = open_foreign(path).map_err(|errno| Reason::unopened(path, errno))?;
        SymbolTable::read_perf_map(path, &file)
    }

    /// Reads an open one; `path` is its name.
    fn read_perf_map(path: &Path, file: &ForeignFile) -> Result<SymbolTable, Reason> {
        let (mut text, before) = read_end(path, file, MAX_MAP_BYTES)?;
        if before > 0 {
            // The first line is a part of one.
            let cut = memchr(b'\n', &text).map_or(text.len(), |at| at + 1);
            text.drain(..cut);
        }
        let mut table = SymbolTable::parse_perf_map(text.into());
        table.left_out_bytes = table.left_out_bytes.saturating_add(before);
        Ok(table)
    }

    /// From the text of a perf-map. Lines that cannot be understood are passed over. Where code was replaced, wholly
    /// or in part, the later line counts, and the earlier function is gone.
    pub fn parse_perf_map(text: Bytes) -> SymbolTable {
        let mut symbols: BTreeMap<u64, Symbol> = BTreeMap::new();
        let begin = beginning_of_last(&text, MAX_LINES);
        let mut line_start = begin;
        for line in text[begin..].split_inclusive(|byte| *byte == b'\n') {
            if let Some((start, size, name_offset)) = parse_line(line) {
                let name = (line_start + name_offset) as u64;
                let symbol = Symbol::new(start, size, name, SymbolSource::PerfMap);
                while let Some((&from, older)) = symbols.range(..symbol.end).next_back()
                    && older.end > start
                {
                    symbols.remove(&from);
                }
                symbols.insert(start, symbol);
            }
            line_start += line.len();
        }
        let names = Names { list: text, ..Names::default() };
        let mut table = SymbolTable::from_list(symbols.into_values().collect(), names);
        table.left_out_bytes = begin as u64;
        table
    }
}

/// Where the last lines begin.
fn beginning_of_last(text: &[u8], lines: usize) -> usize {
    let whole = text.strip_suffix(b"\n").unwrap_or(text);
    memrchr_iter(b'\n', whole).nth(lines.saturating_sub(1)).map_or(0, |at| at + 1)
}

/// Start, size, and where the name starts in the line.
fn parse_line(line: &[u8]) -> Option<(u64, u64, usize)> {
    let mut at = 0;
    let mut number = || {
        at += line[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        // Some writers put 0x in front.
        if line[at..].starts_with(b"0x") {
            at += 2;
        }
        let (value, digits) = parse_hex(&line[at..])?;
        at += digits;
        matches!(line.get(at), Some(b' ' | b'\t')).then_some(value)
    };
    let (start, size) = (number()?, number()?);
    at += line[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let named = !line[at..].trim_ascii().is_empty();
    (named && size > 0).then_some((start, size, at))
}

/// Names of Python's functions begin so.
const PYTHON: &[u8] = b"py::";

/// The trampolines among the symbols, with their unwind information.
pub(crate) fn trampolines(table: &SymbolTable) -> impl Iterator<Item = JitPiece> {
    let mut known: [Option<(u64, Bytes)>; 2] = [None, None];
    table.iter().filter(|symbol| symbol.name.starts_with(PYTHON)).filter_map(move |symbol| {
        let size_bytes = symbol.size_bytes;
        let trampoline = Trampolines::single(size_bytes)?;
        // All of one length share their bytes.
        let made = known
            .iter_mut()
            .find(|made| made.as_ref().is_none_or(|(of_size, _)| *of_size == size_bytes))?;
        let (_, eh_frame) = made.get_or_insert_with(|| (size_bytes, trampoline.eh_frame()));
        Some(JitPiece { start: Avma(symbol.start.0), size_bytes, eh_frame: eh_frame.clone() })
    })
}

/// Where a perf-map may lie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PerfMapPath {
    path: PathBuf,
    /// The process that sees it there, if not we.
    seen_by: Option<Pid>,
    writer: PerfMapWriter,
}

impl PerfMapPath {
    pub(crate) fn read(&self) -> Result<SymbolTable, Reason> {
        let opened = match self.seen_by {
            Some(pid) => open_as_seen_by(Path::new(PROC), pid.0, &self.path),
            None => open_foreign(&self.path),
        };
        let gone = |errno| if errno == Errno::SRCH { Errno::NOENT } else { errno };
        let file = opened.map_err(|errno| Reason::unopened(&self.path, gone(errno)))?;
        self.writer.check(&self.path, file.facts())?;
        SymbolTable::read_perf_map(&self.path, &file)
    }
}

/// The places of a process's perf-map, the likeliest first: in `dirs`, under the process's id here;
/// and in the `/tmp` that the process itself sees, under the id that it has there. For a process
/// with mounts of its own, its own file goes first: a file in our view may be left of another
/// process of the same id.
pub(crate) fn places(pid: Pid, dirs: &[PathBuf], writer: PerfMapWriter) -> Vec<PerfMapPath> {
    let name = |pid: Pid| format!("perf-{}.map", pid.0);
    let here =
        dirs.iter().map(|dir| PerfMapPath { path: dir.join(name(pid)), seen_by: None, writer });
    let inner = inner_pid(pid).unwrap_or(pid);
    let path = Path::new("/tmp").join(name(inner));
    let there = PerfMapPath { path, seen_by: Some(pid), writer };
    let mut places: Vec<PerfMapPath> = here.chain([there]).collect();
    if sees_other_files(pid) {
        places.rotate_right(1);
    }
    places
}

/// The id of a process in its own (innermost) namespace.
fn inner_pid(pid: Pid) -> Option<Pid> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.0)).ok()?;
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    Some(Pid(ids.split_whitespace().next_back()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use whit_types::Svma;

    use super::*;

    fn name_at(table: &SymbolTable, address: u64) -> Option<String> {
        let found = table.find(Svma(address))?;
        Some(String::from_utf8(found.name.to_vec()).unwrap())
    }

    #[test]
    fn names_keep_their_spaces_and_later_lines_win() {
        let text = b"1000 20 LazyCompile:*a b file.js:1\n0x2000 0x10 hex\nnonsense\n3000 10\n\
            1000 30 new code\r\n4000 0 empty\n5000 8 last";
        let table = SymbolTable::parse_perf_map(text.to_vec().into());
        assert_eq!(name_at(&table, 0x102f).as_deref(), Some("new code"));
        assert_eq!(name_at(&table, 0x2008).as_deref(), Some("hex"));
        assert_eq!(name_at(&table, 0x5007).as_deref(), Some("last"));
        assert_eq!(name_at(&table, 0x5008), None);
        assert_eq!(table.len(), 3);
    }

    #[test]
    fn a_later_line_replaces_each_function_that_it_overlaps() {
        let text = b"1000 100 whole\n1200 10 before\n1210 10 inside\n1230 10 apart\n1080 10 in it\n11ff 20 over both";
        let table = SymbolTable::parse_perf_map(text.to_vec().into());
        let at = |address| name_at(&table, address);
        assert_eq!((at(0x1010), at(0x1085).as_deref()), (None, Some("in it")));
        assert_eq!(at(0x1208).as_deref(), Some("over both"));
        assert_eq!(at(0x1218).as_deref(), Some("over both"));
        assert_eq!((at(0x121f), at(0x1238).as_deref()), (None, Some("apart")));
    }

    #[test]
    fn only_python_names_of_known_length_are_trampolines() {
        let text = b"1000 b py::f:a.py\n1010 f py::g:a.py\n1020 10 py::h:a.py\n1030 b other";
        let table = SymbolTable::parse_perf_map(text.to_vec().into());
        let found: Vec<_> =
            trampolines(&table).map(|piece| (piece.start.0, piece.size_bytes)).collect();
        assert_eq!(found, [(0x1000, 11), (0x1010, 15)]);
    }

    #[test]
    fn a_map_is_read_where_we_see_it_or_the_process_does() {
        let pid = Pid(std::process::id() as i32);
        let writer = PerfMapWriter::of(pid, None, None);
        let places = places(pid, &[PathBuf::from("/not/there")], writer);
        let [here, there] = &places[..] else { panic!("{places:?}") };
        assert_eq!(here.path, PathBuf::from(format!("/not/there/perf-{}.map", pid.0)));
        assert!(matches!(here.read(), Err(Reason::FileMissing { .. })));
        assert_eq!(there.seen_by, Some(pid));
        // In a PID namespace, the process has another number there.
        let path = there.path.clone();
        std::fs::write(&path, "1000 20 jitted\n").unwrap();
        let read = there.read();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(name_at(&read.unwrap(), 0x1008).as_deref(), Some("jitted"));
        let gone = PerfMapPath { seen_by: Some(Pid(i32::MAX)), ..there.clone() };
        assert!(matches!(gone.read(), Err(Reason::FileMissing { .. })));
    }

    #[test]
    fn of_a_long_map_the_last_lines_are_read() {
        let text = "1000 10 first\n1000 10 second\n2000 10 third\n";
        let begin = |lines| beginning_of_last(text.as_bytes(), lines);
        assert_eq!((begin(3), begin(4)), (0, 0));
        assert_eq!(&text[begin(1)..], "2000 10 third\n");
        assert_eq!(&text[begin(2)..], "1000 10 second\n2000 10 third\n");
        assert_eq!((beginning_of_last(b"", 1), beginning_of_last(b"\n", 1)), (0, 0));

        let lines = (0..MAX_LINES as u64 + 2).map(|n| format!("{:x} 1 f\n", 16 * n));
        let table = SymbolTable::parse_perf_map(lines.collect::<String>().into_bytes().into());
        assert_eq!(
            (table.len(), table.left_out_bytes),
            (MAX_LINES, "0 1 f\n10 1 f\n".len() as u64)
        );
        assert_eq!((name_at(&table, 16), name_at(&table, 32).as_deref()), (None, Some("f")));
    }

    #[test]
    fn of_a_huge_map_the_end_is_read() {
        use std::io::{Seek, SeekFrom, Write};

        let mut file = tempfile::NamedTempFile::new().unwrap();
        let end = b"\n1000 20 last\n";
        file.as_file().set_len(1 << 40).unwrap();
        file.seek(SeekFrom::Start((1 << 40) - end.len() as u64)).unwrap();
        file.write_all(end).unwrap();
        let table = SymbolTable::from_perf_map(file.path()).unwrap();
        assert_eq!(name_at(&table, 0x1008).as_deref(), Some("last"));
        assert_eq!(table.left_out_bytes, (1 << 40) - MAX_MAP_BYTES);
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_survived(
            text in "((0x)?[0-9a-f]{0,17}[ \t]{0,2}[0-9a-f]{0,17} .{0,9}\n|.{0,9}\n){0,9}",
            address: u64,
        ) {
            let table = SymbolTable::parse_perf_map(text.into_bytes().into());
            table.find(Svma(address));
            table.iter().for_each(|symbol| { table.find(symbol.start); });
        }
    }
}
