//! Reads printed forms back and compares them with the counts.

use proptest::prelude::*;
use whit_sys::Errno;

use super::*;
use crate::counter::Absence;
use crate::counter::tests::counters;
use crate::reading::Reading;
use crate::table::Label;

fn row(counter: usize, label: usize, value: u64) -> Row {
    let reading = Reading { value, enabled_ns: 4000, running_ns: 1000 };
    let count = reading.scaled() as f64;
    Row { counter, label, places: 2, reading, count, noise_percent: 1.25 }
}

fn print(style: Style, counters: &[Counter], table: &Table, moment: Moment) -> String {
    let derived_metrics = DerivedMetrics::of(counters, table, 1e6);
    let view = View { counters, table, derived_metrics: &derived_metrics, moment };
    Printer::new(style).table(&view)
}

fn csv(separator: &str) -> Style {
    Style { form: Form::Csv(separator.to_owned()), ..Style::default() }
}

/// perf 6.1: `perf stat -x, -r 3 -I 20`, and its line for an event that is not supported.
#[test]
fn csv_has_perfs_fields() {
    let mut two = counters("task-clock,cycles,page-faults");
    two[1].absence = Some(Absence::NotSupported(Errno::NOENT));
    let mut rows = vec![row(0, 0, 500_000), row(1, 0, 0), row(2, 0, 1000)];
    rows[1].reading = Reading::ZERO;
    let table = Table { labels: vec![Label::Everything], rows };
    let at = Moment::Interval(Duration::from_nanos(20_129_098));
    assert_eq!(
        print(csv(","), &two, &table, at),
        "     0.020129098,2.00,msec,task-clock,1000,25.00,2.000,CPUs utilized\n     \
         0.020129098,<not supported>,,cycles,0,100.00,,\n     \
         0.020129098,4000,,page-faults,1000,25.00,2.000,M/sec\n"
    );
    let style = Style { has_noise: true, marks_summary: true, ..csv(";") };
    let summary = print(style, &two, &table, Moment::Summary);
    assert!(summary.starts_with("         summary;2.00;msec;task-clock;1.25%;1000;25.00;2.000;"));
}

#[test]
fn text_has_perfs_columns() {
    let mut two = counters("task-clock,cycles,page-faults");
    two[1].absence = Some(Absence::NotSupported(Errno::NOENT));
    let mut rows = vec![row(0, 0, 500_000), row(1, 0, 0), row(2, 0, 1_000_000)];
    rows[1].reading = Reading::ZERO;
    let table = Table { labels: vec![Label::Everything], rows };
    let numbers = NumberStyle { thousands_separator: ",".into(), ..NumberStyle::default() };
    let style = Style { numbers, ..Style::default() };
    assert_eq!(
        print(style, &two, &table, Moment::Total),
        "              2.00 msec task-clock                       #    2.000 CPUs utilized            \
         (25.00%)\n   <not supported>      cycles\n         4,000,000      page-faults                      \
         #    2.000 G/sec                    (25.00%)\n"
    );
}

#[test]
fn a_second_metric_has_a_line_of_its_own() {
    let three = counters("cycles,instructions,stalled-cycles-frontend");
    let rows = vec![row(0, 0, 100), row(1, 0, 200), row(2, 0, 50)];
    let table = Table { labels: vec![Label::Socket(0)], rows };
    let style = |form| Style { form, aggregation: Aggregation::Socket, ..Style::default() };
    let lines = print(style(Form::Csv(",".into())), &three, &table, Moment::Total);
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines[1], "S0,2,800,,instructions,1000,25.00,2.00,insn per cycle");
    assert_eq!(lines[2], "S0,2,,,,,,,0.25,stalled cycles per insn");
    let text = print(style(Form::Text), &three, &table, Moment::Total);
    let columns: Vec<_> = text.lines().filter_map(|line| line.find(" # ")).collect();
    assert!(columns.len() == 3 && columns.iter().all(|c| *c == columns[0]), "{text}");
}

#[test]
fn metrics_alone_are_a_line_for_each_place() {
    let four = counters("task-clock,cycles,instructions,branches,branch-misses");
    let rows = |label| (0..5).map(move |c| row(c, label, 100 + c as u64));
    let labels = vec![Label::Cpu(0), Label::Cpu(1)];
    let table = Table { labels, rows: rows(0).chain(rows(1)).collect() };
    let only =
        |form| Style { form, metric_only: true, aggregation: Aggregation::Cpu, ..Style::default() };
    assert_eq!(
        print(only(Form::Csv(",".into())), &four, &table, Moment::Total),
        "cpu,GHz,insn per cycle,branch-misses of all branches,\n\
         CPU0,1.010,1.01,100.97,\nCPU1,1.010,1.01,100.97,\n"
    );
    let json = print(only(Form::Json), &four, &table, Moment::Total);
    for line in json.lines() {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(object["insn per cycle"], "1.01");
    }
    let text = print(only(Form::Text), &four, &table, Moment::Total);
    assert_eq!(text.lines().count(), 3);
    assert!(text.lines().next().unwrap().ends_with("branch-misses of all branches"));
}

#[test]
fn headers_come_again_after_so_many_intervals() {
    let one = counters("cs");
    let table = Table { labels: vec![Label::Everything], rows: vec![row(0, 0, 1)] };
    let derived_metrics = DerivedMetrics::of(&one, &table, 1e6);
    let mut printer = Printer::new(Style { has_intervals: true, ..Style::default() });
    let mut headers = Vec::new();
    for number in 0..2 * HEADER_EVERY {
        let moment = Moment::Interval(Duration::from_millis(number as u64));
        let view =
            View { counters: &one, table: &table, derived_metrics: &derived_metrics, moment };
        if printer.table(&view).starts_with('#') {
            headers.push(number);
        }
    }
    assert_eq!(headers, [0, HEADER_EVERY]);
}

#[test]
fn reasons_are_said_once_for_all_their_events() {
    let mut list = counters("cycles,instructions,cs,faults");
    for counter in &mut list[..2] {
        counter.absence = Some(Absence::NotSupported(Errno::NOENT));
    }
    list[3].cgroup = Some(OutsideText::new("web".into()));
    let mut rows: Vec<_> = (0..4).map(|counter| row(counter, 0, 0)).collect();
    (rows[2].reading.running_ns, rows[3].reading) = (0, Reading::ZERO);
    let text = reasons(&list, &Table { labels: vec![Label::Everything], rows });
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with(" # cycles, instructions: <not supported>: not supported here"));
    assert!(lines[1].starts_with(" # cs: <not counted>: it never found a free counter"), "{text}");
    assert_eq!(lines[2], " # faults: <not counted>: no task of the cgroup ran");
}

proptest! {
    #[test]
    fn csv_parses_back(values in prop::collection::vec(0..1u64 << 50, 3), places in 1..9usize) {
        let three = counters("cs,faults,task-clock");
        let rows: Vec<_> = values
            .iter()
            .enumerate()
            .map(|(counter, &value)| Row { places, ..row(counter, 0, value) })
            .collect();
        let table = Table { labels: vec![Label::Socket(1)], rows };
        let style = Style { aggregation: Aggregation::Socket, has_noise: true, ..csv(";") };
        let text = print(style, &three, &table, Moment::Total);
        for (line, row) in text.lines().zip(&table.rows) {
            let fields: Vec<&str> = line.split(';').collect();
            prop_assert_eq!(fields.len(), 10);
            prop_assert_eq!(fields[..2].join(" "), format!("S1 {places}"));
            let event = &three[row.counter].event;
            let tolerance = if event.scale == 1.0 { 0.0 } else { 0.005001 };
            let count: f64 = fields[2].parse().unwrap();
            prop_assert!((count - row.count * event.scale).abs() <= tolerance);
            prop_assert_eq!((fields[3], fields[4]), (&*event.unit, &*event.name));
            prop_assert_eq!(fields[5..8].join(" "), "1.25% 1000 25.00");
        }
    }

    #[test]
    fn json_parses_back_with_any_names(
        value in 0..1u64 << 50,
        name in any::<String>(),
        cgroup in any::<String>(),
    ) {
        let mut one = counters("cs");
        one[0].event.name = name.clone();
        one[0].cgroup = Some(OutsideText::new(cgroup.as_str().into()));
        let table = Table { labels: vec![Label::Cpu(3)], rows: vec![row(0, 0, value)] };
        let style = Style {
            form: Form::Json,
            aggregation: Aggregation::Cpu,
            has_noise: true,
            ..Style::default()
        };
        let at = Moment::Interval(Duration::from_millis(1500));
        let text = print(style, &one, &table, at);
        let object: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(object["event"].as_str(), Some(&*name));
        prop_assert_eq!(object["cgroup"].as_str(), Some(&*cgroup));
        prop_assert_eq!(object["cpu"].as_str(), Some("3"));
        prop_assert_eq!(object["interval"].as_f64(), Some(1.5));
        prop_assert_eq!(object["variance"].as_f64(), Some(1.25));
        let count: f64 = object["counter-value"].as_str().unwrap().parse().unwrap();
        prop_assert_eq!(count, table.rows[0].count);
        prop_assert_eq!(object["event-runtime"].as_u64(), Some(1000));
    }

    #[test]
    fn no_name_prints_a_control_character_or_makes_a_line(
        names in prop::array::uniform4("[ -~\\x00-\\x1f\\x7f-\\x9f\\u{200e}-\\u{202f}]{0,12}"),
        metric_only: bool,
    ) {
        let [name, unit, cgroup, comm] = names;
        let mut two = counters("cycles,branches");
        (two[0].event.name, two[0].event.unit) = (name.clone(), unit.clone());
        two[1].event.name = name.clone();
        two[0].cgroup = Some(OutsideText::new(cgroup.as_str().into()));
        let comm = OutsideText::new(comm.as_str().into());
        let labels = vec![Label::Thread { index: 0, tid: 7, comm }];
        let table = Table { labels, rows: vec![row(0, 0, 5), row(1, 0, 6)] };
        let mut text = heading(&name, 1) + &raw_counts(&two, &table);
        two[1].absence = Some(Absence::NeedsCpus);
        text += &reasons(&two, &table);
        text += &absences(&two);
        for form in [Form::Text, Form::Csv(",".into()), Form::Json] {
            let style =
                Style { form, metric_only, aggregation: Aggregation::Thread, ..Style::default() };
            let printed = print(style, &two, &table, Moment::Total);
            prop_assert!(printed.lines().count() <= 5, "{:?}", printed);
            text += &printed;
        }
        let is_raw = |c| whit_types::is_escaped(c) && c != '\n';
        prop_assert!(!text.contains(is_raw), "{:?}", text);
    }
}
