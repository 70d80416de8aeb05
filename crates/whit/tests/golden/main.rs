//! Golden recordings: what whit makes of recordings that are kept, byte by byte, beside what it is
//! expected to print; and what it makes of them once they are old, cut or corrupt.
//!
//! - `kept`: each recording of `tests/recordings/golden` prints what stands beside it, and the
//!   installed perf counts the same.
//! - `old_versions`, `crashes`, `corruption`: three suites.
//! - `deferred`: user call chains in records of their own.
//! - `decoding_threads`: the number of whit's own threads does not show.
//!
//! `WHIT_BLESS=1 cargo test -p whit --test golden` writes anew what is generated and what is
//! expected. Look at the difference before you commit it.

mod control_characters;
mod corruption;
mod crashes;
mod decoding_threads;
mod deferred;
mod elf;
mod encode;
mod kept;
mod library;
mod made;
mod old_versions;
