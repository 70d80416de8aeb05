//! Functions that give rows as virtual tables: their arguments are hidden columns.

use super::failure;
use crate::functions::TABLE_FUNCTIONS;
use crate::table_function::{Rows, TableFunction};
use rusqlite::types::{Null, ValueRef};
use rusqlite::vtab::{
    Context, Filters, IndexConstraintOp, IndexInfo, Module, VTab, VTabConnection, VTabCursor,
    sqlite3_vtab, sqlite3_vtab_cursor,
};
use rusqlite::{Connection, Result, ffi};
use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::sync::Arc;
use whit_tables::Budget;

/// A function reads whole tables for each of its rows.
const COST: f64 = 1e9;

struct Source {
    function: &'static TableFunction,
    budget: Arc<Budget>,
}

#[repr(C)]
struct FunctionTable {
    base: sqlite3_vtab,
    function: &'static TableFunction,
    budget: Arc<Budget>,
    handle: *mut ffi::sqlite3,
}

#[repr(C)]
struct FunctionCursor {
    base: sqlite3_vtab_cursor,
    function: &'static TableFunction,
    budget: Arc<Budget>,
    handle: *mut ffi::sqlite3,
    arguments: Vec<Option<String>>,
    rows: Option<Box<dyn Rows>>,
    is_at_end: bool,
    row: i64,
}

/// Gives a connection all functions.
pub(super) fn register(connection: &Connection, budget: &Arc<Budget>) -> Result<()> {
    TABLE_FUNCTIONS.iter().try_for_each(|function| {
        let source = Source { function, budget: budget.clone() };
        let module = const { &Module::<FunctionTable>::eponymous_only_module() };
        connection.create_module(function.name, module, Some(source))
    })
}

// SAFETY: the struct is `repr(C)`, and its first member is the one that SQLite asks for.
unsafe impl VTab<'_> for FunctionTable {
    type Aux = Source;
    type Cursor = FunctionCursor;

    fn connect(
        db: &mut VTabConnection,
        aux: Option<&Source>,
        _: &[u8],
        _: &[u8],
        _: &[u8],
        _: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, FunctionTable)> {
        let Source { function, budget } =
            aux.ok_or_else(|| failure("a function without a source"))?;
        let hidden = function.arguments.iter().map(|argument| format!("{argument} HIDDEN"));
        let columns = function.columns.iter().map(|column| (*column).to_owned()).chain(hidden);
        let sql = format!("CREATE TABLE x({})", columns.collect::<Vec<_>>().join(", "));
        let sql = CString::new(sql).map_err(|error| failure(error.to_string()))?;
        // SAFETY: the handle is kept for statements of this connection, which lives longer than its tables.
        let handle = unsafe { db.handle() };
        let (base, budget) = (sqlite3_vtab::default(), budget.clone());
        Ok((sql.into(), FunctionTable { base, function, budget, handle }))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        let first = self.function.columns.len();
        let mut places = vec![None; self.function.arguments.len()];
        for (place, constraint) in info.constraints().enumerate() {
            let column = usize::try_from(constraint.column()).ok();
            let Some(argument) = column.and_then(|column| column.checked_sub(first)) else {
                continue;
            };
            let is_equal = constraint.operator() == IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ;
            if !is_equal {
                continue;
            }
            // An argument of a later table: another order of the join has it.
            if !constraint.is_usable() {
                return Ok(false);
            }
            places[argument] = Some(place);
        }
        let mut text = String::new();
        let given =
            places.iter().enumerate().filter_map(|(argument, place)| Some((argument, (*place)?)));
        for (number, (argument, place)) in given.enumerate() {
            let mut usage = info.constraint_usage(place);
            usage.set_argv_index(number as c_int + 1);
            usage.set_omit(true);
            text.push_str(&format!("{argument} "));
        }
        info.set_idx_str(&text);
        info.set_estimated_cost(COST);
        Ok(true)
    }

    fn open(&mut self) -> Result<FunctionCursor> {
        Ok(FunctionCursor {
            base: sqlite3_vtab_cursor::default(),
            function: self.function,
            budget: self.budget.clone(),
            handle: self.handle,
            arguments: Vec::new(),
            rows: None,
            is_at_end: true,
            row: 0,
        })
    }
}

// SAFETY: the struct is `repr(C)`, and its first member is the one that SQLite asks for.
unsafe impl VTabCursor for FunctionCursor {
    fn filter(&mut self, _: c_int, text: Option<&str>, args: &Filters<'_>) -> Result<()> {
        let given: Vec<usize> =
            text.unwrap_or_default().split_whitespace().filter_map(|it| it.parse().ok()).collect();
        self.arguments = vec![None; self.function.arguments.len()];
        for (argument, value) in given.into_iter().zip(args.iter()) {
            let ValueRef::Text(value) = value else {
                return Err(failure(format!("{}: its arguments are texts", self.function.name)));
            };
            let value = std::str::from_utf8(value).map_err(|error| failure(error.to_string()))?;
            self.arguments[argument] = Some(value.to_owned());
        }
        // SAFETY: SQLite calls this for a table of the connection, which is open; dropping the connection leaves it so.
        let connection = unsafe { Connection::from_handle(self.handle) }?;
        self.rows = Some((self.function.run)(&connection, &self.arguments, self.budget.clone())?);
        self.row = 0;
        self.next()
    }

    fn next(&mut self) -> Result<()> {
        self.is_at_end = !self.rows.as_mut().map_or(Ok(false), |rows| rows.advance())?;
        self.row += 1;
        Ok(())
    }

    fn eof(&self) -> bool {
        self.is_at_end
    }

    fn column(&self, context: &mut Context, column: c_int) -> Result<()> {
        let column = column as usize;
        match (column.checked_sub(self.function.columns.len()), &self.rows) {
            (None, Some(rows)) => context.set_result(rows.value(column)),
            (Some(argument), _) => {
                context.set_result(self.arguments.get(argument).cloned().flatten())
            }
            (None, None) => context.set_result(Null),
        }
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.row)
    }
}
