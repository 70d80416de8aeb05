//! The trait on which every comparison is built, and its dispatch: run, print, write, exit code.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;

use crate::args::heading;
use crate::page::Page;
use crate::system::System;

/// A comparison. Its arguments are the fields of the type.
pub(crate) trait Bench: Args {
    /// The figures of all cases, as `--json` writes them.
    type Figures: Figures;

    /// Version of the JSON form; a change that readers must know of raises it.
    const SCHEMA: u32 = 1;

    /// Runs all cases; `say` gets a line before each.
    fn run(&self, say: Say<'_>) -> Result<Self::Figures>;
}

/// Figures that can be read.
pub(crate) trait Figures: Serialize {
    /// Writes facts, and a table with columns and rows, below the description of the machine.
    fn show(&self, page: &mut Page);

    /// Whether whit got through; else the exit code is 1.
    fn succeeded(&self) -> bool {
        true
    }

    /// Whether the figures are of this machine.
    fn of_this_machine(&self) -> bool {
        true
    }
}

/// Takes a line of progress.
pub(crate) type Say<'a> = &'a mut dyn FnMut(&str);

/// A comparison on the command line.
#[derive(Args, Debug)]
pub(crate) struct Command<B: Args> {
    #[command(flatten)]
    bench: B,

    #[command(flatten, next_help_heading = heading::RESULTS)]
    results: Results,
}

/// Where results are written, apart from standard output.
#[derive(Args, Clone, Debug)]
struct Results {
    /// Write every run, as JSON, to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Append the result to this Markdown file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// The JSON of a comparison.
#[derive(Serialize)]
struct Document<'a, F> {
    schema: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<System>,
    #[serde(flatten)]
    figures: &'a F,
}

impl<B: Bench> Command<B> {
    /// Gives the exit code.
    pub(crate) fn run(&self) -> Result<i32> {
        let figures = self.bench.run(&mut |text| eprintln!("{text}"))?;
        let system = figures.of_this_machine().then(System::detect);
        let page = page(system.as_ref(), &figures);
        print!("{page}");
        if let Some(path) = &self.results.markdown {
            append(path, &page)?;
        }
        if let Some(path) = &self.results.json {
            write_json(path, &Document { schema: B::SCHEMA, system, figures: &figures })?;
        }
        Ok(if figures.succeeded() { 0 } else { 1 })
    }
}

/// The description of the machine, and the figures.
pub(crate) fn page(system: Option<&System>, figures: &impl Figures) -> String {
    let mut page = Page::default();
    system.into_iter().flat_map(System::lines).for_each(|line| page.fact(line));
    figures.show(&mut page);
    page.into_text()
}

fn append(path: &Path, text: &str) -> Result<()> {
    let open = || OpenOptions::new().append(true).create(true).open(path);
    let write = || open()?.write_all(format!("\n{text}").as_bytes());
    write().with_context(|| format!("cannot append to {}", path.display()))
}

fn write_json(path: &Path, document: &impl Serialize) -> Result<()> {
    let json = serde_json::to_string_pretty(document).context("cannot form the JSON")?;
    std::fs::write(path, json + "\n").with_context(|| format!("cannot write {}", path.display()))
}

/// The arguments of a comparison, from words of a command line.
#[cfg(test)]
pub(crate) fn parsed<B: Args>(words: &[&str]) -> B {
    let command = B::augment_args(clap::Command::new("bench").no_binary_name(true));
    B::from_arg_matches(&command.get_matches_from(words)).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Counted {
        rows: Vec<u32>,
    }

    impl Figures for Counted {
        fn show(&self, page: &mut Page) {
            page.fact("counted");
            page.table(["n"], 0, self.rows.iter().map(|row| vec![row.to_string()]));
        }

        fn succeeded(&self) -> bool {
            self.rows.len() > 1
        }
    }

    #[derive(Args, Debug)]
    struct Options {
        #[arg(long)]
        upto: u32,
    }

    impl Bench for Options {
        type Figures = Counted;
        const SCHEMA: u32 = 3;

        fn run(&self, _: Say<'_>) -> Result<Counted> {
            Ok(Counted { rows: (1..=self.upto).collect() })
        }
    }

    #[test]
    fn results_are_written_and_a_failure_of_whit_has_an_exit_code() {
        let place = tempfile::tempdir().unwrap();
        let (json, text) = (place.path().join("x.json"), place.path().join("x.md"));
        let of = |upto: &str| -> Command<Options> {
            let (json, text) = (json.to_str().unwrap(), text.to_str().unwrap());
            parsed(&["--upto", upto, "--json", json, "--markdown", text])
        };
        assert_eq!((of("1").run().unwrap(), of("2").run().unwrap()), (1, 0));
        let document: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        assert_eq!((&document["schema"], &document["rows"][1]), (&3.into(), &2.into()));
        assert!(document["system"]["kernel"].as_str().unwrap().starts_with("Linux"));
        let text = std::fs::read_to_string(&text).unwrap();
        assert_eq!(text.matches("- counted\n\n|   n |").count(), 2, "{text}");
        assert!(text.starts_with("\n- kernel: Linux"), "{text}");
    }
}
