use super::runs::names_of;
use super::*;

fn round(ms: f64) -> Round {
    let kept = |end_ms, copied_bytes| Kept {
        samples: 1000,
        bytes: 3 << 20,
        end_ms,
        copying_ms: end_ms / 2.0,
        binaries: 4,
        copied_bytes,
    };
    let embedded = |names_kib| Embedded { bytes: 4 << 20, names_kib, seconds: 0.25 };
    Round {
        without: kept(ms, 0),
        first: kept(3.0 * ms, 5 << 20),
        again: kept(2.0 * ms, 0),
        hot: embedded(12),
        all: embedded(34),
        archive: Archived { bytes: 5 << 20, seconds: 0.5, cpu_s: 0.75, peak_bytes: 64 << 20 },
    }
}

#[test]
fn the_recorders_line_has_size_and_time() {
    let said = "[ whit record: 1 sample ]\n[ whit record: the names of frames take 37 KiB of the recording, written in \
                0.12 s ]\n";
    assert_eq!(names_of(said), Some((37, 0.12)));
    assert_eq!(names_of("the recording does not carry the names of its frames"), None);
}

#[test]
fn medians_and_failures_stand_in_both_tables() {
    let program = |load: Load, rounds, failed: Option<&str>| Program {
        load,
        options: load.options().join(" "),
        rounds,
        failed: failed.map(str::to_owned),
    };
    let comparison = Comparison {
        system: System::default(),
        version: "whit 1".to_owned(),
        seconds: 2,
        programs: vec![
            program(Load::Cpp, vec![round(10.0), round(20.0), round(12.0)], None),
            program(Load::Java, vec![], Some("exit code 1: first\nthere is no java")),
        ],
    };
    assert!(!comparison.whit_succeeded());
    let text = markdown(&comparison);
    assert!(text.contains("12.0 (10.0–20.0)") && text.contains("36.0 (30.0–60.0)"), "{text}");
    assert_eq!(text.matches("failed: there is no java").count(), 2, "{text}");
    assert!(text.contains("- cpp: `whit record -e cpu-clock -F 997 --engine=bpf`"), "{text}");
    let rows = text.lines().filter(|line| line.starts_with("| cpp "));
    assert_eq!(rows.map(|row| row.matches('|').count()).collect::<Vec<_>>(), [14, 9]);
}
