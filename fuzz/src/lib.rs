//! Code that the fuzz targets share.
//!
//! A target is a libFuzzer program. `scripts/fuzz.sh` builds them in the ordinary target folder; only the crates of
//! this workspace are compiled with coverage (`scripts/fuzz-rustc.sh`), the dependencies are those of the tests. `make test`
//! runs each target for a moment with a new seed, `make fuzz MINUTES=…` for long (`docs/testing.md`).
//!
//! Mutations insert tokens from `fuzz/dictionaries/TARGET.dict`; runs begin with the inputs of `fuzz/corpus/TARGET`.
#![forbid(unsafe_code)]

mod on_disk;

pub use libfuzzer_sys;
pub use on_disk::{with_file, with_path};

/// Defines the program of a fuzz target: `fuzz_target!(|data| …)`, which panics where the code under
/// test is wrong.
#[macro_export]
macro_rules! fuzz_target {
    (|$data:ident| $body:block) => {
        // An input that the code refuses may still reach new code: libFuzzer keeps inputs by their coverage alone.
        $crate::libfuzzer_sys::fuzz_target!(|$data: &[u8]| $body);
    };
}
