//! The event language of `-e`.
//!
//! [`parse`] turns text into a syntax tree without looking at the machine. [`PmuTable`] holds the
//! PMUs that sysfs describes. [`resolve`] joins the two into the attributes that `perf_event_open`
//! takes. Printing a parsed event gives text that parses to an equal event.
//!
//! ```
//! use std::path::Path;
//! use whit_events::{PmuTable, TracefsIds, parse, resolve};
//!
//! let list = parse("{cpu-clock:u,page-faults}")?;
//! assert_eq!(parse(&list.to_string())?, list);
//!
//! let pmus = PmuTable::from_sysfs(Path::new("/sys/bus/event_source/devices"))?;
//! let groups = resolve(&list, &pmus, &mut TracefsIds::system())?;
//! let [clock, faults] = &groups[0].events[..] else { panic!("a group of two") };
//! // PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK and PERF_COUNT_SW_PAGE_FAULTS.
//! assert_eq!((clock.pmu_type, clock.config[0], faults.config[0]), (1, 0, 2));
//! assert!(clock.exclude.kernel && !faults.exclude.kernel);
//!
//! let wrong = parse("cycles,").unwrap_err();
//! assert!(wrong.to_string().contains("cycles,"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The caller opens the events. It asks [`resolve`] again on each machine: numbers of PMUs and tracepoints differ.
//!
//! # Names
//!
//! An event is shown by the name that perf 6.1 gives it:
//!
//! - `name=` wins. Its value may be unquoted (up to `,` or `/`), in `'…'` or in `"…"`; inside
//!   quotes every character is allowed and a backslash takes the next one as it is. The quotes are
//!   not part of the name. perf also drops a second pair directly inside the first (`'"NAME"'`),
//!   quotes that still carry a shell's backslash (`\'NAME\'`, or `\ 'NAME\ '` as documents typeset
//!   it), and blanks around an unquoted value; so does whit. The rest is kept exactly; modifiers
//!   are not appended.
//! - A tracepoint is `system:event`, without modifiers.
//! - A hardware-cache event is the word as it was written, without modifiers.
//! - Everything else is the event as it was written, with its terms and its own modifiers, but
//!   not its group's (`cycles:u`, `cpu/event=0x3c/k`). perf 6.1 cuts `mem:0x1000/4:rw` to
//!   `mem:0x1000`; here it stays whole.
//!
//! # Invariants
//!
//! Nothing here opens an event. Parsing and resolving read no files: [`PmuTable::from_sysfs`],
//! [`TracefsIds`] and [`EventTable::read`] are the only parts that do, and tests put values in
//! their place. Text of any
//! kind gives an event list or an error, never a panic.
#![forbid(unsafe_code)]

mod ast;
mod cache;
mod catalogue;
mod cursor;
mod display;
mod error;
mod format;
mod glob;
mod modifiers;
mod names;
mod parse_term;
mod parser;
mod pmu;
mod resolve;
mod table;
mod term;
mod tracepoint;

pub use ast::{Access, Breakpoint, Event, EventKind, EventList, Group, Item};
pub use cache::{Cache, CacheEvent, CacheOp, CacheResult, cache_event_names};
pub use catalogue::{CatalogueEntry, EventClass, catalogue, tracepoint_entries};
pub use error::{Excerpt, ParseError};
pub use format::{CONFIG_WORDS, FormatError, FormatSpec};
pub use glob::{glob_matches, is_glob};
pub use modifiers::{Exclude, MODIFIER_LETTERS, Modifiers};
pub use names::{known_event_names, nearest};
pub use parse_term::MAX_TERMS;
pub use parser::{MAX_TEXT_BYTES, parse};
pub use pmu::{
    Pmu, PmuEvent, PmuProblem, PmuTable, PmuTableError, SYSFS_PMUS, TYPE_BREAKPOINT, TYPE_HARDWARE,
    TYPE_HW_CACHE, TYPE_RAW, TYPE_SOFTWARE, TYPE_TRACEPOINT,
};
pub use resolve::{
    BreakpointAttr, EventTerms, MAX_RESOLVED_EVENTS, PreciseIp, ResolveError, ResolveErrorKind,
    ResolvedEvent, ResolvedGroup, Sampling, resolve,
};
pub use table::{
    CpuIdentity, EventTable, EventTableError, MAX_TABLE_EVENTS, MAX_TABLE_FILE_BYTES,
    MAX_TABLE_FILES, MAX_TABLE_PROBLEMS, Owner, TableEvent,
};
pub use term::{CallGraph, Term, TermValue, common_term_names};
pub use tracepoint::{TRACEFS_PATHS, TracefsIds, TracepointError, TracepointIds};
pub use whit_types::{HardwareEvent, SoftwareEvent, ToolEvent};
