//! The interface of terminals: whether it is wanted, its start, and the recordings behind it.

use crate::message;
use crate::sibling;
use crate::symbol_args::SymbolArgs;
use anyhow::Result;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsRawFd;
use whit_perfdata::reader::Recording;
use whit_profile::model::Profile;
use whit_profile::switches::Switches;
use whit_profile::{ReadOptions, Samples};
use whit_symbolize::RunningList;
use whit_sys::descriptor::{duplicate, inheritable};
use whit_view::stdio::StdioOptions;

/// Names the descriptor of the kernel's list of symbols.
const KERNEL_LIST: &str = "WHIT_KERNEL_LIST_FD";
/// The program in the folder of this one: the recorder carries no interface.
const PROGRAM: &str = "whit-terminal";

/// The first view of an interface, and the recordings for further ones.
pub struct FirstView {
    /// The recordings, for more of them.
    pub recordings: Vec<Recording>,
    /// How the only recording is read.
    pub options: Option<ReadOptions>,
    /// How its samples are summed up.
    pub samples: Samples,
    /// The samples of all.
    pub profile: Profile,
    /// The waits, where the recording has any.
    pub switches: Option<Switches>,
    /// Whether the recording has waits.
    pub may_have_waits: bool,
    /// How rows look.
    pub text: StdioOptions,
}

/// True where standard output is a terminal that can be drawn on, and keys can be read.
pub fn is_possible() -> bool {
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
    if !sibling::exists(PROGRAM) {
        message::warning(format_args!(
            "there is no {PROGRAM}, the interface of terminals, so here is text (--stdio): {}",
            sibling::INSTALL
        ));
        return Ok(None);
    }
    become_reader(PROGRAM, symbols).map(Some)
}

/// The same where there is no text instead.
pub(crate) fn become_it(symbols: &SymbolArgs) -> Result<u8> {
    become_reader(PROGRAM, symbols)
}

/// Becomes a program that reads a recording, with the arguments of this process and the kernel's list of symbols.
pub(crate) fn become_reader(program: &str, symbols: &SymbolArgs) -> Result<u8> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    // Open until the program is there.
    let list = symbols.running_list.as_ref().map(|list| inheritable(list.file())).transpose()?;
    let variable = list.as_ref().map(|list| (KERNEL_LIST, list.as_raw_fd().to_string()));
    sibling::become_program(program, &arguments, variable, sibling::INSTALL)
}

/// The list of symbols that came with the start.
pub(crate) fn kernel_list() -> Option<RunningList> {
    let number = std::env::var(KERNEL_LIST).ok()?.parse().ok()?;
    duplicate(number).ok().map(|list| File::from(list).into())
}
