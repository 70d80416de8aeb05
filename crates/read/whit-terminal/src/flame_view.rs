//! A flame graph: frames as bars, callers above their callees.

use crate::input::Key;
use whit_view::flame::{Flame, FlameFrame};

/// The chosen frame, and the one that fills the width.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlameView {
    pub(crate) flame: Flame,
    pub(crate) chosen: u32,
    pub(crate) zoomed: Option<u32>,
    /// Depth of the first line on the screen.
    pub(crate) top: usize,
}

/// A frame on the screen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bar {
    pub(crate) frame: u32,
    pub(crate) x: u16,
    pub(crate) width: u16,
    /// Line of the view.
    pub(crate) y: u16,
}

impl FlameView {
    pub(crate) fn new(flame: Flame) -> FlameView {
        FlameView { flame, ..FlameView::default() }
    }

    pub(crate) fn frame(&self, frame: u32) -> Option<&FlameFrame> {
        self.flame.frames.get(frame as usize)
    }

    /// The range of weights that the width shows.
    fn range(&self) -> (u64, u64) {
        match self.zoomed.and_then(|zoomed| self.frame(zoomed)) {
            Some(frame) => (frame.start, frame.weight),
            None => (0, self.flame.total),
        }
    }

    /// The frames that are wide enough to be seen, with callers first.
    pub(crate) fn bars(&self, width: u16, height: usize) -> Vec<Bar> {
        self.bars_from(self.top, width, height)
    }

    fn bars_from(&self, top: usize, width: u16, height: usize) -> Vec<Bar> {
        let (start, weight) = self.range();
        if weight == 0 {
            return Vec::new();
        }
        let column = |at: u64| {
            let behind = u128::from(at.saturating_sub(start).min(weight));
            (behind * u128::from(width) / u128::from(weight)) as u16
        };
        let mut bars = Vec::new();
        let mut work: Vec<u32> = self.flame.roots.iter().rev().copied().collect();
        while let Some(id) = work.pop() {
            let frame = &self.flame.frames[id as usize];
            let (x, end) = (column(frame.start), column(frame.start.saturating_add(frame.weight)));
            let is_outside = frame.start.saturating_add(frame.weight) <= start
                || frame.start >= start.saturating_add(weight);
            if is_outside || end == x || frame.depth >= top + height {
                continue;
            }
            if frame.depth >= top {
                let y = (frame.depth - top) as u16;
                bars.push(Bar { frame: id, x, width: end - x, y });
            }
            work.extend(frame.children.iter().rev());
        }
        bars
    }

    /// Moves by a key; false for keys that do not move.
    pub(crate) fn key(&mut self, key: Key, width: u16, height: usize) -> bool {
        let next = match key {
            Key::Up => self.frame(self.chosen).and_then(|frame| frame.parent),
            Key::Down => self.frame(self.chosen).and_then(|frame| frame.children.first().copied()),
            Key::Left => self.sibling(-1, width),
            Key::Right => self.sibling(1, width),
            Key::Home => self.flame.roots.first().copied(),
            Key::End => Some(self.leaf()),
            Key::PageUp => Some(self.up(height)),
            Key::PageDown => Some(self.down(height)),
            _ => return false,
        };
        self.choose(next.unwrap_or(self.chosen), height);
        true
    }

    pub(crate) fn choose(&mut self, frame: u32, height: usize) {
        self.chosen = frame;
        let depth = self.frame(frame).map_or(0, |frame| frame.depth);
        let lowest = (depth + 1).saturating_sub(height);
        self.top = self.top.clamp(lowest, depth.max(lowest));
    }

    /// The frame next to the chosen one, at the same depth, of those on the screen.
    fn sibling(&self, step: isize, width: u16) -> Option<u32> {
        let depth = self.frame(self.chosen)?.depth;
        let mut bars = self.bars_from(depth, width, 1);
        bars.sort_by_key(|bar| bar.x);
        let at = bars.iter().position(|bar| bar.frame == self.chosen)?;
        bars.get(at.checked_add_signed(step)?).map(|bar| bar.frame)
    }

    fn leaf(&self) -> u32 {
        self.down(usize::MAX)
    }

    fn down(&self, steps: usize) -> u32 {
        let mut at = self.chosen;
        for _ in 0..steps {
            match self.frame(at).and_then(|frame| frame.children.first()) {
                Some(child) => at = *child,
                None => break,
            }
        }
        at
    }

    fn up(&self, steps: usize) -> u32 {
        let mut at = self.chosen;
        for _ in 0..steps {
            match self.frame(at).and_then(|frame| frame.parent) {
                Some(parent) => at = parent,
                None => break,
            }
        }
        at
    }

    /// Shows the chosen frame in the whole width.
    pub(crate) fn zoom(&mut self) {
        if self.frame(self.chosen).is_some() {
            self.zoomed = Some(self.chosen);
        }
    }

    /// Undoes the last zoom; false where there is none.
    pub(crate) fn zoom_out(&mut self) -> bool {
        self.zoomed.take().is_some()
    }

    /// The frame at a place of the view.
    pub(crate) fn at(&self, x: u16, y: u16, width: u16, height: usize) -> Option<u32> {
        let mut bars = self.bars(width, height).into_iter();
        bars.find(|bar| bar.y == y && (bar.x..bar.x + bar.width).contains(&x)).map(|bar| bar.frame)
    }
}
