//! A VM with one vCPU in long mode, which knows nothing but its image.

#![allow(unsafe_code)]

use kvm_bindings::{
    CpuId, KVM_MAX_CPUID_ENTRIES, kvm_regs, kvm_segment, kvm_userspace_memory_region,
};
use kvm_ioctls::{Kvm, VcpuFd, VmFd};
use vm_memory::{Bytes, GuestAddress, GuestMemoryBackend, GuestMemoryMmap};
use whit_vpmu::{CpuidLeaf, PmuKind, PmuModel};

use super::Work;
use crate::{Error, apply_leaves, call, forward_msrs};

/// The images, built from `guest/`: the guest that measures its handlers, and the toy kernel.
pub(super) static GUEST: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/main.bin"));
pub(super) static KERNEL: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kernel.bin"));

const MEMORY_BYTES: usize = 4 << 20;
/// Page tables: level 4, level 3, level 2 with pages of 2 MiB.
const TABLES: [u64; 3] = [0x1000, 0x2000, 0x3000];
const GDT: u64 = 0x4000;
/// As `guest/main.rs` has it.
const PARAMETERS: u64 = 0x8000;
/// As `guest/link.ld` has it.
const IMAGE_START: u64 = 0x1_0000;
/// Top of the stack, as a function finds it: 8 bytes below an address that is aligned to 16.
const STACK: u64 = 0x20_0000 - 8;
/// The guest gives up after so many rounds of its loop.
const ROUNDS_MAX: u64 = 1 << 40;

const PRESENT_WRITABLE: u64 = 3;
const LARGE_PAGE: u64 = 1 << 7;
/// Access byte and flags of 64-bit code and of data.
const CODE_64: u64 = 0x00af_9a00_0000_ffff;
const DATA: u64 = 0x00cf_9200_0000_ffff;
const CR0_PE_PG: u64 = 1 | (1 << 31);
const CR4_PAE: u64 = 1 << 5;
const EFER_LME_LMA: u64 = (1 << 8) | (1 << 10);

pub(super) struct Machine {
    pub(super) vcpu: VcpuFd,
    // Closed after the vCPU; its memory is in use until then.
    _vm: VmFd,
    _memory: GuestMemoryMmap,
}

impl Machine {
    pub(super) fn new(
        model: &PmuModel,
        leaves: &[CpuidLeaf],
        work: &Work,
        image: &[u8],
    ) -> Result<Machine, Error> {
        let kvm = Kvm::new().map_err(Error::NoKvm)?;
        let vm = kvm.create_vm().map_err(call("KVM_CREATE_VM"))?;
        forward_msrs(&vm, model)?;
        let memory = memory(work, image)?;
        let address = memory.get_host_address(GuestAddress(0));
        let region = kvm_userspace_memory_region {
            memory_size: MEMORY_BYTES as u64,
            userspace_addr: address.map_err(|error| Error::Memory(error.to_string()))? as u64,
            ..Default::default()
        };
        // SAFETY: the region is mapped, as long as `memory` lives, which is longer than the VM.
        let given = unsafe { vm.set_user_memory_region(region) };
        given.map_err(call("KVM_SET_USER_MEMORY_REGION"))?;
        let vcpu = vm.create_vcpu(0).map_err(call("KVM_CREATE_VCPU"))?;
        let mut cpuid = kvm
            .get_supported_cpuid(KVM_MAX_CPUID_ENTRIES)
            .map_err(call("KVM_GET_SUPPORTED_CPUID"))?;
        set_vendor(&mut cpuid, model);
        apply_leaves(&mut cpuid, leaves)?;
        vcpu.set_cpuid2(&cpuid).map_err(call("KVM_SET_CPUID2"))?;
        set_registers(&vcpu)?;
        Ok(Machine { vcpu, _vm: vm, _memory: memory })
    }
}

/// The guest's driver goes by the vendor.
fn set_vendor(cpuid: &mut CpuId, model: &PmuModel) {
    let name = if matches!(model.kind(), PmuKind::Intel { .. }) {
        b"GenuineIntel"
    } else {
        b"AuthenticAMD"
    };
    let word = |at: usize| u32::from_le_bytes([name[at], name[at + 1], name[at + 2], name[at + 3]]);
    for entry in cpuid.as_mut_slice() {
        if entry.function & 0x7fff_ffff == 0 {
            (entry.ebx, entry.edx, entry.ecx) = (word(0), word(4), word(8));
        }
    }
}

fn memory(work: &Work, image: &[u8]) -> Result<GuestMemoryMmap, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Memory(error.to_string());
    let memory: GuestMemoryMmap = GuestMemoryMmap::from_ranges(&[(GuestAddress(0), MEMORY_BYTES)])
        .map_err(|error| failed(&error))?;
    let mut words = vec![
        (TABLES[0], TABLES[1] | PRESENT_WRITABLE),
        (TABLES[1], TABLES[2] | PRESENT_WRITABLE),
        (GDT + 8, CODE_64),
        (GDT + 16, DATA),
        (PARAMETERS, work.samples),
        (PARAMETERS + 8, work.period),
        (PARAMETERS + 16, work.code),
        (PARAMETERS + 24, ROUNDS_MAX),
    ];
    let pages =
        (0..512_u64).map(|n| (TABLES[2] + 8 * n, (n << 21) | LARGE_PAGE | PRESENT_WRITABLE));
    words.extend(pages);
    for (address, word) in words {
        let bytes = word.to_le_bytes();
        memory.write_slice(&bytes, GuestAddress(address)).map_err(|error| failed(&error))?;
    }
    memory.write_slice(image, GuestAddress(IMAGE_START)).map_err(|error| failed(&error))?;
    Ok(memory)
}

fn set_registers(vcpu: &VcpuFd) -> Result<(), Error> {
    let mut special = vcpu.get_sregs().map_err(call("KVM_GET_SREGS"))?;
    let code = kvm_segment {
        limit: 0xffff_ffff,
        selector: 8,
        type_: 11,
        present: 1,
        s: 1,
        l: 1,
        g: 1,
        ..Default::default()
    };
    let data = kvm_segment { selector: 16, type_: 3, l: 0, db: 1, ..code };
    special.cs = code;
    (special.ds, special.es, special.ss) = (data, data, data);
    (special.gdt.base, special.gdt.limit) = (GDT, 3 * 8 - 1);
    special.cr3 = TABLES[0];
    special.cr4 |= CR4_PAE;
    special.cr0 |= CR0_PE_PG;
    special.efer |= EFER_LME_LMA;
    vcpu.set_sregs(&special).map_err(call("KVM_SET_SREGS"))?;
    let registers = kvm_regs { rip: IMAGE_START, rsp: STACK, rflags: 2, ..Default::default() };
    vcpu.set_regs(&registers).map_err(call("KVM_SET_REGS"))
}
