//! `whit bench pmi`, `lbr` and `sched` as a whole: they are deterministic, so that their tables can be
//! checked to the digit. For `whit bench vpmu`, the counted figures are checked.

use serde_json::Value;

use crate::support::tools::{text, whit};
use crate::support::{check, probe};

/// Printed text and JSON of a benchmark.
fn bench(args: &[&str]) -> (String, Value) {
    let directory = tempfile::tempdir().expect("make a directory");
    let json = directory.path().join("result.json");
    let printed = text(whit().arg("bench").args(args).arg("--json").arg(&json));
    let result = std::fs::read(&json).expect("read the JSON");
    (printed, serde_json::from_slice(&result).expect("parse the JSON"))
}

#[test]
fn interrupts_cost_as_much_as_published() {
    check("bench_pmi", || {
        let (printed, result) = bench(&["pmi", "--interrupts", "10"]);
        assert!(printed.contains("published 5 W + 2 R → 1 W + 1 R, here 5 W + 2 R → 1 W + 1 R"));
        let control = &result["rows"][3]["control"];
        assert_eq!((&control["wrmsr"], &control["rdmsr"]), (&1.0.into(), &1.0.into()));
        Ok(())
    });
}

#[test]
fn the_seeds_rule_leaks_and_ours_does_not() {
    check("bench_lbr", || {
        let (printed, result) = bench(&["lbr", "--switches", "1000"]);
        assert!(
            printed.contains("- owner tag, 24336 states: no sample shows another"),
            "{printed}"
        );
        let leaks = result["leaks"].as_array().expect("leaks");
        let leaky: Vec<_> = leaks.iter().map(|leak| leak["steps"].is_array()).collect();
        assert_eq!(leaky, [true, true, false]);
        Ok(())
    });
}

#[test]
fn visits_do_not_grow_with_cgroups() {
    check("bench_sched", || {
        let (_, result) = bench(&["sched", "--switches", "100"]);
        let visits = result["visits"].as_array().expect("visits");
        let (first, last) = (&visits[1], visits.last().expect("rows"));
        assert_eq!((&last["cgroups"], &last["flat"]), (&1000.into(), &6000.0.into()));
        assert_eq!(first["trees"], last["trees"]);
        Ok(())
    });
}

/// Where there is no PMU it says so and stops; where there is one nothing is measured here.
#[test]
fn handlers_of_a_machine_without_a_pmu_are_not_measured() {
    check("bench_pmi_host", || {
        let sources = std::path::Path::new("/sys/bus/event_source/devices");
        if ["cpu", "cpu_core"].iter().any(|name| sources.join(name).exists()) {
            return Ok(());
        }
        let output = whit().args(["bench", "pmi", "--host"]).output().expect("run whit");
        assert!(!output.status.success());
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains("this machine has no hardware PMU"), "{message}");
        Ok(())
    });
}

#[test]
fn a_guest_reuses_host_events() {
    check("bench_vpmu", || {
        let few = ["vpmu", "--interrupts", "20", "--switches", "20", "--rounds", "1"];
        let (printed, result) = bench(&few);
        assert!(printed.contains("published") || printed.contains("Published"), "{printed}");
        for table in ["sampling", "counting"] {
            let rows = result[table].as_array().expect("rows");
            let numbers = |row: usize, field: &str| rows[row][field].as_u64().expect("a number");
            assert!(numbers(0, "opens") >= 20 && numbers(0, "opens_avoided") == 0, "{printed}");
            assert!(numbers(1, "opens_avoided") >= 20, "{printed}");
            assert!(numbers(2, "opens_avoided") >= 20, "{printed}");
        }
        Ok(())
    });
}

/// Deterministic, so that the published table is the printed one.
#[test]
fn kinds_of_virtual_pmu_cost_as_much_as_published() {
    check("bench_vpmu_registers", || {
        let (printed, result) = bench(&["vpmu", "--registers"]);
        let path = whit_testing::run::repository().join("bench/results/simulated-pmu.md");
        let page = std::fs::read_to_string(path).expect("the page of results");
        for line in printed.lines().filter(|line| line.starts_with("| ")) {
            assert!(page.contains(line), "the page lacks {line}");
        }
        let rows = result["rows"].as_array().expect("rows");
        let exits: Vec<_> = rows.iter().map(|row| row["interrupt"]["exits"].clone()).collect();
        assert_eq!(exits, [9.0, 9.0, 2.0, 2.0]);
        Ok(())
    });
}

#[test]
fn a_guest_in_kvm_samples_the_hosts_counts() {
    check("bench_vpmu_kvm", || {
        probe::kvm()?;
        let (_, result) =
            bench(&["vpmu", "--kvm", "--interrupts", "10", "--rounds", "1", "-c", "3000000"]);
        for row in result["rows"].as_array().expect("rows") {
            assert!(row["samples"].as_u64() >= Some(10), "{row}");
            assert_eq!(row["samples"], row["overflows"], "{row}");
        }
        Ok(())
    });
}
