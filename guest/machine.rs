//! The machine below the guests: start, interrupt gates, registers of the CPU, the port for reports, and the functions of
//! memory that the compiler calls.
//!
//! No SSE: hypervisors that emulate their guests may not emulate it.

use core::arch::{asm, global_asm};
use core::panic::PanicInfo;

use whit_pmu::bus::PmuBus;
use whit_pmu::cpuid::{CpuidLeaves, Leaf};
use whit_pmu::model::PmuModel;
use whit_pmu::msr::{IA32_PERF_CAPABILITIES, Msr};

/// Where the report goes.
const PORT: u16 = 0x510;
/// First word of the report of a guest that failed.
const PANICKED: u32 = 4;

/// A 64-bit interrupt gate.
#[repr(C)]
#[derive(Clone, Copy)]
struct Gate {
    low: u64,
    high: u64,
}

static mut IDT: [Gate; 32] = [Gate { low: 0, high: 0 }; 32];

global_asm!(
    r#"
    .section .text.start, "ax"
    .global _start
_start:
    call {main}
1:  hlt
    jmp 1b

    .text
nmi_entry:
    push rax
    push rcx
    push rdx
    push rsi
    push rdi
    push r8
    push r9
    push r10
    push r11
    push rbx
    mov rbx, rsp
    and rsp, -16
    call {nmi}
    mov rsp, rbx
    pop rbx
    pop r11
    pop r10
    pop r9
    pop r8
    pop rdi
    pop rsi
    pop rdx
    pop rcx
    pop rax
    iretq
fault_entry:
    call {fault}
"#,
    main = sym crate::main,
    nmi = sym crate::nmi,
    fault = sym fault,
);

unsafe extern "C" {
    fn nmi_entry();
    fn fault_entry();
}

/// The CPU's own registers.
pub struct Registers;

impl PmuBus for Registers {
    fn rdmsr(&mut self, msr: Msr) -> u64 {
        let (low, high): (u32, u32);
        // SAFETY: reads a register of the PMU or the local APIC; a fault ends the guest with a report.
        unsafe {
            asm!("rdmsr", in("ecx") msr.0, out("eax") low, out("edx") high, options(nostack))
        };
        (u64::from(high) << 32) | u64::from(low)
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) {
        let (low, high) = (value as u32, (value >> 32) as u32);
        // SAFETY: writes a register of the PMU or the local APIC, which change no memory.
        unsafe { asm!("wrmsr", in("ecx") msr.0, in("eax") low, in("edx") high, options(nostack)) };
    }
}

pub fn report(word: u32) {
    // SAFETY: the port is the VMM's.
    unsafe { asm!("out dx, eax", in("dx") PORT, in("eax") word, options(nomem, nostack)) };
}

pub fn report_long(value: u64) {
    report(value as u32);
    report((value >> 32) as u32);
}

pub fn time() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reads the time stamp counter.
    unsafe { asm!("rdtsc", out("eax") low, out("edx") high, options(nomem, nostack)) };
    (u64::from(high) << 32) | u64::from(low)
}

extern "C" fn fault() -> ! {
    report(PANICKED);
    halt()
}

fn halt() -> ! {
    loop {
        // SAFETY: stops the CPU until an interrupt, which changes nothing here.
        unsafe { asm!("hlt", options(nomem, nostack)) };
    }
}

pub fn set_gates() {
    const CODE_SEGMENT: u64 = 8;
    const PRESENT_INTERRUPT_GATE: u64 = 0x8e00;
    // SAFETY: there is one CPU, and no gate is in force yet.
    let gates = unsafe { &mut *(&raw mut IDT) };
    for (vector, gate) in gates.iter_mut().enumerate() {
        let entry = if vector == 2 {
            nmi_entry as *const () as u64
        } else {
            fault_entry as *const () as u64
        };
        gate.low = (entry & 0xffff)
            | (CODE_SEGMENT << 16)
            | (PRESENT_INTERRUPT_GATE << 32)
            | ((entry >> 16 & 0xffff) << 48);
        gate.high = entry >> 32;
    }
    #[repr(C, packed)]
    struct Table {
        limit: u16,
        base: u64,
    }
    let table = Table { limit: 32 * 16 - 1, base: &raw const IDT as u64 };
    // SAFETY: the table is static, and every gate leads to code that saves the registers it uses.
    unsafe { asm!("lidt [{}]", in(reg) &raw const table, options(nostack)) };
}

pub fn model() -> Option<PmuModel> {
    let mut leaves = CpuidLeaves::collect(|leaf, subleaf| {
        let registers = core::arch::x86_64::__cpuid_count(leaf, subleaf);
        let core::arch::x86_64::CpuidResult { eax, ebx, ecx, edx } = registers;
        Leaf { eax, ebx, ecx, edx }
    });
    if leaves.has_perf_capabilities() {
        leaves.perf_capabilities = Registers.rdmsr(IA32_PERF_CAPABILITIES);
    }
    PmuModel::from_cpuid(&leaves).ok()
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    fault()
}

/// The prebuilt core names it; panics do not unwind here.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    // SAFETY: the caller promises that both ranges are valid and apart.
    unsafe {
        asm!("rep movsb", inout("rcx") count => _, inout("rdi") to => _, inout("rsi") from => _,
            options(nostack, preserves_flags))
    };
    to
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, count: usize) -> *mut u8 {
    // SAFETY: the caller promises that the range is valid.
    unsafe {
        asm!("rep stosb", inout("rcx") count => _, inout("rdi") to => _, in("al") byte as u8,
            options(nostack, preserves_flags))
    };
    to
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, count: usize) -> i32 {
    for at in 0..count {
        // SAFETY: the caller promises that both ranges are valid.
        let bytes = unsafe { (a.add(at).read_volatile(), b.add(at).read_volatile()) };
        if bytes.0 != bytes.1 {
            return i32::from(bytes.0) - i32::from(bytes.1);
        }
    }
    0
}
