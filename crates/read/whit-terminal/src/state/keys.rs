//! The meaning of keys.

use super::{Before, Request, State, View};
use crate::input::{Input, Key};
use crate::prompt::{Prompt, Purpose, Typed};
use crate::source::{Explain, Function};
use crate::table_view::{Line, Mark};
use crate::text_view::TextView;
use std::path::PathBuf;
use whit_profile::model::{DsoKind, FunctionId, Profile};
use whit_types::Tid;
use whit_view::flame::FrameName;
use whit_view::stdio;
use whit_view::switches::{SwitchViewOptions, summary_lines};
use whit_view::warning::warning_text;

/// Suggested for the text of a report.
const SAVE_NAME: &str = "whit-report.txt";

impl State {
    /// Takes an event of the terminal; gives the work that it asks for.
    pub fn handle(&mut self, input: Input) -> Option<Request> {
        match input {
            Input::Resize { width, height } => {
                (self.width, self.height) = (width, height);
                self.keep_chosen_visible();
                None
            }
            Input::Key(key) => {
                self.message = None;
                let request = self.key(key);
                self.keep_chosen_visible();
                request
            }
            Input::Scroll(lines) => {
                self.scroll(lines);
                None
            }
            Input::Click { x, y } => self.click(x, usize::from(y)),
            Input::Drag { x } => {
                if self.is_in_strip() {
                    self.strip.drag_to(usize::from(x), usize::from(self.width));
                }
                None
            }
            Input::Release if self.is_in_strip() && self.strip.let_go() => self.choose_span(),
            Input::Release => None,
        }
    }

    pub(crate) fn keep_chosen_visible(&mut self) {
        let height = self.body_height();
        let table = &mut self.table;
        table.cursor.go(table.cursor.at, table.lines.len(), height);
        if let Some(view) = &mut self.waits_view {
            view.cursor.go(view.cursor.at, view.lines.len(), height);
        }
        if let Some(flame) = &mut self.flame {
            flame.choose(flame.chosen, height);
        }
        let height = self.text_height();
        if let Some(text) = &mut self.text {
            text.scroll(0, height);
        }
    }

    fn key(&mut self, key: Key) -> Option<Request> {
        if key == Key::Ctrl('c') && self.prompt.is_none() {
            return Some(Request::Quit);
        }
        if let Some(prompt) = &mut self.prompt {
            let typed = prompt.key(key);
            return self.typed(typed);
        }
        let height = self.text_height();
        if let Some(text) = &mut self.text {
            if key == Key::Enter {
                return text.opened().cloned().map(Request::Why);
            }
            if text.key(key, height) {
                self.text = self.requests.take();
            }
            return None;
        }
        if let Key::Char(c) = key
            && let (true, request) = self.live_key(c)
        {
            return request;
        }
        if self.moves(key) {
            return None;
        }
        match key {
            Key::Char('q') => return Some(Request::Quit),
            Key::Char('v') => return self.next_view(),
            Key::Enter => return self.enter(),
            Key::Char('a') => return self.annotate(),
            Key::Char('R') => return Some(Request::Requests),
            Key::Char('w') => return Some(Request::Why(Explain::Thread(self.chosen_thread()))),
            Key::Char('h' | '?') => self.text = Some(self.help()),
            Key::Char('i') => self.text = Some(self.header()),
            Key::Tab => self.next_event(1),
            Key::BackTab => self.next_event(self.event_groups().saturating_sub(1)),
            Key::Right => self.open_or_close(true),
            Key::Left => self.left(),
            Key::Esc => self.back(),
            Key::Char('+') => self.toggle(),
            Key::Char('e') => self.toggle_row(),
            Key::Char('E') => self.set_all_open(true),
            Key::Char('C') => self.set_all_open(false),
            Key::Char('d') => self.zoom_binary(),
            Key::Char('t') => self.zoom_thread(),
            Key::Char('k') => self.zoom_kernel(),
            Key::Char('r') => self.mark_time(),
            Key::Char('F') => self.toggle_relative(),
            Key::Char('o') => self.toggle_order(),
            Key::Char('V') => self.full_names = !self.full_names,
            Key::Char('/') => {
                let part = self.options.hists.filters.symbol_part.clone();
                self.prompt = Some(Prompt::new(Purpose::Filter, part.unwrap_or_default()));
            }
            Key::Char('L') => {
                let limit = self.options.hists.percent_limit.to_string();
                self.prompt = Some(Prompt::new(Purpose::Limit, limit));
            }
            Key::Char('P') => self.prompt = Some(Prompt::new(Purpose::Save, SAVE_NAME)),
            _ => {}
        }
        None
    }

    /// True for keys that move in the view.
    fn moves(&mut self, key: Key) -> bool {
        let (width, height) = (self.width, self.body_height());
        match self.view {
            View::Table => self.table.cursor.key(key, self.table.lines.len(), height),
            View::Flame => self.flame.as_mut().is_some_and(|flame| flame.key(key, width, height)),
            View::Waits => self
                .waits_view
                .as_mut()
                .is_some_and(|view| view.cursor.key(key, view.lines.len(), height)),
            View::Strip => self.strip.key(key, usize::from(width)),
        }
    }

    fn scroll(&mut self, lines: isize) {
        let (text_height, height) = (self.text_height(), self.body_height());
        if let Some(text) = &mut self.text {
            return text.scroll(lines, text_height);
        }
        match self.view {
            View::Table => self.table.cursor.step(lines, self.table.lines.len(), height),
            View::Waits => {
                if let Some(view) = &mut self.waits_view {
                    view.cursor.step(lines, view.lines.len(), height);
                }
            }
            View::Flame => {
                let key = if lines < 0 { Key::Up } else { Key::Down };
                self.moves(key);
            }
            View::Strip => {}
        }
    }

    /// A click chooses; a click on the chosen place is Enter.
    fn click(&mut self, x: u16, y: usize) -> Option<Request> {
        if self.text.is_some() || self.prompt.is_some() {
            return None;
        }
        let line = y.checked_sub(self.head_height())?;
        let (width, height) = (self.width, self.body_height());
        if line >= height {
            return None;
        }
        let was_chosen = match self.view {
            View::Table => {
                let at = self.table.cursor.top + line;
                let count = self.table.lines.len();
                let was = self.table.cursor.at == at;
                if at < count {
                    self.table.cursor.go(at, count, height);
                }
                was && at < count
            }
            View::Waits => {
                let view = self.waits_view.as_mut()?;
                let at = view.cursor.top + line;
                let was = view.cursor.at == at;
                if at < view.lines.len() {
                    view.cursor.go(at, view.lines.len(), height);
                }
                was && at < view.lines.len()
            }
            View::Flame => {
                let flame = self.flame.as_mut()?;
                let frame = flame.at(x, line as u16, width, height)?;
                let was = flame.chosen == frame;
                flame.choose(frame, height);
                was
            }
            View::Strip => {
                self.strip.press(usize::from(x), usize::from(width));
                false
            }
        };
        if was_chosen { self.enter() } else { None }
    }

    fn typed(&mut self, typed: Typed) -> Option<Request> {
        if typed == Typed::More {
            return None;
        }
        let prompt = self.prompt.take()?;
        if typed == Typed::Done {
            return None;
        }
        match prompt.purpose {
            Purpose::Filter => {
                self.remember();
                let part = Some(prompt.text).filter(|text| !text.is_empty());
                self.zooms.retain(|word| !word.starts_with('/'));
                self.zooms.extend(part.iter().map(|part| format!("/{}", whit_types::escape(part))));
                self.options.hists.filters.symbol_part = part;
                self.compute();
            }
            Purpose::Limit => match prompt.text.trim().trim_end_matches('%').parse::<f64>() {
                Ok(limit) if (0.0..=100.0).contains(&limit) => {
                    self.options.hists.percent_limit = limit;
                    self.compute();
                }
                _ => self.message = Some("a limit is a percentage between 0 and 100".to_owned()),
            },
            Purpose::Save if prompt.text.is_empty() => {}
            Purpose::Save => return Some(Request::Save(PathBuf::from(prompt.text))),
        }
        None
    }

    fn enter(&mut self) -> Option<Request> {
        match self.view {
            View::Table => match self.table.chosen() {
                Some(line) if self.table.mark(&self.hists, line) != Mark::None => self.toggle(),
                Some(_) => return self.annotate(),
                None => {}
            },
            View::Waits => self.toggle(),
            View::Flame => {
                if let Some(flame) = &mut self.flame {
                    flame.zoom();
                }
            }
            View::Strip => return self.choose_span(),
        }
        None
    }

    fn open_or_close(&mut self, open: bool) {
        let (limit, height) = (self.options.hists.percent_limit, self.body_height());
        match (self.view, &mut self.waits_view) {
            (View::Table, _) => self.table.set_open(&self.hists, limit, height, open),
            (View::Waits, Some(view)) => view.set_open(height, open),
            _ => {}
        }
    }

    fn is_open(&self) -> bool {
        match (self.view, &self.waits_view) {
            (View::Table, _) => self
                .table
                .chosen()
                .is_some_and(|line| self.table.mark(&self.hists, line) == Mark::Open),
            (View::Waits, Some(view)) => view.chosen().is_some_and(|line| view.is_open(line)),
            _ => false,
        }
    }

    fn toggle(&mut self) {
        self.open_or_close(!self.is_open());
    }

    fn toggle_row(&mut self) {
        let (limit, height) = (self.options.hists.percent_limit, self.body_height());
        match (self.view, &mut self.waits_view) {
            (View::Table, _) => {
                let Some(line) = self.table.chosen() else { return };
                let row = match line {
                    Line::Row(row) | Line::Chain { row, .. } => row,
                };
                let open = !self.table.is_row_open(row);
                self.table.set_row_open(&self.hists, limit, height, open);
            }
            (View::Waits, Some(view)) => {
                let open = !view.chosen().is_some_and(|line| view.is_open(line));
                view.set_row_open(height, open);
            }
            _ => {}
        }
    }

    fn set_all_open(&mut self, open: bool) {
        let (limit, height) = (self.options.hists.percent_limit, self.body_height());
        match (self.view, &mut self.waits_view) {
            (View::Table, _) => self.table.set_all_open(&self.hists, limit, height, open),
            (View::Waits, Some(view)) => view.set_all_open(height, open),
            _ => {}
        }
    }

    /// Closes, goes up, or zooms out.
    fn left(&mut self) {
        if self.is_open() {
            return self.open_or_close(false);
        }
        let height = self.body_height();
        let is_below = match (self.view, &mut self.waits_view) {
            (View::Table, _) => self.table.choose_parent(&self.hists, height),
            (View::Waits, Some(view)) => view.choose_parent(height),
            _ => false,
        };
        if !is_below {
            self.back();
        }
    }

    fn next_event(&mut self, step: usize) {
        if self.event_groups() > 1 {
            self.group = (self.group + step) % self.event_groups();
            let name = self.event_group().map(|group| group.name.clone());
            self.live.iter_mut().for_each(|live| live.event.clone_from(&name));
            self.compute();
        }
    }

    fn toggle_relative(&mut self) {
        self.options.hists.relative = !self.options.hists.relative;
        self.compute();
        let of = match self.options.hists.relative {
            true => "shares are of the samples that zooms and filters leave",
            false => "shares are of all samples of the event",
        };
        self.message = Some(of.to_owned());
    }

    fn is_in_strip(&self) -> bool {
        self.view == View::Strip && self.text.is_none() && self.prompt.is_none()
    }

    /// Keeps the filters for Esc.
    pub(super) fn remember(&mut self) {
        let filters = self.options.hists.filters.clone();
        let profile = self.live.is_none().then(|| self.profile.clone());
        let (words, span) = (self.zooms.clone(), self.span);
        self.before.push(Before { filters, words, span, profile });
    }

    /// Undoes the last zoom or filter.
    fn back(&mut self) {
        if self.view == View::Strip && self.strip.mark.take().is_some() {
            return;
        }
        let zoomed_frame = match (self.view, &mut self.flame) {
            (View::Flame, Some(flame)) => flame.zoom_out(),
            _ => false,
        };
        if zoomed_frame {
            return;
        }
        match self.before.pop() {
            Some(before) => {
                self.options.hists.filters = before.filters;
                self.zooms = before.words;
                if !self.restore_span(before.span, before.profile) {
                    self.compute();
                }
            }
            None => self.message = Some("press q to quit, ? for the keys".to_owned()),
        }
    }

    fn zoom_to(&mut self, words: String) {
        self.zooms.push(words);
        self.compute();
    }

    fn zoom_binary(&mut self) {
        let profile = self.shown_profile();
        let of_row = || match self.view {
            View::Table => self.table.row(&self.hists).and_then(|row| row.place.dso),
            _ => None,
        };
        let function = self.chosen_function();
        let dso = function.map(|it| profile.functions[it.index()].dso).or_else(of_row);
        let Some(dso) = dso.map(|dso| &profile.dsos[dso.index()]) else {
            self.message = Some("this row has no binary".to_owned());
            return;
        };
        let (path, name) = (dso.path.exact().to_owned(), dso.short_name.to_string());
        self.remember();
        self.options.hists.filters.dsos = vec![path];
        self.zoom_to(format!("binary {name}"));
    }

    fn zoom_kernel(&mut self) {
        let of_kernel = |kind| matches!(kind, DsoKind::Kernel | DsoKind::KernelModule);
        let kernel = self.profile.dsos.iter().filter(|dso| of_kernel(dso.kind));
        let paths: Vec<_> = kernel.map(|dso| dso.path.exact().to_owned()).collect();
        if paths.is_empty() {
            self.message = Some("no sample is in the kernel".to_owned());
            return;
        }
        self.remember();
        self.options.hists.filters.dsos = paths;
        self.zoom_to("kernel".to_owned());
    }

    /// The thread of the chosen row, where rows have one.
    fn chosen_thread(&self) -> Option<Tid> {
        let row = if self.view == View::Table { self.table.row(&self.hists) } else { None };
        row.and_then(|row| row.context.tid)
    }

    fn zoom_thread(&mut self) {
        let profile = &self.profile;
        let context = match self.view {
            View::Table => self.table.row(&self.hists).map(|row| &*row.context),
            _ => None,
        };
        let tid = self.chosen_thread();
        let comm = context.and_then(|context| context.comm).or(self.chosen_command());
        let words = match (tid, comm) {
            (Some(tid), _) => format!("thread {}", tid.0),
            (None, Some(comm)) => format!("command {}", profile.comms[comm.index()]),
            (None, None) => {
                self.message = Some(
                    "this row has no thread: make rows by thread with -s tid, or by command with -s comm"
                        .to_owned(),
                );
                return;
            }
        };
        let comm = comm.map(|comm| profile.comms[comm.index()].exact().to_owned());
        self.remember();
        let filters = &mut self.options.hists.filters;
        match (tid, comm) {
            (Some(tid), _) => filters.tids = vec![tid],
            (None, comm) => filters.comms = comm.into_iter().collect(),
        }
        self.zoom_to(words);
    }

    /// The command that the chosen frame stands below.
    fn chosen_command(&self) -> Option<whit_profile::model::CommId> {
        if self.view != View::Flame {
            return None;
        }
        let flame = self.flame.as_ref()?;
        let mut frame = flame.frame(flame.chosen)?;
        while let Some(parent) = frame.parent {
            frame = flame.frame(parent)?;
        }
        match frame.name {
            FrameName::Command(comm) => comm,
            FrameName::Function(_) => None,
        }
    }

    /// The profile that the ids of the view belong to.
    pub(crate) fn shown_profile(&self) -> &Profile {
        match (self.view, self.waits()) {
            (View::Waits, Some(waits)) => &waits.profile,
            _ => &self.profile,
        }
    }

    fn chosen_function(&self) -> Option<FunctionId> {
        match self.view {
            View::Table => self.table.function(&self.hists),
            View::Flame => {
                let flame = self.flame.as_ref()?;
                match flame.frame(flame.chosen)?.name {
                    FrameName::Function(entry) => Some(entry.function),
                    FrameName::Command(_) => None,
                }
            }
            View::Waits => {
                let view = self.waits_view.as_ref()?;
                view.node(view.chosen()?.node).place.0.map(|(function, _)| function)
            }
            View::Strip => None,
        }
    }

    /// The whole name of the chosen line, escaped.
    pub(crate) fn chosen_name(&self) -> Option<String> {
        let profile = self.shown_profile();
        let function = &profile.functions[self.chosen_function()?.index()];
        let dso = &profile.dsos[function.dso.index()];
        let way = match (self.view, self.table.chosen()) {
            (View::Table, Some(Line::Row(row))) => self.table.repeats.above(row),
            _ => Vec::new(),
        };
        let way = way.into_iter().filter_map(|row| self.hists.rows[row].place.function);
        let way = way.map(|it| format!("{} -> ", profile.functions[it.index()].name));
        Some(format!("{}{} in {}", way.collect::<String>(), function.name, dso.path))
    }

    fn annotate(&mut self) -> Option<Request> {
        let profile = self.shown_profile();
        let function = self.chosen_function().map(|function| &profile.functions[function.index()]);
        let event = self.event_group().map(|group| group.leader);
        let (Some(function), Some(event)) = (function, event) else {
            self.message = Some("this row has no function".to_owned());
            return None;
        };
        let dso = profile.dsos[function.dso.index()].path.exact().to_owned();
        Some(Request::Code(Function { name: function.name.exact().to_owned(), dso, event }))
    }

    /// The facts about the recording, its cost, losses and warnings.
    fn header(&self) -> TextView {
        let mut text = Vec::new();
        text.extend(self.profile.ledger.as_ref().map(stdio::ledger_line));
        text.extend(stdio::loss_line(&self.profile.losses));
        if let Some(waits) = self.waits() {
            let filters = self.options.hists.filters.clone();
            let options = SwitchViewOptions { filters, ..SwitchViewOptions::default() };
            text.extend(summary_lines(&waits.profile, &waits.switches, &options));
        }
        text.extend(
            self.profile.warnings.iter().map(|it| format!("Warning: {}", warning_text(it))),
        );
        if !text.is_empty() {
            text.push(String::new());
        }
        let mut bytes = Vec::new();
        // Writing to memory cannot fail.
        let _ = stdio::write_header(&mut bytes, &self.profile);
        let header = String::from_utf8_lossy(&bytes).into_owned();
        let plain = |line: &str| line.trim_start_matches(['#', ' ']).to_owned();
        text.extend(header.lines().map(plain).filter(|line| !line.trim_matches('=').is_empty()));
        let escaped = |line: String| whit_types::escape(&line).into_owned();
        let text: Vec<String> = text.into_iter().map(escaped).collect();
        let width = usize::from(self.width);
        TextView::new("Recording", text.iter().flat_map(|line| wrap(line, width)).collect())
    }
}

/// A line in several, each within the width.
fn wrap(line: &str, width: usize) -> Vec<String> {
    // As a fact of a report, whose mark is taken away.
    let fitted = whit_view::width::fit_line(&format!("# {line}"), width + 2);
    fitted.lines().map(|line| line.get(2..).unwrap_or_default().to_owned()).collect()
}
