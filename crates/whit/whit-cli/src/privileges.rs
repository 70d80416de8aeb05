//! The capabilities of the program's file that each subcommand keeps.

use crate::Command;
use crate::symbol_args::SymbolArgs;
use anyhow::Result;
use whit_symbolize::RunningList;
use whit_sys::capability::Capability;
use whit_sys::privilege::{self, Privileges};

/// Capabilities for recording, as far as the kernel knows them.
const RECORDING: &[Capability] = &[
    Capability::PerfMon,
    Capability::SysAdmin,
    Capability::SysPtrace,
    Capability::Syslog,
    Capability::Bpf,
    Capability::IpcLock,
];

/// A subcommand that opens no event needs none, and runs as an ordinary process of its user.
fn needed(command: &Command) -> &'static [Capability] {
    match command {
        Command::Record(_) | Command::Stat(_) | Command::Doctor(_) | Command::List(_) => RECORDING,
        // The recorder of `whit top` and `whit watch` is a process of its own.
        Command::Report(_)
        | Command::Top(_)
        | Command::Watch(_)
        | Command::Annotate(_)
        | Command::Diff(_)
        | Command::Script(_)
        | Command::Switches(_)
        | Command::Locks(_)
        | Command::Why(_)
        | Command::Requests(_)
        | Command::Goroutines(_)
        | Command::Export(_)
        | Command::Serve(_)
        | Command::Query(_)
        | Command::Mcp(_)
        | Command::Bench(_)
        | Command::Completions(_)
        | Command::Help(_)
        | Command::Setup(_) => &[],
    }
}

/// The options of subcommands that name kernel code.
pub(crate) fn symbol_args(command: &mut Command) -> Option<&mut SymbolArgs> {
    match command {
        Command::Report(args) => Some(&mut args.load.symbols),
        Command::Top(args) => Some(&mut args.symbols),
        Command::Annotate(args) => Some(&mut args.load.symbols),
        Command::Diff(args) => Some(&mut args.load.symbols),
        Command::Script(args) => Some(&mut args.load.symbols),
        Command::Switches(args) => Some(&mut args.load.symbols),
        Command::Locks(args) => Some(&mut args.load.symbols),
        Command::Why(args) => Some(&mut args.symbols),
        Command::Requests(args) => Some(&mut args.symbols),
        Command::Goroutines(args) => Some(&mut args.symbols),
        Command::Export(args) => Some(&mut args.load.symbols),
        Command::Serve(args) => Some(&mut args.load.symbols),
        Command::Record(_)
        | Command::Stat(_)
        | Command::Doctor(_)
        | Command::List(_)
        | Command::Query(_)
        | Command::Watch(_)
        | Command::Mcp(_)
        | Command::Bench(_)
        | Command::Completions(_)
        | Command::Help(_)
        | Command::Setup(_) => None,
    }
}

/// Keeps what the subcommand needs and gives up the rest. The kernel's list of symbols is opened
/// before: it is read later without capabilities.
pub(crate) fn settle(privileges: Privileges, command: &mut Command) -> Result<()> {
    if privileges.is_borrowing()
        && let Some(symbols) = symbol_args(command)
    {
        let _in_force = privilege::raise(&[Capability::Syslog]);
        // Where there is none, the look-up says so when a name of the kernel's is wanted.
        symbols.running_list = RunningList::open().ok();
    }
    Ok(privileges.keep(needed(command))?)
}
