//! Log lines on standard error, each thing once.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use whit_types::escape;

/// A line that comes again within this time is counted instead.
const QUIET: Duration = Duration::from_secs(3600);
/// Different lines that are remembered; the longest unsaid one goes.
const LINES_MAX: usize = 256;

/// Says things once. Clones share their memory of lines.
#[derive(Clone)]
pub struct Log(Arc<Mutex<Inner>>);

struct Inner {
    said: BTreeMap<String, Said>,
    out: Box<dyn Write + Send>,
}

struct Said {
    at: Instant,
    again: u64,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").finish_non_exhaustive()
    }
}

impl Log {
    /// Writes lines to `out`.
    pub fn new(out: Box<dyn Write + Send>) -> Log {
        Log(Arc::new(Mutex::new(Inner { said: BTreeMap::new(), out })))
    }

    /// Says a line. The same line within the next hour is only counted; the one after that has the number.
    pub fn say(&self, line: impl Display) {
        self.say_at(&line.to_string(), Instant::now());
    }

    /// Says a line each time: it has a cause of its own, such as a signal.
    pub fn say_always(&self, line: impl Display) {
        self.lock().write(&line.to_string());
    }

    fn say_at(&self, line: &str, now: Instant) {
        let mut inner = self.lock();
        if let Some(said) = inner.said.get_mut(line) {
            if now.saturating_duration_since(said.at) < QUIET {
                said.again += 1;
                return;
            }
            let again = std::mem::take(&mut said.again);
            said.at = now;
            let text = match again {
                0 => line.to_owned(),
                _ => format!("{line} (and {} since this was said last)", times(again)),
            };
            inner.write(&text);
            return;
        }
        if inner.said.len() >= LINES_MAX {
            let oldest = inner.said.iter().min_by_key(|(_, said)| said.at);
            if let Some(line) = oldest.map(|(line, _)| line.clone()) {
                inner.said.remove(&line);
            }
        }
        inner.said.insert(line.to_owned(), Said { at: now, again: 0 });
        inner.write(line);
    }

    /// Says how often lines came again that have not been said since.
    pub fn close(&self) {
        let mut inner = self.lock();
        let said = std::mem::take(&mut inner.said);
        for (line, said) in said.into_iter().filter(|(_, said)| said.again > 0) {
            inner.write(&format!("{line} (again {})", times(said.again)));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn times(number: u64) -> String {
    format!("{number} {}", if number == 1 { "time" } else { "times" })
}

impl Inner {
    /// Names of others are escaped. Where nobody reads, there is nobody to tell.
    fn write(&mut self, text: &str) {
        let text = escape(text.trim_end()).to_string();
        let _ = self.out.write_all(format!("whit watch: {text}\n").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_is_said_once_and_then_counted() {
        let kept = Kept::default();
        let (log, begin) = (Log::new(Box::new(kept.clone())), Instant::now());
        for second in [0, 1, 2, 3601, 3602] {
            log.say_at("the disk is full", begin + Duration::from_secs(second));
        }
        log.say("a\nb");
        log.close();
        log.close();
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        let wanted = "whit watch: the disk is full\n\
            whit watch: the disk is full (and 2 times since this was said last)\n\
            whit watch: a\\x0ab\n\
            whit watch: the disk is full (again 1 time)\n";
        assert_eq!(text, wanted);
    }

    #[test]
    fn memory_for_lines_is_bounded() {
        let log = Log::new(Box::new(Kept::default()));
        let begin = Instant::now();
        for number in 0..1000 {
            log.say_at(&format!("line {number}"), begin + Duration::from_secs(number));
        }
        assert_eq!(log.lock().said.len(), LINES_MAX);
        assert!(log.lock().said.contains_key("line 999"));
    }
}
