//! Keys, the mouse and the size of the terminal, as values.

use ratatui::crossterm::event::{
    Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEventKind,
};

/// Keys that mean something here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names of the keys")]
pub enum Key {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Left,
    Right,
    Enter,
    Esc,
    Tab,
    BackTab,
    Backspace,
    Char(char),
    Ctrl(char),
}

/// An event of the terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// A key was pressed.
    Key(Key),
    /// The left button was pressed at a place.
    Click {
        /// Column from the left.
        x: u16,
        /// Line from the top.
        y: u16,
    },
    /// The mouse was moved with the left button held.
    Drag {
        /// Column from the left.
        x: u16,
    },
    /// The left button was let go.
    Release,
    /// The wheel was turned by so many lines; up is negative.
    Scroll(isize),
    /// The terminal has another size now.
    Resize {
        /// Columns.
        width: u16,
        /// Lines.
        height: u16,
    },
}

/// Lines that a notch of the wheel moves.
const WHEEL: isize = 3;

impl Input {
    /// The event as it concerns the state; `None` for others.
    pub(crate) fn of(event: &Event) -> Option<Input> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => Key::of(key).map(Input::Key),
            Event::Mouse(mouse) => match mouse.kind {
                MouseEventKind::Down(MouseButton::Left) => {
                    Some(Input::Click { x: mouse.column, y: mouse.row })
                }
                MouseEventKind::Drag(MouseButton::Left) => Some(Input::Drag { x: mouse.column }),
                MouseEventKind::Up(MouseButton::Left) => Some(Input::Release),
                MouseEventKind::ScrollUp => Some(Input::Scroll(-WHEEL)),
                MouseEventKind::ScrollDown => Some(Input::Scroll(WHEEL)),
                _ => None,
            },
            Event::Resize(width, height) => Some(Input::Resize { width: *width, height: *height }),
            _ => None,
        }
    }
}

impl Key {
    fn of(event: &KeyEvent) -> Option<Key> {
        let has_control = event.modifiers.contains(KeyModifiers::CONTROL);
        Some(match event.code {
            KeyCode::Up => Key::Up,
            KeyCode::Down => Key::Down,
            KeyCode::PageUp => Key::PageUp,
            KeyCode::PageDown => Key::PageDown,
            KeyCode::Home => Key::Home,
            KeyCode::End => Key::End,
            KeyCode::Left => Key::Left,
            KeyCode::Right => Key::Right,
            KeyCode::Enter => Key::Enter,
            KeyCode::Esc => Key::Esc,
            KeyCode::Tab => Key::Tab,
            KeyCode::BackTab => Key::BackTab,
            KeyCode::Backspace => Key::Backspace,
            KeyCode::F(1) => Key::Char('?'),
            KeyCode::Char(c) if has_control => Key::Ctrl(c),
            KeyCode::Char(c) => Key::Char(c),
            _ => return None,
        })
    }
}
