//! The TRACING_DATA feature: the formats of the recorded tracepoints, as perf writes them.
//!
//! Source: `tools/perf/util/trace-event-info.c`, version 0.6 of the format.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::CaptureError;
use crate::event::EventSpec;
use crate::roots::{Roots, read_number};
use whit_perfdata::tracing_data::{TraceEvent, TraceField};
use whit_sys::Errno;

/// Collects the formats of these tracepoints (`system:event`) from a mounted tracefs.
pub fn collect(tracefs: &Path, tracepoints: &[String]) -> Result<Vec<u8>, CaptureError> {
    let mut out = vec![0x17, 0x08, 0x44];
    out.extend(b"tracing0.6\0");
    out.push(u8::from(cfg!(target_endian = "big")));
    out.push(size_of::<usize>() as u8);
    out.extend((whit_sys::system::page_size() as u32).to_le_bytes());
    for name in ["header_page", "header_event"] {
        out.extend(name.as_bytes());
        out.push(0);
        let content = read_large(&tracefs.join("events").join(name));
        push_sized(&mut out, &content.map_err(|source| error(name, source))?);
    }
    // No events of ftrace itself.
    out.extend(0u32.to_le_bytes());
    push_systems(&mut out, tracefs, tracepoints)?;
    // No kallsyms: readers take the kernel's symbols from elsewhere.
    out.extend(0u32.to_le_bytes());
    // Addresses of format strings, and names of earlier processes: absent on some kernels, and
    // only decoration.
    let formats = read_large(&tracefs.join("printk_formats")).unwrap_or_default();
    out.extend((formats.len() as u32).to_le_bytes());
    out.extend(formats);
    push_sized(&mut out, &read_large(&tracefs.join("saved_cmdlines")).unwrap_or_default());
    Ok(out)
}

/// Where tracefs is mounted; `tracepoint` is what it is needed for.
pub(crate) fn mounted(roots: &Roots, tracepoint: &str) -> Result<PathBuf, CaptureError> {
    let absent = || io::Error::new(io::ErrorKind::NotFound, "tracefs is not mounted");
    roots.tracefs().ok_or_else(|| error(tracepoint, absent()))
}

/// The tracepoint of an event, as `system:event`.
pub(crate) fn name_in(roots: &Roots, spec: &EventSpec) -> Result<String, CaptureError> {
    if let Some(name) = &spec.tracepoint {
        return Ok(name.clone());
    }
    let absent = || io::Error::new(io::ErrorKind::NotFound, "no tracepoint has this id");
    let tracefs = mounted(roots, &spec.name)?;
    name_of(&tracefs, spec.config).ok_or_else(|| error(&spec.name, absent()))
}

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

/// What to say behind the refusal of a filter on the tracepoint with this id: what it can compare, since
/// the kernel does not say what it minds.
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

fn push_systems(
    out: &mut Vec<u8>,
    tracefs: &Path,
    tracepoints: &[String],
) -> Result<(), CaptureError> {
    let mut systems: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for tracepoint in tracepoints {
        let (system, event) = tracepoint.split_once(':').ok_or_else(|| {
            error(tracepoint, io::Error::new(io::ErrorKind::InvalidInput, "no 'system:event'"))
        })?;
        systems.entry(system).or_default().push(event);
    }
    out.extend((systems.len() as u32).to_le_bytes());
    for (system, mut events) in systems {
        events.sort_unstable();
        events.dedup();
        out.extend(system.as_bytes());
        out.push(0);
        out.extend((events.len() as u32).to_le_bytes());
        for event in events {
            let path = tracefs.join("events").join(system).join(event).join("format");
            let format = read_large(&path).map_err(|e| error(&format!("{system}:{event}"), e))?;
            push_sized(out, &format);
        }
    }
    Ok(())
}

/// Reads a file in large pieces: the kernel gives `header_page` and `header_event` to the first
/// read and nothing to a second, however small the first one was.
fn read_large(path: &Path) -> io::Result<Vec<u8>> {
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

fn push_sized(out: &mut Vec<u8>, content: &[u8]) {
    out.extend((content.len() as u64).to_le_bytes());
    out.extend(content);
}

fn error(tracepoint: &str, source: io::Error) -> CaptureError {
    CaptureError::Tracepoint { tracepoint: tracepoint.to_owned(), source }
}

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

    #[test]
    fn systems_and_formats_stand_in_order() {
        let dir = tempfile::tempdir().unwrap();
        for (path, content) in [
            ("events/header_page", "page"),
            ("events/header_event", "event!"),
            ("events/sched/sched_switch/format", "switch"),
            ("events/sched/sched_wakeup/format", "wakeup"),
            ("events/irq/softirq_entry/format", "softirq"),
            ("events/irq/softirq_entry/id", "77\n"),
            ("printk_formats", "printk"),
        ] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let wanted =
            ["sched:sched_wakeup", "irq:softirq_entry", "sched:sched_switch"].map(str::to_owned);
        let bytes = collect(dir.path(), &wanted).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let order = [
            "tracing0.6",
            "header_page",
            "header_event",
            "irq\0",
            "softirq",
            "sched\0",
            "switch",
            "wakeup",
            "printk",
        ];
        let positions: Vec<_> = order.iter().map(|word| text.find(word).unwrap()).collect();
        assert!(positions.is_sorted(), "{positions:?}");
        // The empty list of process names ends the section.
        assert_eq!(&bytes[bytes.len() - 8..], [0; 8]);
        assert!(collect(dir.path(), &["sched:gone".to_owned()]).is_err());
        assert!(collect(dir.path(), &["nocolon".to_owned()]).is_err());
        assert_eq!(name_of(dir.path(), 77).unwrap(), "irq:softirq_entry");
        assert_eq!(name_of(dir.path(), 78), None);
    }
}
