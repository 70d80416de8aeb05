//! The cost of a running agent: memory of its processes, memory of its maps of BPF, and time in its programs of BPF.
//!
//! Maps and programs are those of the whole machine that were not there before the agent. Some agents keep no
//! descriptor of theirs.

use std::collections::HashMap;
use std::fs;
use std::process::{Command, Stdio};

use serde::Deserialize;
use whit_measure::process_tree::children;

/// Memory and time of BPF in the kernel, by the numbers of its objects.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Objects {
    /// Bytes of each map.
    maps: HashMap<u64, u64>,
    /// Nanoseconds in each program, while they are counted.
    programs: HashMap<u64, u64>,
}

/// An object as `bpftool -j` prints it.
#[derive(Deserialize)]
struct Object {
    id: u64,
    bytes_memlock: Option<u64>,
    run_time_ns: Option<u64>,
}

impl Objects {
    /// Those of the machine; `None` where `bpftool` is not here, or may not look at them.
    pub(super) fn now() -> Option<Objects> {
        let maps = objects("map")?.into_iter().map(|it| (it.id, it.bytes_memlock.unwrap_or(0)));
        let programs = objects("prog")?.into_iter().map(|it| (it.id, it.run_time_ns.unwrap_or(0)));
        Some(Objects { maps: maps.collect(), programs: programs.collect() })
    }

    /// Bytes of the maps that are not in `before`.
    pub(super) fn new_map_bytes(&self, before: &Objects) -> u64 {
        new(&self.maps, &before.maps)
    }

    /// Nanoseconds in the programs that are not in `before`.
    pub(super) fn new_program_ns(&self, before: &Objects) -> u64 {
        new(&self.programs, &before.programs)
    }
}

fn new(now: &HashMap<u64, u64>, before: &HashMap<u64, u64>) -> u64 {
    now.iter().filter(|(id, _)| !before.contains_key(id)).map(|(_, value)| value).sum()
}

fn objects(kind: &str) -> Option<Vec<Object>> {
    let mut command = Command::new("bpftool");
    let output = command.args(["-j", kind, "show"]).stdin(Stdio::null()).output().ok()?;
    read(&output.stdout)
}

/// A list, or without objects nothing.
fn read(json: &[u8]) -> Option<Vec<Object>> {
    if json.trim_ascii().is_empty() { Some(Vec::new()) } else { serde_json::from_slice(json).ok() }
}

/// CPU time of a process and of all below it, those too that have ended and were waited for; in hundredths of a second.
pub(super) fn cpu_s(process: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let ticks = ticks(&stat) as f64 / rustix::param::clock_ticks_per_second() as f64;
    ticks + children(process).into_iter().map(cpu_s).sum::<f64>()
}

/// The sum of `utime`, `stime`, `cutime` and `cstime`, which stand behind the name in parentheses.
fn ticks(stat: &str) -> u64 {
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_testing::wait::is_soon;

    #[test]
    fn the_time_of_children_that_ended_counts() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 100 20 3000 400 20 0 1 0 55";
        assert_eq!((ticks(stat), ticks("")), (3520, 0));
        let mut child = Command::new("sh");
        child.args(["-c", "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; sleep 60"]);
        let mut child = child.spawn().unwrap();
        let is_found = is_soon(|| cpu_s(child.id()) > 0.05);
        let _ = whit_measure::process_tree::kill(&mut child);
        let _ = child.wait();
        assert!(is_found);
    }

    /// As bpftool 7.1 printed it, without the fields that nobody reads.
    const PROGRAMS: &str = r#"[{"id":7,"type":"perf_event","name":"on_event","run_time_ns":1200,"run_cnt":3,"bytes_memlock":4096},
        {"id":9,"type":"tracing","bytes_memlock":4096}]"#;

    #[test]
    fn only_objects_that_were_not_there_count() {
        let list = read(PROGRAMS.as_bytes()).unwrap();
        let of = |value: fn(&Object) -> Option<u64>| {
            list.iter().map(|it| (it.id, value(it).unwrap_or(0))).collect()
        };
        let now = Objects { maps: of(|it| it.bytes_memlock), programs: of(|it| it.run_time_ns) };
        let nothing = Objects::default();
        assert_eq!((now.new_map_bytes(&nothing), now.new_program_ns(&nothing)), (8192, 1200));
        let before = Objects { maps: HashMap::from([(9, 1)]), programs: HashMap::from([(7, 1)]) };
        assert_eq!((now.new_map_bytes(&before), now.new_program_ns(&before)), (4096, 0));
    }

    #[test]
    fn no_objects_and_no_rights_are_distinguished() {
        assert_eq!(read(b"\n").unwrap().len(), 0);
        assert!(read(br#"{"error":"Operation not permitted"}"#).is_none());
    }
}
