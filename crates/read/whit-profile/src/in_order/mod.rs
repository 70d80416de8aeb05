//! Records of all streams in order of time.

pub(crate) mod block_order;
pub(crate) mod ordered;
pub(crate) mod ordered_batch;
pub(crate) mod ordered_pool;
