//! `--switch-output`, `--switch-max-files`, `--timestamp-filename`, `--max-size`, `--synth`.

use super::support::{
    TestFolder, count, has_perf, perf, samples, signal, stderr, wait_for_command,
};
use std::path::Path;

/// Forks processes that fault, some 1000 page faults each way.
const FAULTS: &str = "i=0; while [ $i -lt 40 ]; do i=$((i+1)); (:); /bin/true; done";
const BUSY: &str = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done";
const ENDLESS: &str = "while :; do :; done";
const ALL_MODES: [&str; 4] = ["--threads", "--aio", "-z", "--affinity=cpu"];

/// Page faults of each thread as the kernel counted them (READ records), and samples of each.
fn counted_and_sampled(file: &Path, counted: &mut Vec<(String, u64)>, sampled: &mut Vec<String>) {
    let dump = perf(&["script", "-D"], file);
    for line in dump.lines().filter(|line| line.contains("PERF_RECORD_READ")) {
        // ... PERF_RECORD_READ: PID TID EVENT COUNT
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let at = words.iter().position(|word| word.starts_with("PERF_RECORD_READ")).unwrap();
        let (tid, value) = (words[at + 2], words[words.len() - 1]);
        counted.push((tid.to_owned(), value.parse().unwrap()));
    }
    let script = perf(&["script", "-F", "tid"], file);
    sampled.extend(script.split_ascii_whitespace().map(str::to_owned));
}

fn switched(size: &str, modes: &[&str]) {
    let place = TestFolder::new();
    // -s counts the same faults independently of the samples.
    let fixed = ["-e", "page-faults:u", "-c", "1", "-s", "-g", size, "-o", "out"];
    let script = format!("{FAULTS}; {FAULTS}; {FAULTS}");
    let output = place.run(&[&fixed[..], modes, &["--", "sh", "-c", &script]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let files = place.recordings("out.");
    assert!(files.len() > 1, "{}", stderr(&output));
    assert!(!place.path("out").exists(), "every file has its time");
    let stated = samples(&output);
    assert_eq!(stated.len(), files.len(), "one line for each file");
    if !has_perf("switched") {
        return;
    }
    let (mut counted, mut sampled) = (Vec::new(), Vec::new());
    for (file, stated) in files.iter().zip(&stated) {
        assert_eq!(count(file, "SAMPLE events"), *stated);
        assert_eq!(count(file, "LOST events"), 0);
        // Complete by itself: whose code it was is known in each.
        let comms = perf(&["script", "-F", "comm"], file);
        let mut nameless: Vec<_> =
            comms.split_ascii_whitespace().filter(|c| !["sh", "true"].contains(c)).collect();
        nameless.dedup();
        // The shell has one child at a time. That which runs at the switch may end before its name is read.
        assert!(nameless.len() <= 1, "{nameless:?}");
        let unknown = perf(&["script", "-G", "-F", "ip,dso"], file);
        let unknown = unknown.lines().filter(|line| line.contains("[unknown]")).count() as u64;
        assert!(unknown * 50 <= *stated, "{unknown} of {stated} samples are in unknown code");
        counted_and_sampled(file, &mut counted, &mut sampled);
    }
    assert_eq!(sampled.len() as u64, stated.iter().sum::<u64>());
    assert!(counted.len() > 50, "each process has a count");
    let sum_counted: u64 = counted.iter().map(|(_, value)| value).sum();
    let sum_sampled = sampled.iter().filter(|tid| counted.iter().any(|(t, _)| t == *tid)).count();
    assert_eq!(sum_sampled as u64, sum_counted, "no sample is lost at a switch");
}

#[test]
fn every_sample_is_in_one_of_the_files_and_each_is_complete() {
    switched("--switch-output=100K", &[]);
}

#[test]
fn directories_of_compressed_streams_are_switched_as_well() {
    switched("--switch-output=15K", &ALL_MODES);
}

#[test]
fn a_signal_switches_and_only_the_newest_files_are_kept() {
    for modes in [&[][..], &ALL_MODES] {
        let place = TestFolder::new();
        let fixed =
            ["-e", "cpu-clock:u", "--switch-output", "--switch-max-files", "2", "-o", "out"];
        let whit = place.start(&[&fixed[..], modes, &["--", "sh", "-c", ENDLESS]].concat());
        wait_for_command(&whit, "sh");
        let mut seen = Vec::new();
        for _ in 0..3 {
            signal(&whit, "-USR2");
            super::support::wait_until("there is a new file", || {
                let new = place.recordings("out.").pop();
                let is_new = new.is_some() && !seen.contains(&new);
                if is_new {
                    seen.push(new);
                }
                is_new
            });
        }
        signal(&whit, "-INT");
        let output = whit.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
        assert_eq!(samples(&output).len(), 4, "{}", stderr(&output));
        let left = place.recordings("out");
        assert_eq!(left.len(), 2, "{left:?}");
        if has_perf("a signal switches") {
            left.iter().for_each(|file| drop(perf(&["report", "--stats"], file)));
        }
    }
}

#[test]
fn time_switches_and_the_name_of_a_single_file_can_have_the_time() {
    let place = TestFolder::new();
    let line = ["-e", "cpu-clock:u", "--switch-output=1s", "-o", "out", "--", "sleep", "1.2"];
    assert_eq!(samples(&place.run(&line)).len(), 2);
    assert_eq!(place.recordings("out.").len(), 2);
    let line = ["-e", "cpu-clock:u", "--timestamp-filename", "-o", "one", "--", "true"];
    let output = place.run(&line);
    let [file] = &place.recordings("one")[..] else { panic!("{}", stderr(&output)) };
    let name = file.file_name().unwrap().to_str().unwrap();
    assert_eq!(name.len(), "one.".len() + 16, "{name}");
    assert!(stderr(&output).contains(name), "{}", stderr(&output));
}

#[test]
fn a_recording_ends_at_its_size() {
    for modes in [&[][..], &ALL_MODES] {
        let place = TestFolder::new();
        let fixed = ["-e", "cpu-clock:u", "-F", "20000", "-g", "--max-size=20K", "-o", "out"];
        let output = place.run(&[&fixed[..], modes, &["--", "sh", "-c", ENDLESS]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stderr(&output).contains("size limit reached"), "{}", stderr(&output));
        assert!(samples(&output)[0] > 100);
        if has_perf("a recording ends at its size") {
            assert_eq!(count(&place.path("out"), "SAMPLE events"), samples(&output)[0]);
        }
    }
}

#[test]
fn pipes_cannot_be_switched() {
    let place = TestFolder::new();
    for option in ["--switch-output", "--timestamp-filename"] {
        let output = place.run(&["-e", "cpu-clock:u", option, "-o", "-", "true"]);
        assert!(stderr(&output).contains("a pipe cannot be switched"), "{}", stderr(&output));
    }
}

#[test]
fn existing_tasks_are_recorded_as_requested() {
    if !has_perf("what existed before") {
        return;
    }
    let place = TestFolder::new();
    let mut target = std::process::Command::new("sleep").arg("20").spawn().unwrap();
    let own = target.id().to_string();
    let counts = |options: &[&str]| {
        let line = ["-e", "cpu-clock:u", "-p", &own, "-o", "out"];
        let output = place.run(&[&line[..], options, &["--", "true"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let file = place.path("out");
        ["COMM events", "MMAP2 events"].map(|kind| count(&file, kind))
    };
    assert!(counts(&["--num-thread-synthesize", "4"]).iter().all(|count| *count > 0));
    assert!(counts(&["--synth=task"])[0] > 0 && counts(&["--synth", "task"])[1] == 0);
    assert_eq!(counts(&["--synth=no"]), [0, 0]);
    let [comms, mappings] = counts(&["--tail-synthesize"]);
    assert!(comms > 0 && mappings > 0);
    assert!(counts(&["--proc-map-timeout", "0"])[0] > 0);
    target.kill().unwrap();
    target.wait().unwrap();
}

#[test]
fn samples_after_the_synthesized_tail_have_their_names() {
    if !has_perf("the tail") {
        return;
    }
    let place = TestFolder::new();
    let mut target = std::process::Command::new("sh").args(["-c", ENDLESS]).spawn().unwrap();
    let pid = target.id().to_string();
    let fixed = ["-e", "cpu-clock:u", "--tail-synthesize", "-o", "out", "-p", &pid];
    let output = place.run(&[&fixed[..], &["--", "sleep", "0.1"]].concat());
    target.kill().unwrap();
    target.wait().unwrap();
    assert!(samples(&output)[0] > 0, "{}", stderr(&output));
    let comms = perf(&["script", "-F", "comm"], &place.path("out"));
    assert!(comms.split_ascii_whitespace().all(|comm| comm == "sh"), "{comms}");
}

#[test]
fn busy_programs_lose_nothing_at_switches() {
    let place = TestFolder::new();
    let line = ["-e", "cpu-clock:u", "-F", "20000", "--switch-output=8K", "-o", "out"];
    // It works until there are two files: a recorder that gets no CPU switches late.
    let until_switched = format!(
        "n=0; while [ $n -lt 100 ]; do {BUSY}; set -- out*; \
         [ $# -gt 1 ] && exit; n=$((n+1)); done"
    );
    let output = place.run(&[&line[..], &["--", "sh", "-c", &until_switched]].concat());
    assert!(samples(&output).len() > 1, "{}", stderr(&output));
    assert!(stderr(&output).matches("lost 0 ").count() == samples(&output).len());
}
