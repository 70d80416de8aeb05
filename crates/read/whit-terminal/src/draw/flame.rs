//! The flame graph.

use super::Canvas;
use crate::state::State;
use ratatui::layout::Rect;
use ratatui::style::Style;
use whit_view::flame::FrameName;
use whit_view::hists::percent;
use whit_view::short_name::shorten;

/// Share and name of the chosen frame.
pub(super) fn draw_head(state: &State, canvas: &mut Canvas<'_>) {
    let style = canvas.theme.head();
    canvas.paint(0, style);
    let Some(flame) = &state.flame else { return };
    let Some(frame) = flame.frame(flame.chosen) else { return };
    let share = percent(frame.weight, flame.flame.total);
    let share = format!("{share:6.2}% ");
    let end = canvas.put(0, 0, &share, style);
    let name = frame.name.text(&state.profile).to_string();
    let room = canvas.width().saturating_sub(end);
    canvas.put(end, 0, &shorten(&name, room), style);
}

pub(super) fn draw(state: &State, canvas: &mut Canvas<'_>) {
    let Some(flame) = &state.flame else { return };
    if flame.flame.frames.is_empty() {
        canvas.put(2, 1, "No samples pass the filters.", Style::new());
        return;
    }
    for bar in flame.bars(canvas.area.width, canvas.height()) {
        let frame = &flame.flame.frames[bar.frame as usize];
        let style = match bar.frame == flame.chosen {
            true => canvas.theme.chosen_bar(),
            false => canvas.theme.bar(colour_of(frame.name)),
        };
        let area = Rect {
            x: canvas.area.x + bar.x,
            y: canvas.area.y + bar.y,
            width: bar.width,
            height: 1,
        };
        canvas.buffer.set_style(area, style);
        // A column stays free, so that neighbours stand apart.
        let room = usize::from(bar.width.saturating_sub(1));
        let name = frame.name.text(&state.profile).to_string();
        let name = shorten(&name, room);
        let name = if name.is_empty() && bar.width > 1 { "…".into() } else { name };
        canvas.buffer.set_stringn(area.x, area.y, &name, room.max(1), style);
        if bar.width > 1 {
            let last = Rect { x: area.x + area.width - 1, width: 1, ..area };
            canvas.buffer.set_stringn(last.x, last.y, "▏", 1, style);
        }
    }
}

/// Functions of one binary look alike; neighbours rarely do.
fn colour_of(name: FrameName) -> usize {
    match name {
        FrameName::Command(_) => 0,
        FrameName::Function(entry) => 1 + entry.function.index() % 5,
    }
}
