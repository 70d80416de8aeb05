//! A connection with all tables, and the running of statements.

use crate::error::QueryError;
use crate::functions::TABLE_FUNCTIONS;
use crate::names::Names;
use crate::output::{OutputForm, Writer};
use crate::views::VIEWS;
use crate::{percentile, square_root, virtual_table};
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::limits::Limit;
use rusqlite::{Batch, Connection, InterruptHandle, Statement};
use std::io::Write;
use std::sync::Arc;
use whit_tables::Budget;
use whit_tables::{Cancel, Defect, Store};

/// Less memory than this holds no query.
pub const MIN_MEMORY_BYTES: u64 = 4 << 20;

/// Parts of the memory that a cache of pages may take; a sort takes as much before it writes to a file.
const CACHE_SHARE: u64 = 8;

/// Steps of SQLite's machine between two looks at the sign to end: about a millisecond.
const STEPS_BETWEEN_LOOKS: i32 = 100_000;

/// How queries run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Most memory of SQLite, and of the rows that functions hold again.
    pub memory_bytes: u64,
}

/// Recordings or a dataset that queries are run over.
pub struct Session {
    connection: Connection,
    store: Arc<dyn Store>,
    options: Options,
}

/// Ends the query of a session from another thread.
pub struct Interrupter {
    handle: InterruptHandle,
    cancel: Cancel,
}

impl Interrupter {
    /// Ends the query that runs.
    pub fn interrupt(&self) {
        self.cancel.cancel();
        self.handle.interrupt();
    }
}

impl Session {
    /// Makes tables, views and functions.
    ///
    /// # Errors
    /// SQLite refuses.
    pub fn new(store: impl Store + 'static, options: Options) -> Result<Session, QueryError> {
        let error = |error: rusqlite::Error| QueryError::Failed(error.to_string());
        // A temporary database in a file: tables that statements make need not fit into memory.
        let mut connection = Connection::open("").map_err(error)?;
        // SQLite forgets an interrupt that comes between two statements.
        let cancel = store.cancel().clone();
        let is_cancelled = move || cancel.is_cancelled();
        connection.progress_handler(STEPS_BETWEEN_LOOKS, Some(is_cancelled)).map_err(error)?;
        let session = Session { connection, store: Arc::new(store), options };
        session.set_up().map_err(error)?;
        Ok(session)
    }

    fn set_up(&self) -> rusqlite::Result<()> {
        let connection = &self.connection;
        // Statements read recordings, and write no database of anybody.
        connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
        let memory = self.options.memory_bytes;
        let cache_kib = (memory / CACHE_SHARE) >> 10;
        connection.execute_batch(&format!(
            "PRAGMA hard_heap_limit = {memory}; PRAGMA temp_store = FILE; PRAGMA cache_size = -{cache_kib};
             PRAGMA temp.cache_size = -{cache_kib}; PRAGMA synchronous = OFF;"
        ))?;
        let budget = Arc::new(Budget::new(usize::try_from(memory).unwrap_or(usize::MAX)));
        virtual_table::register(connection, &self.store, &budget)?;
        percentile::register(connection, budget)?;
        square_root::register(connection)?;
        let is_function = |name: &str| TABLE_FUNCTIONS.iter().any(|it| it.name == name);
        VIEWS
            .iter()
            .filter(|view| !is_function(view.name))
            .try_for_each(|view| connection.execute_batch(view.own_sql()))
    }

    /// For another thread.
    pub fn interrupter(&self) -> Interrupter {
        let cancel = self.store.cancel().clone();
        Interrupter { handle: self.connection.get_interrupt_handle(), cancel }
    }

    /// All names, for completion.
    pub fn names(&self) -> Names {
        Names::of(&self.connection)
    }

    /// Defects of the recordings and datasets that were read so far.
    pub fn defects(&self) -> Vec<Defect> {
        self.store.defects()
    }

    /// Lets queries run again that an [`Interrupter`] has ended.
    pub fn resume(&self) {
        self.store.cancel().reset();
    }

    /// The error of a statement that does not compile.
    fn wrong(&self, error: &rusqlite::Error, sql: &str) -> QueryError {
        match self.error(error, sql) {
            QueryError::Failed(message) => QueryError::Wrong(message),
            other => other,
        }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The error of a statement that runs.
    pub(crate) fn error(&self, error: &rusqlite::Error, sql: &str) -> QueryError {
        // SQLite has other errors for it too: an interrupt while it makes a table fails the table's constructor.
        if self.store.cancel().is_cancelled() {
            return QueryError::Interrupted;
        }
        QueryError::of(error, sql, &self.names(), self.options.memory_bytes)
    }
}

/// Runs all statements of a text, and writes the rows of those that have any.
///
/// # Errors
/// A statement is wrong, needs too much memory, or was interrupted; or `out` takes no more.
pub fn run(
    session: &Session,
    sql: &str,
    form: OutputForm,
    out: &mut dyn Write,
) -> Result<(), QueryError> {
    let mut statements = Batch::new(&session.connection, sql);
    let mut results = 0;
    loop {
        let statement = statements.next().map_err(|error| session.wrong(&error, sql))?;
        let Some(mut statement) = statement else { return Ok(()) };
        if statement.column_count() == 0 {
            statement.execute([]).map_err(|error| session.error(&error, sql))?;
            continue;
        }
        if results > 0 {
            writeln!(out)?;
        }
        results += 1;
        write_rows(session, &mut statement, sql, form, out)?;
        // The next statement may take long.
        out.flush()?;
    }
}

fn write_rows(
    session: &Session,
    statement: &mut Statement<'_>,
    sql: &str,
    form: OutputForm,
    out: &mut dyn Write,
) -> Result<(), QueryError> {
    let names = statement.column_names().map(str::to_owned).collect();
    let mut writer = Writer::new(form, names, out);
    let mut rows = statement.query([]).map_err(|error| session.error(&error, sql))?;
    let columns = writer.width();
    let mut rows_of = || -> Result<(), QueryError> {
        while let Some(row) = rows.next().map_err(|error| session.error(&error, sql))? {
            let mut cells = Vec::with_capacity(columns);
            for column in 0..columns {
                cells.push(row.get_ref(column).map_err(|error| session.error(&error, sql))?);
            }
            writer.row(&cells)?;
        }
        Ok(())
    };
    let read = rows_of();
    // Rows before an error are shown; JSON stays a whole document.
    writer.finish()?;
    read
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_tables::{AnyTable, ColumnInfo, ColumnRole, Cursor, Kind, Wanted};

    /// A store that is interrupted while SQLite makes a table of it: the table's constructor fails.
    struct InterruptedStore(Cancel);

    impl Store for InterruptedStore {
        fn partitions(&self, _: &dyn AnyTable) -> Vec<ColumnInfo> {
            self.0.cancel();
            let name = "not the name of a column,";
            vec![ColumnInfo { name, kind: Kind::Integer, role: ColumnRole::Plain, meaning: "" }]
        }

        fn open(&self, _: &'static dyn AnyTable, _: &Wanted) -> Box<dyn Cursor> {
            unreachable!("no table of this store is made")
        }

        fn cancel(&self) -> &Cancel {
            &self.0
        }

        fn defects(&self) -> Vec<Defect> {
            Vec::new()
        }
    }

    #[test]
    fn an_interrupt_while_a_table_is_made_is_an_interrupt() {
        let cancel = Cancel::default();
        let options = Options { memory_bytes: MIN_MEMORY_BYTES };
        let session = Session::new(InterruptedStore(cancel.clone()), options).unwrap();
        cancel.reset();
        let ran = run(&session, "SELECT * FROM sample", OutputForm::Csv, &mut Vec::new());
        assert!(matches!(ran, Err(QueryError::Interrupted)), "{ran:?}");
    }
}
