//! A virtual x86 performance monitoring unit (PMU) for VMMs in user space.
//!
//! # First: the RDPMC limit
//!
//! **A guest that reads its counters with RDPMC does not reach this device.** KVM has no exit to user space for
//! RDPMC: it answers from its own PMU, or with #GP where that is off. RDMSR and WRMSR exits work for all
//! PMU registers. Linux, as a guest, reads counters with RDPMC both in its driver and, where `/sys/.../rdpmc`
//! allows it, from user space. The ways around it:
//!
//! - Guests that read with RDMSR: every driver whose register bus can do so, such as `whit-pmu`'s.
//! - Leave KVM's PMU on and refresh its counters before each entry: KVM_SET_MSRS writes the values of
//!   [`Vpmu::rdmsr`] into KVM's own counters, which stand still, and RDPMC reads those. One more system call for each entry.
//! - A paravirtual `read_pmc` in the guest: one function (`native_read_pmc` in Linux) that does RDMSR.
//! - Guests that have to run unchanged: KVM's own PMU.
//!
//! # Purpose
//!
//! [`Vpmu`] is a register file with the hardware's semantics. Its counters are backed by events of
//! a [`CounterSource`]: host perf events of the vCPU's thread (`HostPerf`, feature `host`) or
//! simulated ones (`Simulated`, feature `sim`). It is fast because it uses an event again when its
//! counter starts with the same configuration, and closes it only when the guest has left the
//! counter alone for a while. Opening one costs tens of microseconds, and hundreds of milliseconds
//! where it is the first of its kind on the machine. `docs/vpmu.md` has the whole story.
//!
//! A hypervisor that owns the CPU's registers has another way: [`mediated`] lends the CPU's counters to the guest.
//!
//! With the simulated host (feature `sim`), and a guest that counts instructions:
//!
//! ```
//! use whit_vpmu::{Delivery, IntelPmu, Interrupt, PmuModel, Simulated, Vpmu, VpmuConfig};
//!
//! /// A VMM injects an NMI.
//! #[derive(Default)]
//! struct Nmis(u32);
//!
//! impl Interrupt for Nmis {
//!     fn pmi(&mut self, _: bool) -> Delivery {
//!         self.0 += 1;
//!         Delivery::Delivered
//!     }
//! }
//!
//! let model = PmuModel::intel(IntelPmu::default())?;
//! let mut vpmu = Vpmu::new(VpmuConfig::new(model), Simulated::new(), Nmis::default());
//! // Exits of the guest: the counter is to overflow after 1000 instructions.
//! vpmu.wrmsr(0x4c1, (1 << 48) - 1000)?;
//! vpmu.wrmsr(0x186, 0x53_00c0)?;
//! vpmu.on_vcpu_enter();
//! // The guest runs.
//! vpmu.source_mut().occur(0xc0, true, 1000);
//! while let Some(token) = vpmu.source_mut().take_notice() {
//!     vpmu.on_overflow(token);
//! }
//! vpmu.on_vcpu_enter();
//! assert_eq!(vpmu.interrupt().0, 1);
//! vpmu.source_mut().occur(0xc0, true, 200);
//! assert_eq!(vpmu.rdmsr(0xc1)?, 200);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The caller answers the guest's accesses with [`Vpmu::rdmsr`] and [`Vpmu::wrmsr`] (an error is #GP), calls
//! [`Vpmu::on_vcpu_enter`] before each entry and [`Vpmu::on_tick`] once each [`TICK_NS`].
//!
//! It knows no hypervisor. `whit-vpmu-kvm` connects it to KVM.
//!
//! - Intel, architectural performance monitoring 2 to 5: general-purpose and fixed counters, global
//!   control, status, its reset and set, counters in use. No PEBS, no branch records.
//! - AMD: four counters, six of the core extension, PerfMonV2 with its global registers.
//!
//! # Threats
//!
//! The guest is hostile: it writes any value to any register in any order at any rate.
//!
//! | threat | what holds | bound | test in `tests/threats.rs` |
//! |---|---|---|---|
//! | any access in any order | no panic; #GP or a defined effect | – | `any_access_is_answered` |
//! | many configurations | host memory does not grow | fixed at creation | `memory_does_not_grow` |
//! | many configurations | at most one open event for each counter (and the host's anchor) | [`PmuModel`] | `events_are_bounded_by_counters` |
//! | events left behind | closed with their counter, on reset and on drop | – | `nothing_leaks` |
//! | more events than the VMM has descriptors | idle ones are released, then the counter stands still and says so | – | `short_of_descriptors` |
//! | counting others | events are of the vCPU's thread, guest only; the filter decides which | [`EventFilter`] | `events_that_are_not_allowed_do_not_count`, `host_events_are_the_guests_alone` |
//! | interrupt storm | a bound on interrupts in a tick, reported | [`VpmuConfig::pmis_per_tick_max`] | `storms_are_bounded_and_reported` |
//! | notices of the past | dropped by generation | – | `old_notices_are_dropped` |
//! | a write that stalls the host | nothing waits: the one slow thing, the machine's first event, is opened with the device | – | `a_write_opens_nothing_before_the_guest_runs` |
//! | host counters taken by others | the counter stands still and says so, never a silent zero | [`Fault`] | `taken_counters_are_reported` |
//! | a hostile snapshot | refused with a reason | [`StateError`] | `wrong_states_are_refused` |
//! | a damaged snapshot, or one of a later release | refused with a reason; any damage is seen | [`SnapshotError`] | `any_damage_is_seen` in `tests/snapshots.rs` |
//! | a guest with the CPU's own counters ([`mediated`]) | its registers leave zeros for the host and other guests; events that the filter refuses do not count | – | `no_count_is_lost_or_leaked_in_any_state` in `mediated/tests` |
//!
//! # Invariants
//!
//! - No `unsafe`, no clock, no thread, no global state; no `std` but for the feature `host`. Time comes in
//!   ([`Vpmu::on_tick`]).
//! - A guest's view does not depend on whether events are used again, on when they are released, or
//!   on when notices come, but for when interrupts come (skid).
//! - A counter's overflow is that its value passes its last one. Notices only say when to look.

#![cfg_attr(not(feature = "host"), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(all(test, not(feature = "host")))]
extern crate std;

mod config;
mod cpuid;
mod device;
mod event;
mod filter;
#[cfg(feature = "host")]
pub mod host;
mod interrupt;
pub mod mediated;
mod model;
pub mod msr;
mod register;
#[cfg(feature = "sim")]
mod simulated;
mod source;
mod statistics;

pub use config::{Backing, PMIS_PER_TICK_MAX, TICK_NS, VpmuConfig};
pub use cpuid::{CpuidLeaf, CpuidRegisters};
pub use device::{SnapshotError, StateError, Vpmu, VpmuState};
pub use event::EventConfig;
pub use filter::{ENTRIES_MAX, EventFilter, FilterAction, FilterEntry, TooManyEntries};
pub use interrupt::{Delivery, DeliveryMode, Interrupt, Lvtpc};
pub use model::{CounterIndex, IntelPmu, ModelError, PmuKind, PmuModel};
pub use register::{Gp, MsrRange};
#[cfg(feature = "sim")]
pub use simulated::{Simulated, SimulatedEvent};
pub use source::{Arm, CounterSource, OpenError, Reading, SourceError, Token};
pub use statistics::{Fault, FaultReason, Statistics};
