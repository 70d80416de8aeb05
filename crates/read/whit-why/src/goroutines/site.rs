//! The function of a goroutine's wait: the innermost one of the program, not of Go's standard library.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use whit_profile::model::DsoKind;
use whit_profile::tables::{FrameRow, TableSource};

/// First parts of the paths of Go's standard packages (`go list std`).
const STANDARD: [&str; 51] = [
    "archive",
    "bufio",
    "bytes",
    "cmp",
    "compress",
    "container",
    "context",
    "crypto",
    "database",
    "debug",
    "embed",
    "encoding",
    "errors",
    "expvar",
    "flag",
    "fmt",
    "go",
    "hash",
    "html",
    "image",
    "index",
    "internal",
    "io",
    "iter",
    "log",
    "maps",
    "math",
    "mime",
    "net",
    "os",
    "path",
    "plugin",
    "reflect",
    "regexp",
    "runtime",
    "simd",
    "slices",
    "sort",
    "strconv",
    "strings",
    "structs",
    "sync",
    "syscall",
    "testing",
    "text",
    "time",
    "unicode",
    "unique",
    "unsafe",
    "vendor",
    "weak",
];
/// Go's runtime, in front of its functions' names.
const RUNTIME: &str = "runtime.";
/// A goroutine's function returns to it.
const EXIT: &str = "runtime.goexit";

/// Functions of call sites.
#[derive(Default)]
pub(super) struct Sites(FxHashMap<Option<u32>, Option<Arc<str>>>);

impl Sites {
    /// The innermost function of the program's own packages; without any, the one that the goroutine began with.
    pub(super) fn of(&mut self, source: &TableSource, callsite: Option<u32>) -> Option<Arc<str>> {
        self.0.entry(callsite).or_insert_with(|| site(&frames(source, callsite))).clone()
    }

    /// Whether the goroutine is one of Go's runtime: nothing else is in its call chain.
    pub(super) fn is_of_runtime(&mut self, source: &TableSource, callsite: Option<u32>) -> bool {
        // Few sites are the runtime's own: of these alone, each function is looked at.
        self.of(source, callsite).is_some_and(|name| name.starts_with(RUNTIME))
            && frames(source, callsite).iter().all(|name| name.starts_with(RUNTIME))
    }
}

/// The functions of a call chain, innermost first.
pub(super) fn frames(source: &TableSource, callsite: Option<u32>) -> Vec<Arc<str>> {
    rows(source, callsite).map(|frame| frame.name).collect()
}

fn rows(source: &TableSource, callsite: Option<u32>) -> impl Iterator<Item = FrameRow> {
    let row = |callsite: Option<u32>| source.callsite(callsite?);
    let rows = std::iter::successors(row(callsite), move |it| row(it.parent));
    rows.filter_map(|it| source.frame(it.frame))
}

/// The function of a goroutine's call chain as [`site`] has it, its innermost function first; `None` for other chains.
pub(crate) fn of_goroutine(source: &TableSource, callsite: u32) -> Option<Arc<str>> {
    // The kernel's part of the process, too.
    let is_vdso = |frame: &FrameRow| {
        source.binary(frame.binary).is_some_and(|binary| binary.kind == DsoKind::Vdso)
    };
    let of_program =
        rows(source, Some(callsite)).filter(|frame| !frame.is_kernel && !is_vdso(frame));
    let frames: Vec<_> = of_program.map(|frame| frame.name).collect();
    frames.last().filter(|name| name.starts_with(EXIT)).and_then(|_| site(&frames))
}

pub(super) fn site(frames: &[Arc<str>]) -> Option<Arc<str>> {
    let own = frames.iter().find(|name| !is_standard(name));
    let begin = || frames.iter().rev().find(|name| !name.starts_with(EXIT));
    own.or_else(begin).cloned()
}

/// `net/http.(*conn).serve` is of the standard library, `example.org/a.f`, `app/db.f` and `main.f` are not.
fn is_standard(function: &str) -> bool {
    let path = function.split(['.', '/']).next().unwrap_or_default();
    // The first part of a module's path has a dot mostly, the standard library's never.
    let is_domain =
        function.split('/').next().is_some_and(|part| function.contains('/') && part.contains('.'));
    !is_domain && STANDARD.binary_search(&path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_the_program_are_not_the_standard_library() {
        assert!(STANDARD.is_sorted());
        for name in
            ["net/http.(*conn).serve", "time.Sleep", "runtime.gopark", "internal/poll.(*FD).Read"]
        {
            assert!(is_standard(name), "{name}");
        }
        for name in
            ["main.main", "example.org/time.Sleep", "net.example/a.f", "app/time.f", "_start", ""]
        {
            assert!(!is_standard(name), "{name}");
        }
    }

    #[test]
    fn a_wait_is_in_the_innermost_function_of_the_program() {
        let site_of = |names: &[&str]| {
            let frames: Vec<Arc<str>> = names.iter().map(|name| (*name).into()).collect();
            site(&frames).map(|name| name.to_string())
        };
        let of_program = ["runtime.gopark", "time.Sleep", "main.work", "main.main", "runtime.main"];
        assert_eq!(site_of(&of_program).as_deref(), Some("main.work"));
        let of_server =
            ["runtime.gopark", "net.(*conn).Read", "net/http.(*conn).serve", "runtime.goexit.abi0"];
        assert_eq!(site_of(&of_server).as_deref(), Some("net/http.(*conn).serve"));
        let of_runtime = ["runtime.gopark", "runtime.bgsweep", "runtime.goexit.abi0"];
        assert_eq!(site_of(&of_runtime).as_deref(), Some("runtime.bgsweep"));
        assert_eq!(site_of(&[]), None);
    }
}
