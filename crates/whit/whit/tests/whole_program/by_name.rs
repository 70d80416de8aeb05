//! Targets by name: cgroups of either version, units and names of threads, and processes that enter them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::tools::{record, text, whit};
use crate::support::{Skip, check, probe};
use whit_testing::run::{output, stderr};

/// Work of a shell: some tenths of a second of user time.
const WORK: &str = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done";

/// A cgroup that is removed again, with one below it.
struct Cgroup(PathBuf);

impl Cgroup {
    fn make(mount: &Path, name: &str) -> Result<Cgroup, Skip> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = mount.join(format!("whit-{}-{number}-{name}", std::process::id()));
        fs::create_dir(&path)
            .map_err(|error| Skip(format!("no cgroup can be made here: {error}")))?;
        fs::create_dir(path.join("inner")).expect("make a cgroup in it");
        Ok(Cgroup(path))
    }

    fn name(&self) -> String {
        self.0.file_name().expect("a name").to_string_lossy().into_owned()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(self.0.join("inner"));
        let _ = fs::remove_dir(&self.0);
    }
}

/// A hierarchy of version 1 that perf events do not count by.
fn version_1() -> Result<PathBuf, Skip> {
    let mount = Path::new("/sys/fs/cgroup/cpu");
    match mount.join("cpu.cfs_quota_us").exists() || mount.join("cpu.shares").exists() {
        true => Ok(mount.to_owned()),
        false => Err(Skip("there is no hierarchy of version 1 with the controller cpu".to_owned())),
    }
}

/// A shell that works outside of the cgroup, in it, in the one below and outside again, each as a program of that name. The
/// one that goes in was there before, and changes its own cgroup.
fn tour(folder: &Path, group: &Cgroup) -> String {
    let folder = folder.display();
    let names = ["outside", "entering", "inner", "leaving"];
    let copies: String = names.iter().map(|name| format!("cp /bin/sh {folder}/{name}; ")).collect();
    let root = group.0.parent().expect("a mount").display();
    let inside = group.0.display();
    format!(
        "{copies}{folder}/outside -c '{WORK}'; \
         {folder}/entering -c 'echo $$ > {inside}/cgroup.procs; {WORK}; \
             {folder}/inner -c \"echo \\$\\$ > {inside}/inner/cgroup.procs; \
                 i=0; while [ \\$i -lt 150000 ]; do i=\\$((i+1)); done\"'; \
         {folder}/leaving -c 'echo $$ > {inside}/cgroup.procs; echo $$ > {root}/cgroup.procs; {WORK}'"
    )
}

/// The commands that have more samples than come from a moment at an edge.
fn commands(path: &Path) -> BTreeSet<String> {
    let script = text(whit().args(["script", "-F", "comm", "-i"]).arg(path));
    let all: Vec<&str> = script.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let names: BTreeSet<&str> = all.iter().copied().collect();
    let often = |name: &&str| all.iter().filter(|other| *other == name).count() > 20;
    names.into_iter().filter(often).map(str::to_owned).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn recorder(path: &Path, line: &[&str]) -> std::process::Command {
    let mut recorder = whit();
    recorder.args(["record", "-q", "-e", "cpu-clock:u", "-F", "1999"]);
    recorder.args(line).arg("-o").arg(path);
    recorder
}

#[test]
fn a_cgroup_is_recorded_with_all_that_enter_it() {
    check("a_cgroup_is_recorded_with_all_that_enter_it", || {
        probe::whole_cpus()?;
        probe::cgroup_events()?;
        probe::bpf_stacks()?;
        let of_version_2 = Cgroup::make(&probe::cgroups_v2()?, "named")?;
        for engine in ["ring", "bpf"] {
            let folder = tempfile::tempdir().expect("make a directory");
            let path = folder.path().join("perf.data");
            let (name, engine_arg) = (of_version_2.name(), format!("--engine={engine}"));
            let mut recorder = recorder(&path, &["--cgroup", &name, &engine_arg]);
            let script = tour(folder.path(), &of_version_2);
            record(recorder.args(["--", "sh", "-c", &script]))?;
            assert_eq!(commands(&path), set(&["entering", "inner"]), "{engine}");
        }
        Ok(())
    });
}

#[test]
fn a_cgroup_of_another_hierarchy_is_recorded_by_bpf() {
    check("a_cgroup_of_another_hierarchy_is_recorded_by_bpf", || {
        probe::whole_cpus()?;
        probe::bpf_stacks()?;
        let group = Cgroup::make(&version_1()?, "old")?;
        let folder = tempfile::tempdir().expect("make a directory");
        let path = folder.path().join("perf.data");
        let script = tour(folder.path(), &group);
        let directory = group.0.display().to_string();
        // Without an engine, that is taken which can.
        let mut automatic = recorder(&path, &["--cgroup", &directory]);
        record(automatic.args(["--", "sh", "-c", &script]))?;
        assert_eq!(commands(&path), set(&["entering", "inner"]));
        let mut by_ring = recorder(&path, &["--cgroup", &group.name(), "--engine=ring"]);
        let refused = output(by_ring.args(["--", "true"]));
        let said = stderr(&refused);
        assert!(!refused.status.success() && said.contains("take --engine=bpf"), "{said}");
        // Its id stays while its name changes, and after it has gone.
        let renamed = group.0.with_file_name(format!("{}-renamed", group.name()));
        let moved = group.0.display();
        let script = format!(
            "cp /bin/sh {0}/renamed; mv {moved} {1}; \
             {0}/renamed -c 'echo $$ > {1}/cgroup.procs; {WORK}; echo $$ > {1}/../cgroup.procs'; \
             rmdir {1}/inner {1}; {0}/renamed -c '{WORK}'",
            folder.path().display(),
            renamed.display()
        );
        let mut after = recorder(&path, &["--cgroup", &group.name(), "--engine=bpf"]);
        record(after.args(["--", "sh", "-c", &script]))?;
        assert_eq!(commands(&path), set(&["renamed"]));
        let samples = text(whit().args(["script", "-F", "tid", "-i"]).arg(&path));
        let threads: BTreeSet<&str> = samples.split_whitespace().collect();
        assert_eq!(threads.len(), 1, "the second one was in no cgroup: {threads:?}");
        Ok(())
    });
}

#[test]
fn threads_are_recorded_by_their_name_and_their_process_s() {
    check("threads_are_recorded_by_their_name_and_their_process_s", || {
        probe::whole_cpus()?;
        probe::bpf_stacks()?;
        let folder = tempfile::tempdir().expect("make a directory");
        let (path, copies) = (folder.path().join("perf.data"), folder.path().display());
        // A name by exec, one that the program writes itself, and one that begins like it.
        let script = format!(
            "for name in named other named-too; do cp /bin/sh {copies}/$name; done; \
             {copies}/named -c '{WORK}'; {copies}/named-too -c '{WORK}'; \
             {copies}/other -c '{WORK}; echo -n renamed > /proc/$$/comm; {WORK}'"
        );
        let mut recorder = recorder(&path, &["--comm", "named,renamed"]);
        record(recorder.args(["--", "sh", "-c", &script]))?;
        assert_eq!(commands(&path), set(&["named", "renamed"]));
        let of_both = text(whit().args(["script", "-F", "comm", "-i"]).arg(&path));
        let others = of_both.lines().filter(|line| line.trim() == "other").count();
        // The name of a sample is that of the record of the change, a moment apart.
        assert!(others <= 2, "{others}");
        Ok(())
    });
}

#[test]
fn switches_are_those_of_the_cgroup_alone() {
    check("switches_are_those_of_the_cgroup_alone", || {
        probe::whole_cpus()?;
        probe::bpf_stacks()?;
        let group = Cgroup::make(&probe::cgroups_v2()?, "switches")?;
        let folder = tempfile::tempdir().expect("make a directory");
        let path = folder.path().join("perf.data");
        let wait = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.01; done";
        let script = format!(
            "sh -c '{wait}'; sh -c 'echo $$ > {}/cgroup.procs; {WORK}; {wait}'",
            group.0.display()
        );
        let name = group.name();
        let line = ["--cgroup", &name, "--engine=bpf", "--switch-events"];
        record(recorder(&path, &line).args(["--", "sh", "-c", &script]))?;
        let report = |line: &[&str]| {
            let mut program = whit();
            program.args(line).arg("-i").arg(&path);
            let json = text(&mut program);
            serde_json::from_str::<serde_json::Value>(&json).expect("JSON")
        };
        let all = report(&["switches", "--json"]);
        // Threads of others are in the sideband, and have no rows.
        let rows = all["rows"].as_array().expect("rows").iter();
        let threads: BTreeSet<(&str, u64)> = rows
            .map(|row| {
                (row["comm"].as_str().expect("a name"), row["thread"].as_u64().expect("a number"))
            })
            .collect();
        let of = |comm: &str| threads.iter().filter(|(name, _)| *name == comm).count();
        assert_eq!(
            (of("sleep"), threads.iter().all(|(name, _)| ["sh", "sleep"].contains(name))),
            (10, true),
            "{threads:?}"
        );
        Ok(())
    });
}

/// Threads belong to the cgroup of their samples. Those that work here have hundreds.
#[test]
fn waits_are_chosen_and_grouped_by_cgroup() {
    check("waits_are_chosen_and_grouped_by_cgroup", || {
        probe::whole_cpus()?;
        probe::bpf_stacks()?;
        let group = Cgroup::make(&probe::cgroups_v2()?, "waits")?;
        let folder = tempfile::tempdir().expect("make a directory");
        let (path, copies) = (folder.path().join("perf.data"), folder.path().display());
        let work = format!("read line < {copies}/fifo; {WORK}");
        let script = format!(
            "cp /bin/sh {copies}/inside; cp /bin/sh {copies}/outside; mkfifo {copies}/fifo; \
             (sleep 0.1; echo > {copies}/fifo; sleep 0.1; echo > {copies}/fifo) & \
             {copies}/inside -c 'echo $$ > {0}/inner/cgroup.procs; {work}'; {copies}/outside -c '{work}'",
            group.0.display()
        );
        let mut recorder = whit();
        recorder.args([
            "record",
            "-a",
            "-q",
            "-e",
            "cpu-clock",
            "-F",
            "1999",
            "--engine=bpf",
            "--switch-events",
        ]);
        record(recorder.arg("-o").arg(&path).args(["--", "sh", "-c", &script]))?;
        let name = group.name();
        let threads = |line: &[&str]| {
            let mut program = whit();
            program.args(line).args(["--json", "--cgroup", &name, "-i"]).arg(&path);
            let json: serde_json::Value = serde_json::from_str(&text(&mut program)).expect("JSON");
            let threads = json["threads"].as_array().expect("threads");
            let rows = json["rows"].as_array().expect("rows").iter();
            let comm = |row: &serde_json::Value| {
                let number = row["thread"].as_u64().expect("a number") as usize;
                threads[number]["comm"].as_str().expect("a name").to_owned()
            };
            rows.map(comm).collect::<BTreeSet<_>>()
        };
        assert_eq!(threads(&["switches"]), set(&["inside"]));
        assert_eq!(threads(&["report", "--wall"]), set(&["inside"]));
        let mut table = whit();
        table
            .args(["switches", "-q", "-s", "cgroup,comm", "--percent-limit", "0", "-i"])
            .arg(&path);
        let table = text(&mut table);
        let row = |comm: &str| table.lines().find(|line| line.ends_with(comm)).map(str::to_owned);
        let (inside, outside) = (row("inside").expect("a row"), row("outside").expect("a row"));
        assert!(inside.contains(&format!("/{name}/inner")) && !outside.contains(&name), "{table}");
        Ok(())
    });
}

#[test]
fn names_that_choose_nothing_are_answered() {
    check("names_that_choose_nothing_are_answered", || {
        let group = Cgroup::make(&probe::cgroups_v2()?, "near")?;
        let folder = tempfile::tempdir().expect("make a directory");
        let path = folder.path().join("perf.data");
        let refused = |line: &[&str]| {
            let refused = output(recorder(&path, line).args(["--", "true"]));
            assert!(!refused.status.success(), "{line:?}");
            stderr(&refused)
        };
        let name = group.name();
        let near = refused(&["--cgroup", &name.replace("near", "naer")]);
        assert!(near.contains(&format!("near names: {name}")), "{near}");
        let none = refused(&["--container", "0123456789ab"]);
        assert!(
            none.contains("--container 0123456789ab: there is no such container here"),
            "{none}"
        );
        for nothing in [["--comm", ""], ["--container", ",,"], ["--cgroup", ""]] {
            let none = refused(&nothing);
            assert!(none.contains("none is given"), "{none}");
        }
        let both = refused(&["--unit", "x", "-p", "1"]);
        assert!(both.contains("give one"), "{both}");
        let ring = refused(&["--comm", "sh", "--engine=ring"]);
        assert!(ring.contains("takes no --comm") && ring.contains("--engine=bpf"), "{ring}");
        Ok(())
    });
}
