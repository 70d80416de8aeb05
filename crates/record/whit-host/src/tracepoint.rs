//! Tracepoints by their id, and the fields that their filters can compare.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use whit_perfdata::tracing_data::{TraceEvent, TraceField};
use whit_sys::Errno;

use crate::roots::{Roots, read_number};

/// The tracepoint with this id, as `system:event`.
pub fn name_of(tracefs: &Path, id: u64) -> Option<String> {
    let directories = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.filter(|entry| entry.path().is_dir())
    };
    let wanted = i64::try_from(id).ok()?;
    directories(&tracefs.join("events")).find_map(|system| {
        directories(&system.path())
            .find(|event| read_number(&event.path().join("id")) == Some(wanted))
            .and_then(|event| {
                Some(format!("{}:{}", system.file_name().to_str()?, event.file_name().to_str()?))
            })
    })
}

/// The advice for a refused filter on the tracepoint with this id: the fields that it can compare. The
/// kernel does not name its objection.
pub fn filter_advice(roots: &Roots, id: u64, errno: Errno) -> String {
    let fields = || {
        let tracefs = roots.tracefs()?;
        let name = name_of(&tracefs, id)?;
        let (system, event) = name.split_once(':')?;
        let path = tracefs.join("events").join(system).join(event).join("format");
        let text = String::from_utf8(read_large(&path).ok()?).ok()?;
        let format = TraceEvent::parse(system, &text, size_of::<usize>() as u8).ok()?;
        let field = |field: &TraceField| match field.c_type.contains("char[") {
            true => format!("{} (text)", field.name),
            false => field.name.to_string(),
        };
        Some((name, format.fields.iter().map(field).collect::<Vec<_>>().join(", ")))
    };
    let fields = if errno == Errno::INVAL { fields() } else { None };
    fields.map_or_else(String::new, |(name, fields)| {
        format!(
            "\n  a filter compares fields with numbers, as in 'a == 1 && b > 2', and texts with \
             patterns, as in 'c ~ \"x*\"'; the fields of {name} are common_pid, {fields}"
        )
    })
}

/// Reads a file in large pieces: the kernel gives `header_page` and `header_event` to the first
/// read and nothing to a second, however small the first one was.
pub fn read_large(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut content = Vec::new();
    let mut piece = vec![0; READ_BYTES];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(content),
            size => content.extend_from_slice(&piece[..size]),
        }
    }
}

/// More than either of those files has.
const READ_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_filter_is_answered_with_the_fields() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { sys: dir.path().to_owned(), ..Roots::default() };
        let event = dir.path().join("kernel/tracing/events/sched/sched_switch");
        std::fs::create_dir_all(&event).unwrap();
        std::fs::write(event.join("id"), "77\n").unwrap();
        let format = "name: sched_switch\nID: 77\nformat:\n\
                      \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\n\
                      \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
                      \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\n\
                      print fmt: \"x\"\n";
        std::fs::write(event.join("format"), format).unwrap();
        let advice = filter_advice(&roots, 77, Errno::INVAL);
        let fields = "the fields of sched:sched_switch are common_pid, prev_comm (text), prev_pid";
        assert!(advice.ends_with(fields), "{advice}");
        for (id, errno) in [(77, Errno::PERM), (78, Errno::INVAL)] {
            assert_eq!(filter_advice(&roots, id, errno), "");
        }
    }
}
