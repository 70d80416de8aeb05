//! Rows as a table, as CSV, as JSON.

use rusqlite::types::ValueRef;
use std::io::{self, Write};
use whit_types::escape;

/// Rows whose widths decide those of a table's columns; a wider cell behind them stands out.
const MEASURED_ROWS: usize = 1000;

/// Longest cell of a table that makes its column wider.
const MAX_WIDTH: usize = 80;

/// How rows are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OutputForm {
    /// Columns under titles.
    #[default]
    Table,
    /// RFC 4180; control characters are escaped.
    Csv,
    /// An array with an object for each row; texts are exact.
    Json,
}

/// A cell as text, and whether it is a number.
struct Cell {
    text: String,
    is_number: bool,
}

/// Writes the rows of one statement.
pub(crate) struct Writer<'o> {
    form: OutputForm,
    names: Vec<String>,
    out: &'o mut dyn Write,
    held: Vec<Vec<Cell>>,
    widths: Vec<usize>,
    rows: u64,
}

impl<'o> Writer<'o> {
    pub(crate) fn new(form: OutputForm, names: Vec<String>, out: &'o mut dyn Write) -> Self {
        Writer { form, names, out, held: Vec::new(), widths: Vec::new(), rows: 0 }
    }

    pub(crate) fn width(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn row(&mut self, values: &[ValueRef<'_>]) -> io::Result<()> {
        self.rows += 1;
        match self.form {
            OutputForm::Table => self.table_row(values.iter().map(cell).collect()),
            OutputForm::Csv => self.csv_row(values),
            OutputForm::Json => self.json_row(values),
        }
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        match self.form {
            OutputForm::Table => self.flush_table(),
            OutputForm::Csv if self.rows == 0 => self.csv_titles(),
            OutputForm::Csv => Ok(()),
            OutputForm::Json if self.rows == 0 => self.out.write_all(b"[]\n"),
            OutputForm::Json => self.out.write_all(b"\n]\n"),
        }
    }

    fn csv_titles(&mut self) -> io::Result<()> {
        let titles: Vec<_> = self.names.iter().map(|name| csv(&escape(name))).collect();
        writeln!(self.out, "{}", titles.join(","))
    }

    fn csv_row(&mut self, values: &[ValueRef<'_>]) -> io::Result<()> {
        if self.rows == 1 {
            self.csv_titles()?;
        }
        let cells: Vec<_> = values.iter().map(|value| csv(&cell(value).text)).collect();
        writeln!(self.out, "{}", cells.join(","))
    }

    fn json_row(&mut self, values: &[ValueRef<'_>]) -> io::Result<()> {
        self.out.write_all(if self.rows == 1 { b"[\n" } else { b",\n" })?;
        // Columns in the order of the statement, also where two have one name.
        for (column, (name, value)) in self.names.iter().zip(values).enumerate() {
            self.out.write_all(if column == 0 { b" {" } else { b", " })?;
            serde_json::to_writer(&mut *self.out, name)?;
            self.out.write_all(b": ")?;
            match value {
                ValueRef::Null => self.out.write_all(b"null")?,
                ValueRef::Integer(number) => write!(self.out, "{number}")?,
                ValueRef::Real(number) => serde_json::to_writer(&mut *self.out, number)?,
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                    serde_json::to_writer(&mut *self.out, &String::from_utf8_lossy(bytes))?;
                }
            }
        }
        self.out.write_all(b"}")
    }

    fn table_row(&mut self, row: Vec<Cell>) -> io::Result<()> {
        if !self.widths.is_empty() {
            return self.write_table_row(&row);
        }
        self.held.push(row);
        if self.held.len() >= MEASURED_ROWS { self.flush_table() } else { Ok(()) }
    }

    /// Titles and the rows that their widths were measured by.
    fn flush_table(&mut self) -> io::Result<()> {
        if !self.widths.is_empty() {
            return Ok(());
        }
        let held = std::mem::take(&mut self.held);
        let titles: Vec<String> = self.names.iter().map(|name| escape(name).to_string()).collect();
        self.widths = (0..titles.len())
            .map(|column| {
                let cells = held.iter().map(|row| row[column].text.chars().count().min(MAX_WIDTH));
                cells.chain([titles[column].chars().count()]).max().unwrap_or(0)
            })
            .collect();
        let is_number = |column: usize| {
            held.iter().any(|row| row[column].is_number && !row[column].text.is_empty())
        };
        let titles: Vec<_> = titles
            .into_iter()
            .enumerate()
            .map(|(column, text)| Cell { text, is_number: is_number(column) })
            .collect();
        self.write_table_row(&titles)?;
        let rule: Vec<_> = self.widths.iter().map(|width| "-".repeat(*width)).collect();
        writeln!(self.out, "{}", rule.join("  "))?;
        held.iter().try_for_each(|row| self.write_table_row(row))
    }

    fn write_table_row(&mut self, row: &[Cell]) -> io::Result<()> {
        let mut line = String::new();
        for (Cell { text, is_number }, width) in row.iter().zip(&self.widths) {
            let padding = " ".repeat(width.saturating_sub(text.chars().count()));
            let (before, behind) = if *is_number { (&*padding, "") } else { ("", &*padding) };
            line.push_str(before);
            line.push_str(text);
            line.push_str(behind);
            line.push_str("  ");
        }
        writeln!(self.out, "{}", line.trim_end())
    }
}

/// A cell with control characters escaped.
fn cell(value: &ValueRef<'_>) -> Cell {
    let (text, is_number) = match value {
        ValueRef::Null => (String::new(), true),
        ValueRef::Integer(number) => (number.to_string(), true),
        ValueRef::Real(number) => (number.to_string(), true),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            (escape(&String::from_utf8_lossy(bytes)).to_string(), false)
        }
    };
    Cell { text, is_number }
}

fn csv(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}
