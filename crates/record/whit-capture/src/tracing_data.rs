//! The TRACING_DATA feature: the formats of the recorded tracepoints, as perf writes them.
//!
//! Source: `tools/perf/util/trace-event-info.c`, version 0.6 of the format.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use whit_host::roots::Roots;
use whit_host::tracepoint::{name_of, read_large};

use crate::error::CaptureError;
use crate::event::EventSpec;

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

/// The mount of tracefs; errors name `tracepoint`.
pub(crate) fn mounted(roots: &Roots, tracepoint: &str) -> Result<PathBuf, CaptureError> {
    let absent = || io::Error::new(io::ErrorKind::NotFound, "tracefs is not mounted");
    let tracefs = roots.tracefs().ok_or_else(|| error(tracepoint, absent()))?;
    // Without the right to read it, no tracepoint would be found.
    tracefs.join("events").read_dir().map_err(|source| error(tracepoint, source))?;
    Ok(tracefs)
}

/// The tracepoint of an event, as `system:event`.
pub(crate) fn name_in(roots: &Roots, spec: &EventSpec) -> Result<String, CaptureError> {
    if let Some(name) = spec.event.tracepoint() {
        return Ok(name.to_owned());
    }
    let absent = || io::Error::new(io::ErrorKind::NotFound, "no tracepoint has this id");
    let tracefs = mounted(roots, spec.name())?;
    name_of(&tracefs, spec.event.config[0]).ok_or_else(|| error(spec.name(), absent()))
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
