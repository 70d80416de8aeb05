//! News of a recording that is still being made.

use std::sync::Arc;
use whit_profile::model::Profile;

/// News of a recording.
#[derive(Debug)]
pub enum News {
    /// Nothing yet.
    None,
    /// Another picture.
    Picture {
        /// The samples of the last while.
        profile: Arc<Profile>,
        /// How long that while is, and the cost of showing it, for the last line.
        status: Status,
    },
    /// The recording has ended, for this reason; the last picture stays.
    Ended(String),
    /// The interface has to end: a signal says so.
    Quit,
}

/// Time and cost of a picture.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Status {
    /// The time that the picture covers: `60 s`.
    pub covers: String,
    /// The cost: `0.5% CPU 40 MiB`.
    pub cost: String,
}

/// Where pictures come from.
pub trait Feed {
    /// The news since the last call, several times a second. A new picture comes when its time has come, and not while
    /// the one on the screen is to stay.
    fn news(&mut self, is_paused: bool) -> News;

    /// Lets all samples go.
    fn zero(&mut self);
}

/// The state of a live interface.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live {
    pub(crate) status: Status,
    pub(crate) is_paused: bool,
    pub(crate) ended: Option<String>,
    /// The name of the event that the user chose.
    pub(crate) event: Option<String>,
}

impl Live {
    /// The end of the first line: time, pause, end.
    pub(crate) fn title(&self) -> String {
        let covers = match self.status.covers.as_str() {
            "" => String::new(),
            covers => format!(", last {covers}"),
        };
        let mark = match (&self.ended, self.is_paused) {
            (Some(reason), _) => format!(" [{reason}]"),
            (None, true) => " [paused]".to_owned(),
            (None, false) if self.status == Status::default() => " [being set up]".to_owned(),
            (None, false) => String::new(),
        };
        format!("{covers}{mark}")
    }
}
