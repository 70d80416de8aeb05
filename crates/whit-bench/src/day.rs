//! A day of `whit top` or `whit watch`, simulated: memory by the hour.
//!
//! A machine whose processes come and go gives records second by second, as a recorder's stream does. They go through the
//! window of `whit top`, and pictures are loaded from it with the symbols that earlier pictures opened. Those of
//! `whit watch` are written as recordings of their own. Only the clock
//! is simulated, so a day takes minutes.

mod machine;

use std::fs::File;
use std::io::Write;
use std::path::Path;

use serde::Serialize;
use whit_live::{Bounds, Window};
use whit_perfdata::reader::Recording;
use whit_profile::{KeptSymbols, LoadOptions};
use whit_symbolize::{DebugDirs, SymbolizerConfig};

use crate::Error;
use crate::markdown::{line_to, number, table_to};
use crate::system::System;
use crate::top::anonymous_bytes;
use machine::Machine;

const MIB: f64 = (1u64 << 20) as f64;
const SECOND_NS: u64 = 1_000_000_000;
/// Pictures between two looks for processes and symbols that nobody needs any more, as in `whit top`.
const TRIM_PICTURES: u64 = 15;
/// The same for windows, as in `whit watch`.
const TRIM_WINDOWS: u64 = 4;
/// In messages, the recording is called so.
const NAME: &str = "day";

/// Settings.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Simulated hours.
    pub hours: u64,
    /// Simulated seconds between two pictures, or of a window.
    pub picture_s: u64,
    /// Whether windows are cut, as `whit watch` does, in place of pictures.
    pub cuts_windows: bool,
    /// The window.
    pub bounds: Bounds,
    /// Samples of each simulated second.
    pub samples: usize,
    /// Processes that begin in each simulated second.
    pub processes: usize,
}

/// Memory after an hour.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Hour {
    /// Simulated hours that have passed.
    pub hour: u64,
    /// Processes that have begun by then.
    pub begun: u64,
    /// Processes that the window knows beside its records.
    pub processes: usize,
    /// Records of the window.
    pub window_bytes: usize,
    /// Anonymous memory of this program.
    pub memory_bytes: u64,
}

/// The result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Day {
    /// The machine that simulated it.
    pub system: System,
    /// Samples of each simulated second.
    pub samples: usize,
    /// Pictures that were made, or windows.
    pub pictures: u64,
    /// Whether they are windows.
    pub are_windows: bool,
    /// One for each hour.
    pub hours: Vec<Hour>,
}

impl Day {
    /// Growth of memory from the first hour to the hour with the most.
    pub fn growth_bytes(&self) -> u64 {
        let first = self.hours.first().map_or(0, |hour| hour.memory_bytes);
        let most = self.hours.iter().map(|hour| hour.memory_bytes).max().unwrap_or(0);
        most.saturating_sub(first)
    }
}

/// Simulates.
///
/// # Errors
/// The window's recording cannot be written or read.
pub fn simulate(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Day, Error> {
    let mut machine = Machine::new(options.samples, options.processes);
    let mut window = Window::new(options.bounds);
    let push = |window: &mut Window, bytes: &[u8], now_s: u64| {
        let pushed = window.push(bytes, now_s * SECOND_NS);
        pushed.map_err(|error| Error::Simulation { reason: error.to_string() })
    };
    push(&mut window, &machine.begin(), 0)?;
    let load = Load { kept: KeptSymbols::default(), options: load_options() };
    let (mut pictures, mut hours) = (0, Vec::new());
    if options.cuts_windows {
        window.want_from(0);
    }
    let trim = if options.cuts_windows { TRIM_WINDOWS } else { TRIM_PICTURES };
    for now_s in 1..=options.hours * 3600 {
        push(&mut window, &machine.second(now_s), now_s)?;
        if now_s % options.picture_s == 0 {
            match options.cuts_windows {
                true => cut(&mut window, now_s - options.picture_s, now_s)?,
                false => load.picture(&mut window, now_s)?,
            }
            pictures += 1;
            if pictures % trim == 0 {
                load.kept.trim();
                window.prune(|pid| machine.is_alive(pid));
            }
        }
        if now_s % 3600 == 0 {
            let hour = now_s / 3600;
            say(&format!("hour {hour} of {}", options.hours));
            hours.push(Hour {
                hour,
                begun: machine.begun(),
                processes: window.sideband().processes(),
                window_bytes: window.bytes(),
                memory_bytes: anonymous_bytes(Path::new("/proc/self")),
            });
        }
    }
    let (samples, are_windows) = (options.samples, options.cuts_windows);
    Ok(Day { system: System::detect(), samples, pictures, are_windows, hours })
}

/// Writes the records of a window into memory, and lets them go.
fn cut(window: &mut Window, from_s: u64, to_s: u64) -> Result<(), Error> {
    let failed = |source: std::io::Error| Error::Simulation { reason: source.to_string() };
    let file = whit_sys::system::memory_file(NAME).map_err(|errno| failed(errno.into()))?;
    let mut out = std::io::BufWriter::new(File::from(file));
    let frozen = window.freeze_since(from_s * SECOND_NS);
    window.want_from(to_s * SECOND_NS);
    frozen.write_to(&mut out).and_then(|()| out.flush()).map_err(failed)
}

struct Load {
    kept: KeptSymbols,
    options: LoadOptions,
}

fn load_options() -> LoadOptions {
    let mut options = LoadOptions::new(1, SymbolizerConfig::new(DebugDirs::none()));
    // There is no kernel in it.
    options.names_kernel = false;
    options.symbols.perf_map_dirs.clear();
    options.blocks = true;
    options
}

impl Load {
    /// Loads the window, and lets the picture go.
    fn picture(&self, window: &mut Window, now_s: u64) -> Result<(), Error> {
        let failed = |source: std::io::Error| Error::Simulation { reason: source.to_string() };
        let file = whit_sys::system::memory_file(NAME).map_err(|errno| failed(errno.into()))?;
        let mut file = File::from(file);
        window.forget_old(now_s * SECOND_NS);
        let mut bytes = Vec::new();
        window.write_to(&mut bytes).and_then(|()| file.write_all(&bytes)).map_err(failed)?;
        let recording = Recording::from_file(Path::new(NAME), file)?;
        let options = LoadOptions { kept_symbols: Some(self.kept.clone()), ..self.options.clone() };
        let profile = whit_profile::load(&recording, &options, &|_, _| ())?;
        if profile.rows.is_empty() {
            return Err(Error::Simulation { reason: "a picture has no samples".to_owned() });
        }
        Ok(())
    }
}

/// The result as text.
pub fn markdown(day: &Day) -> String {
    let mut text = String::new();
    for line in day.system.lines() {
        line_to(&mut text, &format!("- {line}"));
    }
    line_to(
        &mut text,
        &format!(
            "- {} samples a simulated second, {} {}",
            day.samples,
            day.pictures,
            if day.are_windows { "windows" } else { "pictures" }
        ),
    );
    let growth = day.growth_bytes() as f64 / MIB;
    line_to(&mut text, &format!("- most memory after the first hour: {} MiB more", number(growth)));
    line_to(&mut text, "");
    let headings = ["hour", "processes begun", "known", "window MiB", "memory MiB"];
    let mut table = vec![headings.map(str::to_owned).to_vec()];
    table.extend(day.hours.iter().map(|hour| {
        vec![
            hour.hour.to_string(),
            hour.begun.to_string(),
            hour.processes.to_string(),
            number(hour.window_bytes as f64 / MIB),
            number(hour.memory_bytes as f64 / MIB),
        ]
    }));
    table_to(&mut text, &table, 0);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn an_hour(picture_s: u64, cuts_windows: bool) -> Day {
        let bounds = Bounds { keep_ns: 60 * SECOND_NS, bytes_max: 4 << 20 };
        let options =
            Options { hours: 1, picture_s, cuts_windows, bounds, samples: 50, processes: 5 };
        simulate(&options, &mut |_| ()).unwrap()
    }

    #[test]
    fn processes_that_are_gone_leave_nothing_behind() {
        let day = an_hour(120, false);
        let hour = day.hours[0];
        assert_eq!((day.pictures, day.hours.len()), (30, 1));
        assert!(hour.begun > 10_000, "{hour:?}");
        // Those that run, those that began within the window, and those without a record of their end: of the half
        // hour since processes were looked for. For the whole hour, they would be twice as many.
        assert!(hour.processes < 1200, "{hour:?}");
        assert!(hour.window_bytes > 0 && hour.window_bytes <= 4 << 20, "{hour:?}");
        assert!(markdown(&day).contains(&hour.begun.to_string()), "{}", markdown(&day));
    }

    #[test]
    fn windows_forget_processes_that_are_gone() {
        let day = an_hour(30, true);
        let hour = day.hours[0];
        assert_eq!((day.pictures, day.are_windows), (120, true));
        assert!(hour.begun > 10_000 && hour.processes < 800, "{hour:?}");
        assert!(markdown(&day).contains("120 windows"), "{}", markdown(&day));
    }

    #[test]
    fn growth_is_that_after_the_first_hour() {
        let hour = |hour, memory_bytes| Hour {
            hour,
            begun: 0,
            processes: 0,
            window_bytes: 0,
            memory_bytes,
        };
        let hours = vec![hour(1, 50), hour(2, 70), hour(3, 60)];
        let (system, are_windows) = (System::default(), false);
        let day = Day { system, samples: 1, pictures: 1, are_windows, hours };
        assert_eq!(day.growth_bytes(), 20);
    }
}
