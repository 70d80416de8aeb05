use super::*;
use crate::bench::{Figures, page};
use std::path::Path;
use whit_testing::run::write_script;

fn hops(cpu_ns: f64) -> Hops {
    Hops { cpu_ns, taken: 0.01, median_ns: cpu_ns, p99_ns: 2.0 * cpu_ns }
}

fn table(cgroups: usize, perf: &[f64], bpf: &[f64]) -> Table {
    let run = |(ns, alone): (f64, f64)| Run {
        hops: hops(ns),
        alone: [hops(alone - 10.0), hops(alone + 10.0)],
        counter_cpu: 0.01,
        program_ns: None,
    };
    let row = |counter, means: &[f64]| Row {
        counter,
        runs: means.iter().copied().zip([5000.0, 6000.0, 5500.0]).map(run).collect(),
        windows: Windows { measured: 15, disturbed: 2 },
        refused: None,
    };
    Table {
        cgroups,
        active: cgroups,
        work_ns: 0,
        alone: Windows::default(),
        rows: vec![row(CounterKind::Perf, perf), row(CounterKind::WhitBpf, bpf)],
    }
}

fn comparison(tables: Vec<Table>) -> Comparison {
    Comparison {
        events: vec!["cycles".into()],
        counters: Vec::new(),
        absent: vec!["perf stat -G: not installed".into()],
        tables,
    }
}

#[test]
fn additions_are_to_the_same_round() {
    let table = table(6, &[9000.0, 10_000.0, 9500.0], &[5400.0, 6300.0, 5900.0]);
    let added = table.added_ns(CounterKind::Perf).unwrap();
    assert_eq!(added, Estimate { value: 4000.0, low: 4000.0, high: 4000.0 });
    assert_eq!(table.added_ns(CounterKind::WhitBpf).unwrap().value, 400.0);
    assert_eq!(table.added_ns(CounterKind::WhitKernel), None);
}

#[test]
fn turns_in_which_the_machine_changed_its_speed_are_not_compared() {
    let mut table = table(6, &[9000.0, 10_000.0, 9500.0], &[5400.0, 6300.0, 5900.0]);
    let runs = &mut table.rows[0].runs;
    runs.extend(runs.clone());
    runs[1].alone = [hops(5800.0), hops(6400.0)];
    assert_eq!(table.rows[0].added_ns(), [4000.0, 3900.0, 4000.0, 4000.0, 4000.0, 4000.0]);
    table.rows[0].runs[1].alone[1] = hops(6450.0);
    assert_eq!(table.rows[0].added_ns(), [4000.0; STEADY_MIN]);
    let text = page(None, &comparison(vec![table.clone()]));
    assert!(text.contains(" 5 of 6 |") && text.contains(" 3 of 3 |"), "{text}");
    // Too few are left then.
    table.rows[0].runs[2].alone[1] = hops(9000.0);
    assert_eq!(table.rows[0].added_ns().len(), 6);
}

#[test]
fn the_text_names_the_aims() {
    let six = table(6, &[9000.0, 10_000.0, 9500.0], &[5400.0, 6400.0, 5900.0]);
    let many = table(600, &[99_000.0, 99_000.0, 99_000.0], &[5440.0, 6440.0, 5940.0]);
    let text = page(None, &comparison(vec![six, many]));
    let share =
        "6 cgroups, 0 ns of work: whit with BPF adds 0.10 [0.10–0.10] of what perf stat -G adds";
    assert!(text.contains(&format!("{share}; at most 0.10: yes")), "{text}");
    let flat = "by CPU time of a hop, at 600 cgroups it adds 1.10 [1.10–1.10] of what it adds at 6; \
                0.80 to 1.20: yes";
    assert!(text.contains(flat), "{text}");
    assert!(!text.contains("by the program's own time"), "{text}");
    assert!(text.contains(" 2 of 15 |"), "{text}");
    assert!(text.contains("- perf stat -G: not installed"), "{text}");
}

/// With the time of the programs in each round, by the kernel's statistics.
fn timed(mut table: Table, whits: &[f64], nothings: &[f64]) -> Table {
    let mut nothing = table.rows[1].clone();
    nothing.counter = CounterKind::Nothing;
    table.rows.push(nothing);
    for (row, times) in [(1, whits), (2, nothings)] {
        for (run, ns) in table.rows[row].runs.iter_mut().zip(times) {
            run.program_ns = Some(*ns);
        }
    }
    table
}

#[test]
fn the_programs_own_time_has_a_verdict_of_its_own() {
    let hops = |bpf| table(6, &[9000.0, 10_000.0, 9500.0], bpf);
    let six = timed(hops(&[5400.0, 6400.0, 5900.0]), &[90.0, 90.0, 90.0], &[40.0, 40.0, 40.0]);
    assert_eq!(six.own_ns().unwrap(), Estimate { value: 50.0, low: 50.0, high: 50.0 });
    let mut many = timed(hops(&[5400.0, 8400.0, 5900.0]), &[125.0; 3], &[50.0, 50.0, 50.0]);
    (many.cgroups, many.active) = (600, 600);
    let few = Table { active: 6, ..many.clone() };
    let text = page(None, &comparison(vec![six, many, few]));
    let few = "at 600 cgroups with the token in 6 it adds 1.50 [1.50–1.50] of what it adds at 6;";
    assert!(text.contains(few), "{text}");
    let own = "by the program's own time, at 600 cgroups it adds 1.50 [1.50–1.50] of what it adds at 6; \
               0.80 to 1.20: no";
    assert!(text.contains(own), "{text}");
    let parts = "| 6 | 0.00 | 400 [400–400] | – | 400 [400–400] | 90.0 [90.0–90.0] | 40.0 [40.0–40.0] | 50.0 [50.0–50.0] |";
    let text = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(parts), "{text}");
}

#[test]
fn differences_that_vary_too_much_are_not_reported() {
    let text_of =
        |bpf: &[f64]| page(None, &comparison(vec![table(6, &[9000.0, 10_000.0, 9500.0], bpf)]));
    assert!(text_of(&[5300.0, 6500.0, 5900.0]).contains("at most 0.10: cannot be told"));
    assert!(text_of(&[5900.0, 6900.0, 6400.0]).contains("at most 0.10: no"));
}

#[test]
fn refused_tools_are_shown_and_not_compared() {
    let mut six = table(6, &[9000.0], &[]);
    six.rows[1].refused = Some("exit code 1: no BPF here".into());
    let comparison = comparison(vec![six]);
    assert!(!comparison.succeeded());
    let text = page(None, &comparison);
    assert!(text.contains("| exit code 1: no BPF here |") && !text.contains("adds 0."), "{text}");
}

#[test]
fn every_number_of_cgroups_is_run_with_the_first_work() {
    let numbers = Options { cgroups: vec![6, 60], ..options("".as_ref()) };
    let options = Options { work_ns: vec![0, 50], active: vec![6, 60, 70], ..numbers };
    let sizes = sizes_of(&options);
    let sizes: Vec<_> =
        sizes.iter().map(|size| (size.cgroups, size.active, size.work_ns)).collect();
    assert_eq!(sizes, [(6, 6, 0), (60, 60, 0), (60, 6, 0), (6, 6, 50)]);
}

fn options(directory: &Path) -> Options {
    Options {
        rounds: 2,
        duration: Duration::from_millis(1),
        windows: 2,
        cgroups: vec![2],
        work_ns: vec![0],
        active: Vec::new(),
        events: Some(vec!["a".into(), "b".into()]),
        setup: Setup {
            whit: directory.join("whit"),
            workloads: directory.to_owned(),
            directory: directory.join("scratch"),
            limit: Duration::from_secs(60),
        },
    }
}

/// Prints a count for each cgroup that it is given, but those that end in `leave_out`.
fn counter(leave_out: &str) -> String {
    format!(
        r#"[ "$1" = --version ] && exec echo fake
        while [ $# -gt 0 ]; do
            case $1 in -G) names="$names ${{2%%,*}}"; shift;; -o) out=$2; shift;; esac; shift
        done
        [ -n "$names" ] || echo "1.0,5,,a,,1,100,," >"$out"
        [ -z "$names" ] || for name in $names; do case $name in *{leave_out}) ;; *) echo "1.0,5,,a,$name,1,100,,";; esac; done >"$out"
        trap 'exit 0' INT
        while :; do sleep 0.01; done"#
    )
}

const TOKEN: &str = "while read _; do echo response_ns median=5 p99=9 max=10 cpu=4 taken=0; \
                     echo result operations_per_s=1e8 seconds=1 user_s=0 system_s=0; done";

/// Whether cgroups can be made here; says it where not.
fn has_cgroups() -> bool {
    let probed = whit_testing::probe::cgroups();
    if let Err(whit_testing::Skip(reason)) = &probed {
        whit_testing::skip("whit-bench cgroups", reason);
    }
    probed.is_ok()
}

#[test]
fn counters_are_started_checked_and_stopped() {
    if !has_cgroups() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    write_script(directory.path().join("whit"), &counter("nobody"));
    write_script(directory.path().join("token"), TOKEN);
    let options = options(directory.path());
    let comparison = options.run(&mut |_| ()).unwrap();
    let row = |kind| comparison.tables[0].rows.iter().find(|row| row.counter == kind).unwrap();
    assert_eq!(row(CounterKind::WhitBpf).refused, None);
    assert_eq!(row(CounterKind::WhitBpf).runs.len(), 2);
    let run = &row(CounterKind::WhitBpf).runs[1];
    assert_eq!(run.alone, [Hops { cpu_ns: 4.0, taken: 0.0, median_ns: 5.0, p99_ns: 9.0 }; 2]);
    // A counter that leaves a cgroup out has not counted.
    write_script(directory.path().join("whit"), &counter("c1"));
    let comparison = options.run(&mut |_| ()).unwrap();
    let row = |kind| comparison.tables[0].rows.iter().find(|row| row.counter == kind).unwrap();
    let refused = row(CounterKind::WhitKernel).refused.clone().unwrap();
    assert!(refused.contains("counted nothing in 1 cgroups"), "{refused}");
    assert!(!comparison.succeeded());
}

#[test]
fn a_counter_that_ends_at_once_is_quoted() {
    if !has_cgroups() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let script = "[ \"$1\" = --version ] && exec echo fake; echo 'whit: error: no BPF' >&2; exit 3";
    write_script(directory.path().join("whit"), script);
    write_script(directory.path().join("token"), TOKEN);
    let comparison = options(directory.path()).run(&mut |_| ()).unwrap();
    let rows = &comparison.tables[0].rows;
    let refused = rows.iter().find(|row| row.counter == CounterKind::WhitBpf).unwrap();
    assert_eq!(refused.refused.as_deref(), Some("exit status: 3: no BPF"));
}

#[test]
fn a_load_that_does_not_answer_is_quoted() {
    if !has_cgroups() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    write_script(directory.path().join("whit"), &counter("nobody"));
    let error = |script: &str| {
        write_script(directory.path().join("token"), script);
        options(directory.path()).run(&mut |_| ()).unwrap_err().to_string()
    };
    let ended = error("read _; echo 'cannot enter' >&2; exit 1");
    assert!(ended.contains("cannot enter") && ended.contains("make -C bench/workloads"), "{ended}");
    let nonsense = error("while read _; do echo result nothing; done");
    assert!(nonsense.contains("answers result nothing"), "{nonsense}");
}
