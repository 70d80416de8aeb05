//! Running processes, threads, CPUs; counts by thread and by CPU.

use super::support::{Busy, check, counted, fields, probe, said, values, wait_for_events, whit};
use std::process::Command;

#[test]
fn a_running_process_is_counted_until_it_ends() {
    let mut busy = Busy::start();
    let measured =
        counted(&["-x;", "-p", &busy.id().to_string(), "-e", "task-clock:u", "sleep", "0.2"]);
    assert!(values(&fields(&measured), "task-clock:u", 0)[0] > 1.0, "{measured}");
    let whit = super::support::start(&["-p", &busy.id().to_string(), "-e", "task-clock:u"]);
    wait_for_events(&whit);
    busy.wait_for_work();
    busy.end();
    let output = whit.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let text = said(&output);
    assert!(text.contains(&format!("process id '{}'", busy.id())), "{text}");
    assert!(!text.contains("not counted"), "{text}");
}

#[test]
fn threads_are_counted_each_by_itself() {
    let (one, other) = (Busy::start(), Busy::start());
    let ids = format!("{},{}", one.id(), other.id());
    for option in ["-p", "-t"] {
        let line =
            ["-x;", "--per-thread", option, &ids, "-e", "task-clock:u,page-faults:u", "sleep"];
        let lines = fields(&counted(&[&line[..], &["0.2"]].concat()));
        assert_eq!(lines.len(), 4, "{lines:?}");
        let names: Vec<_> = lines[..2].iter().map(|line| line[0].clone()).collect();
        for (name, id) in names.iter().zip(ids.split(',')) {
            assert_eq!(*name, format!("sh-{id}"));
        }
        let clocks = values(&lines, "task-clock:u", 1);
        assert!(clocks.len() == 2 && clocks.iter().all(|ms| *ms > 1.0), "{clocks:?}");
    }
}

#[test]
fn threads_add_up_to_their_process() {
    check("threads_add_up_to_their_process", || {
        probe::whole_cpus()?;
        // Both are counted over the same time: as two whits, one within the other's command.
        let busy = Busy::start();
        let inner = format!(
            "{} stat -x';' --per-thread -p {} -e task-clock -o inner sleep 0.2",
            env!("CARGO_BIN_EXE_whit"),
            busy.id()
        );
        let dir = tempfile::tempdir().unwrap();
        let mut command =
            whit(&["-x;", "-p", &busy.id().to_string(), "-e", "task-clock", "sh", "-c", &inner]);
        let outer = super::support::text({
            command.current_dir(dir.path());
            command
        });
        let inner = std::fs::read_to_string(dir.path().join("inner")).unwrap();
        let (outer, inner) = (fields(&outer), fields(&inner));
        let whole = values(&outer, "task-clock", 0)[0];
        let threads: f64 = values(&inner, "task-clock", 1).iter().sum();
        assert!(threads > 0.0 && threads <= whole, "{threads} of {whole}");
        Ok(())
    });
}

#[test]
fn every_way_of_adding_up_sees_the_same_time() {
    check("every_way_of_adding_up_sees_the_same_time", || {
        probe::whole_cpus()?;
        let nr_cpus = std::thread::available_parallelism().unwrap().get();
        for (mode, front) in [
            ("-A", 1),
            ("--per-core", 2),
            ("--per-cache", 2),
            ("--per-die", 2),
            ("--per-socket", 2),
            ("--per-node", 2),
        ] {
            let lines = fields(&counted(&["-a", "-x;", mode, "-e", "cpu-clock", "sleep", "0.05"]));
            let clocks = values(&lines, "cpu-clock", front);
            assert!(!clocks.is_empty() && clocks.iter().all(|ms| *ms >= 50.0), "{mode} {lines:?}");
            if front == 2 {
                let cpus: usize = lines.iter().map(|line| line[1].parse::<usize>().unwrap()).sum();
                assert!(cpus >= nr_cpus, "{mode} {lines:?}");
            }
        }
        Ok(())
    });
}

#[test]
fn a_command_is_counted_cpu_by_cpu_too() {
    // perf wants -a for this.
    let lines = fields(&counted(&["-A", "-x;", "-e", "page-faults", "sh", "-c", "ls >/dev/null"]));
    let whole = fields(&counted(&["-x;", "-e", "page-faults", "sh", "-c", "ls >/dev/null"]));
    let parts: f64 = values(&lines, "page-faults", 1).iter().sum();
    let whole = values(&whole, "page-faults", 0)[0];
    assert!((parts - whole).abs() <= 0.1 * whole, "{parts} {whole}");
}

#[test]
fn single_cpus_are_counted() {
    check("single_cpus_are_counted", || {
        probe::whole_cpus()?;
        let text = counted(&["-C", "0", "-A", "-e", "cpu-clock", "sleep", "0.01"]);
        assert!(text.contains("CPU(s) 0") && text.contains("CPU0"), "{text}");
        assert!(!text.contains("CPU1"), "{text}");
        let missing = whit(&["-C", "7000", "true"]).output().unwrap();
        assert!(said(&missing).contains("7000"), "{}", said(&missing));
        Ok(())
    });
}

#[test]
fn all_threads_of_the_machine_are_counted_each_by_itself() {
    check("all_threads_of_the_machine_are_counted_each_by_itself", || {
        probe::whole_cpus()?;
        let busy = Busy::start();
        let lines =
            fields(&counted(&["-a", "--per-thread", "-x;", "-e", "task-clock", "sleep", "0.1"]));
        let name = format!("sh-{}", busy.id());
        let found = lines.iter().find(|line| line[0] == name).expect("the busy thread");
        assert!(found[1].parse::<f64>().unwrap() > 1.0, "{found:?}");
        assert!(lines.iter().all(|line| !line[1].starts_with('<')), "only those that ran");
        Ok(())
    });
}

#[test]
fn missing_targets_are_named() {
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let id = child.id().to_string();
    for option in ["-p", "-t"] {
        let output = whit(&[option, &id]).output().unwrap();
        assert!(!output.status.success());
        assert!(said(&output).contains(&id), "{}", said(&output));
    }
}

#[test]
fn more_counters_than_open_files_are_refused_with_the_way_out() {
    let events = vec!["page-faults:uD"; 200].join(",");
    let script =
        format!("ulimit -n 100; exec {} stat -e {events} true", env!("CARGO_BIN_EXE_whit"));
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let text = said(&output);
    assert!(!output.status.success() && text.contains("ulimit -n 224"), "{text}");
    // Within the hard limit the soft one is raised.
    let script =
        format!("ulimit -Sn 100; exec {} stat -x';' -e {events} true", env!("CARGO_BIN_EXE_whit"));
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(said(&output).lines().filter(|line| line.contains(";page-faults:uD;")).count(), 200);
}
