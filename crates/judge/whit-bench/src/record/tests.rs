use super::recorded::tests::{Records, with_cpu, write};
use super::*;
use crate::bench::Bench as _;
use crate::bench::{Figures, page};
use crate::record::summary::tests::run;
use whit_testing::run::write_script;

/// Far beyond what any of these tests takes.
const GENEROUS: Duration = Duration::from_secs(600);

/// Runs the command behind `--` and takes a recording that was made before, unless it is to refuse.
/// It prints the number of the round.
const WHIT: &str = r#"
    [ "$1" = --version ] && { echo whit 0; exit 0; }
    here=$(dirname "$0")
    for word; do
        case $word in --aio*) echo "whit: unknown option '$word'" >&2; exit 1;; esac
    done
    while [ "$1" != -- ]; do [ "$1" = -o ] && output=$2; shift; done
    shift
    cp "$here/made.data" "$output"
    exec "$@""#;

/// All workloads: some milliseconds whatever the amount.
const WORKLOAD: &str =
    "echo result seconds=2.0 operations_per_s=5.0 user_s=0.000001 system_s=0.000001";

struct Bench {
    root: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let root = tempfile::tempdir().unwrap();
        write_script(root.path().join("whit"), WHIT);
        for &workload in Workload::value_variants() {
            write_script(root.path().join(workload.program()), WORKLOAD);
        }
        let made = root.path().join("made.data");
        write(&made, &Records::two_rings().0, with_cpu(), None);
        Bench { root }
    }

    fn options(&self, tables: &[TableKind]) -> Options {
        Options {
            tables: tables.to_vec(),
            rounds: 2,
            quick: false,
            duration: Duration::from_millis(100),
            threads: Some(2),
            event: Some("cpu-clock".into()),
            frequency: Some("1000".into()),
            ring_size: "512K".into(),
            setup: Setup {
                directory: self.root.path().join("recordings"),
                workloads: self.root.path().to_owned(),
                whit: self.root.path().join("whit"),
                limit: GENEROUS,
            },
        }
    }
}

/// The rows of whit: an installed perf would record the scripts in earnest.
fn of_whit(table: &TableResult) -> impl Iterator<Item = &Row> {
    table.rows.iter().filter(|row| row.recorder == RecorderKind::Whit)
}

#[test]
fn settings_are_measured_or_refused_each_on_its_own() {
    let bench = Bench::new();
    let options = bench.options(&[TableKind::Affinity]);
    let recorders =
        [Recorder::detect(RecorderKind::Whit, &options.setup.whit).expect("the script is there")];
    let scratch = Scratch::new(&options.setup.directory).unwrap();
    let place = RunLimits { scratch: &scratch, limit: options.setup.limit };
    let tuning = Tuning {
        event: "cpu-clock".into(),
        frequency: options.frequency.clone(),
        ring_size: "512K".into(),
    };
    let table = Table::new(TableKind::Affinity, &tuning);
    let mut said = Vec::new();
    let mut say = |text: &str| said.push(text.to_owned());
    let result = run_table(&table, &options, &recorders, place, &mut say).unwrap();
    assert_eq!((result.alone.len(), result.rows.len()), (2, 6));
    for row in of_whit(&result) {
        match &row.summary {
            RowSummary::Measured(figures) => {
                assert!(row.setting.name.starts_with("serial"), "{row:?}");
                assert_eq!((figures.runs, figures.samples.median), (2, 6.0));
                assert_eq!(figures.run_overhead.median, 0.0);
                assert_eq!(figures.data_loss.unwrap().median, 50.0 / 400.0);
            }
            RowSummary::Refused { message } => {
                assert!(row.setting.name.starts_with("aio"), "{row:?}");
                assert_eq!((message.as_str(), row.runs.len()), ("unknown option '--aio'", 1));
            }
            other => panic!("{other:?}"),
        }
    }
    let refusals = said.iter().filter(|line| line.contains("refused")).count();
    assert_eq!(refusals, 3, "{said:#?}");
}

#[test]
fn a_recorder_that_is_not_here_has_a_reason() {
    let (_, absent) = Recorder::detect_all("/nonexistent/whit".as_ref());
    let whit = absent.iter().find(|absent| absent.kind == RecorderKind::Whit).unwrap();
    assert!(whit.reason.contains("/nonexistent/whit"), "{whit:?}");
}

#[test]
fn without_disk_space_nothing_is_recorded() {
    let bench = Bench::new();
    let mut options = bench.options(&[TableKind::Loss]);
    options.duration = Duration::from_secs(u32::MAX.into());
    options.frequency = Some("max".into());
    let error = options.run(&mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("--frequency") && error.contains("free"), "{error}");
    assert_eq!(std::fs::read_dir(&options.setup.directory).unwrap().count(), 0, "scratch is gone");
}

#[test]
fn every_round_runs_every_row_once_and_neither_recorder_always_comes_first() {
    let mut whit_first = 0;
    for round in 0..20 {
        let mut seen = order(round, 14);
        let place = |row: usize| seen.iter().position(|at| *at == row).unwrap();
        whit_first += usize::from(place(5) < place(4));
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..14));
    }
    assert!((5..=15).contains(&whit_first), "{whit_first}");
    assert!(order(3, 0).is_empty());
}

fn row(recorder: RecorderKind, name: &str, runs: Vec<Run>) -> Row {
    let setting = Setting { name: name.into(), options: Vec::new() };
    Row { recorder, setting, summary: RowSummary::of(&runs), runs }
}

fn comparison() -> Comparison {
    use RecorderKind::{Perf, Whit};
    let refused = Run::Refused { message: "no | such\nthing".into() };
    let result =
        workload::WorkloadResult { seconds: 1.0, operations_per_s: 7.0, user_s: 1.0, sys_s: 0.0 };
    Comparison {
        tuning: Tuning { event: "cycles".into(), frequency: None, ring_size: "512K".into() },
        recorders: Vec::new(),
        absent: vec![Absent { kind: Perf, reason: "gone".into() }],
        tables: vec![TableResult {
            table: TableKind::Loss,
            workload: Workload::Deep,
            workload_command: "deep --threads 2".into(),
            common_options: vec!["-F".into(), "max".into()],
            alone: vec![Alone { wall_s: 1.0, result }],
            rows: vec![
                row(Perf, "serial", vec![run(0.5, 40), run(0.6, 50)]),
                row(Whit, "serial", vec![run(0.25, 20)]),
                row(Perf, tables::EVERY_MODE, vec![refused]),
                row(Whit, tables::EVERY_MODE, vec![run(0.1, 9)]),
                row(Whit, "aio", vec![Run::TimedOut { limit_s: 9 }]),
            ],
        }],
    }
}

#[test]
fn the_table_says_medians_spread_and_refusals() {
    let expected = "\
- event cycles, rings of 512K
- perf: not here (gone)

### loss: Data loss at the highest rate, by way of streaming

- workload: `deep --threads 2`
- alone: 1.00 (1.00–1.00) s, 7 operations per second
- all settings: `-F max`

| setting             | recorder |      run time +% |     wall time +% |   recorder CPU s |      data loss % | lost records | samples |  MiB | ratio |
| ------------------- | -------- | ---------------: | ---------------: | ---------------: | ---------------: | -----------: | ------: | ---: | ----: |
| serial              | perf     | 55.0 (50.0–60.0) |    110 (100–120) | 0.25 (0.25–0.25) | 45.0 (40.0–50.0) |  450 (18.3%) |    1500 | 3.00 |  8.00 |
| serial              | whit     | 25.0 (25.0–25.0) | 50.0 (50.0–50.0) | 0.25 (0.25–0.25) | 20.0 (20.0–20.0) |  200 (9.09%) |    1500 | 3.00 |  8.00 |
| threads aio cpu z r | perf     | refused: no \\| such thing |
| threads aio cpu z r | whit     | 10.0 (10.0–10.0) | 20.0 (20.0–20.0) | 0.25 (0.25–0.25) | 9.00 (9.00–9.00) |   90 (4.31%) |    1500 | 3.00 |  8.00 |
| aio                 | whit     | took more than 9 s |

- data loss of perf's best setting (serial): 45.0 %; of whit with every mode: 9.00 %, 0.20× of it
";
    assert_eq!(page(None, &comparison()), expected);
}

#[test]
fn the_json_has_every_run() {
    let json = serde_json::to_value(comparison()).unwrap();
    let table = &json["tables"][0];
    assert_eq!((&table["table"], &table["workload"]), (&"loss".into(), &"deep".into()));
    let perf = &table["rows"][0];
    assert_eq!((&perf["recorder"], perf["runs"].as_array().unwrap().len()), (&"perf".into(), 2));
    assert_eq!(perf["summary"]["kind"], "measured");
    assert_eq!(perf["runs"][0]["recorded"]["lost"], 400);
    assert_eq!(table["rows"][2]["summary"]["kind"], "refused");
}

#[test]
fn a_refusal_is_an_answer_and_a_failure_is_none() {
    let mut comparison = comparison();
    assert!(!comparison.succeeded(), "one took too long");
    comparison.tables[0].rows.pop();
    assert!(comparison.succeeded());
}
