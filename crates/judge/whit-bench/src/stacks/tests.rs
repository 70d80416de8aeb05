use super::agreement::Chain;
use super::*;
use crate::bench::{Figures, page};

fn agreement(program: &[u64], frames: &[u64], is_complete: bool) -> Agreement {
    let mut agreement = Agreement::default();
    agreement.add(program, &Chain { frames: frames.to_vec(), is_complete });
    agreement
}

#[test]
fn frames_count_as_equal_up_to_the_first_difference() {
    let sums = |program: &[u64], frames: &[u64], is_complete| {
        let found = agreement(program, frames, is_complete);
        (found.frames, found.equal, found.equal_chains)
    };
    assert_eq!(sums(&[1, 2, 3], &[1, 2, 3], true), (3, 3, 1));
    assert_eq!(sums(&[1, 9, 3], &[1, 2, 3], true), (3, 1, 0));
    // Frames that one side has too many, or too few, are unequal,
    assert_eq!(sums(&[1, 2, 3, 4], &[1, 2], true), (4, 2, 0));
    assert_eq!(sums(&[1, 2], &[1, 2, 3, 4], true), (4, 2, 0));
    assert_eq!(sums(&[], &[1], true), (1, 0, 0));
    // unless the offline unwinder came to no end.
    assert_eq!(sums(&[1, 2, 3, 4], &[1, 2], false), (2, 2, 1));
    assert_eq!(sums(&[1, 2], &[1, 2, 3], false), (3, 2, 0));
    assert_eq!(sums(&[], &[], false), (0, 0, 1));
    let long: Vec<u64> = (0..FRAMES_MAX as u64 + 9).collect();
    assert_eq!(sums(&long[..FRAMES_MAX], &long, true), (127, 127, 1));
    assert_eq!(Agreement::default().share(), 1.0);
    assert_eq!(agreement(&[1, 9], &[1, 2], true).share(), 0.5);
}

#[test]
fn the_first_differences_are_kept() {
    let mut sum = Agreement::default();
    for n in 0..100 {
        sum.add(&[1, n], &Chain { frames: vec![1, 1000], is_complete: true });
    }
    assert_eq!((sum.differences.len(), sum.frames, sum.equal), (20, 200, 100));
    let first = &sum.differences[0];
    assert_eq!(
        (first.frame, first.program, first.other, first.after),
        (1, Some(0), Some(1000), Some(1))
    );
}

#[test]
fn a_refusal_replaces_figures() {
    let found = Found {
        samples: 10,
        framehop: agreement(&[1, 9], &[1, 2], true),
        walks: 3,
        ended: BTreeMap::from([("end_of_stack", 2), ("loop", 1)]),
        ..Found::default()
    };
    let row = |result: Option<Found>, refused: Option<&str>| Row {
        program: Program::Go,
        result,
        refused: refused.map(str::to_owned),
    };
    let comparison = Comparison {
        options: "-F 1".into(),
        rows: vec![row(Some(found), None), row(None, Some("no BPF"))],
    };
    let text = page(None, &comparison);
    assert!(text.contains("50.000") && text.contains("- go: end_of_stack 2, loop 1"), "{text}");
    assert!(text.contains("refused: no BPF") && !comparison.succeeded(), "{text}");
}

#[test]
fn samples_that_the_disk_cannot_hold_are_not_recorded() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("corners"), "").unwrap();
    let options = |duration, frequency_hz| Options {
        programs: vec![Program::C],
        duration,
        event: "cpu-clock".into(),
        frequency_hz,
        switches: false,
        stack_bytes: 16384,
        setup: Setup {
            whit: "/nonexistent/whit".into(),
            workloads: directory.path().to_owned(),
            directory: directory.path().join("scratch"),
            limit: Duration::from_secs(1),
        },
    };
    let year = Duration::from_secs(365 * 24 * 3600);
    let error = options(year, 99).run(&mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("--milliseconds") && error.contains("free"), "{error}");
    // A short run needs little.
    let little = expected_bytes(&options(Duration::from_millis(1), 99));
    assert!(little < ByteSize(64 << 20), "{little}");
    let error = options(Duration::from_millis(1), 99).run(&mut |_| ()).unwrap_err();
    assert!(error.to_string().contains("cannot run"), "{error}");
}
