//! The first pass: counts, losses and sideband; its result, in which the second pass looks samples up.

pub(crate) mod census;
pub(crate) mod counts;
pub(crate) mod cut_maps;
pub(crate) mod first_seen;
pub(crate) mod leaf_sums;
pub(crate) mod leaf_thread;
pub(crate) mod prepare;
pub(crate) mod recorded_parts;
pub(crate) mod ring_full;
pub(crate) mod ring_losses;
pub(crate) mod sample_filter;
pub(crate) mod scan;
