//! The rights of this process to record and count.

use whit_sys::capability::CapabilitySet;

use crate::roots::Roots;

/// The rights that the kernel grants this process.
#[derive(Clone, Copy, Debug)]
pub struct Rights {
    /// `perf_event_paranoid`.
    pub paranoid: i64,
    /// Whether the level does not apply.
    pub may_profile: bool,
}

impl Rights {
    /// The rights of this process. A machine without the setting has no perf events; the default
    /// stands in.
    pub fn of_process(roots: &Roots) -> Rights {
        const KERNEL_DEFAULT: i64 = 2;
        Rights {
            paranoid: roots.kernel_setting("perf_event_paranoid").unwrap_or(KERNEL_DEFAULT),
            may_profile: whit_sys::privilege::usable().is_ok_and(CapabilitySet::may_profile),
        }
    }
}
