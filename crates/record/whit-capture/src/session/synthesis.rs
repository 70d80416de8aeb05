//! Selects the records for processes and cgroups that are older than an output, and when to write them.

use std::path::PathBuf;

use whit_engine_api::event_plan::ReadCgroups;
use whit_engine_api::open_event::OpenEvent;
use whit_host::cgroup::{Cgroup, CgroupList, Hierarchy};
use whit_host::processes::{self, Status};
use whit_host::roots::Roots;
use whit_host::target::{Plan, Target};
use whit_perfdata::attr::AttrFlags;
use whit_perfdata::encode::RecordEncoder;
use whit_perfdata::sample::SampleLayout;
use whit_types::{Pid, Tid};

use crate::file_cache::FileCache;
use crate::kernel;
use crate::notice::{Listener, Notice};
use crate::plan::SynthesisPlan;
use crate::stream::{Sink, SinkError, StreamSink};
use crate::synthesize::{CutProcesses, Synthesizer};

use super::code;

/// The command's name until it execs.
const COMMAND_BEFORE_EXEC: &[u8] = b"whit-exec";

/// The kernel's number of the root of version 2.
const ROOT: u64 = 1;

/// Writes them.
pub(super) struct SynthesisContext<'a> {
    pub(super) wanted: &'a SynthesisPlan,
    pub(super) roots: &'a Roots,
    pub(super) plan: &'a Plan,
    pub(super) events: &'a [OpenEvent],
    pub(super) files: &'a FileCache,
    /// The command, while it has not begun.
    pub(super) waiting_command: Option<Pid>,
    /// Whether events have counted already: their targets may have started others.
    pub(super) has_run: bool,
}

impl SynthesisContext<'_> {
    /// Whether the records stand at the end of an output.
    pub(super) fn is_at_end(&self) -> bool {
        self.wanted.what.at_end
    }

    /// Writes them into the stream behind the header. Gives the number of processes whose mappings were not
    /// read to the end.
    pub(super) fn write(
        &self,
        sink: &mut StreamSink,
        listener: &mut dyn Listener,
    ) -> Result<u64, SinkError> {
        let wanted = self.wanted;
        let mut cut = CutProcesses::default();
        let synthesizer = self.synthesizer(&cut);
        let mut out = Vec::new();
        self.kernel(&synthesizer, &mut out, listener);
        if wanted.cgroups {
            self.cgroups(&synthesizer, &mut out, listener);
        }
        if let Some(pid) = self.waiting_command {
            synthesizer.comm(&mut out, pid, pid.main_thread(), COMMAND_BEFORE_EXEC);
        }
        sink.records(&out)?;
        synthesizer.processes(&self.existing(listener), sink)?;
        sink.flush()?;
        let unnamed = cut.take_unnamed();
        if let Some(first) = unnamed.first() {
            let more = unnamed.len() - 1;
            listener.notice(Notice::TextWithoutName { first: first.clone(), more });
        }
        let cut = cut.take();
        if let Some(first) = cut.first() {
            listener.notice(Notice::MappingsCut {
                pid: first.pid,
                lines: first.lines,
                processes: cut.len(),
                timeout: wanted.what.maps_timeout,
            });
        }
        Ok(cut.len() as u64)
    }

    /// Names the cgroups again where the engine reads them: the kernel writes no records of those that were made
    /// meanwhile.
    pub(super) fn write_later_cgroups(&self, sink: &mut StreamSink) -> Result<(), SinkError> {
        let Some(read) = self.wanted.read_cgroups.as_ref().filter(|_| self.wanted.cgroups) else {
            return Ok(());
        };
        let (cut, mut out) = (CutProcesses::default(), Vec::new());
        let synthesizer = self.synthesizer(&cut);
        marked(read).listed.iter().for_each(|it| synthesizer.cgroup(&mut out, it));
        sink.records(&out)
    }

    fn synthesizer<'c>(&'c self, cut: &'c CutProcesses) -> Synthesizer<'c> {
        Synthesizer {
            roots: self.roots,
            encoder: RecordEncoder::new(SampleLayout::new(&self.events[0].event.attr)),
            files_with_ids: code::files_with_ids(self.wanted.choices, self.files),
            data_mappings: self.events.iter().any(|e| e.event.attr.has(AttrFlags::MMAP_DATA)),
            namespaces: self.wanted.namespaces,
            what: self.wanted.what,
            cut,
        }
    }

    fn kernel(
        &self,
        synthesizer: &Synthesizer<'_>,
        out: &mut Vec<u8>,
        listener: &mut dyn Listener,
    ) {
        let wants_kernel = |e: &OpenEvent| {
            !e.event.spec.is_dummy() && !e.event.attr.has(AttrFlags::EXCLUDE_KERNEL)
        };
        if !self.events.iter().any(wants_kernel) {
            return;
        }
        match kernel::text(self.roots) {
            Ok(Some(text)) => synthesizer.kernel(out, &text),
            Ok(None) if self.has_run => {}
            Ok(None) => listener.notice(Notice::KernelAddressesHidden),
            Err(error) => listener.notice(Notice::Skipped {
                what: "the kernel's mapping".to_owned(),
                why: error.to_string(),
            }),
        }
        let release = whit_sys::system::uname().release;
        for module in kernel::modules(self.roots, &release) {
            synthesizer.module(out, &module);
        }
        // The kernel writes records for later ones.
        if self.events.iter().any(|e| e.event.attr.has(AttrFlags::KSYMBOL)) {
            synthesizer.bpf_functions(out, &whit_bpf::programs::loaded_functions());
        }
    }

    fn cgroups(
        &self,
        synthesizer: &Synthesizer<'_>,
        out: &mut Vec<u8>,
        listener: &mut dyn Listener,
    ) {
        let read = self.wanted.read_cgroups.as_ref();
        for cgroup in &cgroups_with_names(read, self.roots, listener) {
            synthesizer.cgroup(out, cgroup);
        }
    }

    /// The processes that there are, of those that are recorded.
    fn existing(&self, listener: &mut dyn Listener) -> Vec<Pid> {
        let process = |tid: &Tid| Some(Status::of_thread(self.roots, *tid)?.tgid);
        let mut pids: Vec<Pid> = match &self.wanted.target {
            Target::Command if self.waiting_command.is_some() => return Vec::new(),
            target if target.covers_cpus() => return self.all(listener),
            _ => self.plan.threads.named().iter().filter_map(process).collect(),
        };
        if self.has_run && self.plan.inherit {
            pids.extend(self.started_meanwhile(listener));
        }
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// All processes that are younger than the recorder. The descendants of the target are among
    /// them, even where they have another parent by now.
    fn started_meanwhile(&self, listener: &mut dyn Listener) -> Vec<Pid> {
        let begin = processes::start_ticks(self.roots, Pid(whit_sys::system::pid())).unwrap_or(0);
        let is_younger = |pid: &Pid| {
            processes::start_ticks(self.roots, *pid).is_some_and(|start| start >= begin)
        };
        self.all(listener).into_iter().filter(is_younger).collect()
    }

    fn all(&self, listener: &mut dyn Listener) -> Vec<Pid> {
        processes::all(self.roots).unwrap_or_else(|error| {
            let what = "processes that ran before".to_owned();
            listener.notice(Notice::Skipped { what, why: error.to_string() });
            Vec::new()
        })
    }
}

/// Those of perf events, and those that the engine reads.
fn cgroups_with_names(
    read: Option<&ReadCgroups>,
    roots: &Roots,
    listener: &mut dyn Listener,
) -> Vec<Cgroup> {
    let mut list = match Hierarchy::find(roots) {
        Ok(hierarchy) => hierarchy.list(),
        // The kernel has version 2 all the same, where every thread is in the root then.
        Err(_) if read.is_some() => {
            CgroupList { listed: vec![Cgroup { id: ROOT, path: "/".to_owned() }], cut: None }
        }
        Err(error) => {
            let what = "names of cgroups".to_owned();
            listener.notice(Notice::Skipped { what, why: error.to_string() });
            return Vec::new();
        }
    };
    if let Some(read) = read {
        let more = marked(read);
        list.cut = list.cut.or(more.cut);
        list.listed.extend(more.listed);
    }
    if list.listed.len() == 1
        && list.cut.is_none()
        && let Some((mount, controllers)) = parted_elsewhere(roots)
    {
        listener.notice(Notice::RootCgroupAlone { mount, controllers });
    }
    if let Some(cut) = list.cut {
        listener.notice(Notice::CgroupsCut { listed: list.listed.len(), cut });
    }
    list.listed
}

/// The cgroups that the engine reads, as samples name them.
fn marked(read: &ReadCgroups) -> CgroupList {
    let mut list = read.mounted.hierarchy.list();
    list.listed.retain(|cgroup| cgroup.path != "/");
    list.listed.iter_mut().for_each(|cgroup| cgroup.id |= read.mark);
    list
}

/// A hierarchy of version 1 that has cgroups below its root, with its controllers. That of `cpu` is the likeliest to
/// have those of containers and services.
fn parted_elsewhere(roots: &Roots) -> Option<(PathBuf, String)> {
    let mut old = Hierarchy::mounted(roots).ok()?;
    old.retain(|one| one.controllers.as_ref().is_some_and(|names| !names.is_empty()));
    old.sort_by_key(|one| one.controllers.iter().flatten().all(|name| name != "cpu"));
    let parted = old.into_iter().find(|one| one.hierarchy.has_cgroups())?;
    let controllers = parted.controllers.unwrap_or_default().join(",");
    Some((parted.hierarchy.mount().to_owned(), controllers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_host::cgroup::MountedHierarchy;
    use whit_host::level::Level;

    #[test]
    fn cgroups_that_have_no_names_are_said() {
        let directory = tempfile::tempdir().unwrap();
        let mount = directory.path().join("groups");
        std::fs::create_dir_all(directory.path().join("self")).unwrap();
        let line = format!("41 31 0:38 / {} rw - cgroup2 cgroup2 rw\n", mount.display());
        std::fs::write(directory.path().join("self/mountinfo"), line).unwrap();
        let roots = Roots { proc: directory.path().to_owned(), ..Roots::default() };
        let said = |depth: usize| {
            std::fs::create_dir_all(mount.join((0..depth).map(|_| "d").collect::<PathBuf>()))
                .unwrap();
            let mut said = Vec::new();
            let listed =
                cgroups_with_names(None, &roots, &mut |notice: Notice| said.push(notice)).len();
            (listed, said)
        };
        assert_eq!(said(0), (1, Vec::new()));
        assert_eq!(said(1), (2, Vec::new()));
        let (listed, said) = said(100);
        let [notice @ Notice::CgroupsCut { listed: in_notice, .. }] = &said[..] else {
            panic!("{said:?}");
        };
        assert_eq!((*in_notice, notice.level()), (listed, Level::Warning));
        assert!(notice.to_string().contains("deeper than 64 levels"), "{notice}");
    }

    #[test]
    fn cgroups_that_the_engine_reads_are_marked_and_follow_the_others() {
        let directory = tempfile::tempdir().unwrap();
        let mount = directory.path().join("cpu");
        std::fs::create_dir_all(directory.path().join("self")).unwrap();
        std::fs::create_dir_all(mount.join("job")).unwrap();
        let line = format!("41 31 0:38 / {} rw - cgroup cgroup rw,cpu\n", mount.display());
        std::fs::write(directory.path().join("self/mountinfo"), line).unwrap();
        let roots = Roots { proc: directory.path().to_owned(), ..Roots::default() };
        let mounted = MountedHierarchy::of_cpu_time(&roots).unwrap();
        let job = mounted.hierarchy.cgroup("job").unwrap();
        let read = ReadCgroups { mounted, mark: 1 << 62 };
        let mut said = Vec::new();
        let listed = cgroups_with_names(Some(&read), &roots, &mut |notice| said.push(notice));
        let root = Cgroup { id: 1, path: "/".into() };
        assert_eq!(listed, [root, Cgroup { id: job.id | 1 << 62, path: "/job".into() }]);
        assert_eq!(said, []);
    }

    #[test]
    fn cgroups_of_another_hierarchy_alone_are_said() {
        let directory = tempfile::tempdir().unwrap();
        let mount = |name: &str| directory.path().join(name);
        for name in ["self", "memory", "cpu", "unified"] {
            std::fs::create_dir_all(mount(name)).unwrap();
        }
        let line = |name: &str, kind: &str| {
            format!("41 31 0:38 / {} rw - {kind} {kind} rw,{name}\n", mount(name).display())
        };
        let lines = [line("memory", "cgroup"), line("cpu", "cgroup"), line("unified", "cgroup2")];
        std::fs::write(mount("self/mountinfo"), lines.concat()).unwrap();
        let roots = Roots { proc: directory.path().to_owned(), ..Roots::default() };
        let said = || {
            let mut said = Vec::new();
            cgroups_with_names(None, &roots, &mut |notice: Notice| said.push(notice.to_string()));
            said.join("; ")
        };
        assert_eq!(said(), "", "no process is in another cgroup");
        std::fs::create_dir(mount("memory/job")).unwrap();
        assert!(
            said().contains(&format!("below {} (memory)", mount("memory").display())),
            "{}",
            said()
        );
        std::fs::create_dir(mount("cpu/job")).unwrap();
        assert!(said().contains("(cpu)"), "{}", said());
        std::fs::create_dir(mount("unified/job")).unwrap();
        assert_eq!(said(), "", "there are cgroups to show");
    }
}
