//! A VMM's loop with rust-vmm's crates: set-up of KVM, one vCPU, its exits, and a guest of some 90 bytes that is
//! interrupted by its PMU.
//!
//! `cargo run -p whit-vpmu-kvm --example vmm_loop`
//!
//! The guest's event is the vCPU thread's task clock, which every machine counts. Where there is no `/dev/kvm`, the
//! example says so and takes the guest's accesses from a list, with simulated events.

use std::time::{Duration, Instant};

use kvm_bindings::{KVM_MAX_CPUID_ENTRIES, kvm_userspace_memory_region};
use kvm_ioctls::{Kvm, VcpuExit, VcpuFd, VmFd};
use vm_memory::{Bytes, GuestAddress, GuestMemoryBackend, GuestMemoryMmap};
use whit_vpmu::host::{EventMap, HostEvent, HostOptions, HostPerf, OverflowSignal};
use whit_vpmu::{CounterSource, IntelPmu, Lvtpc, PmuModel, Simulated, Vpmu, VpmuConfig};
use whit_vpmu_kvm::{KvmVpmu, Line, apply_leaves, forward_msrs, interrupt_on_overflow};

/// An error of any crate.
pub type Error = Box<dyn std::error::Error>;

const MEMORY_BYTES: usize = 1 << 20;
const CODE: u64 = 0x1000;
const NMI_HANDLER: u64 = 0x1800;
const PORT: u16 = 0x510;
/// Nanoseconds of the task clock.
const PERIOD: u64 = 3_000_000;
const INSTRUCTIONS: u64 = 0xc0;
const LIMIT: Duration = Duration::from_secs(60);

/// The guest's accesses, in their order.
const SET_UP: [(u32, u64); 3] =
    [(Lvtpc::X2APIC_MSR, 0x400), (0x4c1, (1 << 48) - PERIOD), (0x186, INSTRUCTIONS | 0x53_0000)];
const STOP: (u32, u64) = (0x38f, 0);
const STATUS: u32 = 0x38e;

/// The guest's report.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its overflow status in the interrupt handler.
    pub status: u32,
    /// Interrupts injected.
    pub interrupts: u64,
}

fn main() -> Result<(), Error> {
    let outcome = match Kvm::new() {
        Ok(kvm) => with_kvm(&kvm)?,
        Err(error) => {
            println!("vmm_loop: /dev/kvm cannot be opened ({error}); simulated instead");
            simulated()?
        }
    };
    println!("{} interrupt, overflow status {:#x}", outcome.interrupts, outcome.status);
    Ok(())
}

/// Before the first entry: memory, registers that exit, CPUID, the vCPU's start.
fn machine(
    kvm: &Kvm,
    vpmu: &Vpmu<HostPerf, Line>,
) -> Result<(GuestMemoryMmap, VmFd, VcpuFd), Error> {
    let memory = GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), MEMORY_BYTES)])?;
    memory.write_slice(&program(), GuestAddress(CODE))?;
    memory.write_slice(&handler(), GuestAddress(NMI_HANDLER))?;
    // Real mode: entry 2 of the interrupt table is the NMI's.
    memory.write_slice(&(NMI_HANDLER as u32).to_le_bytes(), GuestAddress(2 * 4))?;
    let vm = kvm.create_vm()?;
    forward_msrs(&vm, vpmu.model())?;
    let region = kvm_userspace_memory_region {
        memory_size: MEMORY_BYTES as u64,
        userspace_addr: memory.get_host_address(GuestAddress(0))? as u64,
        ..Default::default()
    };
    // SAFETY: `memory` is mapped for as long as the VM lives: here and in the caller, it is made first and dropped last.
    unsafe { vm.set_user_memory_region(region)? };
    let vcpu = vm.create_vcpu(0)?;
    let mut cpuid = kvm.get_supported_cpuid(KVM_MAX_CPUID_ENTRIES)?;
    apply_leaves(&mut cpuid, &vpmu.cpuid_leaves())?;
    vcpu.set_cpuid2(&cpuid)?;
    let mut special = vcpu.get_sregs()?;
    (special.cs.base, special.cs.selector) = (0, 0);
    vcpu.set_sregs(&special)?;
    let mut registers = vcpu.get_regs()?;
    (registers.rip, registers.rsp, registers.rflags) = (CODE, 0x8000, 2);
    vcpu.set_regs(&registers)?;
    Ok((memory, vm, vcpu))
}

/// The loop.
///
/// # Errors
/// Where KVM or the host's events refuse, or the guest does something else.
pub fn with_kvm(kvm: &Kvm) -> Result<Outcome, Error> {
    let signal = OverflowSignal::block()?;
    let mut options = HostOptions::default();
    // A clock cannot leave the host out; a hardware event can, and is `EventMap::Raw`.
    options.guest_only = false;
    let events = EventMap::Table(vec![(INSTRUCTIONS, HostEvent::TASK_CLOCK)]);
    let host = HostPerf::for_this_thread(events, options)?;
    let config = VpmuConfig::new(PmuModel::intel(IntelPmu::default())?);
    let vpmu = Vpmu::new(config, host, Line::default());
    let (_memory, _vm, mut vcpu) = machine(kvm, &vpmu)?;
    let mut pmu = KvmVpmu::new(vpmu, false);
    interrupt_on_overflow(&vcpu, &signal)?;
    let start = Instant::now();
    let mut status = None;
    loop {
        if start.elapsed() > LIMIT {
            return Err("the guest did not halt".into());
        }
        pmu.vpmu_mut().on_tick(start.elapsed().as_nanos() as u64);
        pmu.enter(&vcpu)?;
        match vcpu.run() {
            Ok(VcpuExit::X86Rdmsr(exit)) if pmu.owns(exit.index) => pmu.rdmsr(exit),
            Ok(VcpuExit::X86Wrmsr(exit)) if pmu.owns(exit.index) => pmu.wrmsr(exit),
            // Other registers are the VMM's: here it has none.
            Ok(VcpuExit::X86Rdmsr(exit)) => *exit.error = 1,
            Ok(VcpuExit::X86Wrmsr(exit)) => *exit.error = 1,
            Ok(VcpuExit::IoOut(PORT, bytes)) => {
                status = Some(u32::from_le_bytes(bytes.try_into()?))
            }
            Ok(VcpuExit::Hlt) => break,
            Ok(VcpuExit::Intr) => {}
            Ok(exit) => return Err(format!("the guest stopped with {exit:?}").into()),
            // The signal of a host event has ended KVM_RUN.
            Err(error) if error.errno() == 4 => {
                if signal.take()? {
                    pmu.vpmu_mut().poll_overflows();
                }
            }
            Err(error) if error.errno() == 11 => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Outcome { status: status.ok_or("the guest reported nothing")?, interrupts: pmu.nmis() })
}

/// The same accesses without KVM.
///
/// # Errors
/// Where the device refuses an access.
pub fn simulated() -> Result<Outcome, Error> {
    let config = VpmuConfig::new(PmuModel::intel(IntelPmu::default())?);
    let mut vpmu = Vpmu::new(config, Simulated::new(), Line::default());
    for (msr, value) in SET_UP {
        write(&mut vpmu, msr, value)?;
    }
    vpmu.source_mut().occur(INSTRUCTIONS, true, PERIOD);
    vpmu.poll_overflows();
    vpmu.on_vcpu_enter();
    let interrupts = vpmu.statistics().pmis;
    write(&mut vpmu, STOP.0, STOP.1)?;
    Ok(Outcome { status: vpmu.rdmsr(STATUS)? as u32, interrupts })
}

fn write<S: CounterSource>(vpmu: &mut Vpmu<S, Line>, msr: u32, value: u64) -> Result<(), Error> {
    if msr == Lvtpc::X2APIC_MSR {
        vpmu.interrupt_mut().lvtpc.write(value as u32);
    } else {
        vpmu.wrmsr(msr, value)?;
    }
    vpmu.on_vcpu_enter();
    Ok(())
}

/// `mov ecx, msr; mov eax, low; mov edx, high; wrmsr` in real mode (0x66: 32-bit operands).
fn wrmsr((msr, value): (u32, u64)) -> Vec<u8> {
    let mov = |opcode: u8, value: u32| {
        let mut bytes = vec![0x66, opcode];
        bytes.extend(value.to_le_bytes());
        bytes
    };
    [mov(0xb9, msr), mov(0xb8, value as u32), mov(0xba, (value >> 32) as u32), vec![0x0f, 0x30]]
        .concat()
}

/// Sets the PMU up and waits: `jmp $`.
fn program() -> Vec<u8> {
    let mut code: Vec<u8> = SET_UP.into_iter().flat_map(wrmsr).collect();
    code.extend([0xeb, 0xfe]);
    code
}

/// Stops the PMU, and reports its status: `rdmsr; mov dx, port; out dx, eax; hlt`.
fn handler() -> Vec<u8> {
    let mut code = wrmsr(STOP);
    code.extend([0x66, 0xb9]);
    code.extend(STATUS.to_le_bytes());
    code.extend([0x0f, 0x32, 0xba]);
    code.extend(PORT.to_le_bytes());
    code.extend([0x66, 0xef, 0xf4]);
    code
}
