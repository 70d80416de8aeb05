//! Source files, read when their lines are first wanted.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use whit_profile::SourceLine;
use whit_sys::process_files::open_regular;

/// Largest file that is read. Generated ones reach some MiB.
const MAX_FILE_BYTES: u64 = 32 << 20;
/// Files that stay in memory.
const MAX_KEPT_FILES: usize = 64;

/// Where source files lie, if not where the compiler read them.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Stands in front of paths.
    pub prefix: Option<PathBuf>,
    /// So many directories are taken away before.
    pub strip: usize,
}

impl Place {
    fn of(&self, file: &str) -> PathBuf {
        let Some(prefix) = &self.prefix else { return PathBuf::from(file) };
        let parts: Vec<_> = file.split('/').filter(|part| !part.is_empty()).collect();
        // The name itself always stays.
        let first = self.strip.min(parts.len().saturating_sub(1));
        parts[first..].iter().fold(prefix.clone(), |path, part| path.join(part))
    }
}

type Lines = Rc<Vec<String>>;

/// The lines of source files.
#[derive(Default)]
pub struct Sources {
    place: Place,
    /// `None` for those that are not at hand. The last one used stands last.
    kept: Vec<(Arc<str>, Option<Lines>)>,
    missing: BTreeSet<PathBuf>,
}

impl Sources {
    /// None is read before it is wanted.
    pub fn new(place: Place) -> Sources {
        Sources { place, ..Sources::default() }
    }

    /// The text of a line.
    pub fn text(&mut self, line: &SourceLine) -> Option<String> {
        let lines = self.lines(&line.file)?;
        lines.get((line.line as usize).checked_sub(1)?).cloned()
    }

    /// Files that were wanted and are not at hand.
    pub fn missing(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.missing.iter().map(PathBuf::as_path)
    }

    fn lines(&mut self, file: &Arc<str>) -> Option<Lines> {
        if let Some(at) = self.kept.iter().rposition(|(name, _)| name == file) {
            let known = self.kept.remove(at);
            self.kept.push(known.clone());
            return known.1;
        }
        let path = self.place.of(file);
        let lines = read(&path).map(Rc::new);
        if lines.is_none() {
            self.missing.insert(path);
        }
        if self.kept.len() >= MAX_KEPT_FILES {
            self.kept.remove(0);
        }
        self.kept.push((file.clone(), lines.clone()));
        lines
    }
}

/// The lines of a regular file: a pipe or a device could block.
fn read(path: &Path) -> Option<Vec<String>> {
    let mut bytes = Vec::new();
    open_regular(path).ok()?.take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn line(file: &str, line: u32) -> SourceLine {
        SourceLine { file: file.into(), line }
    }

    #[test]
    fn paths_are_moved_below_a_prefix() {
        let moved = |prefix: Option<&str>, strip| {
            let place = Place { prefix: prefix.map(PathBuf::from), strip };
            place.of("/build/a/src/x.c").display().to_string()
        };
        assert_eq!(moved(None, 0), "/build/a/src/x.c");
        assert_eq!(moved(Some("/here"), 0), "/here/build/a/src/x.c");
        assert_eq!(moved(Some("/here"), 2), "/here/src/x.c");
        assert_eq!(moved(Some("/here"), 99), "/here/x.c");
    }

    #[test]
    fn lines_are_counted_from_one() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.c"), "first\nsecond\n").unwrap();
        let prefix = Some(folder.path().to_path_buf());
        let mut sources = Sources::new(Place { prefix, strip: 0 });
        assert_eq!(sources.text(&line("a.c", 2)).as_deref(), Some("second"));
        assert_eq!(sources.text(&line("/a.c", 1)).as_deref(), Some("first"));
        assert_eq!((sources.text(&line("a.c", 0)), sources.text(&line("a.c", 3))), (None, None));
        assert_eq!(sources.missing().len(), 0);
        assert_eq!(sources.text(&line("gone.c", 1)), None);
        assert_eq!(sources.text(&line("gone.c", 2)), None);
        assert_eq!(sources.missing().collect::<Vec<_>>(), [folder.path().join("gone.c")]);
    }

    #[test]
    fn many_files_do_not_stay_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let prefix = Some(folder.path().to_path_buf());
        let mut sources = Sources::new(Place { prefix, strip: 0 });
        for number in 0..2 * MAX_KEPT_FILES {
            let name = format!("{number}.c");
            fs::write(folder.path().join(&name), &name).unwrap();
            assert_eq!(sources.text(&line(&name, 1)), Some(name));
        }
        assert_eq!(sources.kept.len(), MAX_KEPT_FILES);
    }

    #[test]
    fn a_device_is_no_source_file() {
        assert_eq!(Sources::default().text(&line("/dev/zero", 1)), None);
    }
}
