//! The path as folded stacks, for flame graphs by critical time.

use super::{activity_text, place_text, threads_name};
use crate::folded::bounded;
use std::collections::BTreeMap;
use std::io::{self, Write};
use whit_why::{StackFrame, Stacks};

/// Writes a line for each stack, with its nanoseconds, which add up to the interval. Lines are in order of their names.
///
/// # Errors
/// Writing to `out` failed.
pub fn write_stacks(out: &mut impl Write, stacks: &Stacks) -> io::Result<()> {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for stack in stacks.iter() {
        let frames: Vec<_> = stack.frames.iter().map(|frame| frame_text(frame)).collect();
        *lines.entry(frames.join(";")).or_default() += stack.duration_ns;
    }
    for (line, ns) in lines.into_iter().filter(|(_, ns)| *ns > 0) {
        writeln!(out, "{line} {ns}")?;
    }
    Ok(())
}

fn frame_text(frame: &StackFrame) -> String {
    let text = match frame {
        StackFrame::Threads(threads) => threads_name(threads),
        StackFrame::HandOver(class, at) => format!("[waits: {}{}]", class.name(), place_text(at)),
        StackFrame::Activity(activity, at) => {
            format!("[{}]", activity_text(*activity, at))
        }
        StackFrame::Function(name, None) => name.to_string(),
        StackFrame::Function(_, Some(binary)) => {
            let file = binary.rsplit('/').next().unwrap_or_default();
            format!("[{}]", file.trim_matches(['[', ']']))
        }
        StackFrame::NoSample => "[no sample]".to_owned(),
    };
    bounded(&text).into_owned()
}
