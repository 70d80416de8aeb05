//! The state of the interface: keys in, requests out.

mod keys;
mod live;
mod open_rows;
mod span;

use crate::flame_view::FlameView;
use crate::live::Live;
use crate::prompt::Prompt;
use crate::source::{CodeText, Explain, Function, RequestsText, Span, Waits};
use crate::strip_view::{STRETCHES, StripView};
use crate::table_view::TableView;
use crate::text_view::TextView;
use crate::waits_view::WaitsView;
use std::path::PathBuf;
use std::sync::Arc;
use whit_profile::model::Profile;
use whit_view::brief::Headline;
use whit_view::flame::Flame;
use whit_view::hists::{
    ChainMode, EventGroup, Field, Filters, Hists, Repeats, WeightColumns, group_hists, groups,
};
use whit_view::rows::Table;
use whit_view::stdio::{StdioOptions, loss_line};
use whit_view::strip::Strip;

/// Frames below this share are narrower than a column of most terminals.
const MIN_FRAME_PERCENT: f64 = 0.2;

/// The event of context switches.
const SWITCHES: &str = "context-switches";

/// A view of the profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum View {
    /// Rows with call chains.
    Table,
    /// Frames as bars.
    Flame,
    /// Call stacks by the time that threads waited.
    Waits,
    /// Weight over time.
    Strip,
}

/// The beginning of an interface.
#[derive(Debug)]
pub struct Begin {
    /// The profile to show.
    pub profile: Arc<Profile>,
    /// Rows, columns and colours.
    pub options: StdioOptions,
    /// Its switches, where they are loaded.
    pub waits: Option<Waits>,
    /// The first view.
    pub view: View,
    /// The recording may have context switches.
    pub may_have_waits: bool,
}

impl Begin {
    /// A table.
    pub fn report(profile: Profile, options: StdioOptions) -> Begin {
        Begin {
            profile: Arc::new(profile),
            options,
            waits: None,
            view: View::Table,
            may_have_waits: false,
        }
    }
}

/// Work that the state cannot do itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// End the interface.
    Quit,
    /// Load the context switches.
    Waits,
    /// Load the time of samples.
    Times,
    /// Load the samples of a range of time.
    Span(Span),
    /// Take a function apart.
    Code(Function),
    /// Load the requests.
    Requests,
    /// Explain the time of a request or of a thread.
    Why(Explain),
    /// Write the report as text to this file.
    Save(PathBuf),
    /// Let all samples of a live recording go.
    Zero,
}

/// The result of a request.
#[derive(Debug)]
pub(crate) enum Answer {
    Waits(Result<Box<Waits>, String>),
    Times(Result<Box<Profile>, String>),
    Span(Span, Result<Arc<Profile>, String>),
    Code(Function, Result<CodeText, String>),
    Requests(Result<RequestsText, String>),
    Why(Explain, Result<Vec<String>, String>),
    Saved(PathBuf, Result<(), String>),
}

/// Filters and view before a zoom.
#[derive(Clone, Debug)]
struct Before {
    filters: Filters,
    words: Vec<String>,
    span: Option<Span>,
    /// The samples; `None` where they are those of a recording that goes on.
    profile: Option<Arc<Profile>>,
}

/// Everything that the screen shows.
pub struct State {
    pub(crate) profile: Arc<Profile>,
    pub(crate) options: StdioOptions,
    /// The most important facts, above all views.
    headline: Headline,
    groups: Vec<EventGroup>,
    group: usize,
    pub(crate) hists: Hists,
    pub(crate) columns: Table,
    pub(crate) view: View,
    pub(crate) table: TableView,
    /// Made when it is first looked at.
    pub(crate) flame: Option<FlameView>,
    waits: Option<Waits>,
    pub(crate) waits_view: Option<WaitsView>,
    may_have_waits: bool,
    times: Option<Profile>,
    pub(crate) strip: StripView,
    pub(crate) text: Option<TextView>,
    /// The requests, while the text in front explains one of them.
    requests: Option<TextView>,
    pub(crate) prompt: Option<Prompt>,
    pub(crate) message: Option<String>,
    pub(crate) full_names: bool,
    /// The zooms and filters in words, in their order.
    pub(crate) zooms: Vec<String>,
    before: Vec<Before>,
    /// The range of time whose samples are shown.
    span: Option<Span>,
    /// Where the recording goes on.
    pub(crate) live: Option<Live>,
    pub(crate) width: u16,
    pub(crate) height: u16,
}

fn groups_with_samples(profile: &Profile, options: &StdioOptions) -> Vec<EventGroup> {
    let mut groups = groups(profile, options.hists.grouping);
    groups.retain(|group| {
        let mut events = [group.leader].into_iter().chain(group.members.iter().copied());
        events.any(|event| profile.events[event.index()].samples > 0)
    });
    groups
}

/// The field of a row's weight without its callees.
fn own_weight(shares: WeightColumns) -> Field {
    if shares.by_latency() { Field::Latency } else { Field::Overhead }
}

/// Rows for nothing: a recording without samples.
fn no_hists(profile: &Profile, options: &StdioOptions) -> Hists {
    let group = EventGroup {
        name: String::new(),
        leader: whit_profile::model::EventId(u32::MAX),
        members: Vec::new(),
    };
    group_hists(profile, &group, &options.hists)
}

impl State {
    /// The first screen.
    pub fn new(begin: Begin) -> State {
        let Begin { profile, mut options, waits, view, may_have_waits } = begin;
        if options.hists.chains.mode != ChainMode::None {
            options.hists.chains.mode = ChainMode::Graph;
        }
        options.width = None;
        // The first rows are where time is spent.
        let hists = &mut options.hists;
        if hists.order.is_empty() && hists.columns.is_empty() && !hists.is_hierarchy() {
            hists.order = vec![own_weight(hists.shares)];
        }
        let headline = Headline::new(&profile, waits.as_ref().map(|waits| &waits.switches));
        let groups = groups_with_samples(&profile, &options);
        let hists = no_hists(&profile, &options);
        let columns = Table::new(&profile, &hists, &options);
        let mut state = State {
            profile,
            options,
            headline,
            groups,
            group: 0,
            hists,
            columns,
            view,
            table: TableView::default(),
            flame: None,
            waits,
            waits_view: None,
            may_have_waits,
            times: None,
            strip: StripView::default(),
            text: None,
            requests: None,
            prompt: None,
            message: None,
            full_names: false,
            zooms: Vec::new(),
            before: Vec::new(),
            span: None,
            live: None,
            width: 80,
            height: 24,
        };
        state.compute();
        state.show(view);
        state
    }

    /// Takes another profile; its rows are still to be made.
    pub(crate) fn set_profile(&mut self, profile: Arc<Profile>) {
        self.groups = groups_with_samples(&profile, &self.options);
        self.headline = Headline::new(&profile, None);
        self.profile = profile;
    }

    /// The line above all views, where there is anything to say.
    pub(crate) fn headline(&self) -> Option<String> {
        let line = self.headline.line(usize::from(self.width).saturating_sub(1));
        (!line.is_empty()).then_some(line)
    }

    /// Chooses the event of this name, where there is one; else the first one whose samples are no context switches.
    pub(crate) fn choose_event(&mut self, name: Option<&str>) {
        let place = |is_it: &dyn Fn(&str) -> bool| {
            self.groups.iter().position(|group| is_it(group.name.as_str()))
        };
        let named = place(&|it| Some(it) == name);
        self.group = named.or_else(|| place(&|it| it != SWITCHES)).unwrap_or(0);
    }

    /// Lets waits and times go: they are read again when they are looked at.
    pub(crate) fn forget_readings(&mut self) {
        (self.waits, self.times, self.waits_view) = (None, None, None);
    }

    /// Makes rows and all that depends on them anew.
    pub(crate) fn compute(&mut self) {
        // Lines are those of the rows before, and nothing may look them up.
        self.table.lines.clear();
        (self.flame, self.waits_view) = (None, None);
        let mut options = self.options.clone();
        // Blocks of time have the samples that filters leave out, too.
        options.hists.intervals &= !options.hists.relative && options.hists.filters.tids.is_empty();
        self.hists = match self.groups.get(self.group) {
            Some(group) => group_hists(&self.profile, group, &options.hists),
            None => no_hists(&self.profile, &options),
        };
        self.columns = Table::new(&self.profile, &self.hists, &options);
        let height = self.body_height();
        let repeats = Repeats::new(&self.hists, &options.hists);
        self.table.reset(&self.hists, repeats, self.options.hists.percent_limit, height);
        self.prepare();
    }

    /// Makes what the view shows, where it is not there yet.
    fn prepare(&mut self) {
        let hists = &self.options.hists;
        match self.view {
            View::Table => {}
            View::Flame if self.flame.is_none() => {
                let flame = self
                    .groups
                    .get(self.group)
                    .map(|group| Flame::new(&self.profile, group, hists, MIN_FRAME_PERCENT));
                self.flame = Some(FlameView::new(flame.unwrap_or_default()));
            }
            View::Waits if self.waits_view.is_none() => {
                self.waits_view = self.waits.as_ref().map(|waits| {
                    WaitsView::new(waits, &hists.filters, hists.inline, hists.percent_limit)
                });
            }
            View::Strip => self.prepare_strip(),
            View::Flame | View::Waits => {}
        }
    }

    fn prepare_strip(&mut self) {
        let event = self.groups.get(self.group).map(|group| group.leader);
        let (Some(times), Some(event)) = (&self.times, event) else { return };
        if self.strip.event != Some(event) {
            let strip = Strip::new(times, event, STRETCHES);
            self.strip = StripView { event: Some(event), strip, ..StripView::default() };
        }
    }

    /// Orders rows by their own weight, or by that with all that they call.
    fn toggle_order(&mut self) {
        if !self.options.hists.columns.is_empty() || !self.hists.children {
            self.message = Some("these rows have one order alone".to_owned());
            return;
        }
        let hists = &mut self.options.hists;
        let by_own = hists.is_by_own();
        hists.order = if by_own { Vec::new() } else { vec![own_weight(hists.shares)] };
        self.compute();
        let by = if by_own { "with all that they call" } else { "of their own" };
        self.message = Some(format!("rows are ordered by their share {by}"));
    }

    fn show(&mut self, view: View) {
        self.view = view;
        self.prepare();
    }

    /// Shows the next view, or asks for its data.
    fn next_view(&mut self) -> Option<Request> {
        let next = match self.view {
            View::Table => View::Flame,
            View::Flame if self.may_have_waits || self.waits.is_some() => View::Waits,
            View::Flame | View::Waits => View::Strip,
            View::Strip => View::Table,
        };
        self.show(next);
        match next {
            View::Waits if self.waits.is_none() => Some(Request::Waits),
            View::Strip if self.times.is_none() => Some(Request::Times),
            _ => None,
        }
    }

    /// Takes the result of a request.
    pub(crate) fn answer(&mut self, answer: Answer) {
        match answer {
            Answer::Waits(Ok(waits)) => {
                self.headline = Headline::new(&waits.profile, Some(&waits.switches));
                let old = self.waits_view.take();
                let names = old.zip(self.waits.replace(*waits));
                self.prepare();
                let height = self.body_height();
                if let (Some((old, of_old)), Some(new), Some(of_new)) =
                    (names, &mut self.waits_view, &self.waits)
                {
                    new.take_over(&of_new.profile, &old, &of_old.profile, height);
                }
            }
            Answer::Waits(Err(error)) => {
                // A live recording may have some later.
                self.may_have_waits = self.live.is_some();
                self.message = Some(error);
                self.show(View::Table);
            }
            Answer::Times(Ok(profile)) => {
                self.times = Some(*profile);
                let at = self.strip.at;
                self.strip = StripView::default();
                self.prepare();
                self.strip.at = at.min(STRETCHES - 1);
            }
            Answer::Times(Err(error)) => {
                self.message = Some(error);
                self.show(View::Table);
            }
            Answer::Span(span, Ok(profile)) => self.take_span(span, profile),
            Answer::Span(_, Err(error)) => self.message = Some(error),
            Answer::Code(function, Ok(code)) => {
                let name = whit_types::escape(&function.name).into_owned();
                let mut text = TextView::new(format!("Code of {name}"), code.lines);
                text.has_cursor = true;
                let height = self.text_height();
                // Some lines in front of the hottest one say how it is reached.
                text.cursor.go(code.hottest + height / 2, text.lines.len(), height);
                text.cursor.go(code.hottest, text.lines.len(), height);
                self.text = Some(text);
            }
            Answer::Requests(Ok(RequestsText { lines, requests })) => {
                let mut text = TextView::new("Requests (Enter explains one)", lines);
                text.has_cursor = true;
                let first = requests.first().map_or(0, |(line, _)| *line);
                text.opens = requests;
                text.cursor.go(first, text.lines.len(), self.text_height());
                self.text = Some(text);
            }
            Answer::Why(what, Ok(lines)) => {
                self.requests = self.text.take();
                self.text = Some(TextView::new(self.title_of_path(&what), lines));
            }
            Answer::Code(_, Err(error))
            | Answer::Requests(Err(error))
            | Answer::Why(_, Err(error)) => self.message = Some(error),
            Answer::Saved(path, Ok(())) => {
                let path = path.display().to_string();
                self.message = Some(format!("wrote {}", whit_types::escape(&path)));
            }
            Answer::Saved(_, Err(error)) => self.message = Some(error),
        }
    }

    #[cfg(test)]
    pub(crate) fn set_may_have_waits(&mut self) {
        self.may_have_waits = true;
    }

    fn title_of_path(&self, what: &Explain) -> String {
        match (what, self.span) {
            (Explain::Request(name, rank), _) => format!("Why request {name}:{rank} took its time"),
            (Explain::Thread(_), Some(span)) => format!("Why: critical path of {}", span.words()),
            (Explain::Thread(_), None) => "Why: critical path".to_owned(),
        }
    }

    /// The report that [`Source::save`](crate::Source::save) writes.
    pub(crate) fn report(&self) -> (&Profile, &StdioOptions) {
        (&self.profile, &self.options)
    }

    pub(crate) fn waits(&self) -> Option<&Waits> {
        self.waits.as_ref()
    }

    pub(crate) fn times(&self) -> Option<&Profile> {
        self.times.as_ref()
    }

    /// The table on the screen; `None` where the recording has no samples.
    pub(crate) fn event_group(&self) -> Option<&EventGroup> {
        self.groups.get(self.group)
    }

    /// The number of the event, from 1.
    pub(crate) fn event_number(&self) -> usize {
        self.group + 1
    }

    pub(crate) fn event_groups(&self) -> usize {
        self.groups.len()
    }

    /// Lines above the body: title, headline, losses, and the titles of columns.
    pub(crate) fn head_height(&self) -> usize {
        let has_losses = loss_line(&self.profile.losses).is_some();
        2 + usize::from(has_losses) + usize::from(self.headline().is_some())
    }

    /// Lines of the body.
    pub(crate) fn body_height(&self) -> usize {
        let around = self.head_height() + 1 + self.name_lines().len();
        usize::from(self.height).saturating_sub(around).max(1)
    }

    /// Lines of a text in front.
    pub(crate) fn text_height(&self) -> usize {
        usize::from(self.height).saturating_sub(2).max(1)
    }

    /// The whole name of the chosen function, in lines.
    pub(crate) fn name_lines(&self) -> Vec<String> {
        if !self.full_names {
            return Vec::new();
        }
        let name = self.chosen_name().unwrap_or_default();
        let width = usize::from(self.width).max(8);
        let letters: Vec<char> = name.chars().collect();
        let most = usize::from(self.height / 3).max(1);
        let mut lines: Vec<String> =
            letters.chunks(width).map(|line| line.iter().collect()).collect();
        if lines.len() > most {
            lines.truncate(most);
            if let Some(last) = lines.last_mut() {
                last.pop();
                last.push('…');
            }
        }
        lines
    }
}
