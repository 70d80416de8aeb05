//! The event language and `whit list`, through the built program and beside the installed `perf`.
//!
//! Software events are enough. An ability that this machine lacks (perf, root, a readable tracefs)
//! is named on standard error, and in the file that `WHIT_SKIP_LOG` names.

mod list;
mod record;
mod support;
mod tables;
