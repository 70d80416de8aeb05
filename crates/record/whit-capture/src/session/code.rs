//! The description of mapped code files in an output, and copies of those that its processes with samples mapped.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use whit_elf::ElfImage;
use whit_host::processes;
use whit_host::roots::Roots;
use whit_host::runtimes::{self, is_jitdump};
use whit_host::target::Target;
use whit_perfdata::feature::{BuildIdEntry, Features};
use whit_perfdata::record::misc;
use whit_types::{BuildId, Pid, Runtime};

use crate::file_cache::FileCache;
use crate::kept_files::{KeptCounts, KeptFiles, KeptFilesPlan, Kind};
use crate::kernel;
use crate::machine;
use crate::mapped_files::{FILES_MAX, MappedFiles};
use crate::notice::{Listener, Notice};
use crate::options::Choices;

use super::java_names;

/// perf's mark for build ids that are not of a guest.
const HOST_PID: Pid = Pid(-1);
/// How perf's names of the kernel begin.
const KERNEL: &str = "[kernel";
/// The kernel's name of its code for user mode.
const VDSO: &str = "[vdso]";

/// Build ids of the running kernel and its modules, where build ids are recorded.
pub(super) fn kernel_build_ids(choices: Choices, roots: &Roots) -> Vec<BuildIdEntry> {
    if !choices.build_ids {
        return Vec::new();
    }
    let modules = kernel::modules(roots, &whit_sys::system::uname().release);
    machine::kernel_build_ids(roots, &modules)
}

/// The files whose build ids mappings have, where build ids are recorded.
pub(super) fn files_with_ids(choices: Choices, files: &FileCache) -> Option<&FileCache> {
    choices.build_ids.then_some(files)
}

/// The known files at the end of an output.
pub(super) struct MappedCode<'a> {
    pub(super) choices: Choices,
    pub(super) files: &'a FileCache,
    pub(super) roots: &'a Roots,
    pub(super) target: &'a Target,
    /// Processes with functions of interpreters that have names.
    pub(super) interpreted: &'a BTreeSet<Pid>,
    /// There are samples of kernel code.
    pub(super) has_kernel: bool,
}

impl MappedCode<'_> {
    /// Adds descriptions of the known files to the header, of those in `mapped`. Copies go as `kept` says; gives their
    /// counts.
    pub(super) fn describe<'m>(
        &self,
        features: &mut Features,
        mapped: impl Iterator<Item = &'m MappedFiles>,
        kept: Option<&KeptFilesPlan>,
        listener: &mut dyn Listener,
    ) -> KeptCounts {
        if !self.choices.build_ids {
            return KeptCounts::default();
        }
        let mut all = MappedFiles::default();
        mapped.for_each(|mapped| all.merge(mapped));
        let mut entries = features.build_ids();
        entries.extend(self.files.complete(self.roots, &all).into_iter().map(|(path, id)| {
            let path = String::from_utf8_lossy(&path).into_owned();
            BuildIdEntry { misc: misc::USER, pid: HOST_PID, id, path }
        }));
        if let Some((id, _)) = own_vdso() {
            let path = VDSO.to_owned();
            entries.push(BuildIdEntry { misc: misc::USER, pid: HOST_PID, id, path });
        }
        features.set_build_ids(&entries);
        if all.is_cut() || self.files.is_cut() {
            listener.notice(Notice::FilesCut { described: FILES_MAX });
        }
        if self.choices.java_maps {
            self.ask_java(&all, listener);
        }
        // Recorded processes were named: runtimes among them are worth a message.
        if !self.target.covers_cpus() {
            self.say_runtimes(&all, self.interpreted, listener);
        }
        let mut files = kept.map(|plan| KeptFiles::new(plan.clone()));
        features.set_mapped_files(&self.files.describe(self.roots, files.as_mut(), &all));
        let silent = self.files.newly_silent();
        if !silent.is_empty() {
            listener.notice(Notice::FilesSilent { paths: silent });
        }
        if let Some(files) = files.as_mut()
            && let Some((id, image)) = own_vdso()
        {
            files.keep_image(Kind::Vdso, id, &image);
        }
        if let Some(files) = files.as_mut().filter(|_| self.has_kernel) {
            self.keep_kernel(features, files);
        }
        let counts = files.map(KeptFiles::finish).unwrap_or_default();
        if let Some(plan) = kept {
            say(&counts, plan, listener);
        }
        counts
    }
}

impl MappedCode<'_> {
    /// Keeps the kernel's symbols: the next start of the machine may move them, or bring another kernel. There are none
    /// to keep where the kernel hides their addresses.
    fn keep_kernel(&self, features: &Features, files: &mut KeptFiles) {
        let entries = features.build_ids();
        let kernel = entries.iter().find(|entry| entry.path.starts_with(KERNEL));
        let text = kernel::text(self.roots).ok().flatten();
        let (Some(entry), Some(text)) = (kernel, text) else { return };
        let is_of_this_start = |copy: &File| kernel::lists(copy, &text);
        files.keep_kernel_list(entry.id, is_of_this_start, || kernel::symbol_list(self.roots));
    }

    /// Asks each Java virtual machine of the target that still runs for the names of its code.
    fn ask_java(&self, mapped: &MappedFiles, listener: &mut dyn Listener) {
        let roots = self.roots;
        let mut pids = match self.target {
            Target::SystemWide(_) => processes::all(roots).unwrap_or_default(),
            Target::Processes(pids) => pids.clone(),
            Target::User(user) => {
                let mut pids = processes::all(roots).unwrap_or_default();
                pids.retain(|pid| processes::owner(roots, *pid) == Some(*user));
                pids
            }
            Target::Command | Target::Threads(_) | Target::Named(..) => Vec::new(),
        };
        // Also descendants of the processes that were named.
        pids.extend(self.files.mappers(mapped).iter().map(|(_, pid)| Pid(*pid)));
        pids.sort_unstable();
        pids.dedup();
        let is_java = |pid: &Pid| {
            runtimes::of_process(roots, *pid).iter().any(|found| found.runtime == Runtime::Java)
        };
        pids.retain(is_java);
        if pids.is_empty() {
            listener.notice(Notice::NoJava);
        }
        java_names::ask(roots, pids, listener);
    }

    /// Runtimes whose functions have no names, each once in a session. Those of `interpreted` processes have some.
    fn say_runtimes(
        &self,
        mapped: &MappedFiles,
        interpreted: &BTreeSet<Pid>,
        listener: &mut dyn Listener,
    ) {
        let mappers = self.files.mappers(mapped);
        let dumped: Vec<_> =
            mappers.iter().filter(|(path, _)| is_jitdump(path)).map(|(_, pid)| *pid).collect();
        for (path, pid) in &mappers {
            let Some(runtime) = Runtime::of_path(path) else { continue };
            let pid = Pid(*pid);
            let running = runtimes::of_process(self.roots, pid);
            let running = running.iter().find(|found| found.runtime == runtime);
            // After a process has ended, only its files are left.
            let has_code = running.map_or_else(
                || runtime.is_interpreter() || runtime.always_compiles(),
                |found| found.has_code,
            );
            let is_interpreted = runtime.is_interpreter() && interpreted.contains(&pid);
            let has_names = is_interpreted
                || running.is_some_and(|found| found.has_names)
                || dumped.contains(&pid.0)
                || runtimes::has_perf_map(self.roots, pid);
            if has_code && !has_names && self.files.is_first_word_on(runtime) {
                listener.notice(Notice::RuntimeWithoutNames { runtime, pid });
            }
        }
    }
}

/// The vdso that all processes have which run the machine's own code, and its build id.
fn own_vdso() -> Option<(BuildId, Vec<u8>)> {
    let elf = ElfImage::from_bytes(Path::new(VDSO), whit_elf::own_vdso().ok()?).ok()?;
    Some((elf.build_id()?, elf.bytes().to_vec()))
}

/// How many copies there are, and which are missing.
fn say(counts: &KeptCounts, plan: &KeptFilesPlan, listener: &mut dyn Listener) {
    let KeptCounts { copied, copied_bytes, without_room, gone, evicted, evicted_bytes, .. } =
        *counts;
    let directory = || plan.directory.display().to_string();
    if copied > 0 {
        let directory = directory();
        listener.notice(Notice::BinariesKept { count: copied, bytes: copied_bytes, directory });
    }
    if evicted > 0 {
        let (directory, max_bytes) = (directory(), plan.max_bytes);
        let (count, bytes) = (evicted, evicted_bytes);
        listener.notice(Notice::BinariesEvicted { count, bytes, max_bytes, directory });
    }
    if without_room > 0 {
        let (directory, max_bytes) = (directory(), plan.max_bytes);
        listener.notice(Notice::BinariesNotKept { count: without_room, max_bytes, directory });
    }
    if gone > 0 {
        listener.notice(Notice::BinariesGone { count: gone });
    }
    if let Some(error) = &counts.failed {
        let (directory, why) = (directory(), error.to_string());
        listener.notice(Notice::CacheUnusable { directory, why });
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;
    use whit_host::level::Level;
    use whit_perfdata::record::PROT_EXEC;

    /// A mapping of a file by a process that is gone.
    fn body(inode: u64) -> Vec<u8> {
        let words = [u64::from(i32::MAX as u32), 0x1000, 4096, 0, 1, inode, 0];
        let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        body.extend(PROT_EXEC.to_le_bytes());
        body.extend([0; 4]);
        body.extend(b"/app\0\0\0\0");
        body
    }

    #[test]
    fn a_runtime_without_names_is_said_once() {
        let directory = tempfile::tempdir().unwrap();
        let roots = Roots { proc: directory.path().to_owned(), ..Roots::default() };
        let said = |target: Target, paths: &[&[u8]], files: &FileCache| {
            let mut ring = MappedFiles::default();
            for (inode, path) in (1..).zip(paths) {
                let mut body = body(inode);
                body.truncate(64);
                body.extend(*path);
                body.push(0);
                ring.note(&body);
            }
            let mut said = Vec::new();
            let (mut features, mut hear) = (Features::default(), |notice| said.push(notice));
            let code = MappedCode {
                choices: Choices::default(),
                files,
                roots: &roots,
                target: &target,
                interpreted: &BTreeSet::new(),
                has_kernel: false,
            };
            let _ = code.describe(&mut features, [&ring].into_iter(), None, &mut hear);
            said
        };
        let files = FileCache::default();
        let (node, runtime) = (b"/usr/bin/node", Runtime::Node);
        assert_eq!(said(Target::SystemWide(None), &[node], &files), []);
        let notice = Notice::RuntimeWithoutNames { runtime, pid: Pid(i32::MAX) };
        assert_eq!(
            said(Target::Command, &[node, b"/usr/bin/true", b"/usr/bin/ruby"], &files),
            std::slice::from_ref(&notice)
        );
        assert_eq!(said(Target::Command, &[node], &files), []);
        assert_eq!(said(Target::Command, &[node, b"/tmp/jit-7.dump"], &FileCache::default()), []);
        assert!(notice.to_string().contains("node --perf-basic-prof"), "{notice}");
    }

    #[test]
    fn files_beyond_those_that_are_described_are_said() {
        let directory = tempfile::tempdir().unwrap();
        let roots = Roots { proc: directory.path().to_owned(), ..Roots::default() };
        let said = |rings: &[MappedFiles], files: &FileCache| {
            let mut said = Vec::new();
            let (mut features, mut hear) = (Features::default(), |notice| said.push(notice));
            let code = MappedCode {
                choices: Choices::default(),
                files,
                roots: &roots,
                target: &Target::Command,
                interpreted: &BTreeSet::new(),
                has_kernel: false,
            };
            let _ = code.describe(&mut features, rings.iter(), None, &mut hear);
            said
        };
        let mut ring = MappedFiles::default();
        (0..FILES_MAX as u64).for_each(|file| ring.note(&body(1 + file)));
        // A known file takes no more space.
        ring.note(&body(1));
        let (files, mut other) = (FileCache::default(), MappedFiles::default());
        assert_eq!(said(slice::from_ref(&ring), &files), []);
        // Full by the mappings of processes that ran before, or by an output before.
        other.note(&body(u64::MAX));
        let notice = Notice::FilesCut { described: FILES_MAX };
        assert_eq!(said(slice::from_ref(&other), &files), slice::from_ref(&notice));
        // By rings together, or by one.
        assert_eq!(said(&[ring.clone(), other], &FileCache::default()), slice::from_ref(&notice));
        ring.note(&body(u64::MAX));
        assert_eq!(said(slice::from_ref(&ring), &FileCache::default()), slice::from_ref(&notice));
        assert_eq!(notice.level(), Level::Warning);
        assert!(notice.to_string().contains("65536"), "{notice}");
    }
}
