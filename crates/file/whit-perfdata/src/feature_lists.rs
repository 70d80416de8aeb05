//! Features that are lists: PMUs, their capabilities, programs and types of BPF. Source: `tools/perf/util/header.c`.

use crate::bytes::Cursor;
use crate::feature::{Feature, Features, read_string};

/// Capabilities of a PMU, as names and values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PmuCapabilities {
    /// Name of the PMU.
    pub pmu: String,
    /// Capabilities, such as `branches` and `32`.
    pub list: Vec<(String, String)>,
}

impl Features {
    /// PMU_MAPPINGS: types and names of PMUs.
    pub fn pmu_mappings(&self) -> Option<Vec<(u32, String)>> {
        let mut c = Cursor::new(self.get(Feature::PMU_MAPPINGS)?);
        let count = c.u32()?;
        (0..count).map(|_| Some((c.u32()?, read_string(&mut c)?))).collect()
    }

    /// The capabilities of the CPU's only PMU (CPU_PMU_CAPS), and those of others (PMU_CAPS).
    pub fn pmu_capabilities(&self) -> Vec<PmuCapabilities> {
        let of_cpu = self.get(Feature::CPU_PMU_CAPS).and_then(|bytes| {
            Some(PmuCapabilities {
                pmu: "cpu".into(),
                list: capabilities(&mut Cursor::new(bytes))?,
            })
        });
        of_cpu.into_iter().chain(self.other_capabilities().unwrap_or_default()).collect()
    }

    fn other_capabilities(&self) -> Option<Vec<PmuCapabilities>> {
        let mut c = Cursor::new(self.get(Feature::PMU_CAPS)?);
        let count = c.u32()?;
        let one = |_| {
            let list = capabilities(&mut c)?;
            Some(PmuCapabilities { pmu: read_string(&mut c)?, list })
        };
        (0..count).map(one).collect()
    }

    /// BPF_PROG_INFO: ids of the programs that were described.
    pub fn bpf_programs(&self) -> Option<Vec<u32>> {
        let mut c = Cursor::new(self.get(Feature::BPF_PROG_INFO)?);
        let count = c.u32()?;
        let one = |_| {
            let (info_size, data_size, _arrays) = (c.u32()?, c.u32()?, c.u64()?);
            let mut info = Cursor::new(c.take(info_size as usize)?);
            c.take(data_size as usize)?;
            let _kind = info.u32()?;
            info.u32()
        };
        (0..count).map(one).collect()
    }

    /// BPF_BTF: ids of the types that were described.
    pub fn bpf_types(&self) -> Option<Vec<u32>> {
        let mut c = Cursor::new(self.get(Feature::BPF_BTF)?);
        let count = c.u32()?;
        let one = |_| {
            let (id, size) = (c.u32()?, c.u32()?);
            c.take(size as usize)?;
            Some(id)
        };
        (0..count).map(one).collect()
    }
}

fn capabilities(c: &mut Cursor<'_>) -> Option<Vec<(String, String)>> {
    let count = c.u32()?;
    (0..count).map(|_| Some((read_string(c)?, read_string(c)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::encode_string;

    fn words(out: &mut Vec<u8>, words: &[u32]) {
        out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    fn strings(out: &mut Vec<u8>, strings: &[&str]) {
        strings.iter().for_each(|text| encode_string(out, text));
    }

    #[test]
    fn pmus_and_their_capabilities() {
        let mut f = Features::default();
        assert_eq!((f.pmu_mappings(), f.pmu_capabilities()), (None, vec![]));
        let pmus = [(1, "software".to_owned()), (4, "cpu".to_owned())];
        f.set_pmu_mappings(&pmus);
        assert_eq!(f.pmu_mappings().unwrap(), pmus);
        let mut of_cpu = Vec::new();
        words(&mut of_cpu, &[1]);
        strings(&mut of_cpu, &["branches", "32"]);
        f.set(Feature::CPU_PMU_CAPS, of_cpu);
        let mut others = Vec::new();
        words(&mut others, &[1, 1]);
        strings(&mut others, &["zen4_ibs_extensions", "1", "ibs_op"]);
        f.set(Feature::PMU_CAPS, others.clone());
        let found = |pmu: &str, name: &str, value: &str| PmuCapabilities {
            pmu: pmu.into(),
            list: vec![(name.into(), value.into())],
        };
        let both = [found("cpu", "branches", "32"), found("ibs_op", "zen4_ibs_extensions", "1")];
        assert_eq!(f.pmu_capabilities(), both);
        f.set(Feature::PMU_CAPS, others[..others.len() - 1].to_vec());
        assert_eq!(f.pmu_capabilities(), both[..1]);
    }

    #[test]
    fn ids_of_bpf_programs_and_types() {
        let mut f = Features::default();
        let mut programs = Vec::new();
        // Sizes of the description and of its arrays, which arrays they are; the kind and the id of the program.
        words(&mut programs, &[2, 8, 4, 0, 0, 3, 17, 99, 12, 0, 0, 0, 3, 18, 0]);
        f.set(Feature::BPF_PROG_INFO, programs.clone());
        assert_eq!(f.bpf_programs(), Some(vec![17, 18]));
        f.set(Feature::BPF_PROG_INFO, programs[..programs.len() - 4].to_vec());
        assert_eq!(f.bpf_programs(), None);
        let mut types = Vec::new();
        words(&mut types, &[2, 7, 4, 0xff, 8, 0]);
        f.set(Feature::BPF_BTF, types);
        assert_eq!((f.bpf_types(), Features::default().bpf_types()), (Some(vec![7, 8]), None));
    }
}
