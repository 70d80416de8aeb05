//! The binaries that a recording names, each once.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use whit_types::{Avma, BuildId, Pid};

/// Index into a [`DsoTable`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct DsoIndex(pub u32);

impl DsoIndex {
    /// Memory that no mapping explains.
    pub(crate) const UNKNOWN: DsoIndex = DsoIndex(0);
    /// The kernel image.
    pub(crate) const KERNEL: DsoIndex = DsoIndex(1);

    /// As an index.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What kind of code a binary is, as far as its name in the recording tells.
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
    /// The vdso.
    Vdso,
    /// A file.
    File,
    /// Anonymous executable memory of one process: code of a JIT compiler.
    Anonymous(Pid),
    /// The marker mapping of a jitdump file.
    JitDump,
}

/// One binary as the recording names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RecordedDso {
    /// Path or name.
    pub path: Arc<str>,
    /// Kind.
    pub kind: RecordedKind,
    /// Build id, where the recording has it.
    pub build_id: Option<BuildId>,
}

/// All binaries of a recording.
#[derive(Clone, Debug)]
pub(crate) struct DsoTable {
    dsos: Vec<RecordedDso>,
    /// A process that maps the binary: the way to files of another mount namespace.
    mapped_by: Vec<Option<Pid>>,
    by_identity: FxHashMap<RecordedDso, DsoIndex>,
}

impl Default for DsoTable {
    fn default() -> Self {
        let mut table =
            DsoTable { dsos: Vec::new(), mapped_by: Vec::new(), by_identity: FxHashMap::default() };
        table.intern(RecordedDso {
            path: "[unknown]".into(),
            kind: RecordedKind::Unknown,
            build_id: None,
        });
        table.intern(RecordedDso {
            path: "[kernel.kallsyms]".into(),
            kind: RecordedKind::Kernel,
            build_id: None,
        });
        table
    }
}

impl DsoTable {
    /// The index of a binary, which is entered if it is new.
    pub(crate) fn intern(&mut self, dso: RecordedDso) -> DsoIndex {
        if let Some(index) = self.by_identity.get(&dso) {
            return *index;
        }
        let index = DsoIndex(self.dsos.len() as u32);
        self.by_identity.insert(dso.clone(), index);
        self.dsos.push(dso);
        self.mapped_by.push(None);
        index
    }

    /// A user-space mapping's binary.
    pub(crate) fn intern_user(
        &mut self,
        path: &[u8],
        pid: Pid,
        build_id: Option<BuildId>,
    ) -> DsoIndex {
        let path = String::from_utf8_lossy(path);
        let kind = classify_user(&path, pid);
        let path: Arc<str> = match kind {
            RecordedKind::Anonymous(pid) => format!("/tmp/perf-{}.map", pid.0).into(),
            _ => path.as_ref().into(),
        };
        let index = self.intern(RecordedDso { path, kind, build_id });
        // The last one that was recorded is the likeliest to be still alive.
        self.mapped_by[index.index()] = Some(pid);
        index
    }

    /// The file of a mapping of data, or a name such as `[heap]`.
    pub(crate) fn intern_data(
        &mut self,
        path: &[u8],
        pid: Pid,
        build_id: Option<BuildId>,
    ) -> DsoIndex {
        let name = String::from_utf8_lossy(path);
        match classify_user(&name, pid) {
            RecordedKind::File | RecordedKind::Vdso => self.intern_user(path, pid, build_id),
            _ => self.intern(RecordedDso {
                path: name.as_ref().into(),
                kind: RecordedKind::Unknown,
                build_id: None,
            }),
        }
    }

    /// A process that maps a user-space binary.
    pub(crate) fn mapped_by(&self, index: DsoIndex) -> Option<Pid> {
        self.mapped_by[index.index()]
    }

    /// The binaries.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (DsoIndex, &RecordedDso)> {
        (0u32..).map(DsoIndex).zip(&self.dsos)
    }

    /// One binary.
    pub(crate) fn get(&self, index: DsoIndex) -> &RecordedDso {
        &self.dsos[index.index()]
    }

    /// Fills in build ids that the recording's header gives by path.
    pub(crate) fn apply_build_ids(&mut self, by_path: &FxHashMap<String, BuildId>) {
        for dso in &mut self.dsos {
            if dso.build_id.is_none() {
                dso.build_id = by_path.get(&*dso.path).copied();
            }
        }
    }
}

fn classify_user(path: &str, pid: Pid) -> RecordedKind {
    let is_anonymous = path.starts_with("//anon")
        || path.starts_with("/dev/zero")
        || path.starts_with("/anon_hugepage")
        || path.starts_with("[anon")
        || path.starts_with("/memfd:")
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

    #[test]
    fn names_tell_the_kind() {
        let kind = |path: &str| classify_user(path, Pid(7));
        assert_eq!(kind("/usr/bin/true"), RecordedKind::File);
        assert_eq!(kind("//anon"), RecordedKind::Anonymous(Pid(7)));
        assert_eq!(kind("[vdso]"), RecordedKind::Vdso);
        assert_eq!(kind("[stack]"), RecordedKind::Unknown);
        assert_eq!(kind("/home/a/jit-12.dump"), RecordedKind::JitDump);
        assert_eq!(kind("/home/a/jit-x.dump"), RecordedKind::File);
    }

    #[test]
    fn each_binary_once() {
        let mut table = DsoTable::default();
        let a = table.intern_user(b"/bin/a", Pid(1), None);
        assert_eq!(table.intern_user(b"/bin/a", Pid(2), None), a);
        let jit = table.intern_user(b"//anon", Pid(1), None);
        assert_ne!(table.intern_user(b"//anon", Pid(2), None), jit);
        assert_eq!(&*table.get(jit).path, "/tmp/perf-1.map");
    }
}
