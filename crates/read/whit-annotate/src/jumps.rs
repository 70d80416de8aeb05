//! Jumps inside of a function, as arrows in a margin.
//!
//! Jumps with one target share an arrow. Shorter arrows stand closer to the instructions, so that few cross. Their
//! number beside each other is bounded; longer ones beyond it are counted, not drawn.

use std::collections::BTreeMap;

/// Arrows beside each other.
pub const MAX_LANES: usize = 8;

/// Jumps to one instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Arrow {
    to: usize,
    /// Ascending.
    from: Vec<usize>,
    lane: usize,
}

impl Arrow {
    fn first(&self) -> usize {
        self.from[0].min(self.to)
    }

    fn last(&self) -> usize {
        self.from[self.from.len() - 1].max(self.to)
    }
}

/// The arrows of a function. Rows are instructions, counted from zero.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Jumps {
    arrows: Vec<Arrow>,
    /// Arrows that touch each row.
    at_row: Vec<Vec<u32>>,
    lanes: usize,
    undrawn: usize,
}

impl Jumps {
    /// Arrows for pairs of source and target, in a function with so many rows.
    pub fn new(rows: usize, pairs: impl IntoIterator<Item = (usize, usize)>) -> Jumps {
        let mut by_target: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (from, to) in pairs {
            if from < rows && to < rows && from != to {
                by_target.entry(to).or_default().push(from);
            }
        }
        let mut arrows: Vec<Arrow> = Vec::with_capacity(by_target.len());
        for (to, mut from) in by_target {
            from.sort_unstable();
            from.dedup();
            arrows.push(Arrow { to, from, lane: 0 });
        }
        arrows.sort_by_key(|arrow| (arrow.last() - arrow.first(), arrow.to));
        let mut jumps = Jumps { at_row: vec![Vec::new(); rows], ..Jumps::default() };
        let mut lanes: Vec<BTreeMap<usize, usize>> = Vec::new();
        for mut arrow in arrows {
            match free_lane(&mut lanes, &arrow) {
                Some(lane) => {
                    arrow.lane = lane;
                    jumps.add(arrow);
                }
                None => jumps.undrawn += arrow.from.len(),
            }
        }
        jumps.lanes = lanes.len();
        jumps
    }

    fn add(&mut self, arrow: Arrow) {
        let number = self.arrows.len() as u32;
        for row in arrow.first()..=arrow.last() {
            self.at_row[row].push(number);
        }
        self.arrows.push(arrow);
    }

    /// Columns of the margin; none without jumps.
    pub fn width(&self) -> usize {
        if self.lanes == 0 { 0 } else { 2 * self.lanes + 1 }
    }

    /// Jumps that are not drawn, because all lanes are taken.
    pub fn undrawn(&self) -> usize {
        self.undrawn
    }

    /// Appends the margin beside a row.
    pub fn append_row(&self, row: usize, out: &mut String) {
        let mut cells = vec![Cell::default(); self.width()];
        for arrow in self.arrows_at(row) {
            let column = self.column(arrow);
            let (is_target, is_end) =
                (arrow.to == row, arrow.to == row || arrow.from.binary_search(&row).is_ok());
            cells[column].up |= row > arrow.first();
            cells[column].down |= row < arrow.last();
            if is_end {
                cells[column].right = true;
                for cell in &mut cells[column + 1..] {
                    (cell.left, cell.right) = (true, true);
                }
                if let Some(last) = cells.last_mut() {
                    last.is_head |= is_target;
                }
            }
        }
        out.extend(cells.iter().map(Cell::glyph));
    }

    /// Appends the margin between a row and the one before it.
    pub fn append_above(&self, row: usize, out: &mut String) {
        let mut cells = vec![Cell::default(); self.width()];
        for arrow in self.arrows_at(row).filter(|arrow| arrow.first() < row) {
            let cell = &mut cells[self.column(arrow)];
            (cell.up, cell.down) = (true, true);
        }
        out.extend(cells.iter().map(Cell::glyph));
    }

    fn arrows_at(&self, row: usize) -> impl Iterator<Item = &Arrow> {
        let numbers = self.at_row.get(row).into_iter().flatten();
        numbers.map(|number| &self.arrows[*number as usize])
    }

    /// The first lane is the innermost.
    fn column(&self, arrow: &Arrow) -> usize {
        2 * (self.lanes - 1 - arrow.lane)
    }
}

/// The innermost lane that is free beside all rows of the arrow, which is entered there.
fn free_lane(lanes: &mut Vec<BTreeMap<usize, usize>>, arrow: &Arrow) -> Option<usize> {
    let (first, last) = (arrow.first(), arrow.last());
    let is_free = |lane: &BTreeMap<usize, usize>| {
        lane.range(..=last).next_back().is_none_or(|(_, end)| *end < first)
    };
    let lane = match lanes.iter().position(is_free) {
        Some(lane) => lane,
        None if lanes.len() < MAX_LANES => {
            lanes.push(BTreeMap::new());
            lanes.len() - 1
        }
        None => return None,
    };
    lanes[lane].insert(first, last);
    Some(lane)
}

/// Lines that leave the middle of a cell.
#[derive(Clone, Copy, Default)]
struct Cell {
    up: bool,
    down: bool,
    left: bool,
    right: bool,
    is_head: bool,
}

impl Cell {
    fn glyph(&self) -> char {
        if self.is_head {
            return '>';
        }
        match (self.up, self.down, self.left, self.right) {
            (false, false, false, false) => ' ',
            (false, false, ..) => '─',
            (true, true, false, false) => '│',
            (true, true, false, true) => '├',
            (true, true, true, _) => '┼',
            (true, false, false, false) => '╵',
            (true, false, false, true) => '└',
            (true, false, true, _) => '┴',
            (false, true, false, false) => '╷',
            (false, true, false, true) => '┌',
            (false, true, true, _) => '┬',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drawn(rows: usize, pairs: &[(usize, usize)]) -> Vec<String> {
        let jumps = Jumps::new(rows, pairs.iter().copied());
        let row = |row| {
            let mut line = String::new();
            jumps.append_row(row, &mut line);
            line.trim_end().to_owned()
        };
        (0..rows).map(row).collect()
    }

    #[test]
    fn a_loop_and_a_jump_over_it_nest() {
        assert_eq!(drawn(5, &[(3, 1), (0, 4)]), ["┌────", "│ ┌─>", "│ │", "│ └──", "└───>"]);
    }

    #[test]
    fn jumps_with_one_target_share_an_arrow() {
        assert_eq!(drawn(4, &[(0, 3), (1, 3), (2, 3)]), ["┌──", "├──", "├──", "└─>"]);
        assert_eq!(drawn(3, &[(0, 1), (2, 1)]), ["┌──", "├─>", "└──"]);
    }

    #[test]
    fn crossing_arrows_are_distinguished() {
        assert_eq!(drawn(4, &[(0, 2), (1, 3)]), ["  ┌──", "┌─┼──", "│ └─>", "└───>"]);
        let jumps = Jumps::new(4, [(0, 2), (1, 3)]);
        let mut above = String::new();
        jumps.append_above(2, &mut above);
        assert_eq!(above, "│ │  ");
    }

    #[test]
    fn a_jump_to_itself_or_out_of_the_function_has_no_arrow() {
        let jumps = Jumps::new(3, [(1, 1), (0, 7), (9, 0)]);
        assert_eq!((jumps.width(), jumps.undrawn()), (0, 0));
    }

    #[test]
    fn jumps_without_room_are_counted() {
        let pairs: Vec<_> = (0..20).map(|from| (from, 20 + from)).collect();
        let jumps = Jumps::new(40, pairs.iter().copied());
        assert_eq!(jumps.undrawn(), 20 - MAX_LANES);
        assert_eq!(jumps.width(), 2 * MAX_LANES + 1);
    }

    proptest! {
        /// No two arrows stand in one lane beside the same row, and each jump is drawn or counted.
        #[test]
        fn arrows_of_a_lane_do_not_touch(
            pairs in prop::collection::vec((0usize..40, 0usize..40), 0..60),
        ) {
            let jumps = Jumps::new(40, pairs.iter().copied());
            for row in 0..40 {
                let mut lanes: Vec<_> = jumps.arrows_at(row).map(|arrow| arrow.lane).collect();
                let count = lanes.len();
                lanes.sort_unstable();
                lanes.dedup();
                prop_assert_eq!(lanes.len(), count);
                let mut line = String::new();
                jumps.append_row(row, &mut line);
                prop_assert_eq!(line.chars().count(), jumps.width());
            }
            let mut wanted: Vec<_> = pairs.iter().filter(|(from, to)| from != to).collect();
            wanted.sort_unstable();
            wanted.dedup();
            let drawn: usize = jumps.arrows.iter().map(|arrow| arrow.from.len()).sum();
            prop_assert_eq!(drawn + jumps.undrawn(), wanted.len());
        }
    }
}
