//! Boots a foreign multiboot kernel with a virtual PMU, and prints its serial console.
//!
//! `cargo run -p whit-vpmu-kvm --example multiboot -- IMAGE [intel|amd|amd-core|amd-k7] [MODULE]`
//!
//! The image is a 32-bit ELF file. It has KVM's local APIC, a serial port at 0x3f8, and port 0xf4, to which it writes its
//! exit status. The PMU counts instructions and branches on any host, exactly, by single steps: the guest steps while a
//! counter is open. It counts no other event, and says so by CPUID.

use std::time::{Duration, Instant};

use kvm_bindings::{
    CpuId, KVM_GUESTDBG_ENABLE, KVM_GUESTDBG_SINGLESTEP, KVM_MAX_CPUID_ENTRIES, kvm_guest_debug,
    kvm_msi, kvm_regs, kvm_segment, kvm_userspace_memory_region,
};
use kvm_ioctls::{Kvm, VcpuExit, VcpuFd, VmFd};
use vm_memory::{Bytes, GuestAddress, GuestMemoryBackend, GuestMemoryMmap};
use whit_vpmu::{
    EventFilter, FilterAction, FilterEntry, IntelPmu, PmuKind, PmuModel, Simulated, Vpmu,
    VpmuConfig,
};
use whit_vpmu_kvm::{KvmVpmu, Line, apply_leaves, forward_msrs};

/// An error of any crate.
pub type Error = Box<dyn std::error::Error>;

const MEMORY_BYTES: usize = 256 << 20;
/// Multiboot's information, the list of its one module, and the module.
const INFORMATION: u64 = 0x9000;
const MODULES: u64 = 0x9100;
const MODULE: u64 = 0xa000;
/// An empty command line.
const COMMAND_LINE: u64 = 0x9200;
const HEADER_MAGIC: u32 = 0x1bad_b002;
const LOADER_MAGIC: u64 = 0x2bad_b002;
/// The header lies in so many bytes at the file's start.
const HEADER_WITHIN: usize = 8192;
const SERIAL: u16 = 0x3f8;
const SERIAL_STATUS: u16 = SERIAL + 5;
const TRANSMITTER_EMPTY: u8 = 0x20;
const EXIT: u16 = 0xf4;
const APIC_MESSAGES: u32 = 0xfee0_0000;
const INSTRUCTIONS: u64 = 0xc0;
const LIMIT: Duration = Duration::from_secs(540);

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let image = std::fs::read(arguments.first().ok_or("name an image")?)?;
    let module = arguments.get(2).map(std::fs::read).transpose()?;
    let model = model(arguments.get(1).map_or("intel", String::as_str))?;
    let outcome = boot(&Kvm::new()?, model, &image, &module.unwrap_or_default())?;
    eprintln!("exit status {}, {} instructions stepped", outcome.status, outcome.steps);
    std::process::exit(outcome.status as i32)
}

/// A PMU by its name. Intel's has the one fixed counter that counts instructions.
///
/// # Errors
/// Where there is none.
pub fn model(name: &str) -> Result<PmuModel, Error> {
    Ok(match name {
        "intel" => PmuModel::intel(IntelPmu { fixed: 1, ..IntelPmu::default() })?,
        "amd" => PmuModel::amd_v2(6)?,
        "amd-core" => PmuModel::amd_core(),
        "amd-k7" => PmuModel::amd_k7(),
        other => return Err(format!("there is no model {other}").into()),
    })
}

/// The guest's end.
#[derive(Debug)]
pub struct Outcome {
    /// Its exit status.
    pub status: u32,
    /// Its output.
    pub console: String,
    /// Instructions that were stepped, and counted where a counter ran.
    pub steps: u64,
}

/// Runs a guest until it exits.
///
/// # Errors
/// Where the image is none that can be booted, KVM refuses, or the guest stops in another way.
pub fn boot(kvm: &Kvm, model: PmuModel, image: &[u8], module: &[u8]) -> Result<Outcome, Error> {
    let is_intel = matches!(model.kind(), PmuKind::Intel { .. });
    let branches = if is_intel { 0xc4 } else { 0xc2 };
    let mut config = VpmuConfig::new(model);
    let counted = [INSTRUCTIONS, branches].map(|event| FilterEntry::exact(event as u16, 0));
    config.filter = Some(EventFilter::new(FilterAction::Allow, counted.to_vec(), 1)?);
    let vpmu = Vpmu::new(config, Simulated::new(), Line::default());

    let memory = GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), MEMORY_BYTES)])?;
    let entry = load(&memory, image, module)?;
    let vm = kvm.create_vm()?;
    vm.create_irq_chip()?;
    forward_msrs(&vm, vpmu.model())?;
    give(&vm, &memory)?;
    let mut vcpu = vm.create_vcpu(0)?;
    let mut cpuid = kvm.get_supported_cpuid(KVM_MAX_CPUID_ENTRIES)?;
    set_features(&mut cpuid, if is_intel { b"GenuineIntel" } else { b"AuthenticAMD" });
    apply_leaves(&mut cpuid, &vpmu.cpuid_leaves())?;
    vcpu.set_cpuid2(&cpuid)?;
    set_registers(&vcpu, entry)?;

    let mut pmu = KvmVpmu::new(vpmu, true);
    let mut steps = Steps { branches, ..Steps::default() };
    let mut console = String::new();
    let start = Instant::now();
    while start.elapsed() < LIMIT {
        pmu.vpmu_mut().on_tick(start.elapsed().as_nanos() as u64);
        if let Some(vector) = pmu.enter(&vcpu)? {
            let message =
                kvm_msi { address_lo: APIC_MESSAGES, data: vector.into(), ..kvm_msi::default() };
            vm.signal_msi(message)?;
            if vcpu.get_kvm_run().if_flag != 0 {
                steps.next = None;
            }
        }
        steps.switch(&mut vcpu, pmu.vpmu().open_events() > 0)?;
        match vcpu.run() {
            Ok(VcpuExit::Debug(debug)) => {
                steps.count(debug.pc, &vcpu, &memory, pmu.vpmu_mut())?;
                continue;
            }
            Ok(VcpuExit::X86Rdmsr(exit)) if pmu.owns(exit.index) => pmu.rdmsr(exit),
            Ok(VcpuExit::X86Wrmsr(exit)) if pmu.owns(exit.index) => pmu.wrmsr(exit),
            // Other registers are the VMM's: here it has none.
            Ok(VcpuExit::X86Rdmsr(exit)) => *exit.error = 1,
            Ok(VcpuExit::X86Wrmsr(exit)) => *exit.error = 1,
            Ok(VcpuExit::IoOut(EXIT, bytes)) => {
                let status = u32::from(*bytes.first().unwrap_or(&0));
                return Ok(Outcome { status, console, steps: steps.number });
            }
            Ok(VcpuExit::IoOut(port, bytes)) => {
                if port == SERIAL {
                    let text = String::from_utf8_lossy(bytes);
                    print!("{text}");
                    console.push_str(&text);
                }
                pmu.vpmu_mut().count_emulated(INSTRUCTIONS, true);
            }
            Ok(VcpuExit::IoIn(port, bytes)) => {
                bytes.fill(if port == SERIAL_STATUS { TRANSMITTER_EMPTY } else { 0xff });
                pmu.vpmu_mut().count_emulated(INSTRUCTIONS, true);
            }
            Ok(VcpuExit::Intr) => continue,
            Ok(exit) => return Err(format!("the guest stopped with {exit:?}").into()),
            Err(error) if [libc::EINTR, libc::EAGAIN].contains(&error.errno()) => continue,
            Err(error) => return Err(error.into()),
        }
        // The VMM has counted this instruction, or it has raised an exception.
        steps.answered = true;
    }
    Err(format!("the guest did not exit within {LIMIT:?}; its console: {console}").into())
}

/// The counts of a host without a PMU: one exit for each instruction of the guest.
#[derive(Default)]
struct Steps {
    branches: u64,
    on: bool,
    /// Address of the instruction that is next; an interrupt's handler begins elsewhere.
    next: Option<u64>,
    /// The VMM has answered the instruction that is next.
    answered: bool,
    number: u64,
}

impl Steps {
    fn switch(&mut self, vcpu: &mut VcpuFd, on: bool) -> Result<(), Error> {
        if on == self.on {
            return Ok(());
        }
        // The answered instruction is not over yet, and KVM may give no step for it.
        vcpu.set_kvm_immediate_exit(1);
        let completed = match vcpu.run() {
            Ok(VcpuExit::Debug(_)) => Ok(()),
            Err(error) if error.errno() == libc::EINTR => Ok(()),
            other => Err(format!("an entry that ends at once ended with {other:?}")),
        };
        vcpu.set_kvm_immediate_exit(0);
        completed?;
        (self.on, self.answered) = (on, false);
        self.next = Some(vcpu.get_regs()?.rip);
        let control = if on { KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_SINGLESTEP } else { 0 };
        Ok(vcpu.set_guest_debug(&kvm_guest_debug { control, ..kvm_guest_debug::default() })?)
    }

    /// An instruction is over; another is next.
    fn count(
        &mut self,
        next: u64,
        vcpu: &VcpuFd,
        memory: &GuestMemoryMmap,
        vpmu: &mut Vpmu<Simulated, Line>,
    ) -> Result<(), Error> {
        let instruction = self.next.replace(next);
        if std::mem::take(&mut self.answered) {
            return Ok(());
        }
        self.number += 1;
        let special = vcpu.get_sregs()?;
        let kernel = special.ss.dpl == 0;
        vpmu.source_mut().occur(INSTRUCTIONS, kernel, 1);
        if let Some(instruction) = instruction {
            let mut code = [0; 15];
            let physical = vcpu.translate_gva(instruction)?.physical_address;
            memory.read_slice(&mut code, GuestAddress(physical))?;
            if is_branch(&code, special.cs.l == 1) {
                vpmu.source_mut().occur(self.branches, kernel, 1);
            }
        }
        while let Some(token) = vpmu.source_mut().take_notice() {
            vpmu.on_overflow(token);
        }
        Ok(())
    }
}

/// Jumps, calls, returns, and entries to a kernel and back.
fn is_branch(code: &[u8], long_mode: bool) -> bool {
    let is_prefix = |byte: u8| {
        let rex = long_mode && byte & 0xf0 == 0x40;
        rex || matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf2 | 0xf3)
    };
    let mut code = code.iter().copied().skip_while(|byte| is_prefix(*byte));
    let (first, second) = (code.next().unwrap_or(0), code.next().unwrap_or(0));
    match first {
        0x0f => matches!(second, 0x05 | 0x07 | 0x34 | 0x35 | 0x80..=0x8f),
        0xff => matches!((second >> 3) & 7, 2..=5),
        0x70..=0x7f | 0x9a | 0xc2 | 0xc3 | 0xca | 0xcb | 0xcf | 0xe0..=0xe3 | 0xe8..=0xeb => true,
        _ => false,
    }
}

/// Copies the image's segments and the module, and describes memory. The result is the entry.
///
/// # Errors
/// Where it is none that can be booted.
pub fn load(memory: &GuestMemoryMmap, image: &[u8], module: &[u8]) -> Result<u64, Error> {
    let header = image.chunks_exact(4).take(HEADER_WITHIN / 4);
    if !header.into_iter().any(|bytes| bytes == HEADER_MAGIC.to_le_bytes()) {
        return Err("the image has no multiboot header".into());
    }
    if !image.starts_with(b"\x7fELF\x01\x01") {
        return Err("the image is no 32-bit ELF file".into());
    }
    let (table, count) = (word(image, 28)? as usize, (word(image, 44)? & 0xffff) as usize);
    for number in 0..count {
        let at = table.saturating_add(number * 32);
        let field = |place: usize| word(image, at.saturating_add(4 * place));
        const LOAD: u32 = 1;
        if field(0)? != LOAD {
            continue;
        }
        let (offset, bytes) = (field(1)? as usize, field(4)? as usize);
        let segment = image
            .get(offset..offset.saturating_add(bytes))
            .ok_or("the image ends within a segment")?;
        memory.write_slice(segment, GuestAddress(field(3)?.into()))?;
    }
    memory.write_slice(module, GuestAddress(MODULE))?;
    // Memory, command line and modules are there.
    const FLAGS: u32 = 1 | (1 << 2) | (1 << 3);
    let above = (MEMORY_BYTES as u32 >> 10) - 1024;
    let modules = [MODULE as u32, MODULE as u32 + module.len() as u32, COMMAND_LINE as u32, 0];
    let has_module = u32::from(!module.is_empty());
    let information = [FLAGS, 640, above, 0, COMMAND_LINE as u32, has_module, MODULES as u32];
    for (place, words) in [(INFORMATION, &information[..]), (MODULES, &modules[..])] {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        memory.write_slice(&bytes, GuestAddress(place))?;
    }
    Ok(word(image, 24)?.into())
}

fn word(bytes: &[u8], at: usize) -> Result<u32, Error> {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk()).ok_or("the image is cut")?;
    Ok(u32::from_le_bytes(*word))
}

fn give(vm: &VmFd, memory: &GuestMemoryMmap) -> Result<(), Error> {
    let region = kvm_userspace_memory_region {
        memory_size: MEMORY_BYTES as u64,
        userspace_addr: memory.get_host_address(GuestAddress(0))? as u64,
        ..Default::default()
    };
    // SAFETY: `memory` is mapped for as long as the VM lives: the caller has it from before, and drops it after it.
    unsafe { vm.set_user_memory_region(region)? };
    Ok(())
}

fn set_features(cpuid: &mut CpuId, name: &[u8; 12]) {
    let word = |at: usize| u32::from_le_bytes([name[at], name[at + 1], name[at + 2], name[at + 3]]);
    for entry in cpuid.as_mut_slice() {
        match entry.function {
            0 | 0x8000_0000 => (entry.ebx, entry.edx, entry.ecx) = (word(0), word(4), word(8)),
            // The PMU has no events of transactions (HLE, RTM).
            7 if entry.index == 0 => entry.ebx &= !((1 << 4) | (1 << 11)),
            _ => {}
        }
    }
}

/// 32-bit protected mode without paging, as multiboot has it.
fn set_registers(vcpu: &VcpuFd, entry: u64) -> Result<(), Error> {
    let mut special = vcpu.get_sregs()?;
    let code = kvm_segment {
        limit: 0xffff_ffff,
        selector: 8,
        type_: 11,
        present: 1,
        s: 1,
        db: 1,
        g: 1,
        ..Default::default()
    };
    let data = kvm_segment { selector: 16, type_: 3, ..code };
    special.cs = code;
    (special.ds, special.es, special.fs) = (data, data, data);
    (special.gs, special.ss) = (data, data);
    special.cr0 |= 1;
    vcpu.set_sregs(&special)?;
    let registers = kvm_regs {
        rip: entry,
        rax: LOADER_MAGIC,
        rbx: INFORMATION,
        rflags: 2,
        ..kvm_regs::default()
    };
    Ok(vcpu.set_regs(&registers)?)
}
