//! `whit watch` for long in 128 MiB, beside storms of processes, threads, mappings, libraries and cgroups: it is not ended,
//! does not grow, and its accounts close.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{PROT_EXEC, RawRecord, SideBand};
use whit_perfdata::stream::StreamReader;

use crate::Setting;
use crate::trouble::signal;
use crate::verdict::Verdict;

const LIMIT_BYTES: u64 = 128 << 20;
/// One round of each storm, as `bench/workloads/storm.c` names it, and the begins and mappings that it makes.
const STORMS: [(&str, u64); 4] =
    [("--forks", 2000), ("--threads", 2000), ("--maps", 5000), ("--dlopens", 200)];
/// Between two rounds.
const PAUSE: Duration = Duration::from_millis(500);
/// Between two looks at the service.
const LOOK: Duration = Duration::from_secs(2);
/// Between two rows of figures.
const ROW: Duration = Duration::from_secs(60);
/// Descriptors that may come after the first row: 192 of mapped files, and those of files that are read.
const DESCRIPTORS_MORE: usize = 256;
/// How long the service may take to begin, and to end.
const PATIENCE: Duration = Duration::from_secs(60);
/// None of them may rise.
const FAULTS: [&str; 5] = [
    "recorder_ends",
    "recorder_hangs",
    "recorder_out_of_memory",
    "windows_lost_by_memory",
    "windows_lost_by_queue_bytes",
];

/// A cgroup with a limit of memory, which goes when this is dropped.
struct Group {
    path: PathBuf,
    peak: &'static str,
}

impl Group {
    fn make() -> Result<Group> {
        let is_old = Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists();
        let (mount, limit, peak) = match is_old {
            true => {
                let peak = "memory.max_usage_in_bytes";
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", peak)
            }
            false => ("/sys/fs/cgroup", "memory.max", "memory.peak"),
        };
        let path = Path::new(mount).join(format!("whit-soak-{}", std::process::id()));
        fs::create_dir(&path)?;
        let group = Group { path, peak };
        fs::write(group.path.join(limit), LIMIT_BYTES.to_string())?;
        Ok(group)
    }

    /// The most memory that was used.
    fn peak_bytes(&self) -> u64 {
        let text = fs::read_to_string(self.path.join(self.peak)).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let end = Instant::now() + PATIENCE;
        while fs::remove_dir(&self.path).is_err() && Instant::now() < end {
            std::thread::sleep(PAUSE);
        }
    }
}

/// The service, which is killed when this is dropped.
struct Service<'a> {
    child: Child,
    whit: &'a Path,
    place: &'a Path,
}

impl Service<'_> {
    fn start<'a>(whit: &'a Path, place: &'a Path, group: &Group) -> Result<Service<'a>> {
        let (folder, socket) = (place.join("files"), place.join("watch.sock"));
        let config = format!(
            "folder = {folder:?}\nsocket = {socket:?}\nevent = \"cpu-clock\"\nengine = \"bpf\"\n\
             window = \"1s\"\nfreq = 99\nkeep-bytes = \"1G\"\n"
        );
        fs::write(place.join("watch.toml"), config)?;
        let mut shell = Command::new("sh");
        let line = "echo $$ >\"$1/cgroup.procs\" && shift && exec \"$@\"";
        shell.args(["-c", line, "sh"]).arg(&group.path).arg(whit).args(["watch", "--config"]);
        shell.arg(place.join("watch.toml")).stdin(Stdio::null());
        let child = shell.stderr(fs::File::create(place.join("log"))?).spawn()?;
        Ok(Service { child, whit, place })
    }

    fn status(&self) -> Value {
        let mut ask = Command::new(self.whit);
        ask.args(["watch", "status", "--json", "--socket"]).arg(self.place.join("watch.sock"));
        let said = ask.output().map(|said| said.stdout).unwrap_or_default();
        serde_json::from_slice(&said).unwrap_or_default()
    }

    fn recorder(&self) -> Option<u64> {
        self.status()["recorder_pid"].as_u64()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.place.join("log")).unwrap_or_default()
    }

    /// Ends it in an orderly way.
    fn end(&mut self) -> Result<()> {
        signal(&self.child, "TERM")?;
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "the service ended with {status}: {}", self.log());
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
        bail!("the service does not end: {}", self.log())
    }
}

impl Drop for Service<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The begins of threads and processes, and mappings of code.
#[derive(Debug, Default)]
struct Made {
    begins: AtomicU64,
    mappings: AtomicU64,
    cgroups: AtomicU64,
}

impl Made {
    /// Runs a side of the storm until it is enough.
    fn storm(&self, storm: &Path, (side, number): (&str, u64), is_over: &AtomicBool) -> Result<()> {
        while !is_over.load(Ordering::Relaxed) {
            let mut command = Command::new(storm);
            command.args([side, &number.to_string()]).stdin(Stdio::null()).stdout(Stdio::null());
            ensure!(command.status()?.success(), "storm {side} failed");
            let all =
                if matches!(side, "--forks" | "--threads") { &self.begins } else { &self.mappings };
            all.fetch_add(number, Ordering::Relaxed);
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Makes and removes cgroups until it is enough.
    fn cgroups(&self, outer: &Path, is_over: &AtomicBool) -> Result<()> {
        while !is_over.load(Ordering::Relaxed) {
            let group = outer.join(format!("job-{}", self.cgroups.load(Ordering::Relaxed)));
            fs::create_dir(&group)?;
            let mut shell = Command::new("sh");
            shell.args(["-c", "echo $$ >\"$1/cgroup.procs\" && exec true", "sh"]).arg(&group);
            ensure!(shell.status()?.success(), "no process entered {}", group.display());
            let end = Instant::now() + PATIENCE;
            while let Err(error) = fs::remove_dir(&group) {
                ensure!(Instant::now() < end, "cannot remove {}: {error}", group.display());
                std::thread::yield_now();
            }
            self.cgroups.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(PAUSE / 20);
        }
        Ok(())
    }
}

/// The files that were counted, and their records.
#[derive(Debug, Default)]
struct Accounts {
    counted: HashSet<PathBuf>,
    begins: u64,
    mappings: u64,
    lost: u64,
}

impl Accounts {
    /// Takes in files that are new.
    fn look(&mut self, folder: &Path) -> Result<()> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_whole = name.starts_with("whit-") && name.ends_with(".data");
            if is_whole && !self.counted.contains(&path) {
                self.count(&path).with_context(|| format!("cannot read {}", path.display()))?;
                self.counted.insert(path);
            }
        }
        Ok(())
    }

    fn count(&mut self, path: &Path) -> Result<()> {
        let recording = Recording::open(path)?;
        for stream in &recording.streams {
            let (mut reader, mut block) = (StreamReader::new(stream.clone()), Vec::new());
            while reader.next_block(&mut block)?.is_some() {
                let mut rest = &block[..];
                while let Some((record, behind)) = RawRecord::split(rest) {
                    rest = behind;
                    match SideBand::parse(record) {
                        Some(SideBand::Fork(_)) => self.begins += 1,
                        Some(SideBand::Mmap(map)) if map.protection & PROT_EXEC != 0 => {
                            self.mappings += 1;
                        }
                        Some(SideBand::Lost { lost, .. }) => self.lost += lost,
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }
}

/// The sizes of a process.
#[derive(Clone, Copy, Debug, Default)]
struct Sizes {
    descriptors: usize,
    memory_kib: u64,
}

impl Sizes {
    fn of(pid: u64) -> Sizes {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let memory = memory.and_then(|text| text.split_whitespace().next()?.parse().ok());
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        Sizes { descriptors, memory_kib: memory.unwrap_or(0) }
    }

    fn or_more(self, other: Sizes) -> Sizes {
        Sizes {
            descriptors: self.descriptors.max(other.descriptors),
            memory_kib: self.memory_kib.max(other.memory_kib),
        }
    }
}

pub(crate) fn run(setting: &mut Setting) -> Result<Verdict> {
    let mut verdict = Verdict::default();
    let storm = setting.workloads.join("storm");
    ensure!(storm.is_file(), "there is no {}: make -C bench/workloads storm", storm.display());
    let watch = setting.whit.with_file_name("whit-watch");
    ensure!(watch.is_file(), "there is no {}: cargo build -p whit-watch", watch.display());
    let (group, outer) = match (Group::make(), Group::make_outer()) {
        (Ok(group), Ok(outer)) => (group, outer),
        (Err(error), _) | (_, Err(error)) => {
            verdict.skipped.push(format!("this user cannot make a cgroup with a limit: {error}"));
            return Ok(verdict);
        }
    };
    let place = tempfile::tempdir().context("cannot make a directory")?;
    let mut service = Service::start(&setting.whit, place.path(), &group)?;
    let begin = Instant::now();
    let recorder = loop {
        if let Some(recorder) = service.recorder() {
            break recorder;
        }
        ensure!(begin.elapsed() < PATIENCE, "the service does not begin: {}", service.log());
        std::thread::sleep(PAUSE);
    };
    let (made, is_over) = (Made::default(), AtomicBool::new(false));
    let mut accounts = Accounts::default();
    let soaked = std::thread::scope(|scope| {
        let mut sides: Vec<_> =
            STORMS.iter().map(|side| scope.spawn(|| made.storm(&storm, *side, &is_over))).collect();
        sides.push(scope.spawn(|| made.cgroups(&outer.path, &is_over)));
        let soaked = soak(&service, recorder, setting.soak, &mut accounts, &mut verdict);
        is_over.store(true, Ordering::Relaxed);
        let ended = sides.into_iter().try_for_each(|side| match side.join() {
            Ok(ended) => ended,
            Err(_) => bail!("a storm ended in a panic"),
        });
        soaked.and(ended)
    });
    soaked?;
    let faults = service.status()["counted"].clone();
    for name in FAULTS {
        let number = faults[name].as_u64();
        verdict.attempt((number != Some(0)).then(|| format!("{name} is {number:?}")));
    }
    let last = service.recorder();
    let is_same = last == Some(recorder);
    verdict.attempt((!is_same).then(|| format!("recorder {recorder}, then {last:?}")));
    service.end()?;
    accounts.look(&place.path().join("files"))?;
    let [begun, mapped, cgroups] =
        [&made.begins, &made.mappings, &made.cgroups].map(|all| all.load(Ordering::Relaxed));
    for (what, recorded, made) in
        [("begins", accounts.begins, begun), ("mappings", accounts.mappings, mapped)]
    {
        let account = format!("{recorded} of {made} {what}, {} records lost", accounts.lost);
        verdict.attempt((recorded + accounts.lost < made).then(|| account.clone()));
        verdict.figures.push(account);
    }
    let windows = accounts.counted.len();
    verdict.figures.push(format!("{windows} windows, {cgroups} cgroups"));
    verdict.figures.push(format!("the cgroup took {} MiB at most", group.peak_bytes() >> 20));
    Ok(verdict)
}

impl Group {
    /// One for the cgroups of the storm, without a limit.
    fn make_outer() -> Result<Group> {
        let mounts = ["/sys/fs/cgroup/perf_event", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"];
        let mount = mounts.into_iter().find(|mount| Path::new(mount).join("cgroup.procs").exists());
        let mount = mount.context("no cgroups are mounted")?;
        let path = Path::new(mount).join(format!("whit-storm-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Group { path, peak: "" })
    }
}

/// Looks at the service for so long.
fn soak(
    service: &Service<'_>,
    recorder: u64,
    length: Duration,
    accounts: &mut Accounts,
    verdict: &mut Verdict,
) -> Result<()> {
    let begin = Instant::now();
    let (mut first, mut most, mut row) = (None::<Sizes>, Sizes::default(), Instant::now());
    while begin.elapsed() < length {
        std::thread::sleep(LOOK);
        most = most.or_more(Sizes::of(recorder));
        accounts.look(&service.place.join("files"))?;
        if row.elapsed() < ROW {
            continue;
        }
        row = Instant::now();
        let of_first = *first.get_or_insert(most);
        let grown = most.descriptors > of_first.descriptors + DESCRIPTORS_MORE;
        let minute = begin.elapsed().as_secs() / 60;
        let Sizes { descriptors, memory_kib } = most;
        verdict.attempt(grown.then(|| format!("{descriptors} descriptors in minute {minute}")));
        let service = Sizes::of(service.child.id().into());
        verdict.figures.push(format!(
            "minute {minute}: recorder {descriptors} descriptors, {} MiB; service {} descriptors, {} MiB; {} windows, \
             {} begins, {} lost",
            memory_kib >> 10,
            service.descriptors,
            service.memory_kib >> 10,
            accounts.counted.len(),
            accounts.begins,
            accounts.lost,
        ));
        most = Sizes::default();
    }
    Ok(())
}
