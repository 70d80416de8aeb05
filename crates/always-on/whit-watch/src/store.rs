//! Places on disk that keep windows.

use crate::folder::{Folder, Line, seconds};
use crate::retention::{Kept, Limits};
use crate::window::Window;
use std::time::SystemTime;

/// Keeps windows, and removes old ones.
pub(crate) trait Store: Send + std::fmt::Debug {
    /// Writes a window.
    ///
    /// # Errors
    /// The window is lost.
    fn add(&mut self, window: &Window) -> Result<(), String>;

    /// Removes windows that have to go; gives their number.
    ///
    /// # Errors
    /// A file cannot be removed. It is tried again.
    fn retain(&mut self, limits: Limits, now: SystemTime) -> Result<u64, String>;

    /// The windows that are there.
    fn kept(&self) -> &Kept;
}

impl Store for Folder {
    fn add(&mut self, window: &Window) -> Result<(), String> {
        let line = Line {
            start_s: seconds(window.start),
            end_s: seconds(window.end),
            gap_s: window.gap.as_secs_f64(),
            records_lost: window.lost.records,
            ..Line::default()
        };
        let added =
            Folder::add(self, line, |out| std::io::copy(&mut window.reader(), out).map(drop));
        added.map(drop).map_err(|error| error.to_string())
    }

    fn retain(&mut self, limits: Limits, now: SystemTime) -> Result<u64, String> {
        Folder::retain(self, limits, now).map_err(|error| error.to_string())
    }

    fn kept(&self) -> &Kept {
        Folder::kept(self)
    }
}
