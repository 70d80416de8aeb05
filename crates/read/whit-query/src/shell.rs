//! The interactive shell: a prompt with history and completion.

use crate::error::QueryError;
use crate::names::Names;
use crate::output::OutputForm;
use crate::session::{Session, run};
use crate::views::VIEWS;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Config, Context, Editor, Helper};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use whit_tables::query_tables;

/// Lines of history that are kept.
const MAX_HISTORY: usize = 1000;

const HELP: &str = "\
.tables         list tables and views
.schema TABLE   list the columns of a table
.mode MODE      write rows as table, csv or json
.read FILE      run the statements of a file
.help           print this
.quit           leave (or Ctrl-D)
Any other line is SQL, up to a semicolon. Ctrl-C ends a query.
";

/// How the shell talks to its user.
pub struct Shell<'a> {
    /// Where queries run.
    pub session: &'a Session,
    /// How rows are written at first.
    pub form: OutputForm,
    /// Where lines are kept; nowhere without it.
    pub history: Option<PathBuf>,
    /// Says errors and warnings.
    pub say: &'a dyn Fn(&str),
}

struct Completion {
    names: Names,
}

impl Completer for Completion {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = line.get(..position).unwrap_or_default();
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let start = before
            .rfind(|c| !is_part(c))
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let word = &before[start..];
        // Columns come from tables anywhere in the line, also behind the cursor.
        Ok((start, if word.is_empty() { Vec::new() } else { self.names.complete(line, word) }))
    }
}

impl Hinter for Completion {
    type Hint = String;
}

impl Highlighter for Completion {}
impl Validator for Completion {}
impl Helper for Completion {}

impl Shell<'_> {
    /// Asks for statements until the user leaves.
    ///
    /// # Errors
    /// The terminal cannot be used, or the output takes no more.
    pub fn ask(mut self) -> io::Result<()> {
        let config = Config::builder().max_history_size(MAX_HISTORY).map(|c| c.build());
        let config = config.map_err(io::Error::other)?;
        let mut editor: Editor<Completion, FileHistory> =
            Editor::with_config(config).map_err(io::Error::other)?;
        editor.set_helper(Some(Completion { names: self.session.names() }));
        if let Some(history) = &self.history {
            // There is none at first.
            let _ = editor.load_history(history);
        }
        let mut sql = String::new();
        loop {
            let prompt = if sql.is_empty() { "whit> " } else { "  ... " };
            match editor.readline(prompt) {
                Ok(line) => {
                    let _ = editor.add_history_entry(&line);
                    if !self.take_line(&line, &mut sql)? {
                        break;
                    }
                    if let Some(helper) = editor.helper_mut() {
                        helper.names = self.session.names();
                    }
                }
                Err(ReadlineError::Interrupted) => sql.clear(),
                Err(ReadlineError::Eof) => break,
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        if let Some(history) = &self.history {
            self.keep(&mut editor, history);
        }
        Ok(())
    }

    fn keep(&self, editor: &mut Editor<Completion, FileHistory>, history: &Path) {
        if let Some(folder) = history.parent() {
            // Where it cannot be made, saving says why.
            let _ = std::fs::create_dir_all(folder);
        }
        if let Err(error) = editor.save_history(history) {
            (self.say)(&format!("the history was not kept in {}: {error}", history.display()));
        }
    }

    /// Takes a line; gives false to leave.
    fn take_line(&mut self, line: &str, sql: &mut String) -> io::Result<bool> {
        if let Some(command) = line.trim().strip_prefix('.').filter(|_| sql.is_empty()) {
            return self.command(command);
        }
        sql.push_str(line);
        sql.push('\n');
        if line.trim_end().ends_with(';') {
            self.run(&std::mem::take(sql))?;
        } else if sql.trim().is_empty() {
            sql.clear();
        }
        Ok(true)
    }

    fn run(&self, sql: &str) -> io::Result<()> {
        self.session.resume();
        let mut out = io::BufWriter::new(io::stdout().lock());
        let ran = run(self.session, sql, self.form, &mut out);
        // The names for completion are a query, too.
        self.session.resume();
        out.flush()?;
        match ran {
            Err(QueryError::Write(error)) => return Err(error),
            Err(error) => (self.say)(&error.to_string()),
            Ok(()) => {}
        }
        Ok(())
    }

    /// Runs a command without its dot; gives false to leave.
    ///
    /// # Errors
    /// Standard output takes no more.
    pub fn command(&mut self, command: &str) -> io::Result<bool> {
        let (name, argument) = command.split_once(' ').unwrap_or((command, ""));
        let argument = argument.trim();
        match (name, argument) {
            ("quit" | "exit" | "q", _) => return Ok(false),
            ("help" | "h", _) => self.print(HELP)?,
            ("tables", _) => self.print(&tables())?,
            ("schema", "") => self.print(&tables())?,
            ("schema", table) => self.schema(table)?,
            ("mode", mode) => match mode {
                "table" => self.form = OutputForm::Table,
                "csv" => self.form = OutputForm::Csv,
                "json" => self.form = OutputForm::Json,
                _ => (self.say)("modes are table, csv and json"),
            },
            ("read", file) => match std::fs::read_to_string(file) {
                Ok(sql) => self.run(&sql)?,
                Err(error) => (self.say)(&format!("cannot read {file}: {error}")),
            },
            _ => (self.say)(&format!("there is no command .{name}: .help lists them")),
        }
        Ok(true)
    }

    fn print(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    fn schema(&self, name: &str) -> io::Result<()> {
        let names = self.session.names();
        let known = whit_tables::find(name);
        let mut text = String::new();
        if let Some(table) = known {
            for column in table.columns() {
                let (name, kind, meaning) = (column.name, column.kind.name(), column.meaning);
                text.push_str(&format!("{name:<18} {kind:<8} {meaning}\n"));
            }
        } else if let Some((_, columns)) = names.tables.iter().find(|(table, _)| table == name) {
            columns.iter().for_each(|column| text.push_str(&format!("{column}\n")));
        } else {
            let near = names.nearest_table(name);
            let near = near.map_or(String::new(), |near| format!(": the nearest is {near}"));
            (self.say)(&format!("there is no table {name}{near}"));
        }
        self.print(&text)
    }
}

/// All tables and views with their meaning.
fn tables() -> String {
    let tables = query_tables().map(|table| (table.name(), table.meaning()));
    let views = VIEWS.iter().map(|view| (view.name, view.meaning));
    tables.chain(views).map(|(name, meaning)| format!("{name:<25} {meaning}\n")).collect()
}
