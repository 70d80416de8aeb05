//! The report as JSON: a stable form for programs.
//!
//! One object. `version` grows when a member changes its meaning or goes away; new members may
//! appear without that. Periods, counts, nanoseconds and bytes are whole numbers; percentages and
//! `data_loss` (0 to 1) are fractions. What is not known is `null`: `data_loss` where something was lost and
//! nobody knows for how long. Names are exact, whatever characters are in them.
//!
//! ```text
//! {
//!   "format": "whit-report", "version": 1,
//!   "recording": { "path", "size_bytes", "hostname", "os_release", "version", "arch",
//!                  "nr_cpus_online", "nr_cpus_available", "cpu_desc", "cpuid", "total_mem_kib",
//!                  "cmdline": [..], "first_sample_ns", "last_sample_ns", "captured_on_s",
//!                  "has_callchains" },
//!   "sort": ["comm", ..],
//!   "self_time": "innermost" | "outer",  // whose own time a sample in inlined code is
//!   "events": [ {
//!     "name", "samples", "period", "lost_samples", "children": true|false,
//!     "rows": [ {                      // heaviest first
//!       "comm", "pid", "tid", "cpu",   // only those that `sort` asks for; `pid` and `tid` as
//!                                      // numbers, `pid` for the key `tgid`
//!       "dso": { "name", "path", "build_id" },
//!       "symbol": { "name", "known", "inlined", "kernel" },
//!       "source": "file:line" | "file",
//!       "self": { "period", "samples", "percent" },
//!       "children": { "period", "samples", "percent" },   // null without children
//!       "chains": [ {                  // a node of the call graph: a run of functions
//!         "parent": index in this list or null,
//!         "functions": [ { "name", "inlined" }, .. ],
//!         "period",                    // of all chains through this node
//!         "self_period"                // of the chains that end here
//!       } ]
//!     } ]
//!   } ],
//!   "losses": { "lost_records", "lost_chunks", "lost_samples", "paused_ns", "elapsed_ns",
//!               "truncated_bytes", "data_loss" },
//!   "ledger": { .. as the ledger's fields ..,
//!               "pmi": { "measurement": "perf_handlers" | "all_handlers" | why not, "reason",
//!                        "count", "time_ns", "longest_ns", "measured_ns" },
//!               "bpf": { "measurement": "statistics" | why not, "reason", "programs", "runs",
//!                        "run_time_ns", "timed_ns" },
//!               "stacks": { .. as the ledger's fields .., "ended": { "end_of_stack": walks, .. } } |
//!                         null } | null,
//!   "stats": { "by_type": { "MMAP2": 4, .. }, "samples_by_event": [..],
//!              "unwind_stops": { "reason": samples, .. }, "continued_chains": samples },
//!   "warnings": [ "..", .. ]
//! }
//! ```

use std::io::{self, Write};

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use whit_perfdata::ledger::Ledger;
use whit_profile::model::{DsoId, EventId, FunctionId, LossReport, Profile, RecordStats};
use whit_types::OutsideText;

use crate::hists::{self, ChainNode, HistRow, Hists, HistsOptions, SortKey};
use crate::json_strings;
use crate::ledger_json::{LedgerJson, Names};
use crate::stdio::source_text;

/// Version of the form; see the module's documentation.
pub const VERSION: u32 = 1;

/// Writes the report, without a line end after it.
///
/// # Errors
/// What `out` returns.
pub fn write_json(
    out: &mut impl Write,
    profile: &Profile,
    options: &HistsOptions,
) -> io::Result<()> {
    json_strings::write(out, &Report { profile, options })
}

struct Report<'a> {
    profile: &'a Profile,
    options: &'a HistsOptions,
}

impl Serialize for Report<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Report { profile, options } = *self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("format", "whit-report")?;
        map.serialize_entry("version", &VERSION)?;
        map.serialize_entry("recording", &recording(profile))?;
        let keys: Vec<_> = options.sort_keys().iter().map(|k| k.name()).collect();
        map.serialize_entry("sort", &keys)?;
        map.serialize_entry("self_time", options.self_time.name())?;
        map.serialize_entry("events", &Events { profile, options })?;
        map.serialize_entry("losses", &losses(&profile.losses))?;
        map.serialize_entry("ledger", &profile.ledger.as_ref().map(ledger))?;
        map.serialize_entry("stats", &Stats(&profile.stats))?;
        let warnings: Vec<_> = profile.warnings.iter().map(OutsideText::exact).collect();
        map.serialize_entry("warnings", &warnings)?;
        map.end()
    }
}

fn recording(profile: &Profile) -> serde_json::Value {
    let info = &profile.recording;
    serde_json::json!({
        "path": info.path.exact(),
        "size_bytes": info.size_bytes,
        "hostname": info.hostname.exact(),
        "os_release": info.os_release.exact(),
        "version": info.version.exact(),
        "arch": info.arch.exact(),
        "nr_cpus_online": info.nr_cpus.map(|n| n.0),
        "nr_cpus_available": info.nr_cpus.map(|n| n.1),
        "cpu_desc": info.cpu_desc.exact(),
        "cpuid": info.cpuid.exact(),
        "total_mem_kib": info.total_mem_kib,
        "cmdline": info.cmdline.iter().map(OutsideText::exact).collect::<Vec<_>>(),
        "first_sample_ns": info.first_sample.map(|t| t.0),
        "last_sample_ns": info.last_sample.map(|t| t.0),
        "captured_on_s": info.captured_on_s,
        "has_callchains": info.has_callchains,
    })
}

fn losses(losses: &LossReport) -> serde_json::Value {
    serde_json::json!({
        "lost_records": losses.lost_records,
        "lost_chunks": losses.lost_chunks,
        "lost_samples": losses.lost_samples,
        "paused_ns": losses.paused_ns,
        "elapsed_ns": losses.elapsed_ns,
        "truncated_bytes": losses.truncated_bytes,
        "data_loss": losses.data_loss().share(),
    })
}

fn ledger(ledger: &Ledger) -> LedgerJson<'_> {
    LedgerJson { ledger, names: Names::Snake }
}

struct Stats<'a>(&'a RecordStats);

impl Serialize for Stats<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Counts<'a>(&'a [(String, u64)]);
        impl Serialize for Counts<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_map(self.0.iter().map(|(name, count)| (name, count)))
            }
        }
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("by_type", &Counts(&self.0.by_type))?;
        map.serialize_entry("samples_by_event", &self.0.samples_by_event)?;
        map.serialize_entry("unwind_stops", &Counts(&self.0.unwind_stops))?;
        map.serialize_entry("continued_chains", &self.0.continued_chains)?;
        map.end()
    }
}

struct Events<'a> {
    profile: &'a Profile,
    options: &'a HistsOptions,
}

impl Serialize for Events<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ids = (0..self.profile.events.len()).map(|i| EventId(i as u32));
        serializer.collect_seq(ids.map(|id| Event { report: self, id }))
    }
}

struct Event<'a> {
    report: &'a Events<'a>,
    id: EventId,
}

impl Serialize for Event<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Events { profile, options } = *self.report;
        let info = &profile.events[self.id.index()];
        let hists = hists::hists(profile, self.id, options);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", info.name.exact())?;
        map.serialize_entry("samples", &hists.total_samples)?;
        map.serialize_entry("period", &hists.total_period)?;
        map.serialize_entry("lost_samples", &info.lost_samples)?;
        map.serialize_entry("children", &hists.children)?;
        map.serialize_entry("rows", &Rows { profile, options, hists: &hists })?;
        map.end()
    }
}

struct Rows<'a> {
    profile: &'a Profile,
    options: &'a HistsOptions,
    hists: &'a Hists,
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shown = self.hists.shown(self.options.percent_limit);
        serializer.collect_seq(shown.map(|row| Row { rows: self, row }))
    }
}

struct Row<'a> {
    rows: &'a Rows<'a>,
    row: &'a HistRow,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Row { rows, row } = *self;
        let profile = rows.profile;
        let mut map = serializer.serialize_map(None)?;
        for &key in rows.options.sort_keys() {
            match key {
                SortKey::Comm => {
                    let comm = row.context.comm.map_or("", |c| profile.comms[c.index()].exact());
                    map.serialize_entry("comm", comm)?;
                }
                SortKey::Pid | SortKey::Tid => {
                    map.serialize_entry("tid", &row.context.tid.map(|t| t.0))?;
                }
                SortKey::Tgid => map.serialize_entry("pid", &row.context.pid.map(|p| p.0))?,
                SortKey::Cpu => map.serialize_entry("cpu", &row.context.cpu.map(|c| c.0))?,
                SortKey::Dso => {
                    map.serialize_entry("dso", &row.place.dso.map(|d| dso(profile, d)))?
                }
                SortKey::Symbol => {
                    let symbol = row.place.function.map(|f| symbol(profile, f, row));
                    map.serialize_entry("symbol", &symbol)?;
                }
                SortKey::SrcLine | SortKey::SrcFile => {
                    map.serialize_entry("source", source_text(profile, key, row).exact())?;
                }
            }
        }
        let hists = rows.hists;
        let weight = |period, samples| Weight { period, samples, percent: hists.percent(period) };
        map.serialize_entry("self", &weight(row.self_period, row.self_samples))?;
        let children = weight(row.children_period, row.children_samples);
        map.serialize_entry("children", &hists.children.then_some(children))?;
        map.serialize_entry("chains", &Chains { profile, nodes: &row.chains.nodes })?;
        map.end()
    }
}

#[derive(Serialize)]
struct Weight {
    period: u64,
    samples: u64,
    percent: f64,
}

fn dso(profile: &Profile, id: DsoId) -> serde_json::Value {
    let dso = &profile.dsos[id.index()];
    serde_json::json!({
        "name": dso.short_name.exact(),
        "path": dso.path.exact(),
        "build_id": dso.build_id.map(|id| id.to_string()),
    })
}

fn symbol(profile: &Profile, id: FunctionId, row: &HistRow) -> serde_json::Value {
    let function = &profile.functions[id.index()];
    serde_json::json!({
        "name": function.name.exact(),
        "known": function.known,
        "inlined": row.place.inlined,
        "kernel": row.place.kernel,
    })
}

struct Chains<'a> {
    profile: &'a Profile,
    nodes: &'a [ChainNode],
}

impl Serialize for Chains<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.nodes.iter().map(|node| {
            let functions = node.entries.iter().map(|e| Function {
                name: self.profile.functions[e.function.index()].name.exact(),
                inlined: e.inlined,
            });
            Chain {
                parent: node.parent,
                functions: functions.collect(),
                period: node.cumulative(),
                self_period: node.hit,
            }
        }))
    }
}

#[derive(Serialize)]
struct Chain<'a> {
    parent: Option<u32>,
    functions: Vec<Function<'a>>,
    period: u64,
    self_period: u64,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    inlined: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::{Builder, Who, at};
    use serde_json::Value;
    use whit_perfdata::ledger::{
        BpfLedger, BpfMeasurement, PmiLedger, PmiMeasurement, StackLedger,
    };

    const MAIN: Who<'static> = Who { comm: "a \"b\"", pid: 7, tid: 8, cpu: Some(3) };

    fn json(profile: &Profile, options: &HistsOptions) -> Value {
        let mut out = Vec::new();
        write_json(&mut out, profile, options).unwrap();
        serde_json::from_slice(&out).unwrap()
    }

    fn profile() -> Profile {
        let mut builder = Builder::default();
        let event = builder.event("cycles");
        let main = at("main", "/bin/app", 1).line("src/a.c", 4);
        let leaf = at("leaf", "/bin/app", 2);
        let inner = at("inner", "/bin/app", 2).inlined().line("src/a.c", 9);
        builder.sample(event, MAIN, &[main.clone(), leaf, inner], 30);
        builder.sample(event, MAIN, &[main], 10);
        builder.profile.losses.lost_records = 5;
        builder.profile.ledger = Some(Ledger { samples: 2, ..Ledger::default() });
        builder.profile.stats.by_type = vec![("SAMPLE".into(), 2)];
        builder.profile.stats.unwind_stops = vec![("end of stack".into(), 2)];
        builder.profile.warnings = vec!["careful".into()];
        builder.profile
    }

    #[test]
    fn rows_carry_keys_weights_and_chains() {
        let report = json(&profile(), &HistsOptions::default());
        assert_eq!((&report["format"], &report["version"]), (&"whit-report".into(), &1.into()));
        assert_eq!(report["sort"], serde_json::json!(["comm", "dso", "symbol"]));
        let event = &report["events"][0];
        assert_eq!((&event["samples"], &event["period"]), (&2.into(), &40.into()));
        let rows = event["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0]["comm"], "a \"b\"");
        assert_eq!(rows[0]["symbol"]["name"], "main");
        assert_eq!(rows[0]["dso"]["path"], "/bin/app");
        let weight = |p: u64, s: u64, percent: f64| serde_json::json!({"period": p, "samples": s, "percent": percent});
        assert_eq!(rows[0]["self"], weight(10, 1, 25.0));
        assert_eq!(rows[0]["children"], weight(40, 2, 100.0));
        let chains = rows[0]["chains"].as_array().unwrap();
        assert_eq!(chains[0]["functions"][0]["name"], "main");
        assert_eq!((&chains[0]["period"], &chains[0]["self_period"]), (&40.into(), &10.into()));
        assert_eq!(chains[1]["parent"], 0);
        assert_eq!(
            chains[1]["functions"][1],
            serde_json::json!({"name": "inner", "inlined": true})
        );
    }

    #[test]
    fn losses_ledger_statistics_and_warnings_are_there() {
        let report = json(&profile(), &HistsOptions::default());
        assert_eq!(report["losses"]["lost_records"], 5);
        // Nobody knows for how long.
        assert!(report["losses"]["data_loss"].is_null(), "{report}");
        let mut without = profile();
        without.losses = LossReport::default();
        assert_eq!(json(&without, &HistsOptions::default())["losses"]["data_loss"], 0.0);
        assert_eq!(report["ledger"]["samples"], 2);
        let untold = "the recorder was of a version that did not";
        let nothing = serde_json::json!({
            "measurement": "untold", "reason": untold, "count": null, "time_ns": null,
            "longest_ns": null, "measured_ns": null,
        });
        assert_eq!(report["ledger"]["pmi"], nothing);
        let nothing = serde_json::json!({
            "measurement": "untold", "reason": untold, "programs": 0, "runs": null,
            "run_time_ns": null,
            "timed_ns": null,
        });
        assert_eq!(report["ledger"]["bpf"], nothing);
        assert_eq!(report["stats"]["by_type"]["SAMPLE"], 2);
        assert_eq!(report["stats"]["unwind_stops"]["end of stack"], 2);
        assert_eq!(report["warnings"][0], "careful");
    }

    #[test]
    fn what_the_kernel_spent_is_there_where_it_was_measured() {
        let mut profile = profile();
        let measurement = PmiMeasurement::AllHandlers;
        let pmi = PmiLedger { measurement, count: 3, time_ns: 9, longest_ns: 4, measured_ns: 50 };
        let measurement = BpfMeasurement::Statistics;
        let bpf = BpfLedger { measurement, programs: 1, runs: 6, run_time_ns: 2, timed_ns: 9 };
        profile.ledger = Some(Ledger { pmi, bpf, ..Ledger::default() });
        let report = json(&profile, &HistsOptions::default());
        let figures = serde_json::json!({
            "measurement": "all_handlers", "reason": null, "count": 3, "time_ns": 9,
            "longest_ns": 4, "measured_ns": 50,
        });
        assert_eq!(report["ledger"]["pmi"], figures);
        let figures = serde_json::json!({
            "measurement": "statistics", "reason": null, "programs": 1, "runs": 6,
            "run_time_ns": 2,
            "timed_ns": 9,
        });
        assert_eq!(report["ledger"]["bpf"], figures);
        assert_eq!(report["ledger"]["stacks"], serde_json::Value::Null);
    }

    #[test]
    fn stacks_that_the_kernel_walked_are_there() {
        let mut profile = profile();
        let mut stacks = StackLedger { walks: 9, tables: 2, rows: 30, ..StackLedger::default() };
        (stacks.ended[1], stacks.ended[5]) = (7, 2);
        stacks.not_opened[0] = 1;
        profile.ledger = Some(Ledger { stacks, ..Ledger::default() });
        let stacks = &json(&profile, &HistsOptions::default())["ledger"]["stacks"];
        assert_eq!((&stacks["walks"], &stacks["tables"]), (&9.into(), &2.into()));
        let ended = serde_json::json!({ "end_of_stack": 7, "no_table_yet": 2 });
        assert_eq!((&stacks["rows"], &stacks["ended"]), (&30.into(), &ended));
        assert_eq!(stacks["not_opened"], serde_json::json!({ "deleted": 1 }));
    }

    #[test]
    fn other_keys_and_limits() {
        let mut options = HistsOptions {
            sort: SortKey::parse_list("tid,tgid,cpu,srcline").unwrap(),
            children: false,
            ..HistsOptions::default()
        };
        options.set_percent_limit(30.0);
        let report = json(&profile(), &options);
        let rows = report["events"][0]["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 1);
        let row = &rows[0];
        assert_eq!((&row["tid"], &row["pid"], &row["cpu"]), (&8.into(), &7.into(), &3.into()));
        assert_eq!((&row["source"], &row["children"]), (&"a.c:9".into(), &Value::Null));
    }

    #[test]
    fn an_empty_profile_is_a_whole_report() {
        let report = json(&Profile::default(), &HistsOptions::default());
        assert_eq!(report["events"], serde_json::json!([]));
        assert_eq!(report["ledger"], Value::Null);
        assert_eq!(report["recording"]["total_mem_kib"], Value::Null);
    }
}
