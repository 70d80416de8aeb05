//! From one sample to its call chain.

pub(crate) mod branch_chain;
pub(crate) mod chain;
pub(crate) mod chain_entry;
pub(crate) mod stops;
