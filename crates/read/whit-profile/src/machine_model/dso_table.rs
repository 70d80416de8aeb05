//! The binaries that a recording names, each once.

use crate::machine_model::address_map::Mapping;
use crate::machine_model::dso_index::DsoIndex;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use whit_perfdata::interpreted::InterpretedFunction;
use whit_perfdata::mapped_file::MappedFile;
use whit_types::{Avma, BuildId, FileId, FileStamp, Pid};

/// The kernel's name for files in memory begins so.
const MEMORY_FILE: &str = "/memfd:";
/// The kernel's mark behind paths of files that have none any more.
const DELETED: &str = " (deleted)";
/// The name of the functions of a process's interpreter.
const PYTHON: &str = "[python]";
/// Processes that are remembered of those that map a binary.
const PROCESSES_MAX: usize = 3;

/// The kind of code in a binary, as far as its recorded name shows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum RecordedKind {
    /// No mapping.
    Unknown,
    /// The kernel image.
    Kernel,
    /// A kernel module, or code that the kernel made (BPF programs).
    KernelModule,
    /// BPF program or other code named by a KSYMBOL record, and where it starts.
    KernelSymbol(Avma),
    /// The code that the kernel maps into each process.
    Vdso,
    /// An ELF image on disk.
    File,
    /// Anonymous executable memory of one process: code of a JIT compiler.
    Anonymous(Pid),
    /// The marker mapping of a jitdump file.
    JitDump,
    /// Functions that an interpreter executed in one process: no memory holds them as code.
    Interpreted(Pid),
}

/// One binary as the recording names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RecordedDso {
    /// Path or name.
    pub path: Arc<str>,
    /// Decides where symbols come from.
    pub kind: RecordedKind,
    /// Build id, where the recording has it.
    pub build_id: Option<BuildId>,
    /// Which file, where no build id says it.
    pub file: Option<FileId>,
    /// The file's size and time, where the recorder looked.
    pub stamp: Option<FileStamp>,
}

impl RecordedDso {
    /// Memory that no mapping explains.
    pub(crate) fn unknown() -> RecordedDso {
        RecordedDso {
            path: "[unknown]".into(),
            kind: RecordedKind::Unknown,
            build_id: None,
            file: None,
            stamp: None,
        }
    }
}

/// The fields of a mapping's record that identify the binary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MappedCode<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) pid: Pid,
    pub(crate) build_id: Option<BuildId>,
    pub(crate) file: Option<FileId>,
}

/// All binaries of a recording.
#[derive(Clone, Debug)]
pub(crate) struct DsoTable {
    dsos: Vec<RecordedDso>,
    /// Processes that map the binary: the way to files that have no path here.
    mapped_by: Vec<Vec<Pid>>,
    by_identity: FxHashMap<RecordedDso, DsoIndex>,
    /// Where code of JIT compilers lies, by binary; what touches is one region, once all are known.
    code_regions: FxHashMap<DsoIndex, Vec<(Avma, Avma)>>,
    /// Size of the largest mapping of code, by binary.
    mapped_bytes: FxHashMap<DsoIndex, u64>,
    /// The recorder's descriptions of mapped files.
    found: FxHashMap<(FileId, Vec<u8>), MappedFile>,
    /// Its descriptions of perf-maps, by process.
    perf_maps: FxHashMap<Pid, FileStamp>,
    /// Functions of interpreters, by process: ascending.
    interpreted: FxHashMap<Pid, (DsoIndex, Vec<InterpretedFunction>)>,
}

impl Default for DsoTable {
    fn default() -> Self {
        DsoTable::new(Vec::new())
    }
}

impl DsoTable {
    /// A table that knows the recorder's descriptions of mapped files.
    pub(crate) fn new(files: Vec<MappedFile>) -> DsoTable {
        let maps = files.iter().filter_map(|file| Some((perf_map_of(&file.path)?, file.stamp()?)));
        let perf_maps = maps.collect();
        let found = files.into_iter().map(|file| ((file.id, file.path.clone()), file)).collect();
        let mut table = DsoTable {
            dsos: Vec::new(),
            mapped_by: Vec::new(),
            by_identity: FxHashMap::default(),
            code_regions: FxHashMap::default(),
            mapped_bytes: FxHashMap::default(),
            found,
            perf_maps,
            interpreted: FxHashMap::default(),
        };
        table.intern(RecordedDso::unknown());
        let (path, kind) = ("[kernel.kallsyms]".into(), RecordedKind::Kernel);
        table.intern(RecordedDso { path, kind, ..RecordedDso::unknown() });
        table
    }

    /// Takes in the functions of interpreters.
    pub(crate) fn take_interpreted(&mut self, functions: Vec<InterpretedFunction>) {
        for function in functions {
            let pid = function.pid;
            if let Some((_, functions)) = self.interpreted.get_mut(&pid) {
                functions.push(function);
                continue;
            }
            let (path, kind) = (PYTHON.into(), RecordedKind::Interpreted(pid));
            let dso = self.intern(RecordedDso { path, kind, ..RecordedDso::unknown() });
            self.interpreted.insert(pid, (dso, vec![function]));
        }
        for (_, functions) in self.interpreted.values_mut() {
            functions.sort_by_key(|function| function.start);
        }
    }

    /// The binary that stands for the functions of a process's interpreter.
    pub(crate) fn interpreted(&self, pid: Pid) -> Option<DsoIndex> {
        self.interpreted.get(&pid).map(|(dso, _)| *dso)
    }

    /// The interpreted function that a frame's address is of.
    pub(crate) fn interpreted_function(
        &self,
        pid: Pid,
        address: u64,
    ) -> Option<&InterpretedFunction> {
        let (_, functions) = self.interpreted.get(&pid)?;
        let behind = functions.partition_point(|function| function.start <= address);
        let function = functions.get(behind.checked_sub(1)?)?;
        (address - function.start < function.size_bytes).then_some(function)
    }

    /// The index of a binary, which is entered if it is new.
    pub(crate) fn intern(&mut self, dso: RecordedDso) -> DsoIndex {
        if let Some(index) = self.by_identity.get(&dso) {
            return *index;
        }
        let index = DsoIndex(self.dsos.len() as u32);
        self.by_identity.insert(dso.clone(), index);
        self.dsos.push(dso);
        self.mapped_by.push(Vec::new());
        index
    }

    /// A user-space mapping's binary.
    pub(crate) fn intern_user(&mut self, mapped: &MappedCode<'_>) -> DsoIndex {
        self.intern_mapped(mapped, true)
    }

    fn intern_mapped(&mut self, mapped: &MappedCode<'_>, is_code: bool) -> DsoIndex {
        let MappedCode { path: bytes, pid, build_id, file } = *mapped;
        let path = String::from_utf8_lossy(bytes);
        let described = file.and_then(|file| self.found.get(&(file, bytes.to_vec())));
        let known = described.and_then(|known| Some((known.found.ok()?, known.stamp()?)));
        let build_id = build_id.or(known.and_then(|(found, _)| found.build_id));
        let is_program = build_id.is_some() || known.is_some_and(|(found, _)| found.is_elf);
        let kind = match classify_user(&path, pid) {
            // Programs may lie in memory files, which otherwise hold code of JIT compilers.
            RecordedKind::Anonymous(_) if is_program && path.starts_with(MEMORY_FILE) => {
                RecordedKind::File
            }
            // Code of a JIT compiler may lie in any file.
            RecordedKind::File if is_code && !is_program && is_no_image(described) => {
                RecordedKind::Anonymous(pid)
            }
            kind => kind,
        };
        let path: Arc<str> = match kind {
            RecordedKind::Anonymous(pid) => format!("/tmp/perf-{}.map", pid.0).into(),
            _ => path.as_ref().into(),
        };
        let is_file = kind == RecordedKind::File && build_id.is_none();
        let file = file.filter(|_| is_file);
        let has_stamp = is_file || kind == RecordedKind::JitDump;
        let stamp = known.map(|(_, stamp)| stamp).filter(|_| has_stamp);
        let index = self.intern(RecordedDso { path, kind, build_id, file, stamp });
        let mapped_by = &mut self.mapped_by[index.index()];
        // The last one that was recorded is the likeliest to be still alive; the first may be a service.
        if mapped_by.first() != Some(&pid) {
            mapped_by.insert(0, pid);
            if mapped_by.len() > PROCESSES_MAX {
                mapped_by.remove(1);
            }
        }
        index
    }

    /// The file of a mapping of data, or a name such as `[heap]`.
    pub(crate) fn intern_data(&mut self, mapped: &MappedCode<'_>) -> DsoIndex {
        let name = String::from_utf8_lossy(mapped.path);
        match classify_user(&name, mapped.pid) {
            RecordedKind::File | RecordedKind::Vdso => self.intern_mapped(mapped, false),
            _ => self.intern(RecordedDso { path: name.as_ref().into(), ..RecordedDso::unknown() }),
        }
    }

    /// Takes in a mapping of code.
    pub(crate) fn note_mapping(&mut self, mapping: &Mapping) {
        let largest = self.mapped_bytes.entry(mapping.dso).or_default();
        *largest = (*largest).max(mapping.end.0 - mapping.start.0);
        if matches!(self.get(mapping.dso).kind, RecordedKind::Anonymous(_)) {
            self.code_regions.entry(mapping.dso).or_default().push((mapping.start, mapping.end));
        }
    }

    /// Size of the largest mapping of a binary's code.
    pub(crate) fn mapped_bytes(&self, index: DsoIndex) -> Option<u64> {
        self.mapped_bytes.get(&index).copied()
    }

    /// Joins regions that touch, after the last mapping.
    pub(crate) fn join_regions(&mut self) {
        for regions in self.code_regions.values_mut() {
            regions.sort_unstable();
            regions.dedup_by(|next, kept| {
                let touches = next.0 <= kept.1;
                if touches {
                    kept.1 = kept.1.max(next.1);
                }
                touches
            });
        }
    }

    /// The start of the region that code of a JIT compiler lies in.
    pub(crate) fn code_region(&self, dso: DsoIndex, address: Avma) -> Option<Avma> {
        let regions = self.code_regions.get(&dso)?;
        let after = regions.partition_point(|region| region.0 <= address);
        let region = regions.get(after.checked_sub(1)?)?;
        (address < region.1).then_some(region.0)
    }

    /// The perf-map of a process as the recorder found it.
    pub(crate) fn perf_map(&self, pid: Pid) -> Option<FileStamp> {
        self.perf_maps.get(&pid).copied()
    }

    /// Processes that map a user-space binary, the likeliest to be still alive first.
    pub(crate) fn mapped_by(&self, index: DsoIndex) -> &[Pid] {
        &self.mapped_by[index.index()]
    }

    /// The binaries.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (DsoIndex, &RecordedDso)> {
        (0u32..).map(DsoIndex).zip(&self.dsos)
    }

    /// The binary with a number that may be none.
    pub(crate) fn find(&self, number: u32) -> Option<&RecordedDso> {
        self.dsos.get(number as usize)
    }

    /// One binary.
    pub(crate) fn get(&self, index: DsoIndex) -> &RecordedDso {
        &self.dsos[index.index()]
    }

    /// Fills in build ids from the recording's header, which has them by path. Files with a build id or a stamp
    /// stay as they are.
    pub(crate) fn apply_build_ids(&mut self, by_path: &FxHashMap<String, Option<BuildId>>) {
        for dso in &mut self.dsos {
            if dso.build_id.is_none() && dso.stamp.is_none() {
                dso.build_id = by_path.get(&*dso.path).copied().flatten();
            }
        }
    }
}

/// The process of a perf-map, by the path that recorders describe it with.
fn perf_map_of(path: &[u8]) -> Option<Pid> {
    let number = path.strip_prefix(b"/tmp/perf-")?.strip_suffix(b".map")?;
    std::str::from_utf8(number).ok()?.parse().ok().map(Pid)
}

/// Whether a file that was mapped as code is known to have no ELF image that could be read: it has none, or it is deleted
/// and nothing led to it.
fn is_no_image(described: Option<&MappedFile>) -> bool {
    described.is_some_and(|file| match file.found {
        Ok(found) => !found.is_elf,
        Err(_) => file.path.ends_with(DELETED.as_bytes()),
    })
}

/// System V shared memory: `/SYSV`, its key in eight digits, and the mark of deleted files.
fn is_shared_memory(path: &str) -> bool {
    let key = path.strip_prefix("/SYSV").and_then(|rest| rest.strip_suffix(DELETED));
    key.is_some_and(|key| key.len() == 8 && key.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

fn classify_user(path: &str, pid: Pid) -> RecordedKind {
    let is_anonymous = path.starts_with("//anon")
        || path.starts_with("/dev/zero")
        || path.starts_with("/anon_hugepage")
        || path.starts_with("[anon")
        || path.starts_with("[stack")
        || path == "[heap]"
        || path.starts_with(MEMORY_FILE)
        || is_shared_memory(path)
        || path.is_empty();
    if is_anonymous {
        RecordedKind::Anonymous(pid)
    } else if path == "[vdso]" {
        RecordedKind::Vdso
    } else if path.starts_with('[') {
        RecordedKind::Unknown
    } else if is_jitdump(path) {
        RecordedKind::JitDump
    } else {
        RecordedKind::File
    }
}

/// `jit-PID.dump`, the name that the jitdump specification prescribes.
fn is_jitdump(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_prefix("jit-")
        .and_then(|rest| rest.strip_suffix(".dump"))
        .is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_perfdata::mapped_file::FoundFile;
    use whit_types::OpenFailure;

    #[test]
    fn names_show_the_kind() {
        let kind = |path: &str| classify_user(path, Pid(7));
        assert_eq!(kind("/usr/bin/true"), RecordedKind::File);
        assert_eq!(kind("//anon"), RecordedKind::Anonymous(Pid(7)));
        assert_eq!(kind("[vdso]"), RecordedKind::Vdso);
        for memory in ["[stack]", "[heap]", "/SYSV0001e240 (deleted)", "/memfd:x (deleted)", ""] {
            assert_eq!(kind(memory), RecordedKind::Anonymous(Pid(7)), "{memory}");
        }
        for other in ["[vsyscall]", "[uprobes]"] {
            assert_eq!(kind(other), RecordedKind::Unknown, "{other}");
        }
        for file in ["/SYSV (deleted)", "/SYSV0001e240", "/SYSV000000zz (deleted)"] {
            assert_eq!(kind(file), RecordedKind::File, "{file}");
        }
        assert_eq!(kind("/home/a/jit-12.dump"), RecordedKind::JitDump);
        assert_eq!(kind("/home/a/jit-x.dump"), RecordedKind::File);
    }

    #[test]
    fn interpreted_functions_are_found_in_their_process() {
        let function = |pid, start, name: &[u8]| InterpretedFunction {
            pid: Pid(pid),
            start,
            size_bytes: 10,
            name: name.to_vec(),
            file: Vec::new(),
            lines: Vec::new(),
        };
        let mut table = DsoTable::default();
        table.take_interpreted(vec![
            function(1, 200, b"later"),
            function(1, 100, b"first"),
            function(2, 100, b"other"),
        ]);
        let name = |pid, address| {
            let function = table.interpreted_function(Pid(pid), address);
            function.map(|function| String::from_utf8_lossy(&function.name).into_owned())
        };
        assert_eq!(name(1, 100).as_deref(), Some("first"));
        assert_eq!(name(1, 209).as_deref(), Some("later"));
        assert_eq!(name(2, 109).as_deref(), Some("other"));
        assert_eq!([name(1, 110), name(1, 99), name(2, 200), name(3, 100)], [const { None }; 4]);
        let (one, other) = (table.interpreted(Pid(1)), table.interpreted(Pid(2)));
        assert!(one.is_some() && one != other && table.interpreted(Pid(3)).is_none());
    }

    #[test]
    fn each_binary_once() {
        let mut table = DsoTable::default();
        let code = |path, pid| MappedCode { path, pid: Pid(pid), build_id: None, file: None };
        let a = table.intern_user(&code(b"/bin/a", 1));
        assert_eq!(table.intern_user(&code(b"/bin/a", 2)), a);
        let jit = table.intern_user(&code(b"//anon", 1));
        assert_ne!(table.intern_user(&code(b"//anon", 2)), jit);
        assert_eq!(&*table.get(jit).path, "/tmp/perf-1.map");
    }

    #[test]
    fn files_without_an_image_hold_code_of_a_jit_compiler() {
        let id = |inode| FileId { device: (8, 1), inode };
        let found = FoundFile {
            size_bytes: 1,
            modified_ns: 1,
            build_id: None,
            is_elf: false,
            is_kept: false,
        };
        let file =
            |inode, path: &[u8], found| MappedFile { id: id(inode), path: path.to_vec(), found };
        let paths: [&[u8]; 5] =
            [b"/dev/shm/j (deleted)", b"/tmp/code", b"/lib/a", b"/lib/b (deleted)", b"/lib/c"];
        let mut table = DsoTable::new(vec![
            file(1, paths[0], Ok(found)),
            file(2, paths[1], Ok(found)),
            file(3, paths[2], Ok(FoundFile { is_elf: true, ..found })),
            file(4, paths[3], Err(OpenFailure::Missing)),
            file(5, paths[4], Err(OpenFailure::Missing)),
        ]);
        let kinds = (1..).zip(paths).map(|(inode, path)| {
            let file = Some(id(inode));
            let mapped = MappedCode { path, pid: Pid(7), build_id: None, file };
            let dso = table.intern_user(&mapped);
            table.get(dso).kind
        });
        let (jitted, file) = (RecordedKind::Anonymous(Pid(7)), RecordedKind::File);
        assert_eq!(kinds.collect::<Vec<_>>(), [jitted, jitted, file, jitted, file]);
        let data = MappedCode { path: paths[1], pid: Pid(7), build_id: None, file: Some(id(2)) };
        let data = table.intern_data(&data);
        assert_eq!(table.get(data).kind, file);
        // A build id is that of an image, whatever the path.
        let build_id = BuildId::new(&[1; 20]);
        let mapped = MappedCode { path: paths[0], pid: Pid(7), build_id, file: Some(id(1)) };
        let dso = table.intern_user(&mapped);
        assert_eq!(table.get(dso).kind, file);
    }

    #[test]
    fn regions_of_jitted_code_are_joined_where_they_touch() {
        let mut table = DsoTable::default();
        let code = |path| MappedCode { path, pid: Pid(1), build_id: None, file: None };
        let (jit, file) = (table.intern_user(&code(b"//anon")), table.intern_user(&code(b"/a")));
        for (dso, start, end) in [
            (jit, 0x3000, 0x4000),
            (file, 0x8000, 0x9000),
            (jit, 0x1000, 0x2000),
            (jit, 0x2000, 0x2800),
        ] {
            table.note_mapping(&Mapping {
                start: Avma(start),
                end: Avma(end),
                file_offset: 0,
                dso,
            });
        }
        table.join_regions();
        let region = |dso, address| table.code_region(dso, Avma(address)).map(|start| start.0);
        assert_eq!(region(jit, 0x1000), Some(0x1000));
        assert_eq!(region(jit, 0x27ff), Some(0x1000));
        assert_eq!((region(jit, 0x2800), region(jit, 0xfff)), (None, None));
        assert_eq!(region(jit, 0x3fff), Some(0x3000));
        assert_eq!(region(file, 0x8000), None);
    }
}
