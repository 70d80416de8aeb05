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

use anyhow::ensure;
use clap::{Args, ValueEnum};
use serde::Serialize;

pub(crate) use judge::Named;
pub(crate) use kinds::{Compiler, Form};

use crate::args::heading;
use crate::bench::{Bench, Say};
use crate::error::Error;
use crate::installed::version;
use crate::named::named;
use crate::peer::perf;
use crate::scratch::Scratch;
use crate::setup::Setup;

const EXAMPLES: &str = "\
Example:
  whit bench forms --compilers g++,go --forms full,dwz";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Readers, separated by commas
    #[arg(long, value_name = "READERS", value_delimiter = ',', default_values_t = Reader::value_variants(),
          hide_possible_values = true,
          help_heading = heading::COMPARED)]
    readers: Vec<Reader>,

    /// Compilers, separated by commas
    #[arg(long, value_name = "COMPILERS", value_delimiter = ',',
          default_values_t = Compiler::value_variants(),
          hide_possible_values = true, help_heading = heading::COMPARED)]
    compilers: Vec<Compiler>,

    /// Forms of debug information, separated by commas
    #[arg(long, value_name = "FORMS", value_delimiter = ',', default_values_t = Form::value_variants(),
          hide_possible_values = true,
          help_heading = heading::COMPARED)]
    forms: Vec<Form>,

    /// Time of each program
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5, help_heading = heading::RUNS)]
    seconds: f64,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: Setup,
}

/// A reader of recordings.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum)]
pub(crate) enum Reader {
    /// `whit script`.
    Whit,
    /// `perf script`.
    Perf,
    /// `samply import`, and its server of symbols.
    Samply,
}

impl Reader {
    fn program(self, setup: &Setup) -> PathBuf {
        match self {
            Reader::Whit => setup.whit.clone(),
            Reader::Perf => perf(),
            Reader::Samply => "samply".into(),
        }
    }
}

named!(Reader);

/// The names that a reader gave to a recording.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "how")]
pub(crate) enum Reading {
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
    pub(crate) fn named(&self) -> Option<&Named> {
        match self {
            Reading::Named(named) => Some(named),
            Reading::Failed { .. } => None,
        }
    }
}

/// One form, by one compiler.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Row {
    /// It made the program.
    pub(crate) compiler: Compiler,
    /// Where its debug information is.
    pub(crate) form: Form,
    /// In the order of the options.
    pub(crate) readings: Vec<(Reader, Reading)>,
}

/// A row that is not there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Absent {
    /// A compiler or a reader, and the form.
    pub(crate) what: String,
    /// The message of a tool.
    pub(crate) reason: String,
}

/// The result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Comparison {
    /// Versions of readers and compilers.
    pub(crate) versions: Vec<String>,
    /// One for each form that a compiler makes.
    pub(crate) rows: Vec<Row>,
    /// Readers, and forms of compilers, that are not here.
    pub(crate) absent: Vec<Absent>,
}

impl Bench for Options {
    type Figures = Comparison;

    fn run(&self, say: Say<'_>) -> Result<Comparison, Error> {
        ensure!(
            (0.01..=60.0).contains(&self.seconds),
            "--seconds {} is not between 0.01 and 60",
            self.seconds
        );
        self.setup.require(&[])?;
        let scratch = Scratch::new(&self.setup.directory)?;
        let (mut rows, mut absent, mut versions) = (Vec::new(), Vec::new(), Vec::new());
        let mut present = Vec::new();
        for &reader in &self.readers {
            match version(&reader.program(&self.setup)) {
                Ok(version) => (versions.push(version), present.push(reader)).1,
                Err(reason) => absent.push(Absent { what: reader.to_string(), reason }),
            }
        }
        versions.extend(self.compilers.iter().filter_map(|compiler| compiler.version()));
        for &compiler in &self.compilers {
            for &form in self.forms.iter().filter(|form| compiler.makes(**form)) {
                say(&format!("{compiler}: {form}"));
                match build::program(compiler, form, scratch.path())? {
                    Ok(built) => {
                        let data = readers::record(&built, self)?;
                        let read = |reader: &Reader| {
                            (*reader, readers::read(*reader, &data, &built, self))
                        };
                        let readings = present.iter().map(read).collect();
                        rows.push(Row { compiler, form, readings });
                    }
                    Err(reason) => {
                        absent.push(Absent { what: format!("{compiler}, {form}"), reason });
                    }
                }
            }
        }
        Ok(Comparison { versions, rows, absent })
    }
}

#[cfg(test)]
mod tests;
