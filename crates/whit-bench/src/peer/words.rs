//! The words of a peer's command line.

use std::path::Path;

/// A word, or its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Argument {
    Text(&'static str),
    /// A name for people, and the text.
    Long(&'static str, &'static str),
    Recording,
    Dataset,
    Output,
    Function,
}

/// Files of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paths<'a> {
    recording: &'a Path,
    dataset: &'a Path,
    output: &'a Path,
    /// Whether long texts stand there by their names.
    is_short: bool,
}

impl<'a> Paths<'a> {
    /// The recording, a dataset that has it, and the file or folder for output.
    pub(crate) fn new(recording: &'a Path, dataset: &'a Path, output: &'a Path) -> Paths<'a> {
        Paths { recording, dataset, output, is_short: false }
    }

    pub(super) fn for_people() -> Paths<'static> {
        let paths = Paths::new(Path::new("FILE"), Path::new("DATASET"), Path::new("OUT"));
        Paths { is_short: true, ..paths }
    }
}

impl Argument {
    pub(super) fn word(self, function: &str, paths: &Paths<'_>) -> String {
        match self {
            Argument::Text(text) => text.to_owned(),
            Argument::Long(name, _) if paths.is_short => name.to_owned(),
            Argument::Long(_, text) => text.to_owned(),
            Argument::Recording => paths.recording.display().to_string(),
            Argument::Dataset => paths.dataset.display().to_string(),
            Argument::Output => paths.output.display().to_string(),
            Argument::Function => function.to_owned(),
        }
    }
}
