//! Runs fuzz targets with or without libFuzzer.
//!
//! Under `cargo fuzz` (nightly) a target is an ordinary libFuzzer target. Built with stable Rust it
//! is a program that mutates its corpus with a seeded generator: the same seed gives the same
//! inputs, so that a smoke run either always passes or always fails.
//!
//! ```text
//! cargo run --manifest-path fuzz/Cargo.toml --bin event_parser -- --iterations 20000 --seed 1
//! cargo run --manifest-path fuzz/Cargo.toml --bin event_parser -- fuzz/artifacts/event_parser/crash-…
//! cargo fuzz run event_parser
//! ```
#![forbid(unsafe_code)]

mod driver;
mod mutate;
mod on_disk;

pub use driver::{Target, run};
pub use on_disk::{with_file, with_path};

#[cfg(fuzzing)]
pub use libfuzzer_sys;

/// What a target thought of an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Worth mutating further: it got past the first checks.
    Keep,
    /// Refused early.
    Reject,
}

/// Defines the program of a fuzz target: `fuzz_target!(dictionary, |data| … Verdict)`.
///
/// The dictionary lists tokens that mutations insert.
#[macro_export]
macro_rules! fuzz_target {
    ($dictionary:expr, |$data:ident| $body:block) => {
        fn one_input($data: &[u8]) -> $crate::Verdict $body

        #[cfg(fuzzing)]
        $crate::libfuzzer_sys::fuzz_target!(|data: &[u8]| -> $crate::libfuzzer_sys::Corpus {
            match one_input(data) {
                $crate::Verdict::Keep => $crate::libfuzzer_sys::Corpus::Keep,
                $crate::Verdict::Reject => $crate::libfuzzer_sys::Corpus::Reject,
            }
        });

        #[cfg(not(fuzzing))]
        fn main() -> std::process::ExitCode {
            let target = $crate::Target {
                name: env!("CARGO_BIN_NAME"),
                root: std::path::Path::new(env!("CARGO_MANIFEST_DIR")),
                dictionary: $dictionary,
                one_input,
            };
            $crate::run(&target, std::env::args().skip(1))
        }
    };
}
