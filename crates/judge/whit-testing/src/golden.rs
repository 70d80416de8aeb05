//! The golden recordings, and texts of their content as a crate reads it.

use std::fmt::{Debug, Write};
use std::path::PathBuf;

use crate::published::assert_published;
use crate::run::repository;

/// Characters of a line that stay as they are; a hash stands for longer lines.
const MAX_LINE_CHARS: usize = 400;

/// A golden recording.
#[derive(Clone, Debug)]
pub struct Golden {
    /// The name of its folder.
    pub name: String,
    /// Its file or directory.
    pub path: PathBuf,
}

impl Golden {
    /// The folder of all golden recordings.
    pub fn folder() -> PathBuf {
        repository().join("tests/recordings/golden")
    }

    /// All of them, by name.
    ///
    /// # Panics
    /// If the folder cannot be read.
    pub fn all() -> Vec<Golden> {
        let folder = Golden::folder();
        let entries = std::fs::read_dir(&folder).expect("the folder of the golden recordings");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let of_name = |name: std::ffi::OsString| Golden {
            path: folder.join(&name).join("recording.data"),
            name: name.to_string_lossy().into_owned(),
        };
        let mut all: Vec<_> = names.map(of_name).filter(|golden| golden.path.exists()).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// Compares a text with the file of that name beside the recording. `WHIT_BLESS=1` writes the file anew.
    ///
    /// # Panics
    /// If they differ.
    pub fn assert_kept(&self, file: &str, text: &Lines) {
        assert_published(&format!("tests/recordings/golden/{}/{file}", self.name), &text.0);
    }
}

/// A text of lines.
#[derive(Clone, Debug, Default)]
pub struct Lines(String);

impl Lines {
    /// Adds a line. A long line keeps its beginning, and ends with the hash of the whole line.
    pub fn push(&mut self, line: &str) {
        let line = line.replace(&*Golden::folder().to_string_lossy(), "golden");
        match line.char_indices().nth(MAX_LINE_CHARS) {
            None => self.0.push_str(&line),
            Some((end, _)) => {
                let (kept, hash) = (&line[..end], fnv1a(line.as_bytes()));
                write!(self.0, "{kept}... {hash:016x}").expect("into memory");
            }
        }
        self.0.push('\n');
    }

    /// Adds a value.
    pub fn debug(&mut self, name: &str, value: &dyn Debug) {
        self.push(&format!("{name}: {value:?}"));
    }

    /// Adds lines in the order of their text.
    pub fn sorted(&mut self, mut lines: Vec<String>) {
        lines.sort_unstable();
        lines.iter().for_each(|line| self.push(line));
    }
}

/// The 64-bit FNV-1a hash, which is the same on all machines and for all compilers.
fn fnv1a(bytes: &[u8]) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_line_counts() {
        let text = |end: &str| {
            let mut lines = Lines::default();
            lines.push(&format!("{}{end}", "x".repeat(1000)));
            lines.0
        };
        assert!(text("a").len() < 500);
        assert_ne!(text("a"), text("b"));
    }
}
