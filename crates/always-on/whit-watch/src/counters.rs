//! Counters of the service, by the names of its bounds.

use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[doc = $help:literal])+ $name:ident,)*) => {
        /// Counters that any thread can read.
        #[derive(Debug, Default)]
        pub struct Counters { $($(#[doc = $help])+ pub $name: Counter,)* }

        /// The counters by now.
        #[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        pub struct Counted { $($(#[doc = $help])+ pub $name: u64,)* }

        impl Counters {
            /// Reads all.
            pub fn get(&self) -> Counted {
                Counted { $($name: self.$name.get(),)* }
            }
        }

        impl Counted {
            /// Each counter with its text.
            pub fn list(&self) -> Vec<(&'static str, &'static str, u64)> {
                vec![$((stringify!($name), concat!($($help),+).trim_ascii(), self.$name),)*]
            }
        }
    };
}

/// One counter.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    pub fn one(&self) {
        self.add(1);
    }

    /// Adds this number.
    pub fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    /// The sum.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

counters! {
    /// Windows that were made
    windows,
    /// Bytes of their recordings
    window_bytes,
    /// Records that the bound of a window took (window-bytes)
    records_lost_by_window_bytes,
    /// Mappings, cgroups and others that were too many to keep for later windows (MAPPINGS_MAX, KEPT_MAX)
    mappings_lost,
    /// Windows that found no memory to wait in (queue-bytes)
    windows_lost_by_queue_bytes,
    /// Windows for which the kernel had no memory or no descriptor
    windows_lost_by_memory,
    /// Recorders that ended although nobody asked
    recorder_ends,
    /// Recorders that wrote nothing and did not answer, and were ended
    recorder_hangs,
    /// Recorders that the kernel ended for want of memory
    recorder_out_of_memory,
    /// Time without a recorder, in milliseconds
    gap_ms,
    /// Times at which the clock of the machine was set
    clock_steps,
    /// Configurations that were read again
    reloads,
    /// Configurations that could not be used
    reloads_refused,
    /// Turns of the service's loop
    wake_ups,
}
