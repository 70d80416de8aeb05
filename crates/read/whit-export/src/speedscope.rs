//! speedscope: one profile for each thread, cgroup and event, in its JSON format.
//!
//! A frame is a function, so that its sandwich view has one row for each. Samples stand in order of time; their weights
//! are periods.

use crate::ExportError;
use crate::content::{Content, EventUnit, Moment};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Write;
use whit_profile::model::{CgroupId, EventId, ThreadId};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
    file: &'a str,
}

/// Samples that share these are one profile.
type Key = (EventId, ThreadId, Option<CgroupId>);

/// Samples and weights are written one by one behind it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'a str,
    start_value: u64,
    end_value: u64,
}

/// Writes the profiles, the heaviest first.
pub(crate) fn write(content: &Content<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let moments = content.moments();
    let mut groups: BTreeMap<Key, Vec<&Moment<'_>>> = BTreeMap::new();
    for moment in &moments {
        let row = moment.row;
        groups.entry((row.event, row.thread, content.cgroup(row))).or_default().push(moment);
    }
    let main = content.main_event();
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|((event, ..), moments)| {
        let samples: u64 = moments.iter().map(|moment| moment.samples).sum();
        (Some(*event) != main, *event, Reverse(samples))
    });
    write!(out, "{{\"$schema\":\"{SCHEMA}\",\"shared\":")?;
    shared(content, out)?;
    out.write_all(b",\"profiles\":[")?;
    for (position, (key, moments)) in groups.iter().enumerate() {
        if position > 0 {
            out.write_all(b",")?;
        }
        profile(content, *key, moments, out)?;
    }
    if groups.is_empty() {
        out.write_all(
            br#"{"type":"sampled","name":"no samples","unit":"none","startValue":0,"endValue":0,"samples":[],"weights":[]}"#,
        )?;
    }
    let name = content.profile.recording.path.exact();
    let notes: Vec<_> = content.notes().into_iter().map(|note| note.text).collect();
    let exporter = format!("whit {}", env!("CARGO_PKG_VERSION"));
    write!(out, "],\"activeProfileIndex\":0,\"exporter\":")?;
    serde_json::to_writer(&mut *out, &exporter)?;
    out.write_all(b",\"name\":")?;
    serde_json::to_writer(&mut *out, name)?;
    out.write_all(b",\"notes\":")?;
    serde_json::to_writer(&mut *out, &notes)?;
    out.write_all(b"}")?;
    Ok(())
}

fn shared(content: &Content<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let profile = content.profile;
    out.write_all(b"{\"frames\":[")?;
    for (position, function) in profile.functions.iter().enumerate() {
        if position > 0 {
            out.write_all(b",")?;
        }
        // The binary, not the source: speedscope colours functions by it.
        let file = profile.dsos[function.dso.index()].path.exact();
        serde_json::to_writer(&mut *out, &Frame { name: function.name.exact(), file })?;
    }
    out.write_all(b"]}")?;
    Ok(())
}

fn profile(
    content: &Content<'_>,
    (event, thread, cgroup): Key,
    moments: &[&Moment<'_>],
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let info = &content.profile.threads[thread.index()];
    let unit = match content.unit(event) {
        EventUnit::Nanoseconds => "nanoseconds",
        EventUnit::Count => "none",
    };
    let end_value = moments.iter().fold(0u64, |sum, moment| sum.saturating_add(moment.period));
    let (comm, event) = (content.thread_name(info), content.event_name(event));
    // Behind the thread; the event is the last word.
    let cgroup = cgroup.map(|cgroup| format!("[{}] ", content.cgroup_path(cgroup)));
    let cgroup = cgroup.unwrap_or_default();
    let name = format!("{comm} ({}/{}) {cgroup}{event}", info.pid.0, info.tid.0);
    let head = Head { kind: "sampled", name, unit, start_value: 0, end_value };
    let mut head = serde_json::to_vec(&head)?;
    head.pop();
    out.write_all(&head)?;
    out.write_all(b",\"samples\":[")?;
    let (mut line, mut frames) = (Vec::new(), Vec::new());
    for (position, moment) in moments.iter().enumerate() {
        line.clear();
        line.extend_from_slice(if position > 0 { b",[" } else { b"[" });
        frames.clear();
        frames.extend(content.chain(moment.row.node));
        for (depth, frame) in frames.iter().rev().enumerate() {
            if depth > 0 {
                line.push(b',');
            }
            push_number(content.frame(*frame).function.0, &mut line);
        }
        line.push(b']');
        out.write_all(&line)?;
    }
    out.write_all(b"],\"weights\":[")?;
    for (position, moment) in moments.iter().enumerate() {
        let comma = if position > 0 { "," } else { "" };
        write!(out, "{comma}{}", moment.period)?;
    }
    out.write_all(b"]}")?;
    Ok(())
}

/// Appends a number in decimal: there are a hundred for each sample, and `write!` takes as long as all else.
fn push_number(number: u32, out: &mut Vec<u8>) {
    let mut digits = [0; 10];
    let (mut at, mut rest) = (digits.len(), number);
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::push_number;

    #[test]
    fn numbers_are_decimal() {
        let mut out = Vec::new();
        for number in [0, 7, 10, 4_294_967_295] {
            push_number(number, &mut out);
            out.push(b' ');
        }
        assert_eq!(out, b"0 7 10 4294967295 ");
    }
}
