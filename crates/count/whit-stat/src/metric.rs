//! A number computed from counts, with its unit.

/// How the number is written: width and digits are perf's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `   1.23 ` of instructions and cycles.
    Ratio,
    /// `   1.234`
    Number,
    /// `  12.34%`
    Percent,
    /// `  12.345 %`
    FinePercent,
}

/// Whether the number is worth a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Grade {
    Plain,
    Notable,
    Middling,
    Bad,
}

/// A metric; without a value, one that lacks an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The number.
    pub value: Option<f64>,
    /// How it is written.
    pub shape: Shape,
    /// Unit as perf prints it: `GHz`, `insn per cycle`, `of all branches`.
    pub unit: String,
    /// Whether it is worth a look.
    pub grade: Grade,
}

impl Metric {
    /// One that is not graded.
    pub fn new(value: Option<f64>, shape: Shape, unit: &str) -> Metric {
        Metric { value, shape, unit: unit.to_owned(), grade: Grade::Plain }
    }

    /// The number as it is written.
    pub fn text(&self) -> Option<String> {
        let value = self.value?;
        Some(match self.shape {
            Shape::Ratio => format!("{value:7.2} "),
            Shape::Number => format!("{value:8.3}"),
            Shape::Percent => format!("{value:7.2}%"),
            Shape::FinePercent => format!("{value:8.3} %"),
        })
    }

    /// The digits alone, as CSV has them.
    pub fn digits(&self) -> Option<String> {
        let text = self.text()?;
        let is_digit = |c: char| c.is_ascii_digit() || c == '.';
        Some(text.trim_start().chars().take_while(|c| is_digit(*c)).collect())
    }
}
