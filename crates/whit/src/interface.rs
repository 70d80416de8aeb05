//! The interface of terminals: whether it is wanted, its start, and the recordings behind it.

mod source;

pub(crate) use source::RecordingSource;

use crate::beside;
use crate::message;
use crate::symbol_args::SymbolArgs;
use anyhow::Result;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsRawFd;
use whit_symbolize::RunningList;
use whit_sys::descriptor::{duplicate, inheritable};

/// Names the descriptor of the kernel's list of symbols.
const KERNEL_LIST: &str = "WHIT_KERNEL_LIST_FD";
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
///
/// The kernel's list of symbols goes with it, where it was opened with more rights than either has by now.
pub(crate) fn start(symbols: &SymbolArgs) -> Result<Option<u8>> {
    if !beside::exists(PROGRAM) {
        message::warning(format_args!(
            "the interface is a program of its own, {PROGRAM}, and does not lie beside whit: here is text (--stdio)"
        ));
        return Ok(None);
    }
    become_reader(PROGRAM, symbols, "put it beside whit, or give --stdio").map(Some)
}

/// The same where there is no text instead.
pub(crate) fn become_it(symbols: &SymbolArgs, advice: &str) -> Result<u8> {
    become_reader(PROGRAM, symbols, advice)
}

/// Becomes a program that reads a recording, with the arguments of this process and the kernel's list of symbols.
pub(crate) fn become_reader(program: &str, symbols: &SymbolArgs, advice: &str) -> Result<u8> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    // Open until the program is there.
    let list = symbols.running_list.as_ref().map(|list| inheritable(list.file())).transpose()?;
    let variable = list.as_ref().map(|list| (KERNEL_LIST, list.as_raw_fd().to_string()));
    beside::become_program(program, &arguments, variable, advice)
}

/// The list of symbols that came with the start.
pub(crate) fn kernel_list() -> Option<RunningList> {
    let number = std::env::var(KERNEL_LIST).ok()?.parse().ok()?;
    duplicate(number).ok().map(|list| File::from(list).into())
}
