//! Keys in, screens out: the state with a terminal in memory.

#[path = "../../../whit-view/tests/support/builder.rs"]
#[allow(unreachable_pub, dead_code, reason = "shared with whit-view's tests by path")]
mod builder;
mod hostile;
mod keys;
mod live;
mod views;

use crate::draw::draw;
use crate::source::{Explain, RequestsText, Span, Waits};
use crate::state::{Answer, Begin, Request, State};
use crate::{Input, Key};
use builder::{At, Builder, Who, at};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::sync::Arc;
use whit_profile::model::{NodeId, Profile, SingleSample, Singles};
use whit_profile::switches::{SwitchRow, SwitchSums, Switches};
use whit_types::TimestampNs;
use whit_view::hists::{Field, HistsOptions};
use whit_view::stdio::StdioOptions;

fn main() -> At {
    at("main", "/bin/app", 0x10)
}

/// Two commands, two events, call chains with a branch, code of the kernel.
fn profile() -> Profile {
    let mut builder = Builder::default();
    let (cycles, faults) = (builder.event("cycles"), builder.event("page-faults"));
    let app = Who { comm: "app", pid: 7, tid: 7, cpu: None };
    let other = Who { comm: "other", pid: 9, tid: 9, cpu: None };
    let (sort, compare) = (at("sort", "/bin/app", 0x20), at("compare", "/lib/cmp.so", 0x30));
    let read = at("vfs_read", "[kernel.kallsyms]", 0x40).kernel();
    builder.sample(cycles, app, &[main(), sort.clone(), compare], 50);
    builder.sample(cycles, app, &[main(), sort], 20);
    builder.sample(cycles, app, &[main(), read], 10);
    builder.sample(cycles, other, &[at("spin", "/bin/other", 0x50)], 20);
    builder.sample(faults, app, &[main()], 3);
    builder.profile
}

/// Rows in the order of their weights with all that they call.
fn options() -> StdioOptions {
    let hists = HistsOptions { order: vec![Field::Children], ..HistsOptions::default() };
    StdioOptions { hists, ..StdioOptions::default() }
}

fn begin(profile: Profile) -> State {
    sized(State::new(Begin::report(profile, options())), 80, 24)
}

fn sized(mut state: State, width: u16, height: u16) -> State {
    state.handle(Input::Resize { width, height });
    state
}

/// Presses keys; each character is one.
fn press(state: &mut State, keys: &str) -> Option<Request> {
    let mut last = None;
    for c in keys.chars() {
        last = key(state, if c == '\n' { Key::Enter } else { Key::Char(c) });
    }
    last
}

fn key(state: &mut State, key: Key) -> Option<Request> {
    state.handle(Input::Key(key))
}

/// The screen as lines without blanks at their ends.
fn screen(state: &State) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(state.width, state.height)).unwrap();
    terminal.draw(|frame| draw(state, frame.area(), frame.buffer_mut())).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let line = |y| {
        let cells = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol().to_owned());
        cells.collect::<String>().trim_end().to_owned()
    };
    (0..buffer.area.height).map(line).collect()
}

fn text(state: &State) -> String {
    screen(state).join("\n")
}

/// The rows of the table.
fn rows(state: &State) -> Vec<String> {
    let lines = screen(state);
    let body = lines[state.head_height()..lines.len() - 1].iter();
    body.filter(|line| !line.is_empty()).cloned().collect()
}

fn waits() -> Box<Waits> {
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    let app = Who { comm: "app", pid: 7, tid: 7, cpu: None };
    let schedule = at("schedule", "[kernel.kallsyms]", 0x60).kernel();
    let lock = at("lock", "/lib/libc.so", 0x70);
    let sleep = at("sleep", "/lib/libc.so", 0x80);
    builder.sample(event, app, &[main(), at("work", "/bin/app", 0x90), lock, schedule.clone()], 1);
    builder.sample(event, app, &[main(), sleep, schedule], 1);
    let profile = builder.profile;
    let row = |index: usize, ms: u64, sums: SwitchSums| {
        let row = profile.rows[index];
        let sums = SwitchSums { sync_count: ms, sync_wait_ns: ms * 1_000_000, ..sums };
        SwitchRow {
            thread: row.thread,
            comm: row.comm,
            node: row.node,
            object: None,
            brings: Default::default(),
            block: 0,
            sums,
        }
    };
    let lossy = SwitchSums { lossy_count: 1, lossy_wait_ns: 2_000_000, ..SwitchSums::default() };
    let rows = vec![row(0, 30, lossy), row(1, 10, SwitchSums::default())];
    assert_ne!(rows[0].node, NodeId::NONE);
    let switches = Switches { rows, ..Switches::default() };
    Box::new(Waits { profile: Arc::new(profile), switches })
}

/// A profile with the time of each sample.
fn times() -> Box<Profile> {
    let mut profile = profile();
    let single = |row: usize, time| {
        let period = profile.rows[row].period;
        SingleSample { time: TimestampNs(time), row: row as u32, cpu: None, period }
    };
    let samples =
        vec![single(0, 1_000_000_000), single(3, 1_500_000_000), single(1, 2_000_000_000)];
    profile.singles = Some(Singles { samples, ..Singles::default() });
    Box::new(profile)
}

fn answered(state: &mut State, answer: Answer) {
    state.answer(answer);
}
