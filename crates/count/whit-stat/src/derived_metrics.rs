//! Metrics beside a row, computed from several counts of the same place.
//!
//! Which metric stands beside which event, and how it is computed, is `perf stat`'s
//! (`perf_stat__print_shadow_stats` in `tools/perf/util/stat-derived_metrics.c` of 6.1): an event is set
//! against others of the same modes (user, kernel, ...) in the same cgroup. Two events of one kind
//! are averaged.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use whit_events::{Cache, CacheEvent, CacheOp, CacheResult, Exclude, HardwareEvent};
use whit_events::{TYPE_HARDWARE, TYPE_HW_CACHE};
use whit_types::OutsideText;

use crate::counter::Counter;
use crate::metric::{Grade, Metric, Shape};
use crate::table::Table;

/// Generic events of hybrid machines name their PMU above this bit.
const EVENT_BITS: u64 = 0xffff_ffff;
const NS_PER_SECOND: f64 = 1e9;

/// Limits above which a share is bad, middling, or worth a look, in percent.
const IDLE_FRONTEND: [f64; 3] = [50.0, 30.0, 10.0];
const IDLE_BACKEND: [f64; 3] = [75.0, 50.0, 20.0];
const MISSES: [f64; 3] = [20.0, 10.0, 5.0];

/// The counts that a metric needs beside its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Nanoseconds,
    Cycles,
    StalledFrontend,
    StalledBackend,
    Branches,
    CacheReferences,
    Cache(u64),
}

/// Only events that were counted alike are set against each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    label: usize,
    kind: Kind,
    exclude: Exclude,
    cgroup: Option<OutsideText<Arc<str>>>,
}

/// The counts of a table that others are set against.
#[derive(Debug, Default)]
pub struct DerivedMetrics {
    sums: FxHashMap<Key, (f64, u32)>,
    wall_ns: f64,
}

fn hardware(counter: &Counter) -> Option<u64> {
    let event = &counter.event;
    (event.pmu_type == TYPE_HARDWARE).then_some(event.config[0] & EVENT_BITS)
}

fn is_hardware(counter: &Counter, event: HardwareEvent) -> bool {
    hardware(counter) == Some(event.config())
}

/// The cache, and whether this event counts its accesses or misses; reads only.
fn cache_reads(counter: &Counter) -> Option<(Cache, CacheResult)> {
    let event = &counter.event;
    if event.pmu_type != TYPE_HW_CACHE {
        return None;
    }
    let config = event.config[0] & EVENT_BITS;
    let caches = [Cache::L1d, Cache::L1i, Cache::Ll, Cache::Dtlb, Cache::Itlb];
    let results = [CacheResult::Access, CacheResult::Miss];
    let all = caches.iter().flat_map(|&cache| results.map(|result| (cache, result)));
    let config_of = |(cache, result)| CacheEvent { cache, op: CacheOp::Read, result }.config();
    all.into_iter().find(|&pair| config_of(pair) == config)
}

fn cache_number(cache: Cache) -> u64 {
    CacheEvent { cache, op: CacheOp::Read, result: CacheResult::Access }.config()
}

fn kind(counter: &Counter) -> Option<Kind> {
    if counter.is_clock() {
        return Some(Kind::Nanoseconds);
    }
    if let Some((cache, CacheResult::Access)) = cache_reads(counter) {
        return Some(Kind::Cache(cache_number(cache)));
    }
    let event = hardware(counter)?;
    let kinds = [
        (HardwareEvent::CpuCycles, Kind::Cycles),
        (HardwareEvent::StalledCyclesFrontend, Kind::StalledFrontend),
        (HardwareEvent::StalledCyclesBackend, Kind::StalledBackend),
        (HardwareEvent::BranchInstructions, Kind::Branches),
        (HardwareEvent::CacheReferences, Kind::CacheReferences),
    ];
    kinds.iter().find(|(known, _)| known.config() == event).map(|(_, kind)| *kind)
}

impl DerivedMetrics {
    /// Picks the metrics that a table with these counters can show; `wall_ns` is the counted time.
    pub fn of(counters: &[Counter], table: &Table, wall_ns: f64) -> DerivedMetrics {
        let mut derived_metrics = DerivedMetrics { sums: FxHashMap::default(), wall_ns };
        for row in &table.rows {
            let counter = &counters[row.counter];
            let Some(kind) = kind(counter).filter(|_| counter.absence.is_none()) else { continue };
            let (sum, count) =
                derived_metrics.sums.entry(key(row.label, kind, counter)).or_default();
            *sum += row.count;
            *count += 1;
        }
        derived_metrics
    }

    /// The metrics of a count, in order; none where there is nothing to set it against.
    pub fn metrics(&self, counter: &Counter, label: usize, count: f64) -> Vec<Metric> {
        let place = OpenTarget { derived_metrics: self, counter, label };
        if counter.event.tool.is_some() {
            return Vec::new();
        }
        if counter.is_clock() {
            return vec![place.utilization(count)];
        }
        if let Some((cache, CacheResult::Miss)) = cache_reads(counter) {
            return vec![place.cache_misses(cache, count)];
        }
        let is = |event| is_hardware(counter, event);
        use HardwareEvent as H;
        if is(H::Instructions) {
            place.instructions(count)
        } else if is(H::BranchMisses) {
            vec![place.misses(Kind::Branches, count, "of all branches")]
        } else if is(H::CacheMisses) {
            vec![place.cache_refs(count)]
        } else if is(H::StalledCyclesFrontend) {
            vec![place.stalled_frontend(count)]
        } else if is(H::StalledCyclesBackend) {
            vec![place.stalled_backend(count)]
        } else if is(H::CpuCycles) {
            vec![place.frequency(count)]
        } else {
            place.rate(count).into_iter().collect()
        }
    }
}

fn key(label: usize, kind: Kind, counter: &Counter) -> Key {
    let exclude = match kind {
        // Clocks run whatever the mode.
        Kind::Nanoseconds => Exclude::default(),
        // Guests are left out or not by the way an event is written; that separates nothing.
        _ => Exclude { guest: false, ..counter.event.exclude },
    };
    Key { label, kind, exclude, cgroup: counter.cgroup.clone() }
}

/// A counter in a place.
struct OpenTarget<'a> {
    derived_metrics: &'a DerivedMetrics,
    counter: &'a Counter,
    label: usize,
}

impl OpenTarget<'_> {
    /// The mean of the counts of a kind, where there is such an event.
    fn get(&self, kind: Kind) -> Option<f64> {
        let (sum, count) = self.derived_metrics.sums.get(&key(self.label, kind, self.counter))?;
        Some(sum / f64::from(*count))
    }

    /// The same, where it is not zero.
    fn get_some(&self, kind: Kind) -> Option<f64> {
        self.get(kind).filter(|value| *value != 0.0)
    }

    fn instructions(&self, count: f64) -> Vec<Metric> {
        let cycles = self.get_some(Kind::Cycles);
        let per_cycle = cycles.map(|cycles| count / cycles);
        let mut metrics = vec![Metric::new(per_cycle, Shape::Ratio, "insn per cycle")];
        let stalled = [Kind::StalledFrontend, Kind::StalledBackend].map(|kind| self.get(kind));
        let stalled = stalled.into_iter().flatten().fold(0.0, f64::max);
        if stalled != 0.0 && count != 0.0 {
            let per_instruction = Some(stalled / count);
            metrics.push(Metric::new(per_instruction, Shape::Ratio, "stalled cycles per insn"));
        }
        metrics
    }

    fn misses(&self, all: Kind, count: f64, unit: &str) -> Metric {
        let percent = self.get(all).map(|all| percent(count, all));
        Metric::new(percent, Shape::Percent, unit).graded(MISSES)
    }

    fn cache_misses(&self, cache: Cache, count: f64) -> Metric {
        let name = match cache {
            Cache::L1d => "L1-dcache",
            Cache::L1i => "L1-icache",
            Cache::Dtlb => "dTLB cache",
            Cache::Itlb => "iTLB cache",
            _ => "LL-cache",
        };
        self.misses(Kind::Cache(cache_number(cache)), count, &format!("of all {name} accesses"))
    }

    fn cache_refs(&self, count: f64) -> Metric {
        let percent = self.get(Kind::CacheReferences).map(|all| percent(count, all));
        Metric::new(percent, Shape::FinePercent, "of all cache refs")
    }

    fn stalled_frontend(&self, count: f64) -> Metric {
        let cycles = self.get(Kind::Cycles).unwrap_or(0.0);
        let share = Some(percent(count, cycles)).filter(|share| *share != 0.0);
        Metric::new(share, Shape::Percent, "frontend cycles idle").graded(IDLE_FRONTEND)
    }

    fn stalled_backend(&self, count: f64) -> Metric {
        let cycles = self.get(Kind::Cycles).unwrap_or(0.0);
        let share = Some(percent(count, cycles));
        Metric::new(share, Shape::Percent, "backend cycles idle").graded(IDLE_BACKEND)
    }

    fn frequency(&self, count: f64) -> Metric {
        match self.get_some(Kind::Nanoseconds) {
            Some(ns) => Metric::new(Some(count / ns), Shape::Number, "GHz"),
            None => Metric::new(None, Shape::Number, "Ghz"),
        }
    }

    fn utilization(&self, count: f64) -> Metric {
        let wall_ns = Some(self.derived_metrics.wall_ns).filter(|ns| *ns > 0.0);
        Metric::new(wall_ns.map(|ns| count / ns), Shape::Number, "CPUs utilized")
    }

    fn rate(&self, count: f64) -> Option<Metric> {
        let ns = self.get(Kind::Nanoseconds)?;
        let scaled = count * self.counter.event.scale;
        let mut rate = if ns == 0.0 { 0.0 } else { NS_PER_SECOND * scaled / ns };
        let mut unit = "/sec";
        for larger in ["K/sec", "M/sec", "G/sec"] {
            if rate > 1000.0 {
                (rate, unit) = (rate / 1000.0, larger);
            }
        }
        Some(Metric::new(Some(rate), Shape::Number, unit))
    }
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { 100.0 * part / whole }
}

impl Metric {
    fn graded(self, limits: [f64; 3]) -> Metric {
        let value = self.value.unwrap_or(0.0);
        let grades = [Grade::Bad, Grade::Middling, Grade::Notable];
        let grade = limits.iter().zip(grades).find(|(limit, _)| value > **limit);
        Metric { grade: grade.map_or(Grade::Plain, |(_, grade)| grade), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::tests::counters;
    use crate::table::Row;
    use crate::table::tests::table;

    /// Metrics of each event of a list, with these counts, in half a second.
    fn shown(list: &str, counts: &[f64]) -> Vec<Vec<String>> {
        let counters = counters(list);
        let table = table(counts);
        let derived_metrics = DerivedMetrics::of(&counters, &table, 5e8);
        let text = |row: &Row| {
            let metrics = derived_metrics.metrics(&counters[row.counter], 0, row.count);
            let text = |m: &Metric| format!("{} {}", m.text().unwrap_or_default(), m.unit);
            metrics.iter().map(|m| text(m).trim().to_owned()).collect::<Vec<_>>()
        };
        table.rows.iter().map(text).collect()
    }

    #[test]
    fn instructions_cycles_and_time() {
        let list = "task-clock,cycles,instructions,page-faults,stalled-cycles-backend";
        assert_eq!(
            shown(list, &[1e9, 3e9, 6e9, 2.5e6, 1.5e9]),
            [
                vec!["2.000 CPUs utilized"],
                vec!["3.000 GHz"],
                vec!["2.00  insn per cycle", "0.25  stalled cycles per insn"],
                vec!["2.500 M/sec"],
                vec!["50.00% backend cycles idle"],
            ]
        );
    }

    #[test]
    fn misses_are_set_against_accesses() {
        let list = "branches,branch-misses,L1-dcache-loads,L1-dcache-load-misses,LLC-loads,\
                    LLC-load-misses,cache-references,cache-misses,dTLB-load-misses";
        let counts = [100.0, 7.0, 200.0, 50.0, 10.0, 1.0, 1000.0, 333.0, 5.0];
        let metrics = shown(list, &counts);
        assert_eq!(metrics[1], ["7.00% of all branches"]);
        assert_eq!(metrics[3], ["25.00% of all L1-dcache accesses"]);
        assert_eq!(metrics[5], ["10.00% of all LL-cache accesses"]);
        assert_eq!(metrics[7], ["33.300 % of all cache refs"]);
        assert_eq!(metrics[8], ["of all dTLB cache accesses"], "nothing to set it against");
    }

    #[test]
    fn modes_and_cgroups_are_not_mixed() {
        assert_eq!(shown("cycles:u,instructions", &[1e9, 2e9])[1], ["insn per cycle"]);
        assert_eq!(shown("cycles:u,instructions:u", &[1e9, 2e9])[1], ["2.00  insn per cycle"]);
        assert_eq!(shown("task-clock:u,cs:k", &[1e9, 5.0])[1], ["5.000 /sec"]);
        assert_eq!(shown("cycles,instructions", &[0.0, 2e9])[1], ["insn per cycle"]);
    }

    #[test]
    fn shares_are_graded() {
        let grade = |percent| Metric::new(Some(percent), Shape::Percent, "").graded(MISSES).grade;
        let grades = [25.0, 15.0, 6.0, 5.0].map(grade);
        assert_eq!(grades, [Grade::Bad, Grade::Middling, Grade::Notable, Grade::Plain]);
    }
}
