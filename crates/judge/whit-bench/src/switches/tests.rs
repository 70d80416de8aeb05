use super::*;
use crate::bench::{Figures, page};
use std::collections::HashSet;
use whit_testing::run::write_script;

fn cost(slowdown: f64, lost_share: f64) -> Cost {
    let bpf = Some(BpfRuns { runs: 10, run_time_ns: 4200 });
    let recorded = Some(Content { samples: 1000, lost_share, bpf });
    Cost { slowdown, load_cpu: 1.25, recorder_cpu_s: 0.5, size_bytes: 3 << 20, recorded }
}

fn table(rows: &[(Way, &[(f64, f64)])]) -> Table {
    let row = |(way, runs): &(Way, &[(f64, f64)])| Row {
        case: Case { way: *way, options: "-a".into() },
        runs: runs.iter().map(|&(slowdown, lost)| cost(slowdown, lost)).collect(),
        refused: None,
    };
    Table {
        load: Load::Pingpong,
        command: "pingpong".into(),
        alone: Vec::new(),
        rows: rows.iter().map(row).collect(),
        program_times: Vec::new(),
    }
}

fn comparison(tables: Vec<Table>) -> Comparison {
    Comparison {
        event: "cycles".into(),
        versions: vec!["perf 6".into()],
        absent: vec!["samply: nowhere".into()],
        tables,
    }
}

#[test]
fn perfs_best_is_the_one_that_loses_the_least() {
    let rows: [(Way, &[(f64, f64)]); 3] = [
        (Way::PerfSerial, &[(2.0, 0.7), (2.1, 0.7)]),
        (Way::PerfThreads, &[(3.0, 0.4), (4.0, 0.4), (5.0, 0.4)]),
        (Way::WhitBpf, &[(1.2, 0.0)]),
    ];
    let text = page(None, &comparison(vec![table(&rows)]));
    assert!(text.contains("slows down 1.20× and loses 0.00 %"), "{text}");
    assert!(text.contains("perf's best (perf --threads) 4.00× and 40.00 %"), "{text}");
    assert!(text.contains("| 1.25 (1.25–1.25) |") && text.contains(" 3146 |"), "{text}");
    assert!(text.contains("1/1."), "{text}");
    assert!(text.contains(" 420 |") && text.contains("not here: samply: nowhere"), "{text}");
}

#[test]
fn the_time_of_the_programs_at_a_switch_is_said() {
    let mut table = table(&[(Way::WhitBpf, &[(1.2, 0.0)])]);
    let window = |switch_ns| ProgramTime { programs: 2, switch_ns, empty_ns: 50.0 };
    table.program_times = [95.0, 90.0, 99.0].map(window).to_vec();
    let text = page(None, &comparison(vec![table]));
    assert!(text.contains("takes 95.0 (90.0–99.0) ns in 2 programs, without the 50.0"), "{text}");
}

#[test]
fn refusing_tools_are_named_and_not_compared() {
    let mut table = table(&[(Way::WhitBpf, &[]), (Way::PerfSerial, &[(2.0, 0.1)])]);
    table.rows[0].refused = Some("no BPF here".into());
    let comparison = comparison(vec![table]);
    assert!(!comparison.succeeded());
    let text = page(None, &comparison);
    assert!(
        text.contains("refused: no BPF here") && !text.contains("whit with BPF slows"),
        "{text}"
    );
}

#[test]
fn every_way_of_a_load_has_options_of_its_own() {
    for &load in Load::value_variants() {
        let ways = Way::of(load);
        let options: HashSet<_> = ways.iter().map(|way| way.options(load, "cycles")).collect();
        assert_eq!(options.len(), ways.len());
        for way in ways.iter().filter(|way| way.has_content()) {
            let options = way.options(load, "cycles").join(" ");
            assert!(options.contains("-e cycles") && options.contains("--sample-cpu"), "{options}");
        }
    }
}

#[test]
fn ways_are_run_and_refusals_kept() {
    let directory = tempfile::tempdir().unwrap();
    let result = "echo result seconds=1 operations_per_s=1 user_s=0 system_s=0";
    write_script(directory.path().join("deep"), result);
    write_script(directory.path().join("pingpong"), result);
    let whit = directory.path().join("whit");
    write_script(&whit, "[ \"$1\" = --version ] && exec echo whit 0; echo 'no engine' >&2; exit 1");
    let options = Options {
        loads: vec![Load::Deep],
        rounds: 2,
        duration: Duration::from_millis(1),
        event: "no-such-event".into(),
        setup: Setup {
            whit,
            workloads: directory.path().to_owned(),
            directory: directory.path().join("scratch"),
            limit: Duration::from_secs(60),
        },
    };
    let comparison = options.run(&mut |_| ()).unwrap();
    let table = &comparison.tables[0];
    let whit = table.rows.iter().find(|row| row.case.way == Way::WhitBpf).unwrap();
    assert_eq!((whit.refused.as_deref(), table.alone.len()), (Some("no engine"), 2));
    assert!(!comparison.succeeded());
}
