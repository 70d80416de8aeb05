//! Forced losses: recorded + lost = produced, by a counter of the same event.

use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use whit_perfdata::attr::{Attr, AttrFlags, pmu_type};
use whit_sys::{OpenFlags, PerfEventFd};

use crate::Setting;
use crate::recorders::STREAMING;
use crate::verdict::Verdict;

/// Recordings at full effort.
const RECORDINGS: u64 = 100;
/// `PERF_COUNT_SW_PAGE_FAULTS`.
const PAGE_FAULTS: u64 = 2;
const PAGE_BYTES: usize = 4096;
/// Memory that is touched page by page; larger than any piece that the allocator keeps.
const TOUCHED_BYTES: usize = 64 << 20;
/// The recorder is stopped for so long while its rings of 64 KiB fill: losses are certain.
const STOPPED: Duration = Duration::from_millis(150);
/// Longest wait for the recorder to be ready.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn run(setting: &mut Setting) -> Result<Verdict> {
    let mut verdict = Verdict::default();
    let mut lost_in_all = 0;
    for number in 0..setting.times(RECORDINGS) {
        let mode = STREAMING[number as usize % STREAMING.len()];
        let (recorded, lost, produced) = account(setting, mode)?;
        lost_in_all += lost;
        // The thread's own end is a record as well, and may be one of those that are lost.
        let closes = recorded + lost == produced || recorded + lost == produced + 1;
        verdict.attempt((!closes).then(|| {
            format!("{}: {recorded} recorded + {lost} lost, {produced} produced", mode.join(" "))
        }));
    }
    verdict.figures.push(format!("{lost_in_all} records were lost, and counted"));
    if lost_in_all == 0 {
        verdict.failures.push("no loss could be forced: the attack says nothing".to_owned());
    }
    Ok(verdict)
}

/// Waits until it is released, and then touches memory for the first time.
struct Toucher {
    tid: i32,
    release: Sender<()>,
    thread: JoinHandle<()>,
}

impl Toucher {
    fn start() -> Result<Toucher> {
        let (say, said) = channel();
        let (release, released) = channel();
        let thread = std::thread::spawn(move || {
            let own = std::fs::read_link("/proc/thread-self").ok();
            let tid = own.and_then(|path| path.file_name()?.to_str()?.parse::<i32>().ok());
            let _ = say.send(tid);
            let _ = released.recv();
            let mut memory = vec![0u8; TOUCHED_BYTES];
            for page in memory.chunks_mut(PAGE_BYTES) {
                page[0] = std::hint::black_box(1);
            }
        });
        let tid = said.recv()?.context("a thread does not know its number")?;
        Ok(Toucher { tid, release, thread })
    }
}

fn account(setting: &Setting, mode: &[&str]) -> Result<(u64, u64, u64)> {
    let scratch = tempfile::tempdir().context("cannot make a directory")?;
    let toucher = Toucher::start()?;
    let counter = counter(toucher.tid)?;
    let data = scratch.path().join("perf.data");
    let mut command = Command::new(&setting.whit);
    let tid = toucher.tid.to_string();
    command.args(["record", "-e", "page-faults:u", "-c", "1", "-t", &tid, "-m", "16"]);
    command.args(["--call-graph", "dwarf,8192"]).args(mode).arg("-o").arg(&data);
    let recorder = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
    let recorder = recorder.context("cannot run whit")?;
    wait_until_recorded(&recorder)?;
    let before = read(&counter)?;
    signal(&recorder, "STOP")?;
    drop(toucher.release);
    std::thread::sleep(STOPPED);
    signal(&recorder, "CONT")?;
    if toucher.thread.join().is_err() {
        bail!("the load failed");
    }
    let produced = read(&counter)? - before;
    let output = recorder.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let number = |before: &str, after: &str| -> Option<u64> {
        let (_, rest) = said.split_once(before)?;
        rest.split_once(after)?.0.trim().parse().ok()
    };
    let recorded = number("[ whit record: ", " samples");
    let lost =
        said.rsplit_once("; lost ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    match (recorded, lost) {
        (Some(recorded), Some(lost)) => Ok((recorded, lost, produced)),
        _ => bail!("the recorder with {mode:?} gives no counts: {said}"),
    }
}

/// Its events are open and on when the thread that it records has them: the kernel's own list of descriptors
/// shows them, and the rings that are mapped.
fn wait_until_recorded(recorder: &Child) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let readers = || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", recorder.id())).ok()?;
        let names = tasks
            .flatten()
            .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        Some(names.filter(|name| name.starts_with("whit-reader")).count())
    };
    while readers().is_none_or(|count| count == 0) {
        if Instant::now() > deadline {
            bail!("the recorder started no reader in {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // Events are switched on right behind the start of the readers.
    std::thread::sleep(Duration::from_millis(100));
    Ok(())
}

fn signal(child: &Child, name: &str) -> Result<()> {
    let status = Command::new("kill").args(["-s", name, &child.id().to_string()]).status()?;
    anyhow::ensure!(status.success(), "cannot send SIG{name} to the recorder");
    Ok(())
}

fn counter(tid: i32) -> Result<PerfEventFd> {
    let flags = AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV;
    let attr = Attr { pmu_type: pmu_type::SOFTWARE, config: PAGE_FAULTS, flags, ..Attr::default() };
    PerfEventFd::open(&attr.to_bytes(), tid, -1, None, OpenFlags::default())
        .context("cannot count page faults")
}

fn read(counter: &PerfEventFd) -> Result<u64> {
    let mut value = [0];
    counter.read(&mut value).context("cannot read a counter")?;
    Ok(value[0])
}
