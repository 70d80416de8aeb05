//! The arithmetic of `bpf/cpu_account.h`, compiled for this machine, on simulated interrupts and stolen time.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use whit_testing::{check, probe, run};

/// Parts, and times: in interrupts, in softirqs, stolen.
type Account = [u64; 4];
const BOTH: u64 = 3;

fn host() -> &'static PathBuf {
    static BUILT: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    &BUILT
        .get_or_init(|| {
            let folder = tempfile::tempdir().expect("make a directory");
            let program = folder.path().join("host");
            let mut build = Command::new("cc");
            build.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror"]);
            build.args(["-Wno-unused-parameter", "-Wno-unused-function", "-o"]).arg(&program);
            let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cpu_account/host.c");
            run::succeed(build.arg(source));
            (folder, program)
        })
        .1
}

/// The account that each reading records; `None` for none.
fn recorded(steps: &str) -> Vec<Option<Account>> {
    let mut host = Command::new(host());
    let mut host = host.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("run it");
    let mut input = host.stdin.take().expect("a pipe");
    input.write_all(steps.as_bytes()).expect("write the steps");
    drop(input);
    let mut output = String::new();
    host.stdout.take().expect("a pipe").read_to_string(&mut output).expect("read the accounts");
    assert!(host.wait().expect("wait").success(), "{steps}");
    let mut accounts = Vec::new();
    let mut last = None;
    for line in output.lines() {
        if line.is_empty() {
            accounts.push(last.take());
            continue;
        }
        let numbers: Vec<u64> =
            line.split(' ').map(|word| word.parse().expect("a number")).collect();
        last = Some(Account::try_from(numbers).expect("an account"));
    }
    accounts
}

#[test]
fn accounts_have_the_time_since_the_one_before() {
    check("cpu_account", || {
        probe::program("cc")?;
        // The first names the parts; a reading without time records nothing.
        assert_eq!(recorded("r 100 5 r 200 5"), [Some([BOTH, 0, 0, 0]), None]);
        let first = Some([BOTH, 0, 0, 0]);
        // An interrupt, a softirq, and an interrupt within a softirq.
        let handlers = "b 110 e 113 B 120 E 125 B 130 b 132 e 140 E 150";
        let wanted = Some([BOTH, 3 + 8, 5 + 20 - 8, 0]);
        assert_eq!(recorded(&format!("r 100 5 {handlers} r 200 5")), [first, wanted]);
        // Stolen time since the reading before, and never more than there was.
        assert_eq!(recorded("r 100 5 r 200 47"), [first, Some([BOTH, 0, 0, 42])]);
        assert_eq!(recorded("r 100 5 r 200 500"), [first, Some([BOTH, 0, 0, 100])]);
        // Time that was stolen from a handler is no time of the handler where both exceed the run.
        assert_eq!(recorded("r 100 0 b 110 e 190 r 200 50"), [first, Some([BOTH, 50, 0, 50])]);
        assert_eq!(
            recorded("r 100 0 b 110 e 120 B 120 E 195 r 200 60"),
            [first, Some([BOTH, 0, 40, 60])]
        );
        // Programs were attached within a handler, or taken off.
        assert_eq!(recorded("r 100 0 e 110 E 120 r 200 0"), [first, None]);
        assert_eq!(
            recorded("r 100 0 b 110 B 120 n 130 r 140 0 e 150 E 160 r 200 0"),
            [first, first, None]
        );
        // A softirq that is preempted: its beginning alone.
        assert_eq!(
            recorded("r 100 0 B 110 r 130 0 E 180 r 200 0"),
            [first, Some([BOTH, 0, 20, 0]), None]
        );
        Ok(())
    });
}

/// A stretch of a CPU's time, with its length.
#[derive(Clone, Debug)]
enum Stretch {
    Thread(u64),
    Irq(u64),
    /// In front of an interrupt, in it, and behind.
    Softirq(u64, u64, u64),
    Stolen(u64),
    Switch,
}

fn stretch() -> impl Strategy<Value = Stretch> {
    let ns = 1u64..1000;
    prop_oneof![
        ns.clone().prop_map(Stretch::Thread),
        ns.clone().prop_map(Stretch::Irq),
        (ns.clone(), ns.clone(), ns.clone()).prop_map(|(a, b, c)| Stretch::Softirq(a, b, c)),
        ns.prop_map(Stretch::Stolen),
        Just(Stretch::Switch),
    ]
}

/// Steps of a CPU's time, and the accounts that they make.
fn simulated(stretches: Vec<Stretch>) -> (String, Vec<Option<Account>>) {
    let (mut now, mut clock) = (1_000, 7);
    let (mut steps, mut wanted) = (format!("r {now} {clock}\n"), vec![Some([BOTH, 0, 0, 0])]);
    let mut sums = [0; 3];
    for stretch in stretches.into_iter().chain([Stretch::Switch]) {
        match stretch {
            Stretch::Thread(ns) => now += ns,
            Stretch::Irq(ns) => {
                steps += &format!("b {now}\ne {}\n", now + ns);
                (now, sums[0]) = (now + ns, sums[0] + ns);
            }
            Stretch::Softirq(before, irq, behind) => {
                let [at, end] = [now + before, now + before + irq];
                steps += &format!("B {now}\nb {at}\ne {end}\nE {}\n", end + behind);
                now = end + behind;
                sums = [sums[0] + irq, sums[1] + before + behind, sums[2]];
            }
            Stretch::Stolen(ns) => {
                (now, clock, sums[2]) = (now + ns, clock + ns, sums[2] + ns);
            }
            Stretch::Switch => {
                steps += &format!("r {now} {clock}\n");
                let [irq, softirq, stolen] = std::mem::take(&mut sums);
                let has_any = irq + softirq + stolen > 0;
                wanted.push(has_any.then_some([BOTH, irq, softirq, stolen]));
            }
        }
    }
    (steps, wanted)
}

/// Where nothing is stolen from a handler, each time is the true one.
#[test]
fn times_are_exact() {
    check("cpu_account_exact", || {
        probe::program("cc")?;
        let mut runner = TestRunner::new(ProptestConfig::with_cases(200));
        let stretches = prop::collection::vec(stretch(), 1..60);
        let ran = runner.run(&stretches, |stretches| {
            let (steps, wanted) = simulated(stretches);
            prop_assert_eq!(recorded(&steps), wanted);
            Ok(())
        });
        ran.unwrap_or_else(|error| panic!("{error}"));
        Ok(())
    });
}
