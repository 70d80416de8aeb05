//! Names from every form of debug information: the comparison behind `whit bench forms`.
//!
//! A program is compiled by each compiler into each form, and recorded once. All readers then read the same recording.
//! A sample counts where its innermost address lies in a function that takes time by construction ([`Named`]). It is
//! named at a level where the reader gives the function, the inlined function or the line that the program has there.

mod build;
mod built;
mod judge;
mod kinds;
mod programs;
mod readers;
mod render;
mod run;
mod samply;

use std::path::PathBuf;

use serde::Serialize;

pub use judge::Named;
pub use kinds::{Compiler, Form};
pub use render::markdown;

use crate::Error;
use crate::named::go_by_name;
use crate::peer::{perf, version};
use crate::scratch::Scratch;
use crate::setup::Setup;
use crate::system::System;

/// Settings.
#[derive(Clone, Debug)]
pub struct Options {
    /// The compilers, in the order of the result.
    pub compilers: Vec<Compiler>,
    /// Forms of debug information, in the same order.
    pub forms: Vec<Form>,
    /// Programs that read each recording.
    pub readers: Vec<Reader>,
    /// Time of each recorded program.
    pub seconds: f64,
    /// Programs, directories and the limit.
    pub setup: Setup,
}

/// A reader of recordings.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reader {
    /// `whit script`.
    Whit,
    /// `perf script`.
    Perf,
    /// `samply import`, and its server of symbols.
    Samply,
}

impl Reader {
    /// Every reader, in the order of printing.
    pub const ALL: [Reader; 3] = [Reader::Whit, Reader::Perf, Reader::Samply];

    fn name(self) -> &'static str {
        match self {
            Reader::Whit => "whit",
            Reader::Perf => "perf",
            Reader::Samply => "samply",
        }
    }

    fn program(self, setup: &Setup) -> PathBuf {
        match self {
            Reader::Whit => setup.whit.clone(),
            Reader::Perf => perf(),
            Reader::Samply => "samply".into(),
        }
    }
}

go_by_name!(Reader, "reader", Reader::ALL);

/// The names that a reader gave to a recording.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "how")]
pub enum Reading {
    /// It named samples.
    Named(Named),
    /// It gave nothing.
    Failed {
        /// The reader's message.
        reason: String,
    },
}

impl Reading {
    /// The samples, where it gave some.
    pub fn named(&self) -> Option<&Named> {
        match self {
            Reading::Named(named) => Some(named),
            Reading::Failed { .. } => None,
        }
    }
}

/// One form, by one compiler.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Row {
    /// It made the program.
    pub compiler: Compiler,
    /// Where its debug information is.
    pub form: Form,
    /// In the order of the options.
    pub readings: Vec<(Reader, Reading)>,
}

/// A row that is not there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Absent {
    /// A compiler or a reader, and the form.
    pub what: String,
    /// The message of a tool.
    pub reason: String,
}

/// The result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Comparison {
    /// The machine.
    pub system: System,
    /// Versions of readers and compilers.
    pub versions: Vec<String>,
    /// One for each form that a compiler makes.
    pub rows: Vec<Row>,
    /// Readers, and forms of compilers, that are not here.
    pub absent: Vec<Absent>,
}

impl Comparison {
    /// Whether whit read every recording.
    pub fn whit_succeeded(&self) -> bool {
        let readings = self.rows.iter().flat_map(|row| &row.readings);
        let mut of_whit = readings.filter(|(reader, _)| *reader == Reader::Whit);
        of_whit.all(|(_, reading)| reading.named().is_some())
    }
}

/// Compiles, records and compares.
///
/// # Errors
/// A file cannot be written, or a program cannot be recorded.
pub fn compare(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Comparison, Error> {
    let scratch = Scratch::new(&options.setup.directory)?;
    let (mut rows, mut absent, mut versions) = (Vec::new(), Vec::new(), Vec::new());
    let mut present = Vec::new();
    for &reader in &options.readers {
        match version(&reader.program(&options.setup)) {
            Ok(version) => (versions.push(version), present.push(reader)).1,
            Err(reason) => absent.push(Absent { what: reader.to_string(), reason }),
        }
    }
    versions.extend(options.compilers.iter().filter_map(|compiler| compiler.version()));
    for &compiler in &options.compilers {
        for &form in options.forms.iter().filter(|form| compiler.makes(**form)) {
            say(&format!("{compiler}: {form}"));
            match build::program(compiler, form, scratch.path())? {
                Ok(built) => {
                    let data = readers::record(&built, options)?;
                    let read =
                        |reader: &Reader| (*reader, readers::read(*reader, &data, &built, options));
                    let readings = present.iter().map(read).collect();
                    rows.push(Row { compiler, form, readings });
                }
                Err(reason) => {
                    absent.push(Absent { what: format!("{compiler}, {form}"), reason });
                }
            }
        }
    }
    Ok(Comparison { system: System::detect(), versions, rows, absent })
}

#[cfg(test)]
mod tests;
