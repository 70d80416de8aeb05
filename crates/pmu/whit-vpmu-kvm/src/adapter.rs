//! A vCPU's PMU behind KVM's exits.

use kvm_ioctls::{ReadMsrExit, VcpuFd, WriteMsrExit};
use whit_vpmu::{CounterSource, Lvtpc, Vpmu};

use crate::{Error, Line, call};

/// Offset of LVTPC in the local APIC's page.
const LVTPC_OFFSET: usize = 0x340;

/// The PMU of one vCPU.
///
/// ```text
/// kvm_vpmu.enter(&vcpu)?;
/// match vcpu.run() {
///     Ok(VcpuExit::X86Rdmsr(exit)) if kvm_vpmu.owns(exit.index) => kvm_vpmu.rdmsr(exit),
///     Ok(VcpuExit::X86Wrmsr(exit)) if kvm_vpmu.owns(exit.index) => kvm_vpmu.wrmsr(exit),
///     Err(EINTR) => if signal.take()? { kvm_vpmu.vpmu_mut().poll_overflows(); }
///     ...
/// }
/// kvm_vpmu.vpmu_mut().on_tick(now_ns);
/// ```
#[derive(Debug)]
pub struct KvmVpmu<S: CounterSource> {
    vpmu: Vpmu<S, Line>,
    kernel_apic: bool,
    nmis: u64,
}

impl<S: CounterSource> KvmVpmu<S> {
    /// Error of a device. `kernel_apic`: the VM has KVM's local APIC (KVM_CREATE_IRQCHIP), whose
    /// LVTPC counts then; else the guest's writes to register 0x834 are taken here.
    pub fn new(vpmu: Vpmu<S, Line>, kernel_apic: bool) -> KvmVpmu<S> {
        KvmVpmu { vpmu, kernel_apic, nmis: 0 }
    }

    /// The device.
    pub fn vpmu(&self) -> &Vpmu<S, Line> {
        &self.vpmu
    }

    /// The device.
    pub fn vpmu_mut(&mut self) -> &mut Vpmu<S, Line> {
        &mut self.vpmu
    }

    /// NMIs injected.
    #[must_use]
    pub fn nmis(&self) -> u64 {
        self.nmis
    }

    /// Before KVM_RUN: what the guest wrote takes effect, and an NMI is injected where one is due.
    ///
    /// # Errors
    /// Where KVM refuses.
    pub fn enter(&mut self, vcpu: &VcpuFd) -> Result<(), Error> {
        let of_kernel = self.kernel_apic && self.vpmu.pmi_due();
        if of_kernel {
            self.load_lvtpc(vcpu)?;
        }
        let before = self.vpmu.interrupt().lvtpc;
        self.vpmu.on_vcpu_enter();
        let after = self.vpmu.interrupt().lvtpc;
        if of_kernel && before != after {
            store_lvtpc(vcpu, after)?;
        }
        if self.vpmu.interrupt_mut().take_nmi() {
            self.nmis += 1;
            vcpu.nmi().map_err(call("KVM_NMI"))?;
        }
        Ok(())
    }

    fn load_lvtpc(&mut self, vcpu: &VcpuFd) -> Result<(), Error> {
        let state = vcpu.get_lapic().map_err(call("KVM_GET_LAPIC"))?;
        let mut bytes = [0; 4];
        for (byte, register) in bytes.iter_mut().zip(&state.regs[LVTPC_OFFSET..]) {
            *byte = *register as u8;
        }
        self.vpmu.interrupt_mut().lvtpc.write(u32::from_le_bytes(bytes));
        Ok(())
    }

    /// Whether an exit with this register is for the PMU to answer.
    #[must_use]
    pub fn owns(&self, msr: u32) -> bool {
        let own_apic = msr == Lvtpc::X2APIC_MSR && !self.kernel_apic;
        own_apic || self.vpmu.model().has_msr(msr)
    }

    /// Answers a read: with #GP where the register is none of the PMU's.
    pub fn rdmsr(&mut self, exit: ReadMsrExit<'_>) {
        if exit.index == Lvtpc::X2APIC_MSR && !self.kernel_apic {
            *exit.data = self.vpmu.interrupt().lvtpc.read().into();
            return;
        }
        match self.vpmu.rdmsr(exit.index) {
            Ok(value) => *exit.data = value,
            Err(_) => *exit.error = 1,
        }
    }

    /// Answers a write: with #GP where the register is none of the PMU's, or refuses the value.
    pub fn wrmsr(&mut self, exit: WriteMsrExit<'_>) {
        if exit.index == Lvtpc::X2APIC_MSR && !self.kernel_apic {
            self.vpmu.interrupt_mut().lvtpc.write(exit.data as u32);
        } else if self.vpmu.wrmsr(exit.index, exit.data).is_err() {
            *exit.error = 1;
        }
    }
}

/// Delivery has masked the entry.
fn store_lvtpc(vcpu: &VcpuFd, lvtpc: Lvtpc) -> Result<(), Error> {
    let mut state = vcpu.get_lapic().map_err(call("KVM_GET_LAPIC"))?;
    let registers = state.regs[LVTPC_OFFSET..].iter_mut();
    for (register, byte) in registers.zip(lvtpc.read().to_le_bytes()) {
        *register = byte as _;
    }
    vcpu.set_lapic(&state).map_err(call("KVM_SET_LAPIC"))
}
