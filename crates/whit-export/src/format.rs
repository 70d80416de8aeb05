//! The formats.

use std::fmt;
use std::str::FromStr;

/// A format of another tool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// `profile.proto`, compressed with gzip.
    Pprof,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 1] = [Format::Pprof];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Pprof => "pprof",
        }
    }

    /// True where the format shows samples over time.
    pub fn shows_time(self) -> bool {
        match self {
            Format::Pprof => false,
        }
    }

    /// True where the format has a place for context switches.
    pub fn shows_switches(self) -> bool {
        match self {
            Format::Pprof => true,
        }
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
