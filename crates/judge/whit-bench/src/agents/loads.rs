//! The loads. Each knows its own stacks.

use clap::ValueEnum;

use super::pprof::Stack;
use crate::named::named;

/// The workloads that are needed.
pub(crate) const WORKLOADS: [&str; 5] = ["deep", "deep-go", "deep-py", "pingpong", "spawn"];

/// Stages of the C++ program.
const STAGES: usize = 32;
/// Depth of its recursion, as that of the Go program and the Python program.
const RECURSION: usize = 8;
const GO_RECURSION: usize = 16;
const PYTHON_RECURSION: usize = 24;

/// Work that agents watch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Load {
    /// C++ without frame pointers, some 45 functions deep.
    Cpp,
    /// A goroutine with a recursion of 33 functions.
    Go,
    /// CPython with a recursion of 24 functions.
    Python,
    /// Threads that wake each other.
    PingPong,
    /// Processes that live for a millisecond.
    Execs,
    /// A sleeping process.
    Idle,
}

impl Load {
    /// Program and arguments, which run until they are ended; a program of the folder of workloads begins with `DIR/`.
    pub(super) fn words(self) -> &'static [&'static str] {
        match self {
            Load::Cpp => &["DIR/deep", "--seconds", "100000"],
            Load::Go => &["DIR/deep-go", "-seconds", "100000", "-goroutines", "1"],
            Load::Python => &["python3", "DIR/deep-py"],
            Load::PingPong => &["DIR/pingpong", "--iterations", "1000000000", "--threads", "2"],
            Load::Execs => &["DIR/spawn", "--iterations", "100000000", "--threads", "2"],
            Load::Idle => &["sleep", "100000"],
        }
    }

    /// Names of its processes, as the kernel has them.
    fn processes(self) -> &'static [&'static str] {
        match self {
            Load::Cpp => &["deep"],
            Load::Go => &["deep-go"],
            Load::PingPong => &["pingpong"],
            Load::Execs => &["spawn", "exe"],
            Load::Python | Load::Idle => &[],
        }
    }

    /// Whether a sample is of this load. Agents that have no labels put the process's name, with its number, at the root.
    pub(super) fn has(self, stack: &Stack) -> bool {
        let root = || stack.frames.first().map(|root| root.split(" (").next().unwrap_or(root));
        let name = stack.process.as_deref().or_else(root);
        // Agents that name the file have its version, too: `python3.11`.
        let is_one = |name: &str| match self {
            Load::Python => name.starts_with("python3"),
            _ => self.processes().contains(&name),
        };
        name.is_some_and(is_one)
    }

    /// Whether the stack is whole, from the outermost function that the load has to the one that was sampled. `None` for
    /// a load that knows no stacks.
    pub(super) fn is_complete(self, stack: &Stack) -> Option<bool> {
        let frames = &stack.frames[..];
        match self {
            Load::Cpp => Some(cpp(frames)),
            Load::Go => Some(go(frames)),
            Load::Python => Some(python(frames)),
            Load::PingPong => {
                Some(has(frames, "play") && (has(frames, "main") || has_thread(frames)))
            }
            Load::Execs => Some(has(frames, "main") && !has_nothing_else(frames)),
            Load::Idle => None,
        }
    }
}

named!(Load);

/// The name without arguments: `stage(unsigned long)`.
fn bare(frame: &str) -> &str {
    frame.split('(').next().unwrap_or(frame)
}

fn has(frames: &[String], name: &str) -> bool {
    frames.iter().any(|frame| bare(frame) == name)
}

fn count(frames: &[String], part: &str) -> usize {
    frames.iter().filter(|frame| frame.contains(part)).count()
}

fn has_thread(frames: &[String]) -> bool {
    has(frames, "start_thread") || frames.iter().any(|frame| bare(frame).contains("clone3"))
}

/// Processes that only start have no more than `main`.
fn has_nothing_else(frames: &[String]) -> bool {
    frames.last().is_some_and(|innermost| bare(innermost) == "main")
}

/// `main`, `drive`, then the stages from the highest on without a gap. The recursion comes after all stages, and its
/// callees after all of its levels.
fn cpp(frames: &[String]) -> bool {
    let stage = |frame: &String| {
        let rest = frame.split_once("Pipeline<").or_else(|| frame.split_once("PipelineILi"))?.1;
        rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse::<usize>().ok()
    };
    let stages: Vec<usize> = frames.iter().filter_map(stage).collect();
    let in_order = stages.iter().copied().eq((0..STAGES).rev().take(stages.len()));
    let levels = count(frames, "descend");
    let begins = has(frames, "main") && count(frames, "drive") > 0;
    let is_deep = levels == 0 || stages.len() == STAGES;
    let is_deepest = count(frames, "dispatch") == 0 || levels == RECURSION;
    begins && in_order && is_deep && is_deepest
}

/// `main.drive`, then `even` and `odd` in turns, and the kernels after all levels.
fn go(frames: &[String]) -> bool {
    let (even, odd) = (count(frames, "main.even"), count(frames, "main.odd"));
    let is_in_kernel = frames.iter().any(|frame| bare(frame).ends_with("Kernel.run"));
    let levels = match is_in_kernel || frames.iter().any(|frame| frame.contains(").run")) {
        true => even == GO_RECURSION + 1 && odd == GO_RECURSION,
        false => even == odd || even == odd + 1,
    };
    count(frames, "main.drive") > 0 && levels
}

/// `outer`, then `middle` down to its depth, then `leaf`.
fn python(frames: &[String]) -> bool {
    let named = |name: &str| {
        let is_named = |frame: &&String| bare(frame).rsplit(['.', ':', ' ']).next() == Some(name);
        frames.iter().filter(is_named).count()
    };
    let middle = named("middle");
    named("outer") == 1 && (named("leaf") == 0 || middle == PYTHON_RECURSION)
}
