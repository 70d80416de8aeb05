//! The output of a subcommand, within bounds of size and time.

use std::ffi::OsString;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Bytes of messages that an answer has.
const MAX_MESSAGE_BYTES: u64 = 4096;

/// Text of a pipe, up to so many bytes; the rest is read and dropped, so that the program goes on.
fn text_of(mut pipe: impl Read, max_bytes: u64) -> (String, u64) {
    let mut bytes = Vec::new();
    // A pipe that breaks has ended.
    let _ = (&mut pipe).take(max_bytes + 1).read_to_end(&mut bytes);
    let rest = std::io::copy(&mut pipe, &mut std::io::sink()).unwrap_or(0);
    let left_out = (bytes.len() as u64 + rest).saturating_sub(max_bytes);
    if left_out == 0 {
        return (String::from_utf8_lossy(&bytes).into_owned(), 0);
    }
    bytes.truncate(max_bytes as usize);
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
    let left_out = left_out + (bytes.len() - whole) as u64;
    bytes.truncate(whole);
    (String::from_utf8_lossy(&bytes).into_owned(), left_out)
}

/// Output and messages of whit with these arguments, and whether it failed.
pub(super) fn of(arguments: &[OsString], max_bytes: u64, timeout_seconds: u64) -> (String, bool) {
    let started = std::env::current_exe().and_then(|program| {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn()
    });
    match started {
        Ok(child) => whole(child, max_bytes, timeout_seconds),
        Err(error) => (format!("cannot start whit: {error}"), true),
    }
}

fn whole(mut child: Child, max_bytes: u64, timeout_seconds: u64) -> (String, bool) {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (done, read) = channel();
    let reader = std::thread::spawn(move || {
        let messages = std::thread::spawn(move || {
            stderr.map(|pipe| text_of(pipe, MAX_MESSAGE_BYTES).0).unwrap_or_default()
        });
        let output = stdout.map(|pipe| text_of(pipe, max_bytes)).unwrap_or_default();
        // Nobody waits for it where the time is over.
        let _ = done.send((output, messages.join().unwrap_or_default()));
    });
    let result = read.recv_timeout(Duration::from_secs(timeout_seconds));
    if matches!(result, Err(RecvTimeoutError::Timeout)) {
        // It may have ended in this moment.
        let _ = child.kill();
    }
    let status = child.wait();
    let _ = reader.join();
    let Ok(((mut text, left_out), messages)) = result else {
        let reason = format!(
            "no answer within {timeout_seconds} s: ask for a part of the recording, or start whit mcp with --timeout"
        );
        return (reason, true);
    };
    if left_out > 0 {
        text.push_str(&format!(
            "… {left_out} bytes are left out: ask for less, or start whit mcp with --max-bytes\n"
        ));
    }
    text.push_str(&messages);
    (text, !status.is_ok_and(|status| status.success()))
}
