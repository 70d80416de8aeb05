//! The example that boots foreign kernels, with a kernel of this test: its counts are exact, and its interrupt comes with a
//! vector through KVM's local APIC.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(dead_code, missing_docs, unreachable_pub)]

#[path = "../examples/multiboot.rs"]
mod example;

use kvm_ioctls::Kvm;
use whit_testing::{Skip, probe};

/// The file is loaded as a whole.
const BASE: u32 = 0x10_0000;
/// Places in the file.
const CODE: usize = 96;
const GDT: usize = 0x200;
const POINTERS: usize = 0x240;
const IDT: usize = 0x300;
const HANDLER: usize = 0x600;
const VECTOR: u8 = 0x40;

/// Registers of a PMU.
struct Registers {
    counter: u32,
    select: u32,
    branch_counter: u32,
    branch_select: u32,
    branches: u64,
    status: u32,
    control: u32,
}

const INTEL: Registers = Registers {
    counter: 0x4c1,
    select: 0x186,
    branch_counter: 0xc2,
    branch_select: 0x187,
    branches: 0xc4,
    status: 0x38e,
    control: 0x38f,
};
const AMD: Registers = Registers {
    counter: 0xc001_0201,
    select: 0xc001_0200,
    branch_counter: 0xc001_0203,
    branch_select: 0xc001_0202,
    branches: 0xc2,
    status: 0xc000_0300,
    control: 0xc000_0301,
};

/// Instructions until the interrupt.
const PERIOD: u64 = 100;

fn wrmsr(msr: u32, value: u64) -> Vec<u8> {
    let mov = |opcode: u8, value: u32| [&[opcode][..], &value.to_le_bytes()].concat();
    let (low, high) = (mov(0xb8, value as u32), mov(0xba, (value >> 32) as u32));
    [mov(0xb9, msr), low, high, vec![0x0f, 0x30]].concat()
}

/// Sets the local APIC up in x2APIC mode and the PMU behind it, and waits.
fn program(pmu: &Registers) -> Vec<u8> {
    let at = |place: usize| (BASE + place as u32).to_le_bytes();
    let mut code = vec![0xbc];
    code.extend(0x18_0000_u32.to_le_bytes());
    // lgdt, lidt, and a jump that loads the code segment.
    code.extend(
        [&[0x0f, 0x01, 0x15][..], &at(POINTERS), &[0x0f, 0x01, 0x1d], &at(POINTERS + 8)].concat(),
    );
    let next = at(CODE + code.len() + 7);
    code.extend([&[0xea][..], &next, &[8, 0]].concat());
    for (msr, value) in [
        (0x1b, 0xfee0_0d00),
        (0x80f, 0x1ff),
        (0x834, VECTOR.into()),
        (pmu.branch_select, 0x43_0000 | pmu.branches),
        (pmu.counter, (1 << 48) - PERIOD),
        (pmu.select, 0x53_00c0),
    ] {
        code.extend(wrmsr(msr, value));
    }
    // sti; jmp $
    code.extend([0xfb, 0xeb, 0xfe]);
    code
}

/// Stops the PMU, prints a digit of its status and of its counter and the branches as a character, and exits.
fn handler(pmu: &Registers) -> Vec<u8> {
    let mut code = wrmsr(pmu.control, 0);
    for (msr, zero) in [(pmu.status, b'0'), (pmu.counter, b'0'), (pmu.branch_counter, 0)] {
        code.push(0xb9);
        code.extend(msr.to_le_bytes());
        // rdmsr; add al, zero; mov edx, 0x3f8; out dx, al
        code.extend([0x0f, 0x32, 0x04, zero, 0xba, 0xf8, 0x03, 0, 0, 0xee]);
    }
    // mov al, 7; out 0xf4, al
    code.extend([0xb0, 7, 0xe6, 0xf4]);
    code
}

fn image(pmu: &Registers) -> Vec<u8> {
    let mut image = vec![0; 0x800];
    let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
    let words =
        |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    put(0, b"\x7fELF\x01\x01\x01");
    // An executable for 386, its entry, and one program header.
    put(16, &words(&[0x3_0002, 1, BASE + CODE as u32, 52, 0, 0, 0x20_0034, 1]));
    put(52, &words(&[1, 0, BASE, BASE, 0x800, 0x800, 7, 0x1000]));
    put(84, &words(&[0x1bad_b002, 0, 0_u32.wrapping_sub(0x1bad_b002)]));
    put(CODE, &program(pmu));
    put(GDT, &words(&[0, 0, 0xffff, 0x00cf_9b00, 0xffff, 0x00cf_9300]));
    put(POINTERS, &words(&[((BASE + GDT as u32) << 16) | 23, (BASE + GDT as u32) >> 16]));
    put(POINTERS + 8, &words(&[((BASE + IDT as u32) << 16) | 0x2ff, (BASE + IDT as u32) >> 16]));
    let (gate, target) = (IDT + 8 * usize::from(VECTOR), BASE + HANDLER as u32);
    put(gate, &words(&[(8 << 16) | (target & 0xffff), (target & 0xffff_0000) | 0x8e00]));
    put(HANDLER, &handler(pmu));
    image
}

fn boot(name: &str, model: &str, pmu: &Registers) {
    if let Err(Skip(reason)) = probe::kvm() {
        whit_testing::skip(name, &reason);
        return;
    }
    let kvm = Kvm::new().expect("KVM, which the probe opened");
    let model = example::model(model).expect("a model");
    let outcome =
        example::boot(&kvm, model, &image(pmu), &[]).unwrap_or_else(|error| panic!("{error}"));
    // Status 1; the handler's three instructions before the one that stops; sti and 98 jumps after the one that starts.
    assert_eq!((outcome.console.as_str(), outcome.status), ("13b", 7), "{outcome:?}");
}

#[test]
fn an_intel_kernel_counts_each_instruction() {
    boot("whit-vpmu-kvm an_intel_kernel_counts_each_instruction", "intel", &INTEL);
}

#[test]
fn an_amd_kernel_counts_each_instruction() {
    boot("whit-vpmu-kvm an_amd_kernel_counts_each_instruction", "amd", &AMD);
}

#[test]
fn images_that_cannot_be_booted_are_refused() {
    let mut whole = image(&INTEL);
    whole.truncate(0x700);
    let no_elf = [&[0; 84][..], &whole[84..]].concat();
    let memory =
        || vm_memory::GuestMemoryMmap::<()>::from_ranges(&[(vm_memory::GuestAddress(0), 2 << 20)]);
    let refused = |image: &[u8]| {
        let loaded = example::load(&memory().expect("memory"), image, &[]);
        loaded.expect_err("an image that cannot be booted").to_string()
    };
    assert_eq!(refused(&whole), "the image ends within a segment");
    assert_eq!(refused(&no_elf), "the image is no 32-bit ELF file");
    assert_eq!(refused(&whole[..84]), "the image has no multiboot header");
    assert_eq!(refused(&[&whole[..28], &whole[84..96]].concat()), "the image is cut");
}
