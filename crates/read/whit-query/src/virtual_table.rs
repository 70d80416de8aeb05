//! The tables as SQLite's virtual tables.
//!
//! SQLite reaches a table and a cursor through pointers to their first member, which the traits of `rusqlite` are unsafe
//! for. The only unsafe code is the promise that the members stand so.
#![allow(unsafe_code)]

mod function;

use crate::plan::{Comparison, Constraint, plan, wanted};
use rusqlite::types::ValueRef;
use rusqlite::vtab::{
    Context, Filters, IndexConstraintOp, IndexFlags, IndexInfo, Module, VTab, VTabConfig,
    VTabConnection, VTabCursor, sqlite3_vtab, sqlite3_vtab_cursor,
};
use rusqlite::{Connection, Error, Result, ffi};
use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::sync::Arc;
use whit_tables::{AnyTable, Budget, ColumnInfo, Cursor, Store, TableError, Value, query_tables};

/// A table, and where its rows come from.
pub(crate) struct Source {
    table: &'static dyn AnyTable,
    store: Arc<dyn Store>,
    budget: Arc<Budget>,
}

/// A table of a connection.
#[repr(C)]
struct SqlTable {
    base: sqlite3_vtab,
    table: &'static dyn AnyTable,
    store: Arc<dyn Store>,
    budget: Arc<Budget>,
    columns: Vec<ColumnInfo>,
}

/// A scan.
#[repr(C)]
struct SqlCursor {
    base: sqlite3_vtab_cursor,
    table: &'static dyn AnyTable,
    store: Arc<dyn Store>,
    budget: Arc<Budget>,
    cursor: Option<Box<dyn Cursor>>,
    is_at_end: bool,
    row: i64,
}

/// Gives a connection all tables and functions that stand behind FROM.
pub(crate) fn register(
    connection: &Connection,
    store: &Arc<dyn Store>,
    budget: &Arc<Budget>,
) -> Result<()> {
    function::register(connection, budget)?;
    query_tables().try_for_each(|table| {
        let source = Source { table, store: store.clone(), budget: budget.clone() };
        let module = const { &Module::<SqlTable>::eponymous_only_module() };
        connection.create_module(table.name(), module, Some(source))
    })
}

fn failure(text: impl Into<String>) -> Error {
    Error::ModuleError(text.into())
}

fn of_reader(error: &TableError) -> Error {
    match error {
        TableError::Cancelled => Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_INTERRUPT), None),
        error => failure(error.to_string()),
    }
}

fn declaration(own: &[ColumnInfo], partitions: &[ColumnInfo]) -> Result<CString> {
    let own = own.iter().map(|column| {
        let hidden = if column.is_argument() { " HIDDEN" } else { "" };
        format!("{} {}{hidden}", column.name, column.kind.name())
    });
    // `*` leaves these out: it gives the same columns over recordings and datasets.
    let hidden = partitions.iter().map(|it| format!("{} {} HIDDEN", it.name, it.kind.name()));
    let columns = own.chain(hidden);
    let sql = format!("CREATE TABLE x({})", columns.collect::<Vec<_>>().join(", "));
    CString::new(sql).map_err(|error| failure(error.to_string()))
}

// SAFETY: the struct is `repr(C)`, and its first member is the one that SQLite asks for.
unsafe impl VTab<'_> for SqlTable {
    type Aux = Source;
    type Cursor = SqlCursor;

    fn connect(
        db: &mut VTabConnection,
        aux: Option<&Source>,
        _: &[u8],
        _: &[u8],
        _: &[u8],
        _: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, SqlTable)> {
        let Source { table, store, budget } =
            aux.ok_or_else(|| failure("a table without a source"))?;
        db.config(VTabConfig::Innocuous)?;
        let (base, store, budget) = (sqlite3_vtab::default(), store.clone(), budget.clone());
        let (mut columns, partitions) = (table.columns(), store.partitions(*table));
        let declaration = declaration(&columns, &partitions)?;
        columns.extend(partitions);
        Ok((declaration.into(), SqlTable { base, table: *table, store, budget, columns }))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        let mut constraints = Vec::new();
        for (place, constraint) in info.constraints().enumerate() {
            let comparison = comparison(&constraint.operator());
            let Ok(column) = usize::try_from(constraint.column()) else { continue };
            let argument = self.columns.get(column).filter(|column| column.is_argument());
            if let Some(ColumnInfo { name, .. }) = argument {
                if comparison != Some(Comparison::Equal) || info.is_in_constraint(place)? {
                    let table = self.table.name();
                    return Err(failure(format!(
                        "{table}.{name} is an argument: write {name} = …"
                    )));
                }
                // An argument of a later table: another order of the join has it.
                if !constraint.is_usable() {
                    return Ok(false);
                }
            }
            let Some(comparison) = comparison else { continue };
            // The reader compares texts by their bytes.
            let is_binary = info.collation(place).is_ok_and(|name| name == "BINARY");
            if constraint.is_usable() && is_binary {
                constraints.push((place, Constraint { column, comparison }));
            }
        }
        // A list of values would be a scan for each: SQLite looks for them in one.
        let is_list = |(place, _): &(usize, Constraint)| info.is_in_constraint(*place);
        let mut single = Vec::new();
        for constraint in constraints {
            let is_streamed = self.table.size() == whit_tables::Size::Streamed;
            if !(is_streamed && is_list(&constraint)?) {
                single.push(constraint);
            }
        }
        let plan = plan(self.table.size(), &self.columns, &single, info.col_used());
        for (number, used) in plan.used.iter().enumerate() {
            info.constraint_usage(used.constraint).set_argv_index(number as c_int + 1);
        }
        info.set_idx_str(&plan.text());
        info.set_estimated_cost(plan.cost);
        info.set_estimated_rows(plan.rows);
        if plan.is_unique {
            info.set_idx_flags(IndexFlags::SQLITE_INDEX_SCAN_UNIQUE);
        }
        Ok(true)
    }

    fn open(&mut self) -> Result<SqlCursor> {
        Ok(SqlCursor {
            base: sqlite3_vtab_cursor::default(),
            table: self.table,
            store: self.store.clone(),
            budget: self.budget.clone(),
            cursor: None,
            is_at_end: true,
            row: 0,
        })
    }
}

fn comparison(operator: &IndexConstraintOp) -> Option<Comparison> {
    Some(match operator {
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ => Comparison::Equal,
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GE => Comparison::AtLeast,
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GT => Comparison::Above,
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LE => Comparison::AtMost,
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LT => Comparison::Below,
        _ => return None,
    })
}

// SAFETY: the struct is `repr(C)`, and its first member is the one that SQLite asks for.
unsafe impl VTabCursor for SqlCursor {
    fn filter(&mut self, _: c_int, text: Option<&str>, args: &Filters<'_>) -> Result<()> {
        let values: Vec<ValueRef<'_>> = args.iter().collect();
        let whole = |place: usize| match values.get(place) {
            Some(ValueRef::Integer(value)) => Some(*value),
            _ => None,
        };
        let text_at = |place: usize| match values.get(place) {
            Some(ValueRef::Text(text)) => std::str::from_utf8(text).ok().map(str::to_owned),
            _ => None,
        };
        let mut wanted = wanted(text.unwrap_or_default(), whole, text_at);
        wanted.budget = Some(self.budget.clone());
        self.cursor = Some(self.store.open(self.table, &wanted));
        self.row = 0;
        self.next()
    }

    fn next(&mut self) -> Result<()> {
        let advanced = self.cursor.as_mut().map_or(Ok(false), |cursor| cursor.advance());
        self.is_at_end = !advanced.map_err(|error| of_reader(&error))?;
        self.row += 1;
        Ok(())
    }

    fn eof(&self) -> bool {
        self.is_at_end
    }

    fn column(&self, context: &mut Context, column: c_int) -> Result<()> {
        let Some(cursor) = &self.cursor else { return context.set_result(rusqlite::types::Null) };
        match cursor.value(column as usize) {
            Value::Null => context.set_result(rusqlite::types::Null),
            Value::Int(number) => context.set_result(number),
            Value::Name(name) => context.set_result(name),
            Value::Text(text) => context.set_result(&*text),
        }
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.row)
    }
}
