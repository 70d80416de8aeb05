//! Tables of waits made by hand.

use super::*;
use crate::builder::{At, Builder, Who, at};
use whit_profile::model::{CommId, NodeId, Profile, ThreadId};
use whit_profile::switches::{
    CpuParts, Durations, Futex, FutexSymbol, KernelLockWait, LockWait, LockWaits, Sources,
    SwitchRow, SwitchSums, Switches, ThreadLife, Waker,
};

const MS: u64 = 1_000_000;

fn kernel(name: &str) -> At {
    at(name, "[kernel.kallsyms]", 0x10).kernel()
}

/// A chain from the outside inwards, of a program with its address.
fn chain(functions: &[&str], lock: &[&str]) -> Vec<At> {
    let user = functions.iter().map(|name| at(name, "/bin/app", 0x20));
    let lock = lock.iter().map(|name| match name.strip_prefix("k:") {
        Some(name) => kernel(name),
        None => at(name, "/lib/libc.so.6", 0x30),
    });
    user.chain(lock).collect()
}

/// Threads 7, 8 and 9 of a program, and thread 5 of another.
struct Made {
    builder: Builder,
    waits: Vec<LockWait>,
}

impl Made {
    fn new() -> Made {
        Made { builder: Builder::default(), waits: Vec::new() }
    }

    /// Thread, name and leaf of a sample.
    fn place(&mut self, tid: i32, chain: &[At]) -> (ThreadId, CommId, NodeId) {
        let event = self.builder.event("cpu-clock");
        let (comm, pid) = if tid < 7 { ("other", 5) } else { ("app", 7) };
        self.builder.sample(event, Who { comm, pid, tid, cpu: None }, chain, 1);
        let row = self.builder.profile.rows.last().expect("a row");
        (row.thread, row.comm, row.node)
    }

    fn wait(
        &mut self,
        tid: i32,
        at: &[At],
        futex: Option<Futex>,
        by: Option<(i32, &[At])>,
        ms: &[u64],
    ) {
        let waker = by.map(|(tid, chain)| {
            let (thread, _, node) = self.place(tid, chain);
            Waker { thread, node, from_interrupt: false }
        });
        let (thread, comm, node) = self.place(tid, at);
        let mut waits = Durations::default();
        ms.iter().for_each(|ms| waits.add(ms * MS));
        let blocked_ns = waits.total_ns;
        self.waits.push(LockWait {
            thread,
            comm,
            node,
            futex,
            waker,
            waits,
            blocked_ns,
            uncertain: 0,
            owner: None,
        });
    }

    fn finish(self) -> (Profile, Switches) {
        let profile = self.builder.profile;
        let rows = self.waits.iter().map(|wait| SwitchRow {
            thread: wait.thread,
            comm: wait.comm,
            node: wait.node,
            object: None,
            brings: Default::default(),
            block: 0,
            sums: SwitchSums {
                sync_count: wait.waits.count + wait.uncertain,
                sync_wait_ns: wait.waits.total_ns,
                lossy_count: wait.uncertain,
                lossy_wait_ns: wait.uncertain * MS,
                ..SwitchSums::default()
            },
        });
        let lives = (0..profile.threads.len() as u32).map(|thread| ThreadLife {
            thread: ThreadId(thread),
            elapsed_ns: 50 * MS,
            left_out_ns: 0,
            parts: CpuParts::default(),
        });
        let switches = Switches {
            sources: Sources { records: true, stacks: true, wakeups: true, ..Sources::default() },
            rows: rows.collect(),
            lives: lives.collect(),
            recorded_ns: 50 * MS,
            locks: LockWaits { waits: self.waits, ..LockWaits::default() },
            ..Switches::default()
        };
        (profile, switches)
    }
}

fn in_data(address: u64, name: &str, offset: u64) -> Option<Futex> {
    let (name, binary) = (Some(name.into()), "/bin/app".into());
    Some(Futex { address, symbol: Some(FutexSymbol { name, offset, binary }) })
}

const LOCK: [&str; 4] = ["pthread_mutex_lock", "__lll_lock_wait", "k:futex_wait", "k:schedule"];
const UNLOCK: [&str; 3] = ["pthread_mutex_unlock", "k:futex_wake", "k:try_to_wake_up"];

/// Two mutexes: `queue`, in data, that two functions want; and one on the heap of each of two processes.
fn two_locks() -> (Profile, Switches) {
    let mut made = Made::new();
    let (push, pop) = (chain(&["main", "push"], &LOCK), chain(&["main", "pop"], &LOCK));
    let give = chain(&["main", "give"], &UNLOCK);
    made.wait(7, &push, in_data(0x5000, "queue", 8), Some((9, &give)), &[1, 2, 3]);
    made.wait(8, &pop, in_data(0x5000, "queue", 8), Some((9, &give)), &[4]);
    // The same place of another process, as address randomization moves it.
    made.wait(5, &pop, in_data(0x9000, "queue", 8), None, &[10]);
    let heap = || Some(Futex { address: 0xa0, symbol: None });
    made.wait(8, &push, heap(), Some((7, &give)), &[5, 5]);
    made.wait(5, &push, heap(), Some((5, &give)), &[5]);
    // No wait for a lock.
    made.wait(8, &chain(&["main"], &["k:do_nanosleep", "k:schedule"]), None, None, &[40]);
    made.finish()
}

fn options(by: By) -> LockViewOptions {
    LockViewOptions {
        filters: Filters::default(),
        by,
        limit: None,
        chains: false,
        inline: true,
        quiet: false,
    }
}

fn text_of((profile, switches): &(Profile, Switches), options: &LockViewOptions) -> String {
    let mut out = Vec::new();
    write_text(&mut out, profile, switches, options).unwrap();
    String::from_utf8(out).unwrap()
}

fn json_of(
    (profile, switches): &(Profile, Switches),
    options: &LockViewOptions,
) -> serde_json::Value {
    let mut out = Vec::new();
    write_json(&mut out, profile, switches, options).unwrap();
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn a_lock_in_data_is_one_in_all_processes() {
    insta::assert_snapshot!(text_of(&two_locks(), &options(By::Lock)));
}

#[test]
fn call_sites_have_their_locks() {
    let options = LockViewOptions { quiet: true, ..options(By::CallSite) };
    insta::assert_snapshot!(text_of(&two_locks(), &options));
}

/// Whether a parked thread waits for a lock is known by names of Java's functions.
#[test]
fn parked_threads_without_names_are_counted() {
    let mut made = Made::new();
    let park = ["Unsafe_Park", "Parker::park", "k:futex_wait", "k:schedule"];
    made.wait(7, &chain(&["jit_7f@perf-7.map"], &park), None, None, &[20, 5]);
    let table = made.finish();
    let text = text_of(&table, &options(By::Lock));
    assert!(
        text.contains("# Not in the table: 2 waits of parked threads of Java, 25.0 ms: "),
        "{text}"
    );
    assert!(text.contains("# No thread was seen to wait for a lock"), "{text}");
    let parked = &json_of(&table, &options(By::Lock))["parked"];
    assert_eq!((&parked["count"], &parked["total_ns"]), (&2.into(), &(25 * MS).into()));
    for (function, in_table) in [
        ("void java.util.concurrent.locks.ReentrantLock.lock()", 2),
        ("java.lang.Object java.util.concurrent.LinkedBlockingQueue.take()", 0),
    ] {
        let mut made = Made::new();
        made.wait(7, &chain(&[function], &park), None, None, &[20, 5]);
        let table = made.finish();
        assert!(!text_of(&table, &options(By::Lock)).contains("parked threads"), "{function}");
        let json = json_of(&table, &options(By::Lock));
        assert_eq!(
            (&json["parked"]["count"], &json["total"]["contended"]),
            (&0.into(), &in_table.into())
        );
    }
}

#[test]
fn holders_have_what_they_held() {
    let options = LockViewOptions { quiet: true, chains: true, ..options(By::Holder) };
    insta::assert_snapshot!(text_of(&two_locks(), &options));
}

/// Counts and times of rows, by name.
fn sums(
    json: &serde_json::Value,
    name: impl Fn(&serde_json::Value) -> String,
) -> Vec<(String, u64, u64)> {
    let rows = json["rows"].as_array().unwrap().iter();
    let number = |row: &serde_json::Value, key: &str| row["sums"][key].as_u64().unwrap();
    rows.map(|row| (name(row), number(row, "contended"), number(row, "total_ns") / MS)).collect()
}

#[test]
fn every_view_has_each_wait_once() {
    let made = two_locks();
    for by in [By::Lock, By::CallSite, By::Holder] {
        let json = json_of(&made, &options(by));
        let rows = sums(&json, |_| String::new());
        let all = rows.iter().fold((0, 0), |sum, row| (sum.0 + row.1, sum.1 + row.2));
        assert_eq!(all, (8, 35), "{by:?}");
        assert_eq!(
            (json["total"]["contended"].as_u64(), json["total"]["max_ns"].as_u64()),
            (Some(8), Some(10 * MS))
        );
        assert_eq!(json["by"], by.name());
    }
    let json = json_of(&made, &options(By::Lock));
    let lock = |row: &serde_json::Value| {
        let lock = &json["locks"][row["lock"].as_u64().unwrap() as usize];
        format!("{} {} {}", lock["kind"].as_str().unwrap(), lock["symbol"], lock["pid"])
    };
    let wanted =
        [("data \"queue\" null", 5, 20), ("address null 7", 2, 10), ("address null 5", 1, 5)];
    assert_eq!(sums(&json, lock), wanted.map(|(name, count, ms)| (name.to_owned(), count, ms)));
}

#[test]
fn filters_and_the_limit_choose_rows() {
    let made = two_locks();
    let filters = Filters { symbols: vec!["pop".into()], ..Filters::default() };
    let json = json_of(&made, &LockViewOptions { filters, ..options(By::Lock) });
    assert_eq!(json["total"]["contended"], 2);
    let filters = Filters { comms: vec!["other".into()], ..Filters::default() };
    let json = json_of(&made, &LockViewOptions { filters, ..options(By::Lock) });
    // The life of the one thread, less the time that its two waits do not cover.
    assert_eq!(
        (&json["total"]["contended"], &json["known_wall_ns"]),
        (&2.into(), &(15 * MS).into())
    );
    let limited = LockViewOptions { limit: Some(1), quiet: true, ..options(By::Lock) };
    assert_eq!(json_of(&made, &limited)["rows"].as_array().unwrap().len(), 1);
    let text = text_of(&made, &limited);
    assert!(text.contains("[2 more rows: --limit]") && text.contains("[all 3 locks]"), "{text}");
}

#[test]
fn uncertain_waits_have_a_column_of_their_own() {
    let mut made = two_locks();
    made.1.locks.waits[0].uncertain = 3;
    made.1.rows[0].sums.lossy_count = 3;
    made.1.loss_windows = vec![whit_profile::switches::LossWindow {
        from: whit_types::TimestampNs(1),
        to: whit_types::TimestampNs(2),
    }];
    let text = text_of(&made, &options(By::Lock));
    let line =
        |with: &str| text.lines().find(|line| line.contains(with)).unwrap_or_default().to_owned();
    assert!(line("# Contended").contains(" Uncertain  Lock"), "{text}");
    assert!(line("queue+0x8").contains("%         3  queue+0x8"), "{text}");
    assert!(line("# Waits for locks").contains("8, and 3 of uncertain length"), "{text}");
    assert!(line("# Lossy: 3 waits").contains("one stretch of time"), "{text}");
    let total = &json_of(&made, &options(By::Lock))["total"];
    assert_eq!((&total["contended"], &total["uncertain"]), (&8.into(), &3.into()));
}

#[test]
fn a_recording_without_addresses_or_holders_says_so() {
    let (profile, mut switches) = two_locks();
    for wait in &mut switches.locks.waits {
        (wait.futex, wait.waker) = (None, None);
    }
    switches.sources.wakeups = false;
    let made = (profile, switches);
    let text = text_of(&made, &options(By::Lock));
    for words in [
        "no wake-ups were recorded (whit record --engine=bpf --wakeups)",
        "no addresses were recorded (whit record --engine=bpf, on x86-64)",
        "[no address] in push (app)",
        "[all 2 locks]",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("  holder "), "{text}");
    let (profile, mut switches) = made;
    switches.locks.waits.clear();
    let text = text_of(&(profile, switches), &options(By::Lock));
    assert!(text.contains("No thread was seen to wait for a lock"), "{text}");
}

#[test]
fn names_of_others_are_escaped() {
    let mut made = Made::new();
    let name = "ev\u{1b}il";
    made.wait(
        7,
        &chain(&[name], &LOCK),
        in_data(1, name, 0),
        Some((8, &chain(&[name], &UNLOCK))),
        &[1],
    );
    let made = made.finish();
    for by in [By::Lock, By::CallSite, By::Holder] {
        let text = text_of(&made, &LockViewOptions { chains: true, ..options(by) });
        assert!(!text.contains('\u{1b}') && text.matches("il").count() > 2, "{text:?}");
    }
}

#[test]
fn locks_of_the_kernel_have_a_table_of_their_own() {
    let mut made = Made::new();
    let at = chain(&["main"], &["k:do_exit", "k:_raw_spin_lock", "k:queued_spin_lock_slowpath"]);
    let other =
        chain(&["main"], &["k:exc_page_fault", "k:down_read", "k:rwsem_down_read_slowpath"]);
    let spinning = made.place(8, &at);
    let reading = made.place(7, &other);
    let (profile, mut switches) = made.finish();
    let wait = |(thread, comm, node), address, flags, all: &[u64]| {
        let mut waits = Durations::default();
        all.iter().for_each(|us| waits.add(us * 1000));
        KernelLockWait { thread, comm, node, address, flags, waits, uncertain: 1 }
    };
    switches.locks.kernel_recorded = true;
    switches.locks.kernel = vec![
        wait(spinning, 0xffff_8880_0000_1000, 1, &[2, 4]),
        wait(spinning, 0xffff_8880_0000_2000, 1, &[10]),
        wait(reading, 0xffff_8880_0000_3000, 2, &[30]),
    ];
    let made = (profile, switches);
    insta::assert_snapshot!(text_of(&made, &options(By::Lock)));
    let json = json_of(&made, &options(By::CallSite));
    let row = |index: usize| {
        let row = &json["kernel_rows"][index];
        let name = &json["functions"][row["function"].as_u64().unwrap() as usize]["name"];
        let sums = &row["sums"];
        (row["type"].clone(), name.clone(), sums["contended"].clone(), sums["total_ns"].clone())
    };
    assert_eq!(row(0), ("rwsem:R".into(), "exc_page_fault".into(), 1.into(), 30_000.into()));
    assert_eq!(row(1), ("spinlock".into(), "do_exit".into(), 3.into(), 16_000.into()));
    let text = text_of(&made, &options(By::Holder));
    assert!(text.contains("The holders of locks of the kernel are not recorded"), "{text}");
}
