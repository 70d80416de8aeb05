//! A progress bar on standard error, for readings that take long.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use whit_profile::{Question, Reading};

/// Work that ends sooner shows no bar.
const QUIET_TIME: Duration = Duration::from_secs(1);

/// Answers a question with a bar meanwhile.
///
/// # Errors
/// Those of the question.
pub fn answer<Q: Question>(
    reading: Reading<'_>,
    question: Q,
    quiet: bool,
) -> Result<Q::Answer, Q::Error> {
    during("reading", quiet, |update| reading.with_progress(update).answer(question))
}

/// Works with a bar meanwhile, which says `what` is being done. The work passes the bytes done and the bytes in total on.
pub(crate) fn during<T>(
    what: &'static str,
    quiet: bool,
    work: impl FnOnce(&(dyn Fn(u64, u64) + Sync)) -> T,
) -> T {
    let bar = Bar::new(what, quiet);
    let result = work(&|done, total| bar.update(done, total));
    bar.finish();
    result
}

/// Shows progress on a terminal, and nothing elsewhere.
struct Bar {
    bar: ProgressBar,
    begin: Instant,
    is_visible: bool,
}

impl Bar {
    /// `what` is being done.
    fn new(what: &'static str, quiet: bool) -> Bar {
        let bar = ProgressBar::no_length();
        bar.set_draw_target(ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3}% {eta}") {
            bar.set_style(style);
        }
        bar.set_message(what);
        let is_visible = !quiet && std::io::stderr().is_terminal();
        Bar { bar, begin: Instant::now(), is_visible }
    }

    /// Passes a step on.
    fn update(&self, done: u64, total: u64) {
        if self.is_visible && self.bar.is_hidden() && self.begin.elapsed() >= QUIET_TIME {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        }
        self.bar.set_length(total);
        self.bar.set_position(done);
    }

    /// Takes the bar off the screen.
    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
