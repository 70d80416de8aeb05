//! `--goroutines`: where goroutines of a Go program wait, and which of them end waits.

use super::go_code::{Fields, returns};
use super::probes::Probes;
use super::requests::found;
use crate::failure::bail_usage;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use whit_capture::event::EventSpec;
use whit_elf::{ElfImage, GO_PROLOGUE_BYTES};
use whit_host::roots::Roots;
use whit_host::target::Target;
use whit_host::user_probe::{ProbeAt, ProbePlace};
use whit_perfdata::goroutine::{Change, POLL_EVENT};
use whit_types::FileOffset;

const OPTION: &str = "--goroutines";

/// The events of goroutines, and the names of their reasons.
pub(super) struct Goroutines {
    pub(super) events: Vec<EventSpec>,
    pub(super) reasons: Vec<String>,
}

/// The changes at the functions of Go's scheduler.
const WAITS: [Change; 3] = [Change::Park, Change::Ready, Change::Run];

/// Makes the probes of a Go program.
pub(super) fn watch(path: &Path, roots: &Roots, probes: &mut Probes) -> Result<Goroutines> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let image = ElfImage::from_file(path, &file)?;
    let scheduler = image.go_scheduler();
    let scheduler = scheduler.with_context(|| format!("{OPTION}: {}", path.display()))?;
    let fields = Fields::of(path);
    let mut events = Vec::new();
    let mut add = |name: &str, offsets: &[FileOffset], fields: String, is_without_chains| {
        let place = |offset: &FileOffset| ProbePlace {
            offset: offset.0,
            counter: None,
            fields: fields.clone(),
        };
        let places: Vec<_> = offsets.iter().map(place).collect();
        let at = (ProbeAt::Entry, &places[..]);
        let event = probes.add((OPTION, roots), name, (path, &file), at)?;
        events.push(EventSpec { is_without_chains, ..event });
        Ok::<_, anyhow::Error>(())
    };
    for (change, FileOffset(offset)) in WAITS.into_iter().zip(scheduler.functions) {
        // A thread that runs another goroutine or asks for ready files is in the scheduler, always. With a call chain, the
        // frame has to be there. Without one, the kernel does what `push` does, which saves it a second trap.
        let is_without_chains = change == Change::Run;
        let behind = if is_without_chains { 0 } else { GO_PROLOGUE_BYTES };
        let at = FileOffset(offset + behind);
        add(&change.event_name(), &[at], fields.at(change), is_without_chains)?;
    }
    if let Some((offset, of_poll)) = scheduler.poller.zip(fields.of_poll()) {
        add(POLL_EVENT, &[offset], of_poll, true)?;
    }
    // A goroutine whose creation is not recorded is unknown before it runs first.
    let returns = scheduler.creator.and_then(|creator| returns(&image, creator).ok());
    if let Some(returns) = returns {
        add(&Change::Create.event_name(), &returns, fields.at(Change::Create), true)?;
    }
    Ok(Goroutines { events, reasons: scheduler.reasons })
}

/// The one Go program of a recording: that of the target for the option, else that of its requests.
pub(super) fn the_program(
    of_target: Option<PathBuf>,
    of_requests: &BTreeSet<PathBuf>,
) -> Result<Option<PathBuf>> {
    let is_same = |one: &Path, other: &Path| {
        let identity = |path| std::fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
        identity(one).is_some_and(|file| Some(file) == identity(other))
    };
    let mut all = of_target.iter().chain(of_requests);
    let Some(first) = all.next() else { return Ok(None) };
    if let Some(other) = all.find(|it| !is_same(it, first)) {
        let (first, other) = (first.display(), other.display());
        bail_usage!("goroutines of one program are recorded: {first} and {other} are two");
    }
    Ok(Some(first.clone()))
}

/// The program of the recorded processes.
pub(super) fn program(target: &Target, command: &[OsString]) -> Result<PathBuf> {
    let processes = match (target, command) {
        (Target::Command, [program, ..]) => return found(Path::new(program)),
        (Target::Processes(pids), _) => pids,
        _ => bail_usage!("{OPTION} is for one program: give its command, or its process with -p"),
    };
    let link = |pid: i32| PathBuf::from(format!("/proc/{pid}/exe"));
    let mut programs = BTreeSet::new();
    for pid in processes {
        let program = std::fs::read_link(link(pid.0));
        programs.insert(
            program.with_context(|| format!("cannot find the program of process {}", pid.0))?,
        );
    }
    if programs.len() > 1 {
        bail!("{OPTION} is for one program: these processes run several");
    }
    // The link leads into other roots, too.
    let first = processes.first().context("no process is recorded")?;
    Ok(link(first.0))
}
