//! The meter of PMU interrupts, in the running kernel. Most machines that tests run on have no PMU:
//! the kernel is asked to run the program as if a handler had been called, on a CPU and with the
//! arguments of the tracepoint. Where the kernel can be asked for real non-maskable interrupts
//! (`/proc/sysrq-trigger`), these are counted as well.

#[path = "../cgroups/support/mod.rs"]
#[allow(dead_code)]
mod support;

use std::fs;
use std::time::{Duration, Instant};

use whit_bpf::pmi::{HANDLERS_MAX, Handler, PmiMeter, Reading};
use whit_testing::wait::is_within;

use crate::support::counting::cpu_list;
use crate::support::{Skip, check, probe};

/// Addresses that no handler has.
const MINE: u64 = 0x1111_0000;
const OTHER: u64 = 0x2222_0000;
/// Longest wait for an interrupt.
const PATIENCE: Duration = Duration::from_secs(5);

fn meter() -> Result<PmiMeter, Skip> {
    probe::bpf_interrupts()?;
    Ok(PmiMeter::start(false).unwrap_or_else(|error| panic!("{error}")))
}

/// The handlers that only this test knows: real ones may come in between.
fn sum(reading: &Reading, address: u64) -> Handler {
    reading.sum(Some(&[address]))
}

#[test]
fn handlers_are_added_up_on_all_cpus() {
    check("what_handlers_handled_is_added_up", || {
        let meter = meter()?;
        let cpus = cpu_list("online");
        for (turn, &cpu) in (1..).zip(&cpus) {
            meter.pretend(cpu, MINE, 100 * turn, 1).unwrap();
            meter.pretend(cpu, OTHER, 7, 2).unwrap();
            // Asked, and not meant.
            meter.pretend(cpu, MINE, 1_000_000, 0).unwrap();
            meter.pretend(cpu, MINE, 1_000_000, -1).unwrap();
            // A clock that went back.
            meter.pretend(cpu, MINE, -5, 1).unwrap();
        }
        let n = cpus.len() as u64;
        let reading = meter.read().unwrap();
        let wanted = Handler {
            address: 0,
            calls: 2 * n,
            time_ns: 100 * n * (n + 1) / 2,
            longest_ns: 100 * n,
        };
        assert_eq!(sum(&reading, MINE), wanted);
        let wanted = Handler { address: 0, calls: n, time_ns: 7 * n, longest_ns: 7 };
        assert_eq!(sum(&reading, OTHER), wanted);
        assert_eq!(reading.unplaced, 0);
        Ok(())
    });
}

#[test]
fn handlers_that_are_too_many_are_counted() {
    check("handlers_that_are_too_many_are_counted", || {
        let meter = meter()?;
        let cpu = cpu_list("online")[0];
        let many = HANDLERS_MAX as u64 + 3;
        (0..many).for_each(|n| meter.pretend(cpu, MINE + n, 1, 1).unwrap());
        let reading = meter.read().unwrap();
        let placed = reading.handlers.iter().filter(|h| (MINE..MINE + many).contains(&h.address));
        let placed: u64 = placed.map(|handler| handler.calls).sum();
        assert_eq!(placed + reading.unplaced, many, "{reading:?}");
        assert!(reading.unplaced >= 3);
        Ok(())
    });
}

#[test]
fn the_kernel_counts_the_programs_runs() {
    check("the_kernel_counts_the_programs_runs", || {
        probe::bpf_statistics()?;
        let begin = Instant::now();
        let meter = meter()?;
        let cpu = cpu_list("online")[0];
        let mut pretended = 0;
        // Its time is taken in windows.
        let statistics = loop {
            (0..100).for_each(|_| meter.pretend(cpu, MINE, 1, 1).unwrap());
            pretended += 100;
            match meter.run_statistics() {
                Ok(statistics) if statistics.runs >= 100 => break statistics,
                other => other.unwrap(),
            };
            assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", meter.timed());
        };
        assert!(meter.timed() > Duration::ZERO && meter.timed() <= begin.elapsed());
        // Real interrupts may have come in between.
        assert!(statistics.runs < pretended + 1_000_000, "{statistics:?}");
        let average_ns = statistics.run_time_ns / statistics.runs;
        assert!(statistics.run_time_ns > 0 && average_ns < 1_000_000, "{statistics:?}");
        Ok(())
    });
}

/// Where this asks for the stacks of all CPUs, the kernel interrupts all but one by an NMI.
#[test]
fn real_interrupts_are_counted() {
    check("real_interrupts_are_counted", || {
        const TRIGGER: &str = "/proc/sysrq-trigger";
        // The other CPUs are interrupted.
        probe::online_cpus(2)?;
        let meter = meter()?;
        let before = meter.read().unwrap().sum(None).calls;
        let asked = fs::OpenOptions::new().write(true).open(TRIGGER);
        let asked = asked.and_then(|mut file| std::io::Write::write_all(&mut file, b"l"));
        asked.map_err(|error| Skip(format!("no NMI can be asked for: {TRIGGER}: {error}")))?;
        let sum = || meter.read().unwrap().sum(None);
        if !is_within(PATIENCE, || sum().calls > before) {
            return Err(Skip("the kernel showed the stacks without an NMI".into()));
        }
        let sum = sum();
        assert!(sum.longest_ns > 0 && sum.longest_ns <= sum.time_ns, "{sum:?}");
        Ok(())
    });
}
