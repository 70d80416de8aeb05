//! Context switches, typed: when each thread ran and waited, the kind of each wait, and its waker.
//!
//! Records are decoded into switch events (`switch_event`). The interval logic (`intervals`) alone
//! makes switches and runs of them, and `sums` adds these up. An engine that records switches in
//! another way only needs a decoder into switch events.
//!
//! Memory grows with threads and distinct call stacks, not with switches; single intervals are kept up
//! to bounds ([`SwitchOptions`], [`Timeline::max_spans`]).

mod classify;
mod contention;
mod cpu_parts;
mod cut;
mod decode;
mod durations;
mod finish;
mod futex_symbols;
mod interval;
mod interval_stream;
mod intervals;
mod lock_site;
mod lock_site_names;
mod locks;
mod losses;
mod model;
mod object;
mod object_key;
mod off_cpu;
mod options;
mod phase;
mod phase_test;
mod recorded_spans;
mod roles;
mod run_queue;
mod senders;
mod sums;
mod switch_event;
mod switch_key;
mod switches_pass;
mod thread;
mod thread_cgroups;
mod timeline;
mod wait_class;
mod wait_class_names;
mod wait_filter;

pub use crate::loss_window::LossWindow;
pub use classify::{NamedFrame, NodeClasses, classify};
pub use cpu_parts::{CpuParts, CpuWall};
pub use durations::Durations;
pub use interval::{Inconsistencies, Trust};
pub(crate) use interval_stream::IntervalStream;
pub use interval_stream::{IntervalRow, RunRow, WaitRow};
pub use lock_site::{LockKind, LockSite, LockSites, kernel_lock_caller, lock_taken_at, wait_path};
pub use lock_site_names::{is_runtime, is_system_library};
pub(crate) use losses::Losses;
pub use model::{
    Activity, Futex, FutexSymbol, KernelLockWait, LockWait, LockWaits, NamedObject, Sources,
    SwitchRow, SwitchSums, Switches, ThreadLife, Timeline, TimelineSpan, Wait, Waker, WakerRow,
};
pub(crate) use object::object_name;
pub(crate) use object_key::ObjectKey;
pub use off_cpu::{OffCpuError, OffCpuSamples, OffCpuTotals};
pub use options::SwitchOptions;
pub(crate) use phase_test::PhaseTest;
pub(crate) use roles::{Role, Roles, SwitchFields};
pub use run_queue::RunQueueDelays;
pub use switch_event::{TaskState, WaitKind};
pub(crate) use switches_pass::all_losses;
pub use switches_pass::{SamplesAndSwitches, may_show};
pub use thread::MAX_RUN_SAMPLES;
pub use wait_class::{UnknownWaitClass, WaitClass, WaitClassSet};
pub use wait_filter::WaitFilter;
