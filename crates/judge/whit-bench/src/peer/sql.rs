//! Statements of SQL, and the engine of others that is asked, too.

use std::path::{Path, PathBuf};

use crate::installed::version_by;

/// A statement by its place in a command line.
pub(super) fn statement(place: &str) -> Option<&'static str> {
    match place {
        // Functions with self and total weights, as `whit report` has them.
        "FUNCTIONS" => Some("SELECT * FROM top_functions ORDER BY self_weight DESC"),
        // Weights by command and event, which need no call chains.
        "COMMANDS" => Some("SELECT event, comm, SUM(weight) FROM sample GROUP BY 1, 2"),
        "WAITS" => Some("SELECT kind, COUNT(*), SUM(dur) FROM wait GROUP BY 1"),
        _ => None,
    }
}

/// A long text by its place: the program that asks DuckDB, and the views behind the statement of functions.
pub(super) fn script(place: &str) -> Option<&'static str> {
    match place {
        "SCRIPT" => Some(include_str!("duckdb.py")),
        "CALLSITE_WEIGHT" => Some(include_str!("../../../../../sql/callsite_weight.sql")),
        "TOP_FUNCTIONS" => Some(include_str!("../../../../../sql/top_functions.sql")),
        _ => None,
    }
}

/// The Python to use: that of the environment variable `PYTHON`, else `python3`.
pub(super) fn python() -> PathBuf {
    std::env::var_os("PYTHON").map_or_else(|| "python3".into(), PathBuf::from)
}

/// The version of Python's DuckDB.
pub(super) fn duckdb_version(python: &Path) -> Result<String, String> {
    let print = "import duckdb; print('DuckDB', duckdb.__version__)";
    let missing = "install it with pip, and name that Python in $PYTHON";
    version_by(python, &["-c", print])
        .map_err(|_| format!("{} has no duckdb: {missing}", python.display()))
}
