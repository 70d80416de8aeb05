//! CPUID and IA32_PERF_CAPABILITIES as values.
//!
//! Source: Intel SDM volume 2 (CPUID), AMD APM volume 3 appendix E; checked against the unions of
//! `arch/x86/include/asm/perf_event.h` of Linux (`cpuid10_eax`, `cpuid28_eax`, `cpuid35_eax`,
//! `cpuid_0x80000022_ebx`).

/// The registers that CPUID returns.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
#[allow(missing_docs)]
pub struct Leaf {
    pub eax: u32,
    pub ebx: u32,
    pub ecx: u32,
    pub edx: u32,
}

/// The leaves that describe the PMU.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct CpuidLeaves {
    /// Leaf 0: the vendor.
    pub vendor: Leaf,
    /// Leaf 1: family, model, stepping; whether there is a hypervisor and IA32_PERF_CAPABILITIES.
    pub signature: Leaf,
    /// Leaf 0xA: architectural performance monitoring.
    pub perfmon: Leaf,
    /// Leaf 0x1C: architectural LBR.
    pub arch_lbr: Leaf,
    /// Leaf 0x23, subleaf 0: performance monitoring of version 6.
    pub perfmon_ext: Leaf,
    /// Leaf 0x23, subleaf 1: counters as bitmaps.
    pub perfmon_ext_counters: Leaf,
    /// Leaf 0x80000001: AMD's core extension.
    pub amd_features: Leaf,
    /// Leaf 0x80000022: AMD's PerfMonV2.
    pub amd_perfmon: Leaf,
    /// IA32_PERF_CAPABILITIES where [`CpuidLeaves::has_perf_capabilities`], else 0.
    pub perf_capabilities: u64,
    /// Revision of the microcode, 0 if unknown.
    pub microcode: u32,
}

impl CpuidLeaves {
    /// Asks `cpuid(leaf, subleaf)` for every leaf that the CPU has. The two last fields stay 0: they
    /// are in model-specific registers.
    pub fn collect(mut cpuid: impl FnMut(u32, u32) -> Leaf) -> CpuidLeaves {
        let vendor = cpuid(0, 0);
        let extended_max = cpuid(0x8000_0000, 0).eax;
        let mut leaf = |number: u32, subleaf| {
            let max = if number >= 0x8000_0000 { extended_max } else { vendor.eax };
            if number <= max { cpuid(number, subleaf) } else { Leaf::default() }
        };
        let perfmon_ext = leaf(0x23, 0);
        CpuidLeaves {
            vendor,
            signature: leaf(1, 0),
            perfmon: leaf(0xa, 0),
            arch_lbr: if leaf(7, 0).edx & (1 << 19) != 0 { leaf(0x1c, 0) } else { Leaf::default() },
            perfmon_ext,
            perfmon_ext_counters: if perfmon_ext.eax & 2 != 0 {
                leaf(0x23, 1)
            } else {
                Leaf::default()
            },
            amd_features: leaf(0x8000_0001, 0),
            amd_perfmon: leaf(0x8000_0022, 0),
            perf_capabilities: 0,
            microcode: 0,
        }
    }

    /// The vendor's name in the order in which its letters come.
    #[must_use]
    pub fn vendor_name(&self) -> [u8; 12] {
        let mut name = [0; 12];
        let letters = [self.vendor.ebx, self.vendor.edx, self.vendor.ecx];
        for (chunk, register) in name.chunks_exact_mut(4).zip(letters) {
            chunk.copy_from_slice(&register.to_le_bytes());
        }
        name
    }

    /// The family with its extension.
    #[must_use]
    pub const fn family(&self) -> u32 {
        let family = (self.signature.eax >> 8) & 0xf;
        if family == 0xf { family + ((self.signature.eax >> 20) & 0xff) } else { family }
    }

    /// The model with its extension.
    #[must_use]
    pub const fn model(&self) -> u32 {
        let model = (self.signature.eax >> 4) & 0xf;
        if self.family() >= 6 { model | ((self.signature.eax >> 12) & 0xf0) } else { model }
    }

    /// Bits 3:0 of leaf 1, EAX.
    #[must_use]
    pub const fn stepping(&self) -> u32 {
        self.signature.eax & 0xf
    }

    /// True where a hypervisor says that it is there.
    #[must_use]
    pub const fn has_hypervisor(&self) -> bool {
        self.signature.ecx & (1 << 31) != 0
    }

    /// True where IA32_PERF_CAPABILITIES exists (PDCM).
    #[must_use]
    pub const fn has_perf_capabilities(&self) -> bool {
        self.signature.ecx & (1 << 15) != 0
    }
}
