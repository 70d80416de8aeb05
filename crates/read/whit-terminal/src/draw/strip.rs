//! Weight over time: a bar for each stretch of time, made of the letters of commands.

use super::Canvas;
use crate::source::seconds;
use crate::state::State;
use ratatui::style::Style;
use whit_profile::model::Profile;
use whit_types::TimestampNs;
use whit_view::hists::percent;
use whit_view::strip::{MAX_COMMANDS, Stretch, Strip};

/// The letter of each command; the last one is that of all others.
const LETTERS: [&str; MAX_COMMANDS + 1] = ["A", "B", "C", "D", "E", "F", "·"];
/// Lines below the bars: losses, axis.
const BELOW: usize = 2;

pub(super) fn draw_head(state: &State, canvas: &mut Canvas<'_>) {
    let style = canvas.theme.head();
    canvas.paint(0, style);
    let Some(strip) = &state.strip.strip else { return };
    let Some(chosen) = state.strip.chosen(canvas.width()) else { return };
    let (from, to) = (strip.time_of(chosen.start), strip.time_of(chosen.end));
    let weight = strip.stretches[chosen].iter().map(Stretch::total).sum();
    let share = percent(weight, strip.sums.iter().sum());
    let advice = if state.strip.mark.is_some() { "; Enter: in all views" } else { "" };
    let head = format!(
        "At {} s, for {}: {share:.2}% of all{advice}",
        seconds(from),
        length(to.since(from))
    );
    canvas.put(0, 0, &head, style);
}

pub(super) fn draw(state: &State, canvas: &mut Canvas<'_>) {
    let (Some(strip), Some(profile)) = (&state.strip.strip, state.times()) else {
        canvas.put(2, 1, "No sample of this event has a time.", Style::new());
        return;
    };
    let legend = strip.commands.len() + 1;
    let height = canvas.height().saturating_sub(BELOW + legend).max(1);
    draw_bars(state, canvas, height);
    let axis = height + 1;
    let style = canvas.theme.faint();
    canvas.put(0, axis, &format!("{} s", seconds(strip.start)), style);
    let end = strip.start.0.saturating_add(strip.length_ns);
    let end = format!("{} s", seconds(TimestampNs(end)));
    let width = canvas.width();
    canvas.put_right(width, axis, &end, style);
    draw_legend(strip, profile, canvas, axis + 1);
}

fn draw_bars(state: &State, canvas: &mut Canvas<'_>, height: usize) {
    let columns = state.strip.columns(canvas.width());
    let marked = match (state.strip.mark, state.span()) {
        (Some(_), _) => state.strip.chosen(canvas.width()).unwrap_or_default(),
        (None, Some(span)) => state.strip.stretches_of(span),
        (None, None) => 0..0,
    };
    let total = |weights: &[u64]| weights.iter().sum::<u64>();
    let largest = columns.iter().map(|column| total(&column.weights)).max().unwrap_or(0).max(1);
    for (x, column) in columns.iter().enumerate() {
        let mut sum = 0u64;
        let mut drawn = 0;
        for (number, weight) in column.weights.iter().enumerate() {
            sum += weight;
            let top = (u128::from(sum) * height as u128).div_ceil(u128::from(largest)) as usize;
            for line in drawn..top.min(height) {
                let style = canvas.theme.series(number);
                canvas.put(x, height - 1 - line, LETTERS[number.min(MAX_COMMANDS)], style);
            }
            drawn = drawn.max(top);
        }
        let is_chosen = column.stretches.contains(&state.strip.at);
        let is_marked = marked.contains(&column.stretches.start);
        let (mark, style) = match (is_chosen, column.is_lossy) {
            (true, _) => ("^", canvas.theme.message()),
            (false, true) => ("!", canvas.theme.loss()),
            (false, false) if is_marked => ("=", canvas.theme.message()),
            (false, false) => ("-", canvas.theme.faint()),
        };
        canvas.put(x, height, mark, style);
    }
}

fn draw_legend(strip: &Strip, profile: &Profile, canvas: &mut Canvas<'_>, y: usize) {
    let all: u64 = strip.sums.iter().sum();
    for (number, sum) in strip.sums.iter().enumerate() {
        let name = match strip.commands.get(number) {
            Some(comm) => profile.comms[comm.index()].to_string(),
            None if *sum == 0 => continue,
            None => "others".to_owned(),
        };
        let letter =
            if number < strip.commands.len() { LETTERS[number] } else { LETTERS[MAX_COMMANDS] };
        let style = canvas.theme.series(number);
        let end =
            canvas.put(0, y + number, &format!("{letter} {:6.2}% ", percent(*sum, all)), style);
        canvas.put(end, y + number, &name, Style::new());
    }
    let is_lossy = strip.stretches.iter().any(|stretch| stretch.is_lossy);
    if is_lossy {
        let style = canvas.theme.loss();
        let width = canvas.width();
        canvas.put_right(width, y, "! records were lost", style);
    }
}

fn length(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}
