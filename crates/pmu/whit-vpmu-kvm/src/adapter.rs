//! A vCPU's PMU behind KVM's exits.

use kvm_ioctls::{ReadMsrExit, VcpuFd, WriteMsrExit};
use whit_vpmu::{CounterSource, Lvtpc, Vpmu};

use crate::{Error, Line, call};

/// Offset of LVTPC in the local APIC's page.
const LVTPC_OFFSET: usize = 0x340;
/// The event of retired instructions, Intel's and AMD's.
const INSTRUCTIONS: u64 = 0xc0;

/// The PMU of one vCPU.
///
/// ```text
/// if let Some(vector) = kvm_vpmu.enter(&vcpu)? { raise it in the local APIC }
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
    pub fn new(mut vpmu: Vpmu<S, Line>, kernel_apic: bool) -> KvmVpmu<S> {
        vpmu.interrupt_mut().of_kernel = kernel_apic;
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

    /// Before KVM_RUN: what the guest wrote takes effect, and an NMI is injected where one is due. A vector that is
    /// due is the result, for the VMM to raise: with KVM's local APIC by KVM_SIGNAL_MSI, else in its own.
    ///
    /// Intel's hardware masks LVTPC when it delivers. KVM's local APIC is left unmasked: KVM_SET_LAPIC would drop
    /// interrupts and timers that come between its reading and its writing.
    ///
    /// # Errors
    /// Where KVM refuses.
    pub fn enter(&mut self, vcpu: &VcpuFd) -> Result<Option<u8>, Error> {
        self.vpmu.on_vcpu_enter();
        let line = self.vpmu.interrupt_mut();
        if line.take_request() {
            line.lvtpc = kernel_lvtpc(vcpu)?;
            line.deliver(false);
        }
        if line.take_nmi() {
            self.nmis += 1;
            vcpu.nmi().map_err(call("KVM_NMI"))?;
        }
        Ok(line.take_vector())
    }

    /// Whether an exit with this register is for the PMU to answer.
    #[must_use]
    pub fn owns(&self, msr: u32) -> bool {
        self.is_own_lvtpc(msr) || self.vpmu.model().has_msr(msr)
    }

    /// Answers a read: with #GP where the register is none of the PMU's. An instruction that is answered counts.
    pub fn rdmsr(&mut self, exit: ReadMsrExit<'_>) {
        let answer = if self.is_own_lvtpc(exit.index) {
            Ok(self.vpmu.interrupt().lvtpc.read().into())
        } else {
            self.vpmu.rdmsr(exit.index)
        };
        match answer {
            Ok(value) => {
                *exit.data = value;
                self.vpmu.count_emulated(INSTRUCTIONS, true);
            }
            Err(_) => *exit.error = 1,
        }
    }

    /// Answers a write: with #GP where the register is none of the PMU's, or refuses the value. An instruction that
    /// is answered counts.
    pub fn wrmsr(&mut self, exit: WriteMsrExit<'_>) {
        if self.is_own_lvtpc(exit.index) {
            self.vpmu.interrupt_mut().lvtpc.write(exit.data as u32);
        } else if self.vpmu.wrmsr(exit.index, exit.data).is_err() {
            *exit.error = 1;
            return;
        }
        self.vpmu.count_emulated(INSTRUCTIONS, true);
    }

    fn is_own_lvtpc(&self, msr: u32) -> bool {
        msr == Lvtpc::X2APIC_MSR && !self.kernel_apic
    }
}

fn kernel_lvtpc(vcpu: &VcpuFd) -> Result<Lvtpc, Error> {
    let state = vcpu.get_lapic().map_err(call("KVM_GET_LAPIC"))?;
    let mut bytes = [0; 4];
    for (byte, register) in bytes.iter_mut().zip(&state.regs[LVTPC_OFFSET..]) {
        *byte = *register as u8;
    }
    let mut lvtpc = Lvtpc::new();
    lvtpc.write(u32::from_le_bytes(bytes));
    Ok(lvtpc)
}
