//! The interface of terminals: whether it is wanted, its start, and the recordings behind it.

mod source;

pub(crate) use source::RecordingSource;

use crate::beside;
use crate::message;
use anyhow::Result;
use std::fs::File;
use std::io::{self, IsTerminal};

/// The program, which lies beside this one: the recorder carries no interface.
const PROGRAM: &str = "whit-terminal";

/// True where standard output is a terminal that can be drawn on, and keys can be read.
pub(crate) fn is_possible() -> bool {
    let term = std::env::var("TERM").unwrap_or_default();
    let can_draw = !term.is_empty() && term != "dumb";
    let has_keys = || io::stdin().is_terminal() || File::open("/dev/tty").is_ok();
    io::stdout().is_terminal() && can_draw && has_keys()
}

/// Becomes the interface, with the arguments of this process. Comes back where there is none: the result is text
/// then.
pub(crate) fn start() -> Result<Option<u8>> {
    if !beside::exists(PROGRAM) {
        message::warning(format_args!(
            "the interface is a program of its own, {PROGRAM}, and does not lie beside whit: here is text (--stdio)"
        ));
        return Ok(None);
    }
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    beside::run(PROGRAM, &arguments, "put it beside whit, or give --stdio").map(Some)
}
