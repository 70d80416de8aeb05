//! Forced losses: recorded + lost = produced, by a counter of the same event.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use anyhow::{Context, Result, bail};
use whit_perfdata::attr::{Attr, AttrFlags, pmu_type};
use whit_sys::{OpenFlags, PerfEventFd};

use crate::Setting;
use crate::recorders::{Mode, STREAMING};
use crate::trouble::Trouble;
use crate::verdict::Verdict;

/// Recordings at full effort.
const RECORDINGS: u64 = 100;
/// `PERF_COUNT_SW_PAGE_FAULTS`.
const PAGE_FAULTS: u64 = 2;
const PAGE_BYTES: usize = 4096;
/// Memory that is touched page by page; larger than any piece that the allocator keeps.
const TOUCHED_BYTES: usize = 64 << 20;

/// Call chains by dumps fill rings of 64 KiB at once; the BPF engine's are small, and its samples many.
const DUMPS: [&str; 2] = ["--call-graph", "dwarf,8192"];
/// Ways of the BPF engine, beside those of streaming.
const ENGINE: [Mode; 4] = [
    &["--engine=bpf"],
    &["--engine=bpf", "--no-pack"],
    &["--engine=bpf", "-z", "--aio"],
    &["--engine=bpf", "--threads"],
];

pub(crate) fn run(setting: &mut Setting) -> Result<Verdict> {
    attack(setting, RECORDINGS, &[Trouble::StoppedOnce])
}

/// Records page faults in every mode, with each of the troubles in turn, and closes the accounts.
pub(crate) fn attack(setting: &mut Setting, usual: u64, troubles: &[Trouble]) -> Result<Verdict> {
    let mut verdict = Verdict::default();
    let mut lost_in_all = 0;
    let modes: Vec<Mode> = STREAMING.iter().copied().chain(ENGINE).collect();
    for number in 0..setting.times(usual) as usize {
        let mode = modes[number % modes.len()];
        let trouble = troubles[number / modes.len() % troubles.len()];
        let (recorded, lost, produced) = account(setting, mode, trouble)?;
        lost_in_all += lost;
        // The thread's own end is a record as well, and may be one of those that are lost.
        let closes = recorded + lost == produced || recorded + lost == produced + 1;
        verdict.attempt((!closes).then(|| {
            let mode = mode.join(" ");
            format!("{trouble:?} {mode}: {recorded} recorded + {lost} lost, {produced} produced")
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

fn account(setting: &mut Setting, mode: Mode, trouble: Trouble) -> Result<(u64, u64, u64)> {
    let scratch = tempfile::tempdir().context("cannot make a directory")?;
    let toucher = Toucher::start()?;
    let counter = counter(toucher.tid)?;
    let data = scratch.path().join("perf.data");
    let mut command = Command::new(&setting.whit);
    let tid = toucher.tid.to_string();
    command.args([
        "record",
        "--engine=ring",
        "-e",
        "page-faults:u",
        "-c",
        "1",
        "-t",
        &tid,
        "-m",
        "16",
    ]);
    let is_bpf = mode.contains(&"--engine=bpf");
    command.args((!is_bpf).then_some(DUMPS).into_iter().flatten());
    command.args(mode).arg("-o").arg(&data);
    // It runs as soon as events are on, and the recording ends with it.
    command.args(["--", "sh", "-c", "echo begun; read -r line; exit 0"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut recorder = command.spawn().context("cannot run whit")?;
    let mut begun = String::new();
    BufReader::new(recorder.stdout.take().context("no pipe")?).read_line(&mut begun)?;
    let before = read(&counter)?;
    let Toucher { release, thread, .. } = toucher;
    trouble.befall(&recorder, &mut setting.random, || drop(release), &|| thread.is_finished())?;
    if thread.join().is_err() {
        bail!("the load failed");
    }
    let produced = read(&counter)? - before;
    drop(recorder.stdin.take());
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
