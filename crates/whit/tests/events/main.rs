//! The event language and `whit list`, through the built program and beside the installed `perf`.
//!
//! Software events are enough. What this machine lacks (perf, root, a readable tracefs) is said by
//! name on standard error, and in the file that `WHIT_SKIP_LOG` names.

mod list;
mod record;
mod support;
mod tables;
