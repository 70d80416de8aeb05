//! Running the commands that read recordings, under bounds, and judging how they end.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use wait4::Wait4;
use whit_measure::measure::{End, wait_for_end};
use whit_measure::process_tree;

/// Most CPU time that a face may take for a recording of some hundred KiB. An undamaged one takes less than 0.1 s;
/// other work on the machine does not count.
pub(crate) const CPU_MAX: Duration = Duration::from_secs(5);
/// A face that has not ended by then hangs, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);
/// Most memory that it may take. Its bounds are those of `ARCHITECTURE.md`.
pub(crate) const MEMORY_MAX_BYTES: u64 = 512 << 20;
/// Output that is looked at; a damaged count may ask for more.
const OUTPUT_MAX_BYTES: u64 = 256 << 20;

/// The commands that read a recording: arguments before `-i`.
pub(crate) const FACES: [&[&str]; 8] = [
    &["report", "--stats"],
    &["report", "--stdio", "-g"],
    &["report", "--json"],
    &["report", "--ledger", "--header"],
    &["script"],
    &["switches", "--worst", "20"],
    &["switches", "--per-thread", "--json"],
    &[
        "script",
        "--show-task-events",
        "--show-mmap-events",
        "-F",
        "comm,pid,tid,time,event,ip,sym,dso,trace",
    ],
];

/// How a face ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) timed_out: bool,
    pub(crate) cpu: Duration,
    pub(crate) peak_bytes: u64,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// Runs a face over a recording.
pub(crate) fn look(whit: &Path, face: &[&str], recording: &Path, scratch: &Path) -> Result<Ended> {
    let mut command = Command::new(whit);
    command.args(face).arg("-i").arg(recording).args(["--kallsyms", "/dev/null"]);
    if face.contains(&"--stats") || face.contains(&"--ledger") {
        // No names are looked up there.
        command = Command::new(whit);
        command.args(face).arg("-i").arg(recording);
    }
    watch(command, PATIENCE, scratch)
}

/// Runs a command to its end, or kills it when patience ends.
pub(crate) fn watch(mut command: Command, patience: Duration, scratch: &Path) -> Result<Ended> {
    let (out_path, err_path) = (scratch.join("stdout"), scratch.join("stderr"));
    let file = |path: &Path| File::create(path).with_context(|| format!("{}", path.display()));
    command.stdin(Stdio::null()).stdout(file(&out_path)?).stderr(file(&err_path)?);
    // Panics name their place.
    command.env("RUST_BACKTRACE", "0");
    let mut child = command.spawn().with_context(|| format!("cannot run {command:?}"))?;
    let end = wait_for_end(&child, patience, &|| None)?;
    let timed_out = !matches!(end, End::ByItself);
    if timed_out {
        process_tree::kill(&mut child)?;
    }
    let used = child.wait4()?;
    Ok(Ended {
        code: used.status.code(),
        timed_out,
        cpu: used.rusage.utime + used.rusage.stime,
        peak_bytes: used.rusage.maxrss,
        stdout: read(&out_path)?,
        stderr: read(&err_path)?,
    })
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(OUTPUT_MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Why the end is a bad one; nothing for an exit with a message, whatever its code.
pub(crate) fn problem(face: &[&str], ended: &Ended) -> Option<String> {
    problem_beyond(CPU_MAX, face, ended)
}

/// The same with another bound of CPU time.
pub(crate) fn problem_beyond(cpu_max: Duration, face: &[&str], ended: &Ended) -> Option<String> {
    let said = String::from_utf8_lossy(&ended.stderr);
    if ended.timed_out {
        return Some(format!("did not end: {said}"));
    }
    if ended.cpu > cpu_max {
        return Some(format!("took {:.1} s of CPU time", ended.cpu.as_secs_f64()));
    }
    let Some(code) = ended.code else { return Some(format!("was killed by a signal: {said}")) };
    if said.contains("panicked at") || code == 101 {
        return Some(format!("panicked: {}", said.trim()));
    }
    if code != 0 && said.trim().is_empty() {
        return Some(format!("ended with {code} and said nothing"));
    }
    if ended.peak_bytes > MEMORY_MAX_BYTES {
        return Some(format!("took {} MiB", ended.peak_bytes >> 20));
    }
    let is_json = face.contains(&"--json");
    control_character(&ended.stdout, is_json)
        .map(|byte| format!("wrote the control character {byte}"))
        .or_else(|| control_character(&ended.stderr, false).map(|b| format!("said {b} on stderr")))
}

/// The first control character that a terminal could obey. Lines and tabs are layout.
fn control_character(bytes: &[u8], is_json: bool) -> Option<String> {
    let control = bytes
        .iter()
        .position(|byte| matches!(byte, 0..=8 | 11..=31 | 127) || (is_json && *byte == b'\t'));
    if let Some(at) = control {
        return Some(format!("{:#04x} at {at}", bytes[at]));
    }
    // C1 controls: two bytes in UTF-8, or one that is no UTF-8.
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Some(format!("byte that is no UTF-8 at {}", error.valid_up_to())),
    };
    let dangerous = |c: &char| matches!(*c, '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    // JSON is exact; its readers are programs.
    let found = text.chars().find(|c| dangerous(c) && !is_json)?;
    Some(format!("U+{:04X}", found as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: Option<i32>, stdout: &[u8], stderr: &str) -> Ended {
        Ended {
            code,
            timed_out: false,
            cpu: Duration::ZERO,
            peak_bytes: 0,
            stdout: stdout.to_vec(),
            stderr: stderr.into(),
        }
    }

    #[test]
    fn bad_ends_are_distinguished_from_good_ones() {
        let text: &[&str] = &["report"];
        let bad = |of: &Ended| problem(text, of).is_some();
        assert!(!bad(&ended(Some(0), b"fine\tand\nwell", "")));
        assert!(!bad(&ended(Some(1), b"", "whit: broken")));
        assert!(bad(&ended(Some(1), b"", "")));
        assert!(bad(&ended(None, b"", "")));
        assert!(bad(&ended(Some(101), b"", "thread 'main' panicked at x")));
        assert!(bad(&ended(Some(0), b"a\x1b[31m", "")) && bad(&ended(Some(0), b"\xff", "")));
        assert!(bad(&ended(Some(0), "\u{9b}31m".as_bytes(), "")));
        assert!(bad(&ended(Some(0), "\u{202e}".as_bytes(), "")));
        assert!(bad(&ended(Some(0), b"", "\r")));
        let json: &[&str] = &["report", "--json"];
        assert!(problem(json, &ended(Some(0), "\u{202e}".as_bytes(), "")).is_none());
        assert!(bad(&Ended { cpu: CPU_MAX * 2, ..ended(Some(0), b"", "") }));
        assert!(bad(&Ended { timed_out: true, ..ended(None, b"", "") }));
        assert!(bad(&Ended { peak_bytes: MEMORY_MAX_BYTES + 1, ..ended(Some(0), b"", "") }));
    }
}
