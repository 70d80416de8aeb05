//! A place in a list that is longer than the screen.

use crate::input::Key;

/// The chosen line, and the first one on the screen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Cursor {
    pub(crate) at: usize,
    pub(crate) top: usize,
}

impl Cursor {
    /// Moves by a key; false for keys that do not move.
    pub(crate) fn key(&mut self, key: Key, length: usize, height: usize) -> bool {
        let page = height.saturating_sub(1).max(1) as isize;
        match key {
            Key::Up => self.step(-1, length, height),
            Key::Down => self.step(1, length, height),
            Key::PageUp => self.step(-page, length, height),
            Key::PageDown | Key::Char(' ') => self.step(page, length, height),
            Key::Home => self.go(0, length, height),
            Key::End => self.go(usize::MAX, length, height),
            _ => return false,
        }
        true
    }

    pub(crate) fn step(&mut self, lines: isize, length: usize, height: usize) {
        self.go(self.at.saturating_add_signed(lines), length, height);
    }

    /// Chooses a line, and shows it.
    pub(crate) fn go(&mut self, at: usize, length: usize, height: usize) {
        self.at = at.min(length.saturating_sub(1));
        let last_top = length.saturating_sub(height);
        let lowest = self.at.saturating_sub(height.saturating_sub(1));
        self.top = self.top.clamp(lowest, self.at.max(lowest)).min(last_top);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_move_within_the_list() {
        let mut cursor = Cursor::default();
        let mut press = |key| {
            cursor.key(key, 30, 10);
            (cursor.at, cursor.top)
        };
        assert_eq!(press(Key::Up), (0, 0));
        assert_eq!(press(Key::PageDown), (9, 0));
        assert_eq!(press(Key::Down), (10, 1));
        assert_eq!(press(Key::End), (29, 20));
        assert_eq!(press(Key::PageUp), (20, 20));
        assert_eq!(press(Key::Up), (19, 19));
        assert_eq!(press(Key::Home), (0, 0));
    }

    #[test]
    fn an_empty_list_has_no_other_place() {
        let mut cursor = Cursor { at: 4, top: 4 };
        cursor.go(4, 0, 10);
        assert_eq!(cursor, Cursor::default());
    }

    proptest! {
        #[test]
        fn the_chosen_line_is_on_the_screen(at in 0usize..50, top in 0usize..50, length in 1usize..50, height in 1usize..20) {
            let mut cursor = Cursor { at: 0, top };
            cursor.go(at, length, height);
            prop_assert!(cursor.at < length);
            prop_assert!(cursor.top <= cursor.at && cursor.at < cursor.top + height);
        }
    }
}
