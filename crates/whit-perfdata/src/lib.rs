//! The perf.data format, read and written: headers, records, features, directories, pipes,
//! compressed frames.
#![forbid(unsafe_code)]

pub mod ledger;
