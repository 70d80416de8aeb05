//! From sums to the profile: names, header, warnings.

pub(crate) mod describe;
pub(crate) mod finish;
pub(crate) mod merge;
pub(crate) mod one_frame;
pub(crate) mod tree_order;
pub(crate) mod unnamed_runtimes;
pub(crate) mod without_match;
