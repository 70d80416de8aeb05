//! Blocks of streams: their places in the file, the queue of their readers, and records that need those of other blocks.

pub(crate) mod deferred;
pub(crate) mod split_reads;
pub(crate) mod stated_time;
pub(crate) mod stream_plan;
pub(crate) mod work;
