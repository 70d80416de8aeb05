//! Every sequence of decisions of a small program, one run each.
//!
//! The program asks a [`Chooser`] wherever the environment may do one thing or another. Runs are made
//! again from the beginning with the next sequence, like the digits of an odometer, until all are
//! done. That is exhaustive for programs that decide a bounded number of times, and needs no state to
//! be copied or compared.

use alloc::vec::Vec;

/// Answers the decisions of one run.
#[derive(Clone, Debug, Default)]
pub struct Chooser {
    /// Decision and number of options, in the order of the run.
    digits: Vec<(usize, usize)>,
    at: usize,
}

impl Chooser {
    /// A number below `options`.
    ///
    /// # Panics
    /// Where `options` is 0, or another run came here with another number.
    pub fn choose(&mut self, options: usize) -> usize {
        assert!(options > 0, "there is always something that happens");
        if self.at == self.digits.len() {
            self.digits.push((0, options));
        }
        let (digit, of) = self.digits[self.at];
        assert_eq!(of, options, "a program must be deterministic but for its decisions");
        self.at += 1;
        digit
    }

    /// The decisions so far.
    pub fn decisions(&self) -> impl Iterator<Item = usize> {
        self.digits[..self.at].iter().map(|(digit, _)| *digit)
    }

    /// Goes on to the next sequence; false where this was the last.
    fn advance(&mut self) -> bool {
        self.digits.truncate(self.at);
        self.at = 0;
        while let Some((digit, options)) = self.digits.pop() {
            if digit + 1 < options {
                self.digits.push((digit + 1, options));
                return true;
            }
        }
        false
    }
}

/// Runs `program` with every sequence of decisions; the result is the number of runs.
///
/// # Errors
/// The program's first result.
pub fn exhaust<E>(mut program: impl FnMut(&mut Chooser) -> Result<(), E>) -> Result<u64, E> {
    let mut chooser = Chooser::default();
    let mut runs = 0;
    loop {
        program(&mut chooser)?;
        runs += 1;
        if !chooser.advance() {
            return Ok(runs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_sequence_comes_once_even_where_lengths_differ() {
        let mut seen = BTreeSet::new();
        let runs = exhaust::<()>(|chooser| {
            let first = chooser.choose(3);
            if first > 0 {
                chooser.choose(2);
            }
            assert!(seen.insert(chooser.decisions().collect::<Vec<_>>()));
            Ok(())
        });
        assert_eq!((runs, seen.len()), (Ok(5), 5));
    }

    #[test]
    fn the_first_failure_ends_it() {
        let failed = exhaust(|chooser| match chooser.choose(10) {
            7 => Err(7),
            _ => Ok(()),
        });
        assert_eq!(failed, Err(7));
    }
}
