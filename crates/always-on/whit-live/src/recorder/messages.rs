//! The messages of a recorder.

use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of messages that are kept.
const BYTES_MAX: usize = 64 << 10;

/// The last messages. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Messages(Arc<Mutex<Vec<u8>>>);

impl Messages {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that are kept.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.lock()).trim_end().to_owned()
    }

    /// Keeps the end of all messages, and hands each line on.
    pub(crate) fn read(&self, mut from: impl Read, line_came: &mut dyn FnMut(&str)) {
        let mut bytes = [0; 4096];
        let mut line = Vec::new();
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            for byte in &bytes[..read] {
                if *byte == b'\n' {
                    line_came(&String::from_utf8_lossy(&line));
                    line.clear();
                } else if line.len() < BYTES_MAX {
                    line.push(*byte);
                }
            }
            let mut kept = self.lock();
            kept.extend_from_slice(&bytes[..read]);
            let excess = kept.len().saturating_sub(BYTES_MAX);
            kept.drain(..excess);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_all_messages_is_kept_and_each_line_is_handed_on() {
        let (messages, mut lines) = (Messages::default(), Vec::new());
        let text = format!("first\n{}\nlast\nhalf", "x".repeat(BYTES_MAX));
        messages.read(text.as_bytes(), &mut |line| lines.push(line.len()));
        assert_eq!(lines, [5, BYTES_MAX, 4]);
        assert_eq!(messages.text(), text[text.len() - BYTES_MAX..].trim_end());
    }
}
