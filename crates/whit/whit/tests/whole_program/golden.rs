//! Golden recordings: whit's output for kept recordings, byte by byte, beside the expected output;
//! and its behaviour on old, cut and damaged ones.
//!
//! - `kept`: each recording of `tests/recordings/golden` prints the expected output beside it, and
//!   the installed perf counts the same.
//! - `old_versions`, `crashes`, `corruption`: three suites.
//! - `deferred`: user call chains in records of their own.
//! - `decoding_threads`: the number of whit's own threads does not show.
//!
//! `WHIT_BLESS=1 cargo test -p whit --test whole_program golden::` writes the generated recordings and the expected
//! output anew. Look at the difference before you commit it.

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
mod without_match;
