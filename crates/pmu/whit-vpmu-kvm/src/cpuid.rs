//! The PMU's leaves among those that the guest sees.

use kvm_bindings::{CpuId, kvm_cpuid_entry2};
use whit_vpmu::{CpuidLeaf, CpuidRegisters};

use crate::Error;

/// Lays the PMU's leaves over the VMM's, and raises the highest leaves where they are lower.
///
/// # Errors
/// Where there is no room for another leaf.
pub fn apply_leaves(cpuid: &mut CpuId, leaves: &[CpuidLeaf]) -> Result<(), Error> {
    for leaf in leaves {
        let highest = leaf.function & 0x8000_0000;
        let mut found = false;
        for entry in cpuid.as_mut_slice() {
            if entry.function == highest {
                entry.eax = entry.eax.max(leaf.function);
            }
            if entry.function == leaf.function && entry.index == 0 {
                found = true;
                apply(entry, leaf);
            }
        }
        if !found {
            let mut entry = kvm_cpuid_entry2 { function: leaf.function, ..Default::default() };
            apply(&mut entry, leaf);
            cpuid
                .push(entry)
                .map_err(|_| Error::Guest("has no room for another CPUID leaf".to_owned()))?;
        }
    }
    Ok(())
}

fn apply(entry: &mut kvm_cpuid_entry2, leaf: &CpuidLeaf) {
    let kvm_cpuid_entry2 { eax, ebx, ecx, edx, .. } = *entry;
    let applied = leaf.applied_to(CpuidRegisters { eax, ebx, ecx, edx });
    (entry.eax, entry.ebx, entry.ecx, entry.edx) =
        (applied.eax, applied.ebx, applied.ecx, applied.edx);
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_vpmu::PmuModel;

    #[test]
    fn leaves_are_laid_over_and_added() {
        let leaf =
            |function, eax, ecx| kvm_cpuid_entry2 { function, eax, ecx, ..Default::default() };
        let given = [leaf(0x8000_0000, 0x8000_0008, 0), leaf(0x8000_0001, 7, (1 << 24) | 1)];
        let mut cpuid = CpuId::from_entries(&given).unwrap();
        let model = PmuModel::amd_v2(6).unwrap();
        let config = whit_vpmu::VpmuConfig::new(model);
        let options = whit_vpmu::host::HostOptions::default();
        let host = whit_vpmu::host::HostPerf::for_this_thread(Default::default(), options).unwrap();
        let vpmu = whit_vpmu::Vpmu::new(config, host, crate::Line::default());
        apply_leaves(&mut cpuid, &vpmu.cpuid_leaves()).unwrap();
        let entries = cpuid.as_slice();
        assert_eq!((entries[0].eax, entries.len()), (0x8000_0022, 3));
        assert_eq!((entries[1].eax, entries[1].ecx), (7, (1 << 23) | 1), "others' bits stay");
        assert_eq!((entries[2].function, entries[2].eax, entries[2].ebx), (0x8000_0022, 1, 6));
    }
}
