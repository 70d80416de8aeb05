//! How far shares of samples can be trusted: standard errors, intervals, and tests of differences.
//!
//! Samples come in clusters: a request runs one function for milliseconds, and all samples of that time fall into it.
//! An estimate that takes samples as independent is too sure of itself. Here a recording is cut into parts, blocks of
//! time or whole runs, and the scatter between the parts gives the error. Within a part, samples may depend on each
//! other as they like; and where there are many parts, the error counts what lasts from one part into the next.
//!
//! ```
//! use whit_estimate::{Parts, RatioSum, Tested, compare};
//!
//! // Four parts with 100 samples each; a function has so many of them.
//! let parts = Parts::new(vec![100.0; 4]).unwrap();
//! let sum_of = |values: [f64; 4]| {
//!     let mut sum = RatioSum::default();
//!     values.iter().enumerate().for_each(|(part, value)| sum.add(&parts, part, *value));
//!     sum
//! };
//! let before = sum_of([10.0, 12.0, 9.0, 9.0]).estimate(&parts);
//! let after = sum_of([20.0, 19.0, 22.0, 19.0]).estimate(&parts);
//! assert_eq!((before.value, after.value), (0.1, 0.2));
//!
//! let difference = compare(&Tested::exact(before), &Tested::exact(after));
//! assert!(difference.p < 0.001);
//! ```
//!
//! The caller chooses parts that are long against the clusters, and of comparable weight. It corrects the tests of many
//! functions by [`discoveries`].
//!
//! Nothing here reads or prints. All results are finite numbers, but for the limits of an interval that nothing
//! bounds.
#![forbid(unsafe_code)]

mod difference;
mod discovery;
mod loss;
mod quantile;
mod ratio;
mod resample;
mod student;

pub use difference::{Difference, POWER, Tested, compare};
pub use discovery::{Discoveries, combined, discoveries, discoveries_within};
pub use loss::Loss;
pub use quantile::quantile;
pub use ratio::{Estimate, LEVEL, Parts, RatioSum, ShareIntervals};
pub use resample::{Series, compare_resampled};
