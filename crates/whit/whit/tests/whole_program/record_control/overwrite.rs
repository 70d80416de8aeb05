//! `--overwrite`: the newest samples, at the end and when they are asked for.

use super::support::{
    TestFolder, WORK, count, has_perf, perf, samples, signal, stderr, wait_for_command,
    wait_for_work, wait_until,
};

/// Says with its own threads' names how far it is, and burns CPU under each.
const PHASES: &str = "for name in first second last; do cp /bin/sh ./$name; ./$name -c \
    'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'; done";
const ENDLESS: &str = "while :; do :; done";
const ALL_MODES: [&str; 4] = ["--threads", "--aio", "-z", "--affinity=cpu"];

#[test]
fn only_the_newest_samples_stay_and_nothing_counts_as_lost() {
    for modes in [&[][..], &ALL_MODES] {
        let place = TestFolder::new();
        let fixed = ["-e", "cpu-clock:u", "-F", "20000", "-m", "1", "--overwrite", "-o", "out"];
        let output = place.run(&[&fixed[..], modes, &["--", "sh", "-c", PHASES]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let kept = samples(&output)[0];
        let page = 4096;
        let cpus = std::thread::available_parallelism().unwrap().get() as u64;
        assert!(kept > 0 && kept <= cpus * page / 48, "{kept} samples");
        assert!(stderr(&output).contains("lost 0 "), "{}", stderr(&output));
        if !has_perf("overwrite") {
            continue;
        }
        let file = place.path("out");
        assert_eq!(count(&file, "SAMPLE events"), kept);
        let comms = perf(&["script", "-F", "comm"], &file);
        // The sideband is not overwritten: the remaining samples have its name.
        assert!(comms.split_ascii_whitespace().any(|comm| comm == "last"), "{comms}");
    }
}

#[test]
fn a_signal_takes_a_snapshot_and_no_sample_comes_twice() {
    for modes in [&[][..], &ALL_MODES] {
        let place = TestFolder::new();
        let fixed = ["-e", "cpu-clock:u", "-F", "1000", "-m", "4", "--overwrite", "-o", "out"];
        let whit = place.start(&[&fixed[..], modes, &["--", "sh", "-c", ENDLESS]].concat());
        let command = wait_for_command(&whit, "sh");
        let size = || -> u64 {
            let files = if place.path("out").is_dir() {
                place.path("out")
            } else {
                place.dir.path().into()
            };
            std::fs::read_dir(files).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum()
        };
        let mut last = size();
        for _ in 0..2 {
            wait_for_work(command, WORK);
            signal(&whit, "-USR2");
            wait_until("the snapshot is written", || size() > last);
            last = size();
        }
        signal(&whit, "-TERM");
        let output = whit.wait_with_output().unwrap();
        assert!(samples(&output)[0] > 0, "{}", stderr(&output));
        if !has_perf("snapshots") {
            continue;
        }
        let script = perf(&["script", "-F", "tid,time"], &place.path("out"));
        let mut lines: Vec<_> = script.lines().collect();
        assert_eq!(lines.len() as u64, samples(&output)[0]);
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len() as u64, samples(&output)[0], "no sample comes twice");
    }
}

#[test]
fn snapshots_go_into_files_of_their_own_where_outputs_are_switched() {
    let place = TestFolder::new();
    let fixed = [
        "-e",
        "cpu-clock:u,page-faults/overwrite=0/u",
        "--overwrite",
        "--switch-output",
        "-o",
        "out",
    ];
    let whit = place.start(&[&fixed[..], &["--", "sh", "-c", ENDLESS]].concat());
    let command = wait_for_command(&whit, "sh");
    wait_for_work(command, WORK);
    signal(&whit, "-USR2");
    wait_until("there is a snapshot", || !place.recordings("out.").is_empty());
    signal(&whit, "-INT");
    let output = whit.wait_with_output().unwrap();
    let files = place.recordings("out.");
    assert_eq!((files.len(), samples(&output).len()), (2, 2), "{}", stderr(&output));
    if has_perf("snapshots in files") {
        for (file, stated) in files.iter().zip(samples(&output)) {
            assert_eq!(count(file, "SAMPLE events"), stated);
            let comms = perf(&["script", "-F", "comm"], file);
            assert!(comms.split_ascii_whitespace().all(|comm| comm == "sh"), "{comms}");
        }
    }
}
