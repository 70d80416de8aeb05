//! A progress bar on standard error, for loads that take long.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Work that ends sooner shows no bar.
const QUIET_TIME: Duration = Duration::from_secs(1);

/// Shows progress on a terminal, and nothing elsewhere.
pub struct LoadProgress {
    bar: ProgressBar,
    begin: Instant,
    is_visible: bool,
}

impl LoadProgress {
    /// `what` is being done.
    pub fn new(what: &'static str, quiet: bool) -> LoadProgress {
        let bar = ProgressBar::no_length();
        bar.set_draw_target(ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3}% {eta}") {
            bar.set_style(style);
        }
        bar.set_message(what);
        let is_visible = !quiet && std::io::stderr().is_terminal();
        LoadProgress { bar, begin: Instant::now(), is_visible }
    }

    /// Passes a step on.
    pub fn update(&self, done: u64, total: u64) {
        if self.is_visible && self.bar.is_hidden() && self.begin.elapsed() >= QUIET_TIME {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        }
        self.bar.set_length(total);
        self.bar.set_position(done);
    }

    /// Takes the bar off the screen.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
