//! Tasks of a recording as text, as `perf report --tasks` and `--mmaps` print them, and as JSON.

use std::io::{self, Write};

use serde::Serialize;
use whit_profile::tasks::{MappedRange, Task, TaskList};
use whit_types::{OutsideText, pad};

use crate::json_strings;
use crate::warning::warning_text;

/// Version of the JSON form; see [`write_json`].
pub const VERSION: u32 = 1;

/// `PROT_READ`, `PROT_WRITE`, `PROT_EXEC`.
const PROTECTIONS: [(u32, char); 3] = [(1, 'r'), (2, 'w'), (4, 'x')];
/// Flag of mappings that processes share.
const MAP_SHARED: u32 = 1;

/// Prints a line for each task, indented below its parent, and with `ranges` its memory.
///
/// # Errors
/// Writing to `out` failed.
pub fn write_text(out: &mut impl Write, list: &TaskList, ranges: bool) -> io::Result<()> {
    for warning in &list.warnings {
        writeln!(out, "# Warning: {}", warning_text(warning))?;
    }
    writeln!(out, "# {:>8} {:>8} {:>8}  comm", "pid", "tid", "ppid")?;
    for task in &list.tasks {
        let parent = task.parent.map_or(-1, |parent| parent.0);
        let (pid, tid, depth) = (task.pid.0, task.tid.0, task.depth);
        write!(out, "  {pid:>8} {tid:>8} {parent:>8} |{}", pad::blanks(depth))?;
        match &task.comm {
            Some(comm) => writeln!(out, "{comm}")?,
            None => writeln!(out, ":{tid}")?,
        }
        for range in task.ranges.iter().filter(|_| ranges) {
            // Behind the numbers and the bar.
            let indent = pad::blanks(30 + depth);
            writeln!(
                out,
                "{indent}  {:x}-{:x} {} {:08x} {} {}",
                range.start,
                range.end,
                protection(range),
                range.file_offset,
                range.inode,
                OutsideText::from(&range.path),
            )?;
        }
    }
    Ok(())
}

/// `r-xp`, as in `/proc/PID/maps`.
fn protection(range: &MappedRange) -> String {
    let letters = PROTECTIONS.iter().map(|(bit, letter)| match range.protection & bit {
        0 => '-',
        _ => *letter,
    });
    let shared = if range.flags & MAP_SHARED != 0 { 's' } else { 'p' };
    letters.chain([shared]).collect()
}

/// Writes the tasks as JSON, without a line end after them.
///
/// # Errors
/// Writing to `out` failed.
pub fn write_json(out: &mut impl Write, list: &TaskList, ranges: bool) -> io::Result<()> {
    json_strings::write(out, &Document::of(list, ranges))
}

/// `whit report --tasks --json` and `--mmaps --json`: one object. Members may be added; `version` grows when one
/// changes its meaning or goes away.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Document<'a> {
    /// `whit-tasks`.
    format: &'static str,
    /// Version of this form.
    version: u32,
    /// Each behind its parent.
    tasks: Vec<JsonTask<'a>>,
    warnings: Vec<String>,
}

/// One thread; of several with one number, the last.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JsonTask<'a> {
    pid: i32,
    tid: i32,
    /// The thread that made it; `null` where no fork was recorded.
    parent_tid: Option<i32>,
    /// Its last command name; `null` without a recorded one.
    comm: Option<&'a str>,
    /// Number of recorded tasks around it.
    depth: usize,
    /// The memory of its process; with `--mmaps`.
    #[serde(skip_serializing_if = "Option::is_none")]
    mmaps: Option<Vec<JsonRange<'a>>>,
}

/// A part of a process's memory.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JsonRange<'a> {
    start: u64,
    /// Address behind the last one.
    end: u64,
    /// `r-xp`, as in `/proc/PID/maps`.
    protection: String,
    file_offset: u64,
    /// 0 where it was not recorded.
    inode: u64,
    path: &'a str,
}

impl<'a> Document<'a> {
    fn of(list: &'a TaskList, ranges: bool) -> Document<'a> {
        Document {
            format: "whit-tasks",
            version: VERSION,
            tasks: list.tasks.iter().map(|task| JsonTask::of(task, ranges)).collect(),
            warnings: list.warnings.iter().map(|w| warning_text(w).into_exact()).collect(),
        }
    }
}

impl<'a> JsonTask<'a> {
    fn of(task: &'a Task, ranges: bool) -> JsonTask<'a> {
        let range = |range: &'a MappedRange| JsonRange {
            start: range.start,
            end: range.end,
            protection: protection(range),
            file_offset: range.file_offset,
            inode: range.inode,
            path: &range.path,
        };
        JsonTask {
            pid: task.pid.0,
            tid: task.tid.0,
            parent_tid: task.parent.map(|parent| parent.0),
            comm: task.comm.as_ref().map(OutsideText::exact),
            depth: task.depth,
            mmaps: ranges.then(|| task.ranges.iter().map(range).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use whit_profile::warning::Warning;
    use whit_types::{Pid, Tid};

    fn list() -> TaskList {
        let range = MappedRange {
            start: 0x1000,
            end: 0x3000,
            protection: 5,
            flags: 1,
            file_offset: 16,
            inode: 7,
            path: "/a\nb".into(),
        };
        let task = Task {
            pid: Pid(3),
            tid: Tid(4),
            parent: Some(Tid(3)),
            comm: None,
            depth: 1,
            ranges: Arc::new(vec![range]),
        };
        TaskList {
            tasks: vec![task],
            warnings: vec![Warning::StreamCut { path: "a.data".into(), missing: None }],
        }
    }

    #[test]
    fn text_has_a_line_for_each_task_and_range() {
        let mut out = Vec::new();
        write_text(&mut out, &list(), true).unwrap();
        let expected = "# Warning: a.data: cut short\n#      pid      tid     ppid  comm\n\
                        \x20        3        4        3 | :4\n\
                        \x20                                1000-3000 r-xs 00000010 7 /a\\x0ab\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn json_has_exact_names() {
        let mut out = Vec::new();
        write_json(&mut out, &list(), true).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(json["tasks"][0]["mmaps"][0]["path"], "/a\nb");
        assert_eq!(json["tasks"][0]["comm"], serde_json::Value::Null);
        whit_schemas::assert_schema::<Document<'_>>("docs/schemas/tasks.json");
    }
}
