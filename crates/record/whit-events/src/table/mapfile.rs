//! `mapfile.csv`: which files describe which processor.
//!
//! Columns are `Family-model,Version,Filename,EventType`. The first is a regular expression (POSIX,
//! extended). The third is a directory (Linux) or a file (perfmon, which adds three columns for the
//! kinds of core of a hybrid processor).

use regex_lite::Regex;

use super::{CpuIdentity, Owner};

/// Kinds of file that hold events.
const EVENT_TYPES: [&str; 6] =
    ["core", "uncore", "uncore experimental", "hybridcore", "offcore", "fp_arith_inst"];

/// A file or directory of a processor's events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Mapped {
    /// Where, relative to the map.
    pub(super) path: String,
    /// The PMU of events that name no unit.
    pub(super) owner: Owner,
}

/// Entries of the map for the processor, each once, in its order. Lines that cannot be read are
/// those of other processors.
pub(super) fn lookup(text: &str, cpu: &CpuIdentity) -> Vec<Mapped> {
    let mut found: Vec<Mapped> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split(',').map(str::trim).collect();
        let [pattern, _, path, kind, ..] = columns[..] else { continue };
        if !EVENT_TYPES.contains(&kind) || !is_model(pattern, cpu) {
            continue;
        }
        let owner = match columns.get(6) {
            Some(&"Core") => Owner::Pmu("cpu_core".to_owned()),
            Some(&"Atom") => Owner::Pmu("cpu_atom".to_owned()),
            _ => Owner::Cores,
        };
        let path = path.trim_start_matches('/').to_owned();
        if !found.iter().any(|known| known.path == path) {
            found.push(Mapped { path, owner });
        }
    }
    found
}

/// Whether the pattern is for the processor: for all of its name, or for all but the stepping.
fn is_model(pattern: &str, cpu: &CpuIdentity) -> bool {
    let whole = format!("^(?:{pattern})(?:-[0-9A-F]+)?$");
    Regex::new(&whole).is_ok_and(|regex| regex.is_match(cpu.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "Family-model,Version,Filename,EventType\n\
        # comment\n\
        GenuineIntel-6-(8E|9E),v1,skylake,core\n\
        GenuineIntel-6-55-[01234],v1,skylakex,core\n\
        GenuineIntel-6-55-[56789ABCDEF],v1,cascadelakex,core\n\
        AuthenticAMD-25-([245][[:xdigit:]]|[[:xdigit:]]),v1,amdzen3,core\n\
        0x00000000410fd0c0,v1,arm/neoverse-n1,core\n\
        GenuineIntel-6-97,V1,/ADL/events/gold_core.json,hybridcore,0x40,0x1,Core\n\
        GenuineIntel-6-97,V1,/ADL/events/grace_core.json,hybridcore,0x20,0x1,Atom\n\
        GenuineIntel-6-97,V1,/ADL/events/uncore.json,uncore,,,\n\
        GenuineIntel-6-97,V1,/ADL/metrics/m.json,metrics,,,\n\
        GenuineIntel-6-(,v1,broken,core\n";

    #[test]
    fn processors_find_their_files() {
        let paths = |cpu: &str| {
            let found = lookup(MAP, &CpuIdentity::new(cpu));
            found.into_iter().map(|mapped| mapped.path).collect::<Vec<_>>()
        };
        assert_eq!(paths("GenuineIntel-6-9E-A"), ["skylake"]);
        assert_eq!(paths("GenuineIntel-6-55-4"), ["skylakex"]);
        assert_eq!(paths("GenuineIntel-6-55-7"), ["cascadelakex"]);
        assert_eq!(paths("AuthenticAMD-25-1-1"), ["amdzen3"]);
        assert_eq!(paths("AuthenticAMD-25-A1-1"), Vec::<String>::new());
        assert_eq!(paths("0x00000000410fd0c0"), ["arm/neoverse-n1"]);
        assert_eq!(paths("GenuineIntel-6-9"), Vec::<String>::new());
        let hybrid = lookup(MAP, &CpuIdentity::new("GenuineIntel-6-97-2"));
        let owners: Vec<_> = hybrid.iter().map(|mapped| mapped.owner.clone()).collect();
        let pmu = |name: &str| Owner::Pmu(name.to_owned());
        assert_eq!(owners, [pmu("cpu_core"), pmu("cpu_atom"), Owner::Cores]);
        assert_eq!(hybrid[0].path, "ADL/events/gold_core.json");
    }
}
