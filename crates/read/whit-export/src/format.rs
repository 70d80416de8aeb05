//! The formats.

use std::fmt;
use std::str::FromStr;

/// A format of another tool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// `profile.proto`, compressed with gzip.
    Pprof,
    /// The processed profile format of the Firefox Profiler.
    Firefox,
    /// A Perfetto trace, for version 58 and later.
    Perfetto,
    /// A Perfetto trace that earlier versions read, too.
    PerfettoV57,
    /// The JSON format of speedscope.
    Speedscope,
    /// OTLP profiles (Alpha).
    Otlp,
    /// Folded stacks.
    Folded,
}

impl Format {
    /// Every format, in the order of the help.
    pub const ALL: [Format; 7] = [
        Format::Pprof,
        Format::Firefox,
        Format::Perfetto,
        Format::PerfettoV57,
        Format::Speedscope,
        Format::Otlp,
        Format::Folded,
    ];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Pprof => "pprof",
            Format::Firefox => "firefox",
            Format::Perfetto => "perfetto",
            Format::PerfettoV57 => "perfetto-v57",
            Format::Speedscope => "speedscope",
            Format::Otlp => "otlp",
            Format::Folded => "folded",
        }
    }

    /// True where the format shows samples over time.
    pub fn shows_time(self) -> bool {
        !matches!(self, Format::Pprof | Format::Folded)
    }

    /// True where the format has a place for context switches.
    pub fn shows_switches(self) -> bool {
        matches!(self, Format::Pprof | Format::Firefox | Format::Perfetto | Format::PerfettoV57)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Format, String> {
        let found = Format::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| {
            let names: Vec<_> = Format::ALL.iter().map(|format| format.name()).collect();
            format!("no such format; there are {}", names.join(", "))
        })
    }
}
