//! The messages of libbpf while it works. It has one listener for the whole process and would print
//! by itself; here the last messages are kept for the error that may follow.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use libbpf_rs::PrintLevel;

use crate::error::Messages;

/// Messages that are kept. A verifier's log ends with its complaint.
const MESSAGES_MAX: usize = 8;
/// Lines of a message that are kept, counted from its end.
const LINES_MAX: usize = 12;

static LAST: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());
static LISTENING: Once = Once::new();

/// Listens from now on, and forgets earlier messages.
pub(crate) fn listen() {
    LISTENING.call_once(|| {
        libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
    });
    last().clear();
}

/// The messages since [`listen`].
pub(crate) fn take() -> Messages {
    Messages(last().drain(..).collect())
}

fn last() -> MutexGuard<'static, VecDeque<String>> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep(_: PrintLevel, message: String) {
    let mut last = last();
    for line in tail(&message) {
        if last.len() == MESSAGES_MAX * LINES_MAX {
            last.pop_front();
        }
        last.push_back(line.to_owned());
    }
}

/// The last lines of a message, in order.
fn tail(message: &str) -> impl Iterator<Item = &str> {
    let lines: Vec<_> = message.lines().filter(|line| !line.trim().is_empty()).collect();
    let skipped = lines.len().saturating_sub(LINES_MAX);
    lines.into_iter().skip(skipped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_message_is_kept() {
        let numbers: Vec<_> = (0..100).map(|n| n.to_string()).collect();
        let long = numbers.join("\n\n");
        let kept: Vec<_> = tail(&long).collect();
        assert_eq!(kept.len(), LINES_MAX);
        assert_eq!((kept[0], kept[LINES_MAX - 1]), ("88", "99"));
        assert_eq!(tail("one\n").collect::<Vec<_>>(), ["one"]);
    }
}
