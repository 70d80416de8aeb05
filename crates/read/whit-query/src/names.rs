//! Names of tables, columns and functions: for completion, and for the nearest one to a wrong one.

use crate::views::VIEWS;
use rusqlite::Connection;
use whit_tables::query_tables;

/// Functions that are not SQLite's.
const OWN_FUNCTIONS: [&str; 3] = ["percentile", "interval_intersect", "sqrt"];

/// A wrong name has at most this share of its letters wrong.
const MIN_LIKENESS: f64 = 0.6;

/// Words of SQL that people type at the shell.
const KEYWORDS: [&str; 31] = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "BY",
    "ORDER",
    "LIMIT",
    "JOIN",
    "LEFT",
    "ON",
    "USING",
    "AS",
    "AND",
    "OR",
    "NOT",
    "IN",
    "IS",
    "NULL",
    "LIKE",
    "BETWEEN",
    "HAVING",
    "DISTINCT",
    "WITH",
    "RECURSIVE",
    "UNION",
    "ALL",
    "CREATE",
    "TABLE",
    "VIEW",
    "DESC",
    "COUNT",
];

/// All names of a session.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Tables and views, each with its columns.
    pub tables: Vec<(String, Vec<String>)>,
    /// Those of SQLite and of whit.
    pub functions: Vec<String>,
}

impl Names {
    /// The names that a connection knows, with the tables that its statements made.
    pub(crate) fn of(connection: &Connection) -> Names {
        let mut tables: Vec<(String, Vec<String>)> = query_tables()
            .map(|table| {
                let columns = table.columns().iter().map(|column| column.name.to_owned()).collect();
                (table.name().to_owned(), columns)
            })
            .collect();
        let made = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')
            UNION SELECT name FROM sqlite_temp_master WHERE type IN ('table', 'view')";
        let listed = list(connection, made, []);
        let own = VIEWS.iter().map(|view| view.name.to_owned());
        let mut others: Vec<_> = own.chain(listed).collect();
        others.sort();
        others.dedup();
        for name in others {
            let columns = list(connection, "SELECT name FROM pragma_table_info(?)", [&name]);
            tables.push((name, columns));
        }
        let mut functions = list(connection, "SELECT DISTINCT name FROM pragma_function_list", []);
        functions.extend(OWN_FUNCTIONS.map(str::to_owned));
        Names { tables, functions }
    }

    /// The table or view that is most like a name.
    pub fn nearest_table(&self, name: &str) -> Option<&str> {
        nearest(name, self.tables.iter().map(|(table, _)| table.as_str()))
    }

    /// The column that is most like a name, of the tables that a statement names, and the table.
    pub fn nearest_column(&self, name: &str, sql: &str) -> Option<(&str, &str)> {
        let (prefix, name) = name.rsplit_once('.').unwrap_or(("", name));
        let words: Vec<&str> = words(sql).collect();
        let is_named = |table: &str| words.iter().any(|word| word.eq_ignore_ascii_case(table));
        let of_prefix = self.tables.iter().filter(|(table, _)| table.eq_ignore_ascii_case(prefix));
        let named = self.tables.iter().filter(|(table, _)| is_named(table));
        for tables in [of_prefix.collect::<Vec<_>>(), named.collect(), self.tables.iter().collect()]
        {
            let columns = tables.iter().flat_map(|(_, columns)| columns.iter().map(String::as_str));
            let Some(nearest) = nearest(name, columns) else { continue };
            let table = tables.iter().find(|(_, columns)| columns.iter().any(|it| it == nearest));
            return table.map(|(table, _)| (nearest, table.as_str()));
        }
        None
    }

    /// The function that is most like a name.
    pub fn nearest_function(&self, name: &str) -> Option<&str> {
        nearest(name, self.functions.iter().map(String::as_str))
    }

    /// Names that begin with a word: columns behind `table.`, else tables, columns of tables in the line, functions and words
    /// of SQL.
    pub fn complete(&self, line: &str, word: &str) -> Vec<String> {
        let begins = |name: &str| {
            name.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word))
        };
        let mut found: Vec<String> = if let Some((table, begin)) = word.rsplit_once('.') {
            let of_table = self.tables.iter().filter(|(name, _)| name.eq_ignore_ascii_case(table));
            let columns = of_table.flat_map(|(_, columns)| columns);
            let columns = columns.filter(|column| column.starts_with(begin));
            columns.map(|column| format!("{table}.{column}")).collect()
        } else {
            let in_line: Vec<&str> = words(line).collect();
            let tables = self.tables.iter().map(|(table, _)| table);
            let is_named = |table: &str| in_line.contains(&table);
            let any_is_named = self.tables.iter().any(|(table, _)| is_named(table));
            // Columns are mostly typed before their table.
            let named = self.tables.iter().filter(|(table, _)| !any_is_named || is_named(table));
            let columns = named.flat_map(|(_, columns)| columns);
            let names = tables.chain(columns).chain(&self.functions).map(String::as_str);
            names.chain(KEYWORDS).filter(|name| begins(name)).map(str::to_owned).collect()
        };
        found.sort();
        found.dedup();
        found
    }
}

fn list<P: rusqlite::Params>(connection: &Connection, sql: &str, params: P) -> Vec<String> {
    let read = || {
        let mut statement = connection.prepare(sql)?;
        statement.query_map(params, |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()
    };
    // Names are a convenience: without them, messages have no advice.
    read().unwrap_or_default()
}

fn words(sql: &str) -> impl Iterator<Item = &str> {
    sql.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    let likeness = |candidate: &str| {
        let whole = strsim::normalized_damerau_levenshtein(&name, &candidate.to_ascii_lowercase());
        // `thread_id` means `utid` less than `functions` means `top_functions`.
        let is_part = name.len() > 2 && candidate.contains(name.as_str());
        if is_part { whole.max(0.75) } else { whole }
    };
    let scored = candidates.map(|candidate| (likeness(candidate), candidate));
    let best = scored.filter(|(likeness, _)| *likeness >= MIN_LIKENESS);
    best.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, candidate)| candidate)
}
