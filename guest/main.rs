//! A guest that samples with `whit-pmu`: no operating system, no std, no allocator.
//!
//! The VMM starts it in long mode with an identity map of the first GiB, a stack, a GDT whose second entry is
//! 64-bit code, and [`Parameters`] at [`PARAMETERS`]. It describes its PMU by CPUID, samples an event until it has
//! enough samples, and reports by 32-bit words to [`PORT`]; then it halts. NMIs are its PMU's.
//!
//! No SSE: hypervisors that emulate their guests may not emulate it.

#![no_std]
#![no_main]

use core::arch::{asm, global_asm};
use core::panic::PanicInfo;

use whit_pmu::bus::PmuBus;
use whit_pmu::counter::CounterIndex;
use whit_pmu::cpuid::{CpuidLeaves, Leaf};
use whit_pmu::driver::{Driver, Event, EventConfig};
use whit_pmu::model::PmuModel;
use whit_pmu::msr::{IA32_PERF_CAPABILITIES, Msr};
use whit_pmu::pmi::{Overflow, PmiOutcome, Verdict};

/// Where the parameters are.
const PARAMETERS: *const Parameters = 0x8000 as *const Parameters;
/// Where the report goes.
const PORT: u16 = 0x510;
/// Most samples whose handlers' lengths are kept.
const LENGTHS_MAX: usize = 4096;

/// The VMM's parameters.
#[repr(C)]
#[derive(Clone, Copy)]
struct Parameters {
    /// Samples to take, up to [`LENGTHS_MAX`].
    samples: u64,
    /// Events between two samples.
    period: u64,
    /// The event's code.
    code: u64,
    /// Rounds of work after which it gives up.
    rounds_max: u64,
}

/// First words of the report.
#[repr(u32)]
enum Outcome {
    Sampled = 1,
    NoModel = 2,
    NotStarted = 3,
    Panicked = 4,
}

/// State that the handler and the program share. There is one CPU; the handler is an NMI's and does not
/// nest.
struct State {
    driver: Option<Driver>,
    interrupts: u64,
    samples: u64,
    not_ours: u64,
    lengths: [u32; LENGTHS_MAX],
}

static mut STATE: State =
    State { driver: None, interrupts: 0, samples: 0, not_ours: 0, lengths: [0; LENGTHS_MAX] };

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
    main = sym main,
    nmi = sym nmi,
    fault = sym fault,
);

unsafe extern "C" {
    fn nmi_entry();
    fn fault_entry();
}

/// The CPU's own registers.
struct Registers;

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

fn report(word: u32) {
    // SAFETY: the port is the VMM's.
    unsafe { asm!("out dx, eax", in("dx") PORT, in("eax") word, options(nomem, nostack)) };
}

fn report_long(value: u64) {
    report(value as u32);
    report((value >> 32) as u32);
}

fn time() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reads the time stamp counter.
    unsafe { asm!("rdtsc", out("eax") low, out("edx") high, options(nomem, nostack)) };
    (u64::from(high) << 32) | u64::from(low)
}

extern "C" fn fault() -> ! {
    report(Outcome::Panicked as u32);
    halt()
}

fn halt() -> ! {
    loop {
        // SAFETY: stops the CPU until an interrupt, which changes nothing here.
        unsafe { asm!("hlt", options(nomem, nostack)) };
    }
}

extern "C" fn nmi() {
    let start = time();
    // SAFETY: the program holds no reference while NMIs can come; see `main`.
    let state = unsafe { &mut *(&raw mut STATE) };
    let Some(driver) = &mut state.driver else { return };
    let mut samples = 0;
    let outcome = driver.handle_pmi(&mut Registers, start, &mut |_: &Overflow<'_>| {
        samples += 1;
        Verdict::Sampled
    });
    state.not_ours += u64::from(outcome == PmiOutcome::NotOurs);
    state.samples += samples;
    if let Some(length) = state.lengths.get_mut(state.interrupts as usize) {
        *length = (time() - start) as u32;
    }
    state.interrupts += 1;
}

fn set_gates() {
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

fn model() -> Option<PmuModel> {
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

extern "C" fn main() {
    // SAFETY: the VMM has written the parameters before it started this program.
    let parameters = unsafe { PARAMETERS.read_volatile() };
    set_gates();
    let Some(model) = model() else {
        report(Outcome::NoModel as u32);
        return;
    };
    let counter = CounterIndex::general(0);
    let event = Event::new(EventConfig::sampling(parameters.code, parameters.period));
    let mut driver = Driver::new(model);
    driver.init(&mut Registers);
    if driver.start(&mut Registers, counter, event).is_err() {
        report(Outcome::NotStarted as u32);
        return;
    }
    // SAFETY: no counter runs yet, so no NMI comes while this reference lives.
    unsafe { (&raw mut STATE.driver).write(Some(driver)) };
    // From here on NMIs may come at any instruction, so the driver is the handler's but for this call,
    // whose last access starts the counter, and the one that stops it.
    // SAFETY: `enable` changes its state before that access; a handler that comes after it finds it whole.
    if let Some(driver) = unsafe { (*(&raw mut STATE)).driver.as_mut() } {
        driver.enable(&mut Registers);
    }
    let mut rounds = 0;
    // SAFETY: a volatile read of a number that the handler changes.
    while unsafe { (&raw const STATE.samples).read_volatile() } < parameters.samples
        && rounds < parameters.rounds_max
    {
        rounds += 1;
        core::hint::black_box(rounds);
    }
    finish(counter);
}

fn finish(counter: CounterIndex) {
    // SAFETY: `disable` stops the counter with its first access that matters; a handler that comes before
    // leaves the driver whole, and none comes after.
    let state = unsafe { &mut *(&raw mut STATE) };
    let Some(driver) = &mut state.driver else { return };
    driver.disable(&mut Registers);
    let count = driver.read(&mut Registers, counter).unwrap_or_default();
    report(Outcome::Sampled as u32);
    report_long(state.samples);
    report_long(count);
    report_long(state.not_ours);
    report_long(state.interrupts);
    for length in state.lengths.iter().take(state.interrupts as usize) {
        report(*length);
    }
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
