//! The tables of `docs/tables.md`.

use crate::tables::query_tables;
use std::fmt::Write;

/// The document, from the root of the repository.
pub const FILE: &str = "docs/tables.md";

/// A section for each table.
pub fn page() -> String {
    let mut out = String::new();
    for table in query_tables() {
        // Writing into a string cannot fail.
        let _ = write!(out, "### {}\n\n{}.\n\n", table.name(), table.meaning());
        out.push_str("| column | type | meaning |\n|---|---|---|\n");
        for column in table.columns() {
            let (name, kind, meaning) = (column.name, column.kind.name(), column.meaning);
            let _ = writeln!(out, "| `{name}` | {kind} | {meaning} |");
        }
        out.push('\n');
    }
    out
}
