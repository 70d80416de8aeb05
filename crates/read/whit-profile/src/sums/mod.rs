//! Keys and weights of sums, which both passes make.

pub(crate) mod block_sums;
pub(crate) mod examples;
pub(crate) mod row_key;
pub(crate) mod sample_period;
