//! Statements of SQL, and the engine of others that is asked, too.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A statement of SQL.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Question {
    /// Functions with self and total weights, as `whit report` has them.
    Functions,
    /// Weights by command and event, which need no call chains.
    Commands,
    /// Waits by kind.
    Waits,
}

/// Asks DuckDB.
pub(super) const DUCKDB: &str = include_str!("duckdb.py");

/// The views behind [`Question::Functions`], each before those that use it.
pub(super) const VIEWS: [&str; 2] = [
    include_str!("../../../../sql/callsite_weight.sql"),
    include_str!("../../../../sql/top_functions.sql"),
];

impl Question {
    pub(super) fn sql(self) -> &'static str {
        match self {
            Question::Functions => "SELECT * FROM top_functions ORDER BY self_weight DESC",
            Question::Commands => "SELECT event, comm, SUM(weight) FROM sample GROUP BY 1, 2",
            Question::Waits => "SELECT kind, COUNT(*), SUM(dur) FROM wait GROUP BY 1",
        }
    }
}

/// The Python to use: that of the environment variable `PYTHON`, else `python3`.
pub(super) fn python() -> PathBuf {
    std::env::var_os("PYTHON").map_or_else(|| "python3".into(), PathBuf::from)
}

/// The version of Python's DuckDB.
pub(super) fn duckdb_version(python: &Path) -> Result<String, String> {
    let print = "import duckdb; print('DuckDB', duckdb.__version__)";
    let output = Command::new(python).args(["-c", print]).stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        _ => Err(format!(
            "{} has no duckdb: install it with pip, and name that Python in $PYTHON",
            python.display()
        )),
    }
}
