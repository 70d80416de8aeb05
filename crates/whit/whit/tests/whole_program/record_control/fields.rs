//! Fields of samples and of the recording beyond the usual.

use super::support::{TestFolder, count, has, has_perf, perf, probe, samples, stderr};

const BUSY: &str = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; /bin/true; exit 7";

#[test]
fn branch_records_are_refused_by_name_and_with_the_missing_feature() {
    let place = TestFolder::new();
    for options in [&["-b"][..], &["-j", "any,u"], &["-j", "stack,u"], &["--call-graph", "lbr"]] {
        let line = [options, &["-e", "page-faults", "-o", "out", "--", "true"]].concat();
        let output = place.run(&line);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("'page-faults'") && text.contains("branch records"), "{text}");
        assert!(!place.path("out").exists());
        let skipping = [options, &["--skip-unsupported", "-e", "page-faults", "true"]].concat();
        let text = stderr(&place.run(&skipping));
        assert!(text.contains("'page-faults' left out"), "{text}");
        assert!(text.contains("none of the events can be recorded"), "{text}");
    }
    let output = place.run(&["-j", "sideways", "true"]);
    assert!(stderr(&output).contains("any_call"), "{}", stderr(&output));
}

#[test]
fn every_field_is_read_back_by_perf_and_by_whit() {
    let place = TestFolder::new();
    let fixed = ["-e", "cpu-clock:u,page-faults:u", "-d", "-W", "-P", "-R", "--phys-data"];
    let more = ["--data-page-size", "--code-page-size", "--transaction", "--sample-identifier"];
    let rest = ["--no-buffering", "--timestamp-boundary", "-o", "out", "--", "sh", "-c", BUSY];
    let output = place.run(&[&fixed[..], &more, &rest].concat());
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert!(samples(&output)[0] > 0);
    let script = std::process::Command::new(env!("CARGO_BIN_EXE_whit"))
        .args(["script", "-i"])
        .arg(place.path("out"))
        .output()
        .unwrap();
    let lines = String::from_utf8_lossy(&script.stdout);
    let shown =
        lines.lines().filter(|line| line.contains("cpu-clock:u") || line.contains("page-faults:u"));
    assert_eq!(shown.count() as u64, samples(&output)[0], "{}", stderr(&script));
    if has_perf("every field") {
        let file = place.path("out");
        assert_eq!(count(&file, "SAMPLE events"), samples(&output)[0]);
        let fields =
            perf(&["script", "-F", "comm,addr,phys_addr,data_page_size,code_page_size"], &file);
        assert_eq!(fields.lines().count() as u64, samples(&output)[0]);
    }
}

/// perf 6.1 takes the level of memory with `-d` alone, which has the address and mappings of data as well.
#[test]
fn the_level_of_memory_is_recorded_without_addresses() {
    let place = TestFolder::new();
    let recorded = ["-e", "cpu-clock:u", "-o", "out", "--", "sh", "-c", BUSY];
    let output = place.run(&[&["--sample-mem-info"], &recorded[..]].concat());
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    let script = std::process::Command::new(env!("CARGO_BIN_EXE_whit"))
        .args(["script", "-F", "data_src", "-i"])
        .arg(place.path("out"))
        .output()
        .unwrap();
    let lines = String::from_utf8_lossy(&script.stdout).lines().count() as u64;
    assert_eq!(lines, samples(&output)[0], "{}", stderr(&script));
    let refused = place.run(&["--engine=bpf", "--sample-mem-info", "true"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("--engine=ring"), "{}", stderr(&refused));
    if has_perf("the level of memory") {
        let own = perf(&["evlist", "-v"], &place.path("out"));
        let mut stock = whit_testing::run::perf().expect("has_perf was asked");
        stock.args(["record", "-q", "-d"]).args(recorded).current_dir(place.path("."));
        assert_eq!(stock.output().unwrap().status.code(), Some(7));
        let stock = perf(&["evlist", "-v"], &place.path("out"));
        assert!(stock.contains("|ADDR|") && stock.contains("mmap_data: 1, "), "{stock}");
        let stock = stock.replace("|ADDR|", "|").replace("mmap_data: 1, ", "");
        // whit's readers wake at another level of the ring.
        let own = own.replace("watermark: 1, ", "");
        let own = own.split(", { wakeup_events").next().unwrap_or_default();
        assert_eq!(own, stock.trim_end());
    }
}

#[test]
fn counts_of_threads_without_samples() {
    let place = TestFolder::new();
    let line = ["-e", "page-faults:u", "-n", "-s", "-o", "out", "--", "sh", "-c", BUSY];
    let output = place.run(&line);
    assert_eq!(samples(&output), [0], "{}", stderr(&output));
    if has_perf("counts of threads") {
        assert!(count(&place.path("out"), "READ events") > 0);
        assert_eq!(count(&place.path("out"), "SAMPLE events"), 0);
    }
}

#[test]
fn groups_that_are_read_say_how_long_they_ran() {
    let place = TestFolder::new();
    let line = ["-e", "{cpu-clock:u,page-faults:u}:S", "--running-time", "-o", "out", "--", "sh"];
    let output = place.run(&[&line[..], &["-c", BUSY]].concat());
    assert!(samples(&output)[0] > 0, "{}", stderr(&output));
    if has_perf("groups that are read") {
        let dump = perf(&["script", "-D"], &place.path("out"));
        assert!(dump.contains("..... time enabled") || dump.contains("time enabled"), "no times");
        assert!(dump.contains("time running"));
    }
}

#[test]
fn real_time_readers_and_everything_else_at_once() {
    if !has("real_time_readers", probe::need_program("chrt", &["-f", "1", "true"])) {
        return;
    }
    let place = TestFolder::new();
    let fixed = ["-e", "cpu-clock:u", "-g", "-r", "1", "-o", "out"];
    let modes = ["--threads", "--aio=2", "-z", "--affinity=cpu"];
    let output = place.run(&[&fixed[..], &modes, &["--", "sh", "-c", BUSY]].concat());
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert!(samples(&output)[0] > 0);
    for priority in ["0", "100", "x"] {
        assert!(stderr(&place.run(&["-r", priority, "true"])).contains("from 1 to 99"));
    }
}

#[test]
fn a_dry_run_checks_and_records_nothing() {
    let place = TestFolder::new();
    let output =
        place.run(&["--dry-run", "-e", "cpu-clock:u", "-o", "out", "sh", "-c", "touch ran"]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert!(!place.path("out").exists() && !place.path("ran").exists());
    let output = place.run(&["--dry-run", "-e", "cpu-clock:u,,", "true"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn senseless_options_are_refused_with_an_alternative() {
    let place = TestFolder::new();
    for (option, wanted) in [
        ("--kcore", "/proc/kallsyms"),
        ("--aux-sample", "AUX area"),
        ("-S", "--overwrite"),
        ("--switch-output-event=cs", "SIGUSR2"),
    ] {
        let output = place.run(&[option, "true"]);
        assert!(!output.status.success());
        assert!(stderr(&output).contains(wanted), "{option}: {}", stderr(&output));
    }
}

#[test]
fn tracepoints_are_filtered_and_the_recorder_left_out() {
    if !has("filters", probe::tracepoints()) || !has_perf("filters") {
        return;
    }
    let place = TestFolder::new();
    // Processes that switched, without the recorder, and whether that did.
    let switches = |options: &[&str]| {
        let fixed = ["-a", "-o", "out", "-e", "sched:sched_switch"];
        let whit = place.start(&[&fixed[..], options, &["--", "sleep", "0.2"]].concat());
        let own = whit.id().to_string();
        let output = whit.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let script = perf(&["script", "-F", "comm,pid,trace"], &place.path("out"));
        // A thread that has ended switches once more, when it is in no list any more.
        let script = script.lines().filter(|line| !line.contains("prev_state=X"));
        let pid = |line: &str| {
            line.split("prev_comm=").next()?.split_ascii_whitespace().last().map(str::to_owned)
        };
        let (own, others): (Vec<_>, Vec<_>) =
            script.partition(|line| pid(line).as_deref() == Some(own.as_str()));
        let others: Vec<_> = others.into_iter().map(|line| line.trim().to_owned()).collect();
        (!own.is_empty(), others)
    };
    let (has_own, _) = switches(&["--no-buffering"]);
    assert!(has_own, "the recorder switches");
    let (has_own, others) = switches(&["--no-buffering", "--exclude-perf"]);
    assert!(!has_own && !others.is_empty());
    let filter = ["--filter", "prev_comm == \"sleep\"", "--filter", "prev_pid > 0"];
    let (_, filtered) = switches(&filter);
    assert!(filtered.iter().all(|line| line.starts_with("sleep")), "{filtered:?}");
    assert!(!filtered.is_empty());
    let wrong = place.run(&["-a", "-e", "sched:sched_switch", "--filter", "x ==", "true"]);
    assert!(stderr(&wrong).contains("'x =='"), "{}", stderr(&wrong));
    let mut stat = std::process::Command::new(env!("CARGO_BIN_EXE_whit"));
    stat.args(["stat", "-a", "-e", "sched:sched_switch", "--filter", "prevpid == 1", "true"]);
    for said in [stderr(&wrong), stderr(&stat.output().unwrap())] {
        let fields =
            "fields of sched:sched_switch are common_pid, prev_comm (text), prev_pid, prev_prio";
        assert!(said.contains(fields), "{said}");
        assert_eq!(said.lines().count(), 2, "{said}");
    }
}
