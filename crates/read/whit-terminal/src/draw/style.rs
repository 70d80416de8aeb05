//! Colours, or their stand-ins where none are wanted.

use ratatui::style::{Color, Modifier, Style};
use whit_view::stdio::Colour;

/// From here on a percentage is red, as in text.
const RED_FROM_PERCENT: f64 = 5.0;
/// From here on a percentage is green.
const GREEN_FROM_PERCENT: f64 = 0.5;

/// With colours, or without.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Theme {
    has_colours: bool,
}

/// Colours of frames; that of a chosen frame is another one.
const FRAMES: [Color; 6] = [
    Color::Yellow,
    Color::Green,
    Color::Cyan,
    Color::Magenta,
    Color::LightYellow,
    Color::LightGreen,
];

impl Theme {
    pub(crate) fn of(colour: Colour) -> Theme {
        Theme { has_colours: colour == Colour::Ansi }
    }

    fn colour(self, colour: Color) -> Style {
        if self.has_colours { Style::new().fg(colour) } else { Style::new() }
    }

    pub(crate) fn title(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD)
    }

    pub(crate) fn head(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }

    pub(crate) fn loss(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(crate) fn status(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(crate) fn message(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(crate) fn name(self) -> Style {
        self.colour(Color::Cyan)
    }

    pub(crate) fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(crate) fn share(self, percent: f64) -> Style {
        if percent >= RED_FROM_PERCENT {
            self.colour(Color::Red)
        } else if percent >= GREEN_FROM_PERCENT {
            self.colour(Color::Green)
        } else {
            Style::new()
        }
    }

    /// A bar of a flame graph or strip. Without colours, neighbours differ by their brightness.
    pub(crate) fn bar(self, number: usize) -> Style {
        match self.has_colours {
            true => Style::new().fg(Color::Black).bg(FRAMES[number % FRAMES.len()]),
            false => Style::new().add_modifier(Modifier::REVERSED),
        }
    }

    pub(crate) fn chosen_bar(self) -> Style {
        match self.has_colours {
            true => Style::new().fg(Color::White).bg(Color::Blue).add_modifier(Modifier::BOLD),
            false => Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
        }
    }

    /// The letter of a command in a strip.
    pub(crate) fn series(self, number: usize) -> Style {
        self.colour(FRAMES[number % FRAMES.len()])
    }

    /// A line of code, by the share that it begins with.
    pub(crate) fn of_code_line(self, line: &str) -> Style {
        let first = line.split_whitespace().next().unwrap_or("");
        match first.parse::<f64>() {
            Ok(percent) if line.starts_with(' ') && first.contains('.') => self.share(percent),
            _ => Style::new(),
        }
    }
}
