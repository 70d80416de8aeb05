//! Name of a processor in the tables' `mapfile.csv`.

use std::fmt;
use std::fs;
use std::path::Path;

/// A model of processor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuIdentity(String);

/// `MIDR_EL1`: variant and revision, which tables leave out (Arm Architecture Reference Manual,
/// D17.2).
const MIDR_VARIANT_AND_REVISION: u64 = 0xf0_000f;

impl CpuIdentity {
    /// From a name that is known: `GenuineIntel-6-9E-A` (vendor, then family in decimal, model and
    /// stepping in hexadecimal), `0x00000000410fd0c0`.
    pub fn new(name: impl Into<String>) -> CpuIdentity {
        CpuIdentity(name.into())
    }

    /// Name of the first processor in the text of `/proc/cpuinfo`, on x86.
    pub fn from_cpuinfo(text: &str) -> Option<CpuIdentity> {
        let field = |name: &str| {
            text.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                (key.trim() == name).then(|| value.trim())
            })
        };
        let number = |name| field(name)?.parse::<u32>().ok();
        let vendor = field("vendor_id")?;
        let (family, model) = (number("cpu family")?, number("model")?);
        let stepping = number("stepping").unwrap_or_default();
        Some(CpuIdentity(format!("{vendor}-{family}-{model:X}-{stepping:X}")))
    }

    /// From the content of `midr_el1` in sysfs, on Arm.
    pub fn from_midr(text: &str) -> Option<CpuIdentity> {
        let digits = text.trim().strip_prefix("0x")?;
        let midr = u64::from_str_radix(digits, 16).ok()?;
        Some(CpuIdentity(format!("{:#018x}", midr & !MIDR_VARIANT_AND_REVISION)))
    }

    /// Name of this machine's first processor, from below `/proc` and `/sys`.
    pub fn read(proc: &Path, sys: &Path) -> Option<CpuIdentity> {
        let midr = sys.join("devices/system/cpu/cpu0/regs/identification/midr_el1");
        let midr = fs::read_to_string(midr).ok();
        midr.and_then(|text| CpuIdentity::from_midr(&text))
            .or_else(|| CpuIdentity::from_cpuinfo(&fs::read_to_string(proc.join("cpuinfo")).ok()?))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CpuIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_tables() {
        let cpuinfo = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 158\n\
                       model name\t: Some CPU\nstepping\t: 10\n\nprocessor\t: 1\nmodel\t: 3\n";
        let cpu = CpuIdentity::from_cpuinfo(cpuinfo).unwrap();
        assert_eq!(cpu.as_str(), "GenuineIntel-6-9E-A");
        assert_eq!(CpuIdentity::from_cpuinfo("processor: 0\n"), None);
        let arm = CpuIdentity::from_midr("0x00000000413fd0c1\n").unwrap();
        assert_eq!(arm.as_str(), "0x00000000410fd0c0");
        assert_eq!(CpuIdentity::from_midr("none"), None);
    }
}
