//! Tests that measure the running machine: all repetitions count.
//!
//! A figure that depends on the load of the machine is measured several times, and its median is compared with
//! the bound. Neither the best nor the worst repetition decides: one moment without a CPU does not fail a test,
//! and one lucky moment does not pass it. Such tests stand in modules of the name `measured`, which `make test`
//! runs alone, one after the other.

use crate::Skip;

/// Repetitions of each measurement: the median stands two disturbed ones. No more are made once the others cannot
/// change on which side of the bound it lies.
pub const REPETITIONS: usize = 5;

/// Repeats a measurement; holds the median against a bound.
///
/// # Errors
///
/// Where the machine lacks something that a repetition needs.
///
/// # Panics
///
/// Where the median is above the bound.
pub fn assert_median_at_most(
    what: &str,
    bound: f64,
    mut measure: impl FnMut() -> Result<f64, Skip>,
) -> Result<(), Skip> {
    let mut figures = Vec::new();
    let is_within = loop {
        figures.push(measure()?);
        if let Some(is_within) = median_is_within(bound, &figures) {
            break is_within;
        }
    };
    assert!(is_within, "{what}: the median of {REPETITIONS} is above {bound}: {figures:?}");
    Ok(())
}

/// Whether the median of all repetitions is at most the bound; the answer comes as soon as the repetitions so far
/// decide it. A value that is no number is above every bound.
fn median_is_within(bound: f64, figures: &[f64]) -> Option<bool> {
    let within = figures.iter().filter(|figure| **figure <= bound).count();
    let most = REPETITIONS / 2 + 1;
    match (within >= most, figures.len() - within >= most) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(figures: &[f64]) -> (Result<(), Skip>, usize) {
        let mut rest = figures.iter();
        let mut made = 0;
        let result = assert_median_at_most("a figure", 1.0, || {
            made += 1;
            rest.next().copied().ok_or_else(|| Skip("no PMU".to_owned()))
        });
        (result, made)
    }

    #[test]
    fn two_of_five_may_be_off() {
        let (result, made) = judged(&[9.0, 0.5, 1.0, 8.0, 0.2]);
        result.unwrap();
        assert_eq!(made, REPETITIONS);
        assert_eq!(judged(&[0.1, 0.2, 1.0]).1, 3, "the others cannot change it");
    }

    #[test]
    #[should_panic(expected = "[9.0, 0.5, 1.1, 0.2, NaN]")]
    fn three_of_five_may_not() {
        let _ = judged(&[9.0, 0.5, 1.1, 0.2, f64::NAN]);
    }

    #[test]
    fn a_skip_ends_the_repetitions() {
        let (result, made) = judged(&[0.1]);
        assert_eq!((result.unwrap_err().0.as_str(), made), ("no PMU", 2));
    }
}
