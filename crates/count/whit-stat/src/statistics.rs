//! Mean and spread of repeated measurements.

/// Numbers, taken in one by one (Welford's method: no sum of squares loses the small ones).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics {
    count: u64,
    mean: f64,
    /// Sum of squares of the distances from the mean.
    squares: f64,
}

impl Statistics {
    /// Takes a number in.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        let distance = value - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (value - self.mean);
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean; 0 of none.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The standard deviation of the mean: how far it may be off. 0 of less than two.
    pub fn deviation_of_mean(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let count = self.count as f64;
        (self.squares / (count - 1.0) / count).sqrt()
    }

    /// The same in percent of the mean; 0 where that is 0.
    pub fn percent(&self) -> f64 {
        if self.mean == 0.0 { 0.0 } else { 100.0 * self.deviation_of_mean() / self.mean }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[f64]) -> Statistics {
        let mut statistics = Statistics::default();
        values.iter().for_each(|&value| statistics.add(value));
        statistics
    }

    #[test]
    fn known_numbers() {
        let statistics = of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!(statistics.mean(), 5.0);
        // Squares sum up to 32; 32 / 7 / 8.
        assert!((statistics.deviation_of_mean() - (32.0f64 / 56.0).sqrt()).abs() < 1e-12);
        assert_eq!(of(&[3.0]).deviation_of_mean(), 0.0);
        assert_eq!((of(&[]).mean(), of(&[0.0, 0.0]).percent()), (0.0, 0.0));
    }

    proptest! {
        #[test]
        fn one_pass_equals_two(values in prop::collection::vec(0.0..1e9f64, 2..50)) {
            let statistics = of(&values);
            let count = values.len() as f64;
            let mean = values.iter().sum::<f64>() / count;
            let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
            prop_assert!((statistics.mean() - mean).abs() <= 1e-9 * mean.abs().max(1.0));
            let deviation = (squares / (count - 1.0) / count).sqrt();
            prop_assert!((statistics.deviation_of_mean() - deviation).abs() <= 1e-6 * deviation.max(1.0));
        }
    }
}
