//! Why a file that a process maps could not be opened.

/// Why a mapped file could not be opened. Numbers are those of recordings: they never change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OpenFailure {
    /// It has no path any more, and the way through the process is closed.
    Deleted,
    /// Another file has its path now.
    Replaced,
    /// The kernel refused to open it, or to look into the process.
    PermissionDenied,
    /// Its path is one of another mount namespace, which may not be entered.
    OtherNamespace,
    /// Nothing is at its path.
    Missing,
    /// A device, a pipe or a directory.
    NotRegular,
    /// The system gave another reason.
    Unreadable,
    /// Its file system did not answer in time.
    NoAnswer,
}

impl OpenFailure {
    /// All of them, by number.
    pub const ALL: [OpenFailure; 8] = [
        OpenFailure::Deleted,
        OpenFailure::Replaced,
        OpenFailure::PermissionDenied,
        OpenFailure::OtherNamespace,
        OpenFailure::Missing,
        OpenFailure::NotRegular,
        OpenFailure::Unreadable,
        OpenFailure::NoAnswer,
    ];

    /// A name for programs; never changes.
    pub fn name(self) -> &'static str {
        match self {
            OpenFailure::Deleted => "deleted",
            OpenFailure::Replaced => "replaced",
            OpenFailure::PermissionDenied => "permission_denied",
            OpenFailure::OtherNamespace => "other_namespace",
            OpenFailure::Missing => "missing",
            OpenFailure::NotRegular => "not_regular",
            OpenFailure::Unreadable => "unreadable",
            OpenFailure::NoAnswer => "no_answer",
        }
    }

    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            OpenFailure::Deleted => "the file was deleted",
            OpenFailure::Replaced => "another file is at its path now",
            OpenFailure::PermissionDenied => "permission denied",
            OpenFailure::OtherNamespace => "its path is one of another mount namespace",
            OpenFailure::Missing => "nothing is at its path any more",
            OpenFailure::NotRegular => "not a regular file",
            OpenFailure::Unreadable => "the file cannot be read",
            OpenFailure::NoAnswer => "its file system does not answer",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_its_number_a_name_and_a_text() {
        for (number, failure) in OpenFailure::ALL.into_iter().enumerate() {
            assert_eq!(failure as usize, number);
            let mut others = OpenFailure::ALL.into_iter().filter(|other| *other != failure);
            assert!(others.all(|o| o.name() != failure.name() && o.text() != failure.text()));
        }
    }
}
