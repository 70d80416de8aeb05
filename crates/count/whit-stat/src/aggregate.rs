//! Adding up readings.
//!
//! Everything together: counts and times are added up first, and the part that was not seen is
//! estimated from the sums, as in perf. In smaller units each CPU's part is estimated by itself. A
//! CPU on which nothing was seen (no task of the cgroup ran there) takes nothing away from the
//! others; perf 6.1 shows no count for such a package at all.

use std::collections::HashMap;
use std::sync::Arc;

use whit_host::processes::Status;
use whit_host::roots::Roots;
use whit_host::topology::Topology;
use whit_types::{OutsideText, Tid};

use crate::counter::Counter;
use crate::reading::Reading;
use crate::source::Slot;
use crate::table::{Aggregation, Label, Row, Table};

/// How readings are added up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    /// The places that one row sums up.
    pub aggregation: Aggregation,
    /// Scale counts of multiplexed events to the whole time.
    pub scale: bool,
    /// Add up events of equal names that several PMUs of one kind count.
    pub merge: bool,
}

/// Adds up readings of one source. Keeps where each slot goes for as long as there are no new ones.
#[derive(Debug)]
pub struct Aggregator {
    rules: Rules,
    topology: Topology,
    roots: Roots,
    /// Names of threads, as they were when first seen.
    comms: HashMap<Tid, Arc<str>>,
    labels: Vec<Label>,
    /// The row of each slot; `None` for one that does not count.
    row_of_slot: Vec<Option<usize>>,
    /// Counter and label of each row.
    rows: Vec<(usize, usize)>,
}

impl Aggregator {
    /// By these rules.
    pub fn new(rules: Rules, roots: &Roots) -> Aggregator {
        Aggregator {
            rules,
            topology: Topology::new(roots),
            roots: roots.clone(),
            comms: HashMap::new(),
            labels: Vec::new(),
            row_of_slot: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// The table of these readings, one for each slot.
    pub fn add_up(&mut self, counters: &[Counter], slots: &[Slot], readings: &[Reading]) -> Table {
        if self.row_of_slot.len() != slots.len() {
            self.lay_out(counters, slots);
        }
        let empty = |&(counter, label): &(usize, usize)| Row {
            counter,
            label,
            places: 0,
            reading: Reading::ZERO,
            count: 0.0,
            noise_percent: 0.0,
        };
        let mut rows: Vec<Row> = self.rows.iter().map(empty).collect();
        let mut sums = vec![0u64; rows.len()];
        for (row, reading) in self.row_of_slot.iter().zip(readings) {
            let Some(row) = *row else { continue };
            rows[row].places += 1;
            rows[row].reading = rows[row].reading.plus(*reading);
            sums[row] = sums[row].saturating_add(self.estimate(*reading));
        }
        for (row, sum) in rows.iter_mut().zip(sums) {
            let is_global = self.rules.aggregation == Aggregation::Global;
            row.count = if is_global { self.estimate(row.reading) } else { sum } as f64;
        }
        Table { labels: self.labels.clone(), rows }
    }

    fn estimate(&self, reading: Reading) -> u64 {
        if self.rules.scale { reading.scaled() } else { reading.value }
    }

    fn lay_out(&mut self, counters: &[Counter], slots: &[Slot]) {
        let shown: Vec<usize> =
            (0..counters.len()).map(|index| self.shown_as(counters, index)).collect();
        let of_slot: Vec<Option<(usize, Label)>> = {
            let mut packages = Vec::new();
            let key = |slot: &Slot| {
                let counter = &counters[slot.counter];
                let counts = !counter.event.per_package || self.is_first(slot, &mut packages);
                counts.then(|| (shown[slot.counter], self.label(counter, slot)))
            };
            slots.iter().map(key).collect()
        };
        self.labels = of_slot.iter().flatten().map(|(_, label)| label.clone()).collect();
        self.labels.sort();
        self.labels.dedup();
        let index: HashMap<&Label, usize> =
            self.labels.iter().enumerate().map(|(index, label)| (label, index)).collect();
        let keys: Vec<Option<(usize, usize)>> =
            of_slot.iter().map(|key| key.as_ref().map(|(c, label)| (*c, index[label]))).collect();
        self.rows = keys.iter().flatten().copied().collect();
        match self.rules.aggregation.counts_cpus() {
            true => self.rows.sort_unstable_by_key(|&(counter, label)| (label, counter)),
            false => self.rows.sort_unstable(),
        }
        self.rows.dedup();
        let row: HashMap<(usize, usize), usize> =
            self.rows.iter().enumerate().map(|(row, &key)| (key, row)).collect();
        self.row_of_slot = keys.iter().map(|key| key.map(|key| row[&key])).collect();
    }

    /// An event that counts once for a whole package is taken from one CPU of each package.
    fn is_first(&mut self, slot: &Slot, packages: &mut Vec<(usize, i64, i64)>) -> bool {
        let Some(cpu) = slot.cpu else { return true };
        let place = self.topology.place(cpu);
        let package = (slot.counter, place.socket, place.die);
        let is_new = !packages.contains(&package);
        if is_new {
            packages.push(package);
        }
        is_new
    }

    /// The counter in whose row this one is shown: its own, or that of the same event of another
    /// instance of its PMU.
    fn shown_as(&self, counters: &[Counter], index: usize) -> usize {
        let counter = &counters[index];
        let is_same = |other: &Counter| {
            let (a, b) = (&other.event, &counter.event);
            a.auto_merge
                && b.auto_merge
                && a.name == b.name
                && a.pmu != b.pmu
                && (a.scale, &a.unit) == (b.scale, &b.unit)
                && other.cgroup == counter.cgroup
        };
        let first = || counters[..index].iter().position(is_same);
        if self.rules.merge { first().unwrap_or(index) } else { index }
    }

    fn label(&mut self, counter: &Counter, slot: &Slot) -> Label {
        let aggregation = match self.rules.aggregation {
            Aggregation::Cpu if counter.event.terms.per_core => Aggregation::Core,
            other => other,
        };
        if aggregation == Aggregation::Thread {
            let Some(thread) = slot.thread else { return Label::Everything };
            let comm = OutsideText::new(self.comm(thread.tid));
            return Label::Thread { index: thread.index, tid: thread.tid.0, comm };
        }
        let Some(cpu) = slot.cpu else { return Label::Everything };
        let place = self.topology.place(cpu);
        let (socket, die) = (place.socket, place.die);
        match aggregation {
            Aggregation::Global | Aggregation::Thread => Label::Everything,
            Aggregation::Cpu => Label::Cpu(cpu.0),
            Aggregation::Core => Label::Core { socket, die, core: place.core },
            Aggregation::Cache => {
                let (level, id) = place.cache;
                Label::Cache { socket, die, level, id }
            }
            Aggregation::Die => Label::Die { socket, die },
            Aggregation::Socket => Label::Socket(socket),
            Aggregation::Node => Label::Node(place.node),
        }
    }

    fn comm(&mut self, tid: Tid) -> Arc<str> {
        let read = || {
            let status = Status::of_thread(&self.roots, tid);
            status.map_or("<gone>".into(), |s| String::from_utf8_lossy(&s.name).into())
        };
        self.comms.entry(tid).or_insert_with(read).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::tests::counters;
    use proptest::prelude::*;
    use std::sync::LazyLock;
    use whit_types::CpuId;

    const CPUS: u32 = 8;

    fn slots(counters: usize) -> Vec<Slot> {
        let of = |counter| {
            (0..CPUS).map(move |cpu| Slot { counter, cpu: Some(CpuId(cpu)), thread: None })
        };
        (0..counters).flat_map(of).collect()
    }

    fn table(aggregation: Aggregation, counters: &[Counter], readings: &[Reading]) -> Table {
        static MACHINE: LazyLock<tempfile::TempDir> =
            LazyLock::new(whit_testing::machine::two_sockets);
        let rules = Rules { aggregation, scale: true, merge: true };
        let roots = Roots { sys: MACHINE.path().to_owned(), ..Roots::default() };
        let mut aggregator = Aggregator::new(rules, &roots);
        aggregator.add_up(counters, &slots(counters.len()), readings)
    }

    fn counts(aggregation: Aggregation, readings: &[Reading]) -> Vec<(String, usize, f64)> {
        let table = table(aggregation, &counters("cs"), readings);
        let row = |row: &Row| (table.labels[row.label].to_string(), row.places, row.count);
        table.rows.iter().map(row).collect()
    }

    fn read(values: &[u64]) -> Vec<Reading> {
        let reading = |&value| Reading { value, enabled_ns: 10, running_ns: 10 };
        values.iter().map(reading).collect()
    }

    #[test]
    fn cpus_are_added_up_by_their_place() {
        let readings = read(&[1, 2, 4, 8, 16, 32, 64, 128]);
        let named = |list: &[(&str, usize, f64)]| {
            list.iter().map(|(name, n, c)| ((*name).to_owned(), *n, *c)).collect::<Vec<_>>()
        };
        assert_eq!(counts(Aggregation::Global, &readings), named(&[("", 8, 255.0)]));
        let sockets = [("S0", 4, 51.0), ("S1", 4, 204.0)];
        assert_eq!(counts(Aggregation::Socket, &readings), named(&sockets));
        let cores = [
            ("S0-D0-C0", 2, 17.0),
            ("S0-D0-C1", 2, 34.0),
            ("S1-D0-C0", 2, 68.0),
            ("S1-D0-C1", 2, 136.0),
        ];
        assert_eq!(counts(Aggregation::Core, &readings), named(&cores));
        let caches = [("S0-D0-L3-ID0", 4, 51.0), ("S1-D0-L3-ID1", 4, 204.0)];
        assert_eq!(counts(Aggregation::Cache, &readings), named(&caches));
        assert_eq!(counts(Aggregation::Cpu, &readings)[7], ("CPU7".to_owned(), 1, 128.0));
    }

    #[test]
    fn order_is_by_counter_or_by_place_as_in_perf() {
        let two = counters("cs,faults");
        let readings = read(&[1; 16]);
        let order = |aggregation| {
            let table = table(aggregation, &two, &readings);
            table.rows.iter().map(|row| (row.counter, row.label)).collect::<Vec<_>>()
        };
        assert_eq!(order(Aggregation::Socket), [(0, 0), (1, 0), (0, 1), (1, 1)]);
        assert_eq!(order(Aggregation::Cpu)[..3], [(0, 0), (0, 1), (0, 2)]);
    }

    #[test]
    fn instances_of_a_pmu_are_one_row_unless_requested_otherwise() {
        let mut two = counters("cs,cs");
        for (counter, pmu) in two.iter_mut().zip(["imc_0", "imc_1"]) {
            counter.event.pmu = pmu.to_owned();
            counter.event.auto_merge = true;
        }
        let dir = whit_testing::machine::two_sockets();
        let roots = Roots { sys: dir.path().to_owned(), ..Roots::default() };
        let rows = |merge| {
            let rules = Rules { aggregation: Aggregation::Global, scale: true, merge };
            let table = Aggregator::new(rules, &roots).add_up(&two, &slots(2), &read(&[1; 16]));
            table.rows.iter().map(|row| (row.counter, row.count)).collect::<Vec<_>>()
        };
        assert_eq!(rows(true), [(0, 16.0)]);
        assert_eq!(rows(false), [(0, 8.0), (1, 8.0)]);
    }

    #[test]
    fn package_counts_are_taken_once_per_package() {
        let mut one = counters("cs");
        one[0].event.per_package = true;
        let readings = read(&[7; 8]);
        assert_eq!(table(Aggregation::Global, &one, &readings).rows[0].count, 14.0);
        let by_socket = table(Aggregation::Socket, &one, &readings);
        assert_eq!(by_socket.rows.iter().map(|row| row.count).collect::<Vec<_>>(), [7.0, 7.0]);
    }

    #[test]
    fn a_cpu_where_nothing_was_seen_takes_nothing_away() {
        let mut readings = read(&[5; 8]);
        readings[0] = Reading { value: 0, enabled_ns: 10, running_ns: 0 };
        let by_socket = table(Aggregation::Socket, &counters("cs"), &readings);
        assert_eq!(by_socket.rows[0].count, 15.0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn every_way_of_adding_up_gives_the_same_total(
            values in prop::collection::vec((0..1u64 << 40, 1..1u64 << 40), 16)
        ) {
            // Without multiplexing: there is nothing to estimate.
            let readings: Vec<_> = values
                .into_iter()
                .map(|(value, time)| Reading { value, enabled_ns: time, running_ns: time })
                .collect();
            let two = counters("cs,faults");
            let total = |aggregation, counter| {
                let table = table(aggregation, &two, &readings);
                let rows = table.rows.iter().filter(|row| row.counter == counter);
                rows.fold((0.0, Reading::ZERO, 0), |(count, reading, places), row| {
                    (count + row.count, reading.plus(row.reading), places + row.places)
                })
            };
            use Aggregation as A;
            for counter in 0..2 {
                let global = total(A::Global, counter);
                for aggregation in [A::Cpu, A::Core, A::Cache, A::Die, A::Socket, A::Node] {
                    prop_assert_eq!(total(aggregation, counter), global);
                }
            }
        }
    }
}
