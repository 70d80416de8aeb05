//! Every state that the machine can reach.

use super::hardware::INSTRUCTIONS;
use super::machine::{
    AMD_WRITES, CONTROL_WRITES, COUNTER_WRITES, LAST, Setting, State, Step, select,
};
use crate::mediated::Rule;
use crate::model::{IntelPmu, PmuModel};
use crate::msr;
use std::collections::{HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::vec::Vec;

/// The result of a search.
struct Found {
    states: usize,
    /// The shortest way to a broken promise.
    broken: Option<(&'static str, Vec<Step>)>,
}

/// Two hashes of 64 bits in one pass.
struct Fingerprint(u64, u64);

impl Hasher for Fingerprint {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.1 = (self.1.rotate_left(41) ^ word).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    }
}

/// A state's identity. The chance that two of a million share one is below 10^-24.
fn fingerprint(state: &State) -> u128 {
    let mut hasher = Fingerprint(1, 2);
    state.hash(&mut hasher);
    u128::from(hasher.0) << 64 | u128::from(hasher.1)
}

fn explore(setting: &Setting, removed: Option<Rule>) -> Found {
    let start = State::new(setting, removed);
    let mut seen = HashSet::from([fingerprint(&start)]);
    let mut came_by: Vec<Option<(usize, Step)>> = std::vec![None];
    let mut queue = VecDeque::from([(start, 0)]);
    while let Some((state, number)) = queue.pop_front() {
        for step in state.steps(setting) {
            let next = match state.take(step) {
                Ok(next) => next,
                Err(what) => {
                    let mut path = std::vec![step];
                    let mut at = number;
                    while let Some((before, step)) = came_by[at] {
                        path.push(step);
                        at = before;
                    }
                    path.reverse();
                    return Found { states: seen.len(), broken: Some((what, path)) };
                }
            };
            if seen.insert(fingerprint(&next)) {
                queue.push_back((next, came_by.len()));
                came_by.push(Some((number, step)));
            }
        }
    }
    Found { states: seen.len(), broken: None }
}

fn intel(general: u8, fixed: u8) -> PmuModel {
    PmuModel::intel(IntelPmu { general, fixed, ..IntelPmu::default() }).unwrap()
}

/// A guest that does little, beside one that does more.
const FEW_INTEL_WRITES: &[(u32, u64)] = &[
    (msr::IA32_PERFEVTSEL, 0),
    (msr::IA32_PERFEVTSEL, select(INSTRUCTIONS)),
    (msr::IA32_A_PMC, LAST),
];
const INTEL_STARTS: &[(u32, u64)] = &[(msr::IA32_PERFEVTSEL, select(INSTRUCTIONS))];
const FEW_AMD_WRITES: &[(u32, u64)] = &[
    (msr::CORE_PERF_CTL, 0),
    (msr::CORE_PERF_CTL, select(INSTRUCTIONS)),
    (msr::CORE_PERF_CTL + 1, LAST),
];
const AMD_STARTS: &[(u32, u64)] = &[(msr::CORE_PERF_CTL, select(INSTRUCTIONS))];

/// One guest that writes everything, or two that write little; on Intel with all counters of the CPU and with fewer,
/// on AMD.
fn settings() -> Vec<Setting> {
    let amd = PmuModel::amd_v2(4).unwrap();
    let setting = |cpu, guest, host_slot, writes, host_changes| Setting {
        cpu,
        guest,
        host_slot,
        writes,
        host_changes,
    };
    std::vec![
        setting(intel(1, 0), intel(1, 0), 0, [CONTROL_WRITES, &[]], false),
        setting(intel(1, 1), intel(1, 1), 0, [COUNTER_WRITES, &[]], false),
        setting(amd, amd, 0, [AMD_WRITES, &[]], false),
        setting(intel(1, 1), intel(1, 1), 0, [FEW_INTEL_WRITES, INTEL_STARTS], true),
        setting(intel(2, 1), intel(1, 1), 1, [FEW_INTEL_WRITES, INTEL_STARTS], true),
        setting(amd, amd, 0, [FEW_AMD_WRITES, AMD_STARTS], true),
    ]
}

#[test]
fn no_count_is_lost_or_leaked_in_any_state() {
    for setting in settings() {
        let start = std::time::Instant::now();
        let found = explore(&setting, None);
        std::println!("{} states {:?}", found.states, start.elapsed());
        assert!(found.broken.is_none(), "{:?}: {:?}", setting, found.broken);
        assert!(found.states > 1000, "{}", found.states);
    }
}

#[test]
fn each_rule_is_needed() {
    for rule in Rule::ALL {
        let found = settings().iter().find_map(|setting| explore(setting, Some(rule)).broken);
        let (what, path) = found.unwrap_or_else(|| panic!("nothing breaks without {rule:?}"));
        std::println!("without {rule:?}: {what}, after {path:?}");
    }
}
