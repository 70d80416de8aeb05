//! The flight recorder of `whit watch`: time from an event until its file is there, whether the file is whole, and the
//! cost of waiting for the event.
//!
//! A thread of the benchmark counts its own context switches by `/proc`, independently of the recorder. Each dump must
//! have as many of this thread's switches as were counted in the last seconds before the event.

mod dump;
mod marker;

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Serialize;
use whit_measure::summary::Spread;
use whit_types::ByteSize;

use crate::Error;
use crate::load::{PingPong, Shells};
use crate::markdown::{line_to, number, spread, table_to};
use crate::named::go_by_name;
use crate::scratch::Scratch;
use crate::system::System;
use crate::top::Cost;
use marker::Marker;

const MIB: f64 = (1u64 << 20) as f64;
/// An event without a file after this time has none.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks into the folder.
const LOOK_INTERVAL: Duration = Duration::from_micros(500);
/// The recorder sets itself up, before the kept seconds begin.
const SET_UP: Duration = Duration::from_secs(8);

/// Settings.
#[derive(Clone, Debug)]
pub struct Options {
    /// Loads.
    pub machines: Vec<Machine>,
    /// Seconds before an event that are kept.
    pub seconds: Vec<u64>,
    /// Events of each run.
    pub events: usize,
    /// From a file to the next event.
    pub gap: Duration,
    /// Bytes of records that are kept.
    pub bytes_max: ByteSize,
    /// Where dumps go.
    pub folder: PathBuf,
    /// The whit to measure.
    pub whit: PathBuf,
}

/// Other work of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Machine {
    /// The marker alone.
    Idle,
    /// A busy process on each CPU.
    Busy,
    /// Two threads that wake each other all the time.
    PingPong,
}

impl Machine {
    /// In the order in which they run.
    pub const ALL: [Machine; 3] = [Machine::Idle, Machine::Busy, Machine::PingPong];

    fn name(self) -> &'static str {
        match self {
            Machine::Idle => "idle",
            Machine::Busy => "busy",
            Machine::PingPong => "ping-pong",
        }
    }
}

go_by_name!(Machine, "machine", Machine::ALL);

/// One event and its file.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Event {
    /// From the event until the file had its name.
    pub took_ms: f64,
    /// Size of the file.
    pub bytes: u64,
    /// Seconds that the file says it has.
    pub covered_s: f64,
    /// The marker's switches in the last seconds by the kernel's count.
    pub counted: u64,
    /// Those in the file.
    pub recorded: u64,
}

/// All events of a machine.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Other work beside it.
    pub machine: Machine,
    /// Seconds that are kept.
    pub seconds: u64,
    /// One for each event.
    pub events: Vec<Event>,
    /// Context switches of the machine in a second.
    pub switches_per_s: f64,
    /// CPU time of the service and its recorder while they wait, in percent of one CPU.
    pub cpu_percent: f64,
    /// Their memory.
    pub memory_bytes: u64,
    /// Why there are no events.
    pub refused: Option<String>,
}

/// The result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measured {
    /// The machine.
    pub system: System,
    /// Bytes of records that are kept.
    pub bytes_max: u64,
    /// One for each machine and length.
    pub rows: Vec<Row>,
}

impl Measured {
    /// Whether each event had a file, and no switch is missing in the time that the file has.
    pub fn whit_succeeded(&self) -> bool {
        self.rows.iter().all(|row| {
            let is_whole = |event: &Event| event.recorded >= event.counted;
            row.refused.is_none() && row.events.iter().all(is_whole)
        })
    }
}

/// Measures all.
///
/// # Errors
/// A folder or a load cannot be made.
pub fn measure(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Measured, Error> {
    let mut rows = Vec::new();
    for machine in options.machines.iter().copied() {
        for seconds in &options.seconds {
            say(&format!("{machine}, {seconds} s"));
            rows.push(run(machine, *seconds, options)?);
        }
    }
    Ok(Measured { system: System::detect(), bytes_max: options.bytes_max.0, rows })
}

fn run(machine: Machine, seconds: u64, options: &Options) -> Result<Row, Error> {
    let scratch = Scratch::new(&options.folder)?;
    let marker = Marker::start();
    let _busy = (machine == Machine::Busy).then(Shells::busy).transpose()?;
    let _ping_pong = (machine == Machine::PingPong).then(PingPong::start);
    let mut service = Service::start(scratch.path(), seconds, options)?;
    sleep(SET_UP);
    let (begin, before) = (Instant::now(), Cost::of_tree(service.child.id()));
    let switches_before = switches();
    sleep(Duration::from_secs(seconds + 2));
    let (elapsed, after) = (begin.elapsed(), Cost::of_tree(service.child.id()));
    let switches = switches().saturating_sub(switches_before);
    let cpu_ns = after.cpu_ns.saturating_sub(before.cpu_ns);
    let mut row = Row {
        machine,
        seconds,
        events: Vec::new(),
        switches_per_s: switches as f64 / elapsed.as_secs_f64(),
        cpu_percent: 100.0 * cpu_ns as f64 / elapsed.as_nanos() as f64,
        memory_bytes: after.memory_bytes,
        refused: None,
    };
    for number in 0..options.events {
        match service.event(&marker, seconds) {
            Some(event) => row.events.push(event),
            None => {
                row.refused = Some(format!("event {number} has no file: {}", service.log()));
                break;
            }
        }
        sleep(options.gap);
    }
    Ok(row)
}

/// Context switches of the machine so far.
fn switches() -> u64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("ctxt "));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or_default()
}

/// A service with its folder.
struct Service {
    child: Child,
    folder: PathBuf,
}

impl Service {
    fn start(folder: &Path, seconds: u64, options: &Options) -> Result<Service, Error> {
        let log = fs::File::create(folder.join("log")).map_err(Error::file("create", folder))?;
        let mut command = Command::new(&options.whit);
        command.args(["watch", "--format", "none", "--record-options=-k,mono"]);
        command.arg(format!("--flight={seconds}s"));
        command.arg(format!("--flight-bytes={}", options.bytes_max));
        command.args(["--set", "trigger.on=", "--set", "trigger.min-interval-s=0"]);
        command.args(["--set", "trigger.bytes-per-day=1T"]);
        command.arg("--set").arg(format!("trigger.socket={}", folder.join("socket").display()));
        command.arg("--socket").arg(folder.join("status")).arg("--folder").arg(folder);
        let child = command.stdin(Stdio::null()).stderr(log).spawn();
        let program = options.whit.clone();
        let child = child.map_err(|source| Error::Run { program, source })?;
        Ok(Service { child, folder: folder.to_owned() })
    }

    fn log(&self) -> String {
        let text = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        text.lines().last().unwrap_or_default().to_owned()
    }

    /// A file with a name of its own, not one that is being written.
    fn newest(&self) -> Option<PathBuf> {
        let found = fs::read_dir(self.folder.join("dumps")).ok()?.flatten();
        let names = found.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let name = names.filter(|name| name.starts_with("whit-") && name.ends_with(".data")).max();
        Some(self.folder.join("dumps").join(name?))
    }

    /// Asks for a dump, and waits for its file, which is removed.
    fn event(&mut self, marker: &Marker, seconds: u64) -> Option<Event> {
        let socket = UnixDatagram::unbound().ok()?;
        let (begin, end_ns) = (Instant::now(), marker::now_ns());
        socket.send_to(b"dump", self.folder.join("socket")).ok()?;
        let path = loop {
            if let Some(path) = self.newest() {
                break path;
            }
            if begin.elapsed() > PATIENCE {
                return None;
            }
            sleep(LOOK_INTERVAL);
        };
        let took_ms = begin.elapsed().as_secs_f64() * 1e3;
        let dump = dump::read(&path, marker.tid())?;
        fs::remove_file(&path).ok()?;
        let wanted_ns = (seconds * 1_000_000_000).min(dump.covered_ns);
        let (from_ns, to_ns, counted) =
            marker.counted(end_ns.saturating_sub(wanted_ns), end_ns).unwrap_or_default();
        let is_within = |time: &&u64| (from_ns..to_ns).contains(*time);
        Some(Event {
            took_ms,
            bytes: dump.bytes,
            covered_s: dump.covered_ns as f64 / 1e9,
            counted,
            recorded: dump.switches_ns.iter().filter(is_within).count() as u64,
        })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = whit_sys::system::terminate(self.child.id() as i32);
        let _ = self.child.wait();
    }
}

/// The result as text.
pub fn markdown(result: &Measured) -> String {
    let mut text = String::new();
    for line in &result.system.lines() {
        line_to(&mut text, &format!("- {line}"));
    }
    let size = ByteSize(result.bytes_max);
    line_to(
        &mut text,
        &format!("- 1000 samples a second and every context switch; {size} of records are kept"),
    );
    line_to(&mut text, "");
    let headings = [
        "machine",
        "switches/s",
        "seconds",
        "event to file ms",
        "p99 ms",
        "has s",
        "file MiB",
        "missing switches",
        "CPU %",
        "memory MiB",
    ];
    let mut table = vec![headings.map(str::to_owned).to_vec()];
    table.extend(result.rows.iter().map(cells));
    table_to(&mut text, &table, 1);
    text
}

fn cells(row: &Row) -> Vec<String> {
    let switches = format!("{:.0}", row.switches_per_s);
    let mut cells = vec![row.machine.to_string(), switches, row.seconds.to_string()];
    let of = |value: fn(&Event) -> f64| Spread::of(row.events.iter().map(value));
    let (took, covered) = (of(|event| event.took_ms), of(|event| event.covered_s));
    let bytes = of(|event| event.bytes as f64 / MIB);
    let (Some(took), Some(covered), Some(bytes), None) = (took, covered, bytes, &row.refused)
    else {
        cells.push(row.refused.clone().unwrap_or_else(|| "was not run".to_owned()));
        return cells;
    };
    let sum = |value: fn(&Event) -> u64| row.events.iter().map(value).sum::<u64>();
    let missing = sum(|event| event.counted.saturating_sub(event.recorded));
    let late = number(late_ms(&row.events));
    cells.extend([spread(&took), late, spread(&covered), spread(&bytes)]);
    cells.push(format!("{missing} of {}", sum(|event| event.counted)));
    cells.push(format!("{:.1}", row.cpu_percent));
    cells.push(format!("{:.0}", row.memory_bytes as f64 / MIB));
    cells
}

/// The time that 99 of 100 files do not exceed.
fn late_ms(events: &[Event]) -> f64 {
    let mut took: Vec<f64> = events.iter().map(|event| event.took_ms).collect();
    took.sort_by(f64::total_cmp);
    let rank = (took.len() * 99).div_ceil(100).saturating_sub(1);
    took.get(rank).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
