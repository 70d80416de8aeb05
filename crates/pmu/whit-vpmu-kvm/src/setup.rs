//! Set-up of a VM, once.

use kvm_bindings::kvm_enable_cap;
use kvm_ioctls::{
    Cap, MsrExitReason, MsrFilterDefaultAction, MsrFilterRange, MsrFilterRangeFlags, VmFd,
};
use whit_vpmu::PmuModel;

use crate::{Error, call};

/// Makes all accesses to the PMU's registers leave the guest, and those to registers that KVM does
/// not know or whose values it refuses. [`KvmVpmu`](crate::KvmVpmu) answers the former. The VMM
/// answers the latter, with #GP or by itself (among them LVTPC in x2APIC mode, where the local APIC
/// is not KVM's).
///
/// # Errors
/// Where KVM is older than Linux 5.10.
pub fn forward_msrs(vm: &VmFd, model: &PmuModel) -> Result<(), Error> {
    if !vm.check_extension(Cap::X86UserSpaceMsr) || !vm.check_extension(Cap::X86MsrFilter) {
        return Err(Error::Lacks("exits for registers (KVM_CAP_X86_USER_SPACE_MSR)"));
    }
    let reasons = MsrExitReason::Filter | MsrExitReason::Unknown | MsrExitReason::Inval;
    let mut cap = kvm_enable_cap { cap: Cap::X86UserSpaceMsr as u32, ..Default::default() };
    cap.args[0] = reasons.bits().into();
    vm.enable_cap(&cap).map_err(call("KVM_ENABLE_CAP"))?;
    // All bits 0: no access is KVM's.
    const NONE: [u8; 8] = [0; 8];
    let rows = model.msrs();
    let ranges: Vec<MsrFilterRange<'_>> = rows
        .iter()
        .map(|row| MsrFilterRange {
            flags: MsrFilterRangeFlags::READ | MsrFilterRangeFlags::WRITE,
            base: row.first,
            msr_count: row.count,
            bitmap: &NONE,
        })
        .collect();
    vm.set_msr_filter(MsrFilterDefaultAction::ALLOW, &ranges)
        .map_err(call("KVM_X86_SET_MSR_FILTER"))
}
