//! A progress bar on standard error, for loads that take long.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// Shows progress on a terminal, and nothing elsewhere.
pub(crate) struct LoadProgress {
    bar: ProgressBar,
}

impl LoadProgress {
    /// `what` is being done.
    pub(crate) fn new(what: &'static str, quiet: bool) -> LoadProgress {
        let bar = ProgressBar::no_length();
        let visible = !quiet && std::io::stderr().is_terminal();
        bar.set_draw_target(if visible {
            ProgressDrawTarget::stderr_with_hz(10)
        } else {
            ProgressDrawTarget::hidden()
        });
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3}% {eta}") {
            bar.set_style(style);
        }
        bar.set_message(what);
        LoadProgress { bar }
    }

    /// Passes a step on.
    pub(crate) fn update(&self, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
    }

    /// Takes the bar off the screen.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
