//! `whit query`: runs statements, or a shell.

use crate::defect;
use anyhow::{Context, Result, anyhow};
use std::cell::Cell;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use whit_cli::failure::{WRONG_USAGE, usage};
use whit_cli::query::QueryArgs;
use whit_cli::{message, output};
use whit_dataset::Dataset;
use whit_query::shell::Shell;
use whit_query::{Interrupter, MIN_MEMORY_BYTES, Options, OutputForm, QueryError, Session};
use whit_sys::{Poller, Signal, SignalFd, SignalWatch};
use whit_tables::{Cancel, Database};
use whit_types::ByteSize;

/// As shells say that a command was ended by SIGINT.
const INTERRUPTED: u8 = 130;

/// The program that `whit query` becomes.
#[derive(clap::Parser)]
#[command(name = "whit-query", bin_name = "whit query", version, max_term_width = 80)]
pub(crate) struct Program {
    #[command(flatten)]
    args: QueryArgs,
}

/// Where rows come from.
enum Source {
    Recordings(Database),
    Dataset(Dataset),
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

impl Program {
    /// Runs the statements.
    pub(crate) fn run(&self) -> Result<u8> {
        let memory_bytes = self.args.memory.0;
        if memory_bytes < MIN_MEMORY_BYTES {
            return Err(usage(anyhow!("--memory takes at least {}", ByteSize(MIN_MEMORY_BYTES))));
        }
        let given = self.given_statements()?;
        let source = self.source(given.is_some())?;
        // Before any other thread begins: all of them leave the signal to the one that watches for it.
        let signals = SignalFd::block(&[Signal::Interrupt])?;
        let options = Options { memory_bytes };
        let session = match source {
            Source::Recordings(database) => Session::new(database, options),
            Source::Dataset(dataset) => Session::new(dataset, options),
        }?;
        watch(session.interrupter())?;
        let ended = match given {
            Some(sql) => self.run_statements(&session, &sql),
            None if io::stdin().is_terminal() => self.ask(&session),
            None => {
                let mut sql = String::new();
                io::stdin().read_to_string(&mut sql).context("cannot read the statements")?;
                self.run_statements(&session, &sql)
            }
        };
        session.defects().iter().for_each(defect::say);
        drop(signals);
        ended
    }

    /// Opens the dataset or the recordings. Standard input is free where it has no statements.
    fn source(&self, stdin_is_free: bool) -> Result<Source> {
        if let Some(folder) = &self.args.dataset {
            return Ok(Source::Dataset(Dataset::open(folder, Cancel::default())?));
        }
        let recordings = self.args.recordings(stdin_is_free)?;
        Ok(Source::Recordings(Database::new(recordings, Cancel::default())))
    }

    /// From the command line or a file.
    fn given_statements(&self) -> Result<Option<String>> {
        let Some(file) = &self.args.file else { return Ok(self.args.command.clone()) };
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
        match (self.args.csv, self.args.json) {
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
