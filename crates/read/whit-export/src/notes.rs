//! Everything that a reader has to know beside the samples: the recording, its losses, its cost.

use crate::content::Content;
use whit_view::stdio::{ledger_line, loss_line};
use whit_view::warning::warning_text;

/// One statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// A name in the style of attributes: `whit.lost_records`.
    pub key: &'static str,
    /// For people.
    pub text: String,
}

impl Content<'_> {
    /// Statements about the recording; losses are there even where there are none.
    pub fn notes(&self) -> Vec<Note> {
        let info = &self.profile.recording;
        let mut notes = vec![note("whit.version", format!("whit {}", env!("CARGO_PKG_VERSION")))];
        let command: Vec<_> = info.cmdline.iter().map(|word| word.exact()).collect();
        for (key, title, text) in [
            ("whit.recording", "Recording", info.path.exact()),
            ("whit.host", "Host", info.hostname.exact()),
            ("whit.kernel", "Kernel", info.os_release.exact()),
            ("whit.command", "Command", &command.join(" ")),
        ] {
            if !text.is_empty() {
                notes.push(note(key, format!("{title}: {text}")));
            }
        }
        let losses = loss_line(&self.profile.losses);
        notes.push(note("whit.losses", losses.unwrap_or_else(|| "Lost: nothing".to_owned())));
        notes.extend(
            self.profile.ledger.as_ref().map(|ledger| note("whit.ledger", ledger_line(ledger))),
        );
        notes.extend(self.stop_notes());
        if let Some(slice_ns) = self.slice_ns() {
            let text = format!(
                "The recording has too many samples to be written one by one: those of one call chain and thread within \
                 {:.1} ms are joined",
                slice_ns as f64 / 1e6
            );
            notes.push(note("whit.joined", text));
        }
        let warnings = self.profile.warnings.iter();
        notes.extend(
            warnings.map(|warning| note("whit.warning", warning_text(warning).into_exact())),
        );
        notes
    }

    /// Why the unwinding of stacks ended before the outermost frame.
    fn stop_notes(&self) -> Vec<Note> {
        let stops = &self.profile.stats.unwind_stops;
        let all: u64 = stops.iter().map(|(_, count)| count).sum();
        let cut = stops.iter().filter(|(reason, count)| !reason.is_complete() && *count > 0);
        cut.map(|(reason, count)| {
            note("whit.cut_stacks", format!("Cut stacks: {count} of {all}: {reason}"))
        })
        .collect()
    }

    /// Length of the stretches within which samples were joined.
    pub fn slice_ns(&self) -> Option<u64> {
        self.profile.singles.as_ref()?.slice_ns
    }
}

fn note(key: &'static str, text: String) -> Note {
    Note { key, text }
}
