//! Annotated functions: instructions and source lines with their own weights, as text in the layout of
//! `perf annotate --stdio`, as JSON, and in columns for the page.

mod intervals;
mod json;
mod panel;
mod summary;
mod table;
#[cfg(test)]
mod tests;
mod text;

pub use json::{VERSION, write_json};
pub use panel::PanelFunction;
pub use text::write_text;

use whit_annotate::{AnnotatedFunction, EventWeights, Weight, Weights};
use whit_profile::SourceLine;
use whit_profile::model::{EventId, Profile};
use whit_types::OutsideText;

use crate::hists::{self, EventGroup, Grouping};
use crate::stdio::Colour;

/// The unit and the whole of percentages, as perf names them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PercentType {
    /// Periods, of the function.
    #[default]
    LocalPeriod,
    /// Periods, of all samples of the event.
    GlobalPeriod,
    /// Samples, of the function.
    LocalHits,
    /// Samples, of all of the event.
    GlobalHits,
}

impl PercentType {
    /// From perf's name; its halves may stand in either order.
    pub fn parse(name: &str) -> Option<PercentType> {
        match name {
            "local-period" | "period-local" => Some(PercentType::LocalPeriod),
            "global-period" | "period-global" => Some(PercentType::GlobalPeriod),
            "local-hits" | "hits-local" => Some(PercentType::LocalHits),
            "global-hits" | "hits-global" => Some(PercentType::GlobalHits),
            _ => None,
        }
    }

    /// As perf prints it in the heading.
    fn words(self) -> &'static str {
        match self {
            PercentType::LocalPeriod => "local period",
            PercentType::GlobalPeriod => "global period",
            PercentType::LocalHits => "local hits",
            PercentType::GlobalHits => "global hits",
        }
    }

    fn is_local(self) -> bool {
        matches!(self, PercentType::LocalPeriod | PercentType::LocalHits)
    }

    fn is_period(self) -> bool {
        matches!(self, PercentType::LocalPeriod | PercentType::GlobalPeriod)
    }

    /// The share of a weight in its whole.
    fn percent(self, weight: Weight, whole: Weight) -> f64 {
        match self.is_period() {
            true => hists::percent(weight.period, whole.period),
            false => hists::percent(weight.samples, whole.samples),
        }
    }
}

/// How to print annotated functions.
#[derive(Clone, Debug, Default)]
pub struct AnnotateOptions {
    /// Text has percentages of this type; JSON has those of the function and of the event.
    pub percent_type: PercentType,
    /// Print how far shares can be trusted, from a profile that has blocks of time.
    pub intervals: bool,
    /// Add a column with the number of samples.
    pub show_samples: bool,
    /// Add a column with the sum of periods.
    pub show_period: bool,
    /// Print the bytes of instructions.
    pub raw: bool,
    /// Print source lines between instructions.
    pub source: bool,
    /// Print a summary of source lines before the instructions.
    pub summary: bool,
    /// Print the paths of source files whole.
    pub full_paths: bool,
    /// Print the inlined functions that instructions belong to.
    pub inline: bool,
    /// Leave out functions whose code is not at hand.
    pub skip_missing: bool,
    /// Which events have columns beside each other.
    pub grouping: Grouping,
    /// Only this event.
    pub event: Option<EventId>,
    /// Leave out all lines that begin with `#`, except losses.
    pub quiet: bool,
    /// Whether large percentages are coloured.
    pub colour: Colour,
}

/// A profile with the functions that were taken apart.
#[derive(Clone, Copy)]
pub struct Annotated<'a> {
    /// Events, binaries, losses.
    pub profile: &'a Profile,
    /// Its samples by address.
    pub weights: &'a Weights<'a>,
    /// The heaviest first.
    pub functions: &'a [AnnotatedFunction],
}

/// Gives the text of a source line, without its end; `None` where the file is not at hand.
pub type LineText<'a> = &'a mut dyn FnMut(&SourceLine) -> Option<String>;

impl<'a> Annotated<'a> {
    fn name(&self, function: &AnnotatedFunction) -> &'a OutsideText {
        &self.profile.functions[function.chosen.function.index()].name
    }

    /// The tables, each with its events, that a function has samples of.
    fn groups(&self, function: &AnnotatedFunction, options: &AnnotateOptions) -> Vec<EventGroup> {
        let has_samples = |event: EventId| function.chosen.weights.of(event).samples > 0;
        let mut groups = hists::groups(self.profile, options.grouping);
        groups.retain(|group| {
            let mut events = [group.leader].into_iter().chain(group.members.iter().copied());
            match options.event {
                Some(wanted) => events.any(|event| event == wanted),
                None => events.any(has_samples),
            }
        });
        groups
    }

    fn whole(&self, event: EventId) -> Weight {
        let info = &self.profile.events[event.index()];
        Weight { samples: info.samples, period: info.period }
    }

    /// The weight that shares of a function's parts are of.
    fn whole_of(&self, of: PercentType, function: &EventWeights, event: EventId) -> Weight {
        if of.is_local() { function.of(event) } else { self.whole(event) }
    }
}

/// A source line as it is named in text.
fn line_name(line: &SourceLine, full_paths: bool) -> String {
    let file = OutsideText::new(&*line.file);
    let file = if full_paths { file } else { file.base_name() };
    format!("{file}:{}", line.line)
}
