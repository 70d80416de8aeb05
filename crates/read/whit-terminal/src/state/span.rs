//! A range of time, which all views follow.

use super::{Request, State, View};
use crate::source::Span;
use std::sync::Arc;
use whit_profile::model::Profile;

/// Begins the words of a range among those of zooms.
const WORD: &str = "time ";

impl State {
    /// The range of time that is shown; `None` for all of it.
    pub(crate) fn span(&self) -> Option<Span> {
        self.span
    }

    /// Puts one end of a range at the chosen column.
    pub(super) fn mark_time(&mut self) {
        if self.view != View::Strip || !self.strip.mark_here() {
            self.message = Some("r begins a range in the view of time (v)".to_owned());
        }
    }

    /// Asks for the samples of the chosen range.
    pub(super) fn choose_span(&mut self) -> Option<Request> {
        let span = self.strip.chosen_span(usize::from(self.width))?;
        self.strip.mark = None;
        if self.live.is_some() {
            let advice = "ranges are of recordings that have ended: whit record, then whit report";
            self.message = Some(advice.to_owned());
            return None;
        }
        Some(Request::Span(span))
    }

    /// Shows the samples of a range in all views; Esc shows the earlier samples again.
    pub(super) fn take_span(&mut self, span: Span, profile: Arc<Profile>) {
        self.remember();
        self.zooms.retain(|word| !word.starts_with(WORD));
        self.zooms.push(format!("{WORD}{}", span.words()));
        self.show_span(Some(span), profile);
    }

    /// Shows another range, with all rows; false where it is the same range.
    pub(super) fn restore_span(
        &mut self,
        span: Option<Span>,
        profile: Option<Arc<Profile>>,
    ) -> bool {
        let Some(profile) = profile.filter(|_| span != self.span) else { return false };
        self.show_span(span, profile);
        true
    }

    fn show_span(&mut self, span: Option<Span>, profile: Arc<Profile>) {
        self.span = span;
        // They are those of the other range, and are read again when they are looked at.
        self.may_have_waits |= self.waits.is_some();
        self.waits = None;
        let event = self.event_group().map(|group| group.name.clone());
        self.exchange(profile, event.as_deref());
        self.waits_view = None;
        if self.view == View::Waits {
            self.show(View::Table);
        }
    }
}
