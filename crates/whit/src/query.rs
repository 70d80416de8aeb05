//! `whit query`, which starts `whit-query`: a program of its own, so that the recorder carries no SQL engine.

use crate::beside;
use crate::failure::{WRONG_USAGE, bail_usage, usage};
use crate::heading;
use crate::input::InputArgs;
use crate::message;
use crate::output;
use crate::symbol_args::SymbolArgs;
use anyhow::{Context, Result};
use std::cell::Cell;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use whit_dataset::Dataset;
use whit_query::shell::Shell;
use whit_query::{Interrupter, MIN_MEMORY_BYTES, Options, OutputForm, QueryError, Session};
use whit_sys::{Poller, Signal, SignalFd, SignalWatch};
use whit_tables::{Cancel, Database, Defect};
use whit_types::ByteSize;
use whit_view::warning::warning_text;

/// The program, which lies beside this one.
pub(crate) const PROGRAM: &str = "whit-query";

/// The way to it.
pub(crate) const ADVICE: &str = "queries and datasets are a program of their own; `cargo build --release -p whit` in \
                                 whit's repository makes both: put it beside whit";

/// As shells say that a command was ended by SIGINT.
const INTERRUPTED: u8 = 130;

const EXAMPLES: &str = "\
Examples:
  whit query -c 'SELECT * FROM top_functions ORDER BY self_weight DESC LIMIT 9'
  whit query -i one.data -i two.data -f shares.sql --csv
  whit query --dataset lake -f fleet.sql
  whit query                        # a shell; .tables lists the tables";

/// Arguments of `whit query`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct QueryArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Read this dataset of `whit export --parquet`
    #[arg(long, value_name = "FOLDER", conflicts_with = "input")]
    dataset: Option<PathBuf>,
    /// Run these statements; without -c and -f they come from a shell, or from standard input
    #[arg(short = 'c', long, value_name = "SQL", conflicts_with = "file")]
    command: Option<String>,
    /// Run the statements of this file
    #[arg(short = 'f', long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print rows as CSV
    #[arg(long, conflicts_with = "json", help_heading = heading::OUTPUT)]
    csv: bool,
    /// Print rows as JSON
    #[arg(long, help_heading = heading::OUTPUT)]
    json: bool,
    /// Limit the memory of queries; sorts write to temporary files
    #[arg(long, value_name = "SIZE", default_value = "256M", help_heading = heading::OUTPUT)]
    memory: ByteSize,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
}

/// The program that `whit query` becomes.
#[derive(clap::Parser)]
#[command(name = "whit-query", bin_name = "whit query", version, max_term_width = 80)]
pub(crate) struct Program {
    #[command(flatten)]
    args: QueryArgs,
}

impl Program {
    pub(crate) fn run(&self) -> Result<u8> {
        run(&self.args)
    }
}

/// The command line without its first word, where that is this one: it chooses what the program does.
pub(crate) fn arguments_behind(word: &str) -> Option<Vec<OsString>> {
    let mut arguments: Vec<_> = std::env::args_os().collect();
    (arguments.get(1)? == word).then(|| {
        arguments.remove(1);
        arguments
    })
}

/// Becomes the program, with the options that were looked at here.
pub(crate) fn start(_: &QueryArgs) -> Result<u8> {
    let arguments: Vec<_> = std::env::args_os().skip(2).collect();
    beside::run(PROGRAM, &arguments, ADVICE)
}

fn run(args: &QueryArgs) -> Result<u8> {
    let memory_bytes = args.memory.0;
    if memory_bytes < MIN_MEMORY_BYTES {
        bail_usage!("--memory takes at least {}", ByteSize(MIN_MEMORY_BYTES));
    }
    let given = args.given_statements()?;
    let source = args.source(given.is_some())?;
    // Before any other thread begins: all of them leave the signal to the one that watches for it.
    let signals = SignalFd::block(&[Signal::Interrupt])?;
    let options = Options { memory_bytes };
    let session = match source {
        Source::Recordings(database) => Session::new(database, options),
        Source::Dataset(dataset) => Session::new(dataset, options),
    }?;
    watch(session.interrupter())?;
    let ended = match given {
        Some(sql) => args.run_statements(&session, &sql),
        None if io::stdin().is_terminal() => args.ask(&session),
        None => {
            let mut sql = String::new();
            io::stdin().read_to_string(&mut sql).context("cannot read the statements")?;
            args.run_statements(&session, &sql)
        }
    };
    session.defects().iter().for_each(tell);
    drop(signals);
    ended
}

/// Damaged files of datasets make the library of Parquet panic: their errors are said, and nothing else.
pub(crate) fn hush_caught_panics() {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !whit_dataset::panics_are_caught() {
            say(info);
        }
    }));
}

/// Where rows come from.
enum Source {
    Recordings(Database),
    Dataset(Dataset),
}

pub(crate) fn tell(defect: &Defect) {
    match defect {
        Defect::Recording(warning) => message::error(warning_text(warning)),
        Defect::Dataset(text) => message::warning(text),
    }
}

/// Ends queries on Ctrl-C.
fn watch(interrupter: Interrupter) -> Result<()> {
    let (watch, mut poller) = (SignalWatch::new(&[Signal::Interrupt])?, Poller::new()?);
    poller.add(&watch, 0)?;
    std::thread::spawn(move || {
        while poller.wait(None).is_ok() {
            if let Ok(Some(_)) = watch.next() {
                interrupter.interrupt();
            }
        }
    });
    Ok(())
}

impl QueryArgs {
    /// Opens the dataset or the recordings. Standard input is free where it has no statements.
    fn source(&self, stdin_is_free: bool) -> Result<Source> {
        if let Some(folder) = &self.dataset {
            return Ok(Source::Dataset(Dataset::open(folder, Cancel::default())?));
        }
        let recordings = match stdin_is_free {
            true => self.input.open_all()?,
            false => self.input.open_all_files()?,
        };
        let with_options = recordings.into_iter().map(|recording| {
            let options = self.symbols.options(&recording)?;
            Ok((recording, options))
        });
        let with_options = with_options.collect::<Result<Vec<_>>>()?;
        Ok(Source::Recordings(Database::new(with_options, Cancel::default())))
    }

    /// From the command line or a file.
    fn given_statements(&self) -> Result<Option<String>> {
        let Some(file) = &self.file else { return Ok(self.command.clone()) };
        let sql = std::fs::read_to_string(file);
        let path = file.display();
        let sql = sql.with_context(|| {
            format!(
                "cannot read the statements in {path} (-c SQL takes them from the command line)"
            )
        })?;
        Ok(Some(sql))
    }

    fn form(&self) -> OutputForm {
        match (self.csv, self.json) {
            (true, _) => OutputForm::Csv,
            (_, true) => OutputForm::Json,
            _ => OutputForm::Table,
        }
    }

    fn run_statements(&self, session: &Session, sql: &str) -> Result<u8> {
        let command = sql.trim().strip_prefix('.').filter(|command| !command.contains('\n'));
        if let Some(command) = command {
            return self.run_command(session, command);
        }
        let mut out = output::stdout();
        let ran = whit_query::run(session, sql, self.form(), &mut out);
        out.flush()?;
        match ran {
            Ok(()) => Ok(0),
            Err(QueryError::Interrupted) => {
                message::error("the query was interrupted");
                Ok(INTERRUPTED)
            }
            Err(error @ QueryError::Wrong(_)) => Err(usage(error)),
            Err(error) => Err(error.into()),
        }
    }

    /// Runs a command of the shell, which `sqlite3` also takes in place of a statement.
    fn run_command(&self, session: &Session, command: &str) -> Result<u8> {
        let is_wrong = Cell::new(false);
        let say = |text: &str| {
            is_wrong.set(true);
            message::error(text);
        };
        Shell { session, form: self.form(), history: None, say: &say }.command(command)?;
        Ok(if is_wrong.get() { WRONG_USAGE } else { 0 })
    }

    fn ask(&self, session: &Session) -> Result<u8> {
        let (form, history) = (self.form(), history());
        let say = |text: &str| message::error(text);
        Shell { session, form, history, say: &say }.ask()?;
        Ok(0)
    }
}

/// Where the lines of the shell are kept.
fn history() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|it| it.is_absolute());
    let home = || Some(std::env::home_dir()?.join(Path::new(".local/state")));
    Some(state.or_else(home)?.join("whit/query_history"))
}
