//! Programs whose shares, inlined functions and lines are known, since each is written for that.
//!
//! Three functions take 5, 3 and 2 tenths of the time. Each only calls an inlined function with a loop, and all loops
//! call one inlined function more. So each address of the three has one right function, an inlined function and few
//! right lines. The amount of work changes from round to round: it must not keep step with the samples.

use super::kinds::Compiler;

const CPP: &str = include_str!("../../../../../bench/forms/program.cpp");
const RUST: &str = include_str!("../../../../../bench/forms/program.rs");
const GO: &str = include_str!("../../../../../bench/forms/program.go");

/// Called by all loops, and inlined.
const INNERMOST: &str = "mix";

/// A function that takes time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Worker {
    /// The function; no other in the program has this word in its name.
    pub(super) name: &'static str,
    /// The function with the loop, which is inlined there and nowhere else.
    pub(super) inlined: &'static str,
    /// Its share of the time.
    pub(super) percent: u32,
}

/// Those of all programs.
pub(super) const WORKERS: [Worker; 3] = [
    Worker { name: "morning", inlined: "spin_red", percent: 50 },
    Worker { name: "noonday", inlined: "spin_green", percent: 30 },
    Worker { name: "evening", inlined: "spin_blue", percent: 20 },
];

impl Worker {
    /// The worker of a symbol, mangled or not.
    pub(super) fn of(symbol: &str) -> Option<Worker> {
        WORKERS.into_iter().find(|worker| symbol.contains(worker.name))
    }
}

/// The file of a compiler's program, and its text.
pub(super) fn source(compiler: Compiler) -> (&'static str, &'static str) {
    match compiler {
        Compiler::Gcc | Compiler::Clang => ("program.cpp", CPP),
        Compiler::Rust => ("program.rs", RUST),
        Compiler::Go => ("program.go", GO),
    }
}

/// Whether code of a worker can come from a line of a file.
pub(super) fn is_line_of(compiler: Compiler, worker: Worker, file: &str, line: u32) -> bool {
    let (name, text) = source(compiler);
    let file = file.rsplit('/').next().unwrap_or_default();
    let functions = [worker.name, worker.inlined, INNERMOST];
    file == name && functions.iter().any(|function| lines_of(text, function).contains(&line))
}

/// The lines of a function: from the first with its name to the next brace that stands alone.
fn lines_of(text: &str, function: &str) -> std::ops::RangeInclusive<u32> {
    let mut lines = (1..).zip(text.lines());
    let is_first = |line: &str| line.contains(&format!(" {function}("));
    let first = lines.find(|(_, line)| is_first(line)).map_or(1, |(number, _)| number);
    let last = lines.find(|(_, line)| *line == "}").map_or(0, |(number, _)| number);
    first..=last
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn lines_of_functions_are_found_in_all_programs() {
        for &compiler in Compiler::value_variants() {
            let (_, text) = source(compiler);
            let mut last = 0;
            for function in [INNERMOST, "spin_red", "spin_green", "spin_blue"]
                .into_iter()
                .chain(WORKERS.map(|worker| worker.name))
            {
                let lines = lines_of(text, function);
                assert!(*lines.start() > last, "{compiler}, {function}: {lines:?}");
                assert!(
                    (3..=8).contains(&lines.clone().count()),
                    "{compiler}, {function}: {lines:?}"
                );
                last = *lines.end();
            }
        }
    }

    #[test]
    fn a_line_is_that_of_one_worker_alone_apart_from_what_all_call() {
        let (_, text) = source(Compiler::Go);
        let line = *lines_of(text, "spin_green").start() + 2;
        let is = |index: usize, file, line| is_line_of(Compiler::Go, WORKERS[index], file, line);
        assert!(is(1, "/p/program.go", line) && !is(0, "/p/program.go", line));
        assert!(!is(1, "/p/other.go", line));
        let shared = *lines_of(text, INNERMOST).start() + 1;
        assert!((0..3).all(|index| is(index, "program.go", shared)));
    }

    #[test]
    fn workers_are_known_by_their_symbols() {
        assert_eq!(Worker::of("_ZN7program7noonday17h0123E"), Some(WORKERS[1]));
        assert_eq!(Worker::of("main.main"), None);
        assert_eq!(WORKERS.iter().map(|worker| worker.percent).sum::<u32>(), 100);
    }
}
