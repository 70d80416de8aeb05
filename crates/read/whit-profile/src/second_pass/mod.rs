//! Adding samples up, by places and call chains.

pub(crate) mod aggregate;
pub(crate) mod companion_fetch;
pub(crate) mod leaf_places;
mod recent_chains;
pub(crate) mod sample_sums;
pub(crate) mod singles;
