//! `--goroutines`: where goroutines of a Go program wait, and which of them end waits.

use super::probes::Probes;
use super::requests::found;
use crate::failure::bail_usage;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use whit_capture::event::EventSpec;
use whit_elf::ElfImage;
use whit_host::roots::Roots;
use whit_host::target::Target;
use whit_host::user_probe::{ProbeAt, ProbePlace};
use whit_perfdata::goroutine::{
    ADDRESS, CHANNEL, Change, NUMBER, READ_FILE, REASON, SEMAPHORE, SUDOG, WAKER, WAKER_NUMBER,
    WRITE_FILE,
};
use whit_symbolize::{DebugDirs, DsoKind, DsoSpec, Symbolizer, SymbolizerConfig};

const OPTION: &str = "--goroutines";
/// Go's runtime, as a compilation unit.
const UNIT: &str = "runtime";
/// `runtime.g.m`: behind two words of the stack, two of its guards, and two of panics and deferred calls. The
/// assembler's part of the runtime relies on it.
const THREAD_OFFSET: u64 = 48;

/// The events of goroutines, and the names of their reasons.
pub(super) struct Goroutines {
    pub(super) events: Vec<EventSpec>,
    pub(super) reasons: Vec<String>,
}

/// Makes the probes of the program that is recorded.
pub(super) fn watch(
    target: &Target,
    command: &[OsString],
    roots: &Roots,
    probes: &mut Probes,
) -> Result<Goroutines> {
    let path = program(target, command)?;
    let file = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
    let image = ElfImage::from_file(&path, &file)?;
    let scheduler = image.go_scheduler();
    let scheduler = scheduler.with_context(|| format!("{OPTION}: {}", path.display()))?;
    let fields = Fields::of(&path);
    let mut events = Vec::new();
    for (change, offset) in Change::ALL.into_iter().zip(scheduler.functions) {
        let place = ProbePlace { offset: offset.0, counter: None, fields: fields.at(change) };
        let (name, at) = (change.event_name(), (ProbeAt::Entry, &[place][..]));
        let mut event = probes.add((OPTION, roots), &name, (&path, &file), at)?;
        // A thread that runs another goroutine is in the scheduler, always.
        event.is_without_chains = change == Change::Run;
        events.push(event);
    }
    Ok(Goroutines { events, reasons: scheduler.reasons })
}

/// The program whose goroutines are recorded.
fn program(target: &Target, command: &[OsString]) -> Result<PathBuf> {
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

/// Where the runtime has what a record shows. Parts that the debug information does not place are in no record.
struct Fields {
    number: Option<u64>,
    current: Option<u64>,
    sudog: Option<u64>,
    channel: Option<u64>,
    semaphore: Option<u64>,
    /// From the words of readers and of writers to the number of the file.
    files: [Option<i64>; 2],
}

impl Fields {
    fn of(path: &Path) -> Fields {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let config = SymbolizerConfig::new(DebugDirs::standard(home.as_deref()));
        let binary = Symbolizer::new(config).open(&DsoSpec::new(DsoKind::Elf, path.to_owned()));
        let paths = [
            ["runtime.g", "goid"],
            ["runtime.m", "curg"],
            ["runtime.g", "waiting"],
            // A goroutine in a queue of waiting ones.
            ["runtime.sudog", "c"],
            ["runtime.sudog", "elem"],
            // A file that the network's poller knows, and its words for a reader and a writer.
            ["runtime.pollDesc", "fd"],
            ["runtime.pollDesc", "rg"],
            ["runtime.pollDesc", "wg"],
        ];
        let [number, current, sudog, channel, semaphore, file, reader, writer] =
            binary.member_offsets(UNIT, paths);
        let number_of = |at: Option<u64>| i64::try_from(at?).ok();
        let from_word = |word| number_of(file)?.checked_sub(number_of(word)?);
        let files = [reader, writer].map(from_word);
        Fields { number, current, sudog, channel, semaphore, files }
    }

    /// In the kernel's language. Go passes arguments in ax, bx and cx, and r14 has the goroutine that runs.
    fn at(&self, change: Change) -> String {
        let goroutine = if change == Change::Park { "%r14" } else { "%ax" };
        let mut fields = vec![format!("{ADDRESS}={goroutine}:u64")];
        let mut add = |name: &str, value: Option<String>| {
            fields.extend(value.map(|value| format!("{name}={value}:u64")));
        };
        let word = |at: Option<u64>, address: &str| at.map(|at| format!("+{at}({address})"));
        add(NUMBER, word(self.number, goroutine));
        match change {
            Change::Park => {
                let sudog = word(self.sudog, goroutine);
                let of_sudog = |at| word(at, sudog.as_ref()?);
                add(CHANNEL, of_sudog(self.channel));
                add(SEMAPHORE, of_sudog(self.semaphore));
                add(SUDOG, sudog);
                for (name, file) in [READ_FILE, WRITE_FILE].into_iter().zip(self.files) {
                    add(name, file.map(|at| format!("{at:+}(%bx)")));
                }
                fields.push(format!("{REASON}=%cx:u8"));
            }
            Change::Ready => {
                let waker = self.current.map(|at| format!("+{at}(+{THREAD_OFFSET}(%r14))"));
                add(WAKER_NUMBER, waker.as_ref().and_then(|waker| word(self.number, waker)));
                add(WAKER, waker);
            }
            Change::Run => {}
        }
        fields.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_debug_information_does_not_place_are_absent() {
        let files = [Some(-16), Some(-32)];
        let (sudog, channel, semaphore) = (Some(72), Some(80), Some(24));
        let all =
            Fields { number: Some(152), current: Some(184), sudog, channel, semaphore, files };
        assert_eq!(
            all.at(Change::Park),
            "g=%r14:u64 goid=+152(%r14):u64 channel=+80(+72(%r14)):u64 semaphore=+24(+72(%r14)):u64 \
             sudog=+72(%r14):u64 read_fd=-16(%bx):u64 write_fd=-32(%bx):u64 reason=%cx:u8"
        );
        assert_eq!(
            all.at(Change::Ready),
            "g=%ax:u64 goid=+152(%ax):u64 waker_goid=+152(+184(+48(%r14))):u64 waker=+184(+48(%r14)):u64"
        );
        let none = Fields {
            number: None,
            current: None,
            sudog: None,
            channel,
            semaphore,
            files: [None; 2],
        };
        assert_eq!(none.at(Change::Park), "g=%r14:u64 reason=%cx:u8");
        assert_eq!(none.at(Change::Ready), "g=%ax:u64");
        assert_eq!(none.at(Change::Run), "g=%ax:u64");
    }
}
