//! Text filled up to a width that input decides.
//!
//! The formatting of the standard library takes widths up to 65,535 and panics beyond. A width that comes from names is
//! as large as the longest of them, so that it is padded here; a test allows only constant widths elsewhere.

use std::fmt::{self, Display, Formatter};

/// Written at a time.
const BLANKS: &str = "                                                                ";

/// `text` with blanks behind it, up to `width` characters.
pub fn left(text: impl Display, width: usize) -> Padded {
    Padded { text: text.to_string(), width, is_right: false }
}

/// `text` with blanks in front of it, up to `width` characters.
pub fn right(text: impl Display, width: usize) -> Padded {
    Padded { text: text.to_string(), width, is_right: true }
}

/// A number with so many digits behind the point.
pub fn decimals(value: f64, digits: usize) -> String {
    // No double has more that matter.
    const MOST: usize = 330;
    format!("{value:.*}", digits.min(MOST))
}

/// `count` blanks.
pub fn blanks(count: usize) -> Padded {
    left("", count)
}

/// Text that prints with blanks.
#[derive(Clone, Debug)]
pub struct Padded {
    text: String,
    width: usize,
    is_right: bool,
}

impl Display for Padded {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let missing = self.width.saturating_sub(self.text.chars().count());
        if self.is_right {
            write_blanks(missing, f)?;
        }
        f.write_str(&self.text)?;
        if !self.is_right {
            write_blanks(missing, f)?;
        }
        Ok(())
    }
}

fn write_blanks(mut count: usize, f: &mut Formatter<'_>) -> fmt::Result {
    while count > 0 {
        let some = count.min(BLANKS.len());
        f.write_str(&BLANKS[..some])?;
        count -= some;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_text_is_padded_as_the_standard_library_does() {
        for text in ["", "a", "äöü", "long text"] {
            for width in [0, 1, 5, 64, 65, 1000] {
                assert_eq!(left(text, width).to_string(), format!("{text:<width$}"));
                assert_eq!(right(text, width).to_string(), format!("{text:>width$}"));
                assert_eq!(blanks(width).to_string(), format!("{:width$}", ""));
            }
        }
    }

    #[test]
    fn any_width_is_written() {
        for width in [65_535, 65_536, 1_000_000] {
            assert_eq!(right("x", width).to_string().len(), width);
            assert_eq!(left("x".repeat(width), width).to_string().len(), width);
        }
    }
}
