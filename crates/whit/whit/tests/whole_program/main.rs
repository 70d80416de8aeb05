//! Whole-program tests: the built `whit`, real programs, real recordings, and the installed
//! `perf` as the yardstick.
//!
//! A test that needs something that this machine lacks (perf, a compiler, the right to record)
//! says so by name on standard error, and in the file that `WHIT_SKIP_LOG` names.
//! `WHIT=program` tests another whit than the one just built, `PERF=program` another perf.

mod annotate;
mod archive;
mod augmented;
mod auto_engine;
mod bench_pmu;
mod bench_record;
mod bench_stacks;
mod blocked;
mod brief;
mod budget;
mod by_name;
mod cgroups;
mod chained;
mod chains;
mod control_characters;
mod cut_files;
mod debug_forms;
mod debuginfod;
mod deferred_chains;
mod diff;
mod diff_dataset;
mod dotnet;
mod embedding_faults;
mod exports;
mod false_waits;
mod faults;
mod filtered;
mod flight;
mod followed;
mod go_stacks;
mod golden;
mod hangs;
mod intervals;
mod kept_binaries;
mod kept_limits;
mod latency;
mod locks;
mod many_mappings;
mod memory;
mod off_cpu;
mod other_recorders;
mod packed;
mod parity;
mod perf_reports;
mod perf_rows;
mod pools;
mod precision;
mod probes;
mod python_stacks;
mod python_streams;
mod query;
mod rebuilt_files;
mod recorded;
mod recorded_time;
mod runtimes;
mod sampled_groups;
mod script_fields;
mod script_records;
mod some_cpus;
mod stack_engine;
mod streaming;
mod stripped;
mod support;
mod switches;
mod tracepoints;
mod unreachable_files;
mod unwind_tables;
mod vanished_code;
mod wait_classes;
mod watch;
mod why;
