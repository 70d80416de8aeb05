//! The programs that unwind stacks, and the running kernel's verifier.

#[path = "../cgroups/support/mod.rs"]
#[allow(dead_code)]
mod support;

use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use whit_bpf::stacks::channel::{Channel, Loss, Record};
use whit_bpf::stacks::{
    BLOCKED_THREADS_MAX, Blocked, CgroupHierarchy, ChosenBy, Counts, FRAMES_MAX, Mapping,
    ProgramKind, StackOptions, Stacks, StopReason, TABLE_MEMORY_MAX_BYTES, TableNumber, TableParts,
    lacking,
};
use whit_testing::wait::{Load, wait_until};

use crate::support::{Skip, check, probe};

/// The verifier gives up at a million. Kernels differ in how often they look at the same instruction;
/// this leaves them room.
const VERIFIED_MAX: u32 = 250_000;

fn options(memo: bool, all: bool) -> StackOptions {
    StackOptions {
        is_system_wide: false,
        by_thread: true,
        pid_namespace: all.then_some(1),
        chosen: ChosenBy { cgroups: all.then_some(CgroupHierarchy::V1(1)), names: all },
        sampled_cgroups: if all { CgroupHierarchy::V1(1) } else { CgroupHierarchy::V2 },
        kernel_stacks: true,
        user_stacks: true,
        memo,
        perf_samples: false,
        traces: all,
        probes: all,
        wakes: all,
        sockets: all && has_sockets(),
        times_sends: false,
        cpus: 1,
        off_cpu_period_ns: 0,
        table_bytes: TABLE_MEMORY_MAX_BYTES,
        channel_bytes: 1 << 20,
    }
}

/// Whether the kernel has the tracepoints.
fn has_sockets() -> bool {
    probe::kernel_since(6, 3).is_ok()
}

fn load(options: &StackOptions) -> Result<Stacks, Skip> {
    probe::bpf_stacks()?;
    Ok(Stacks::load(options).unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn the_verifier_has_far_less_to_look_at_than_it_would() {
    check("verified_instructions", || {
        for (memo, all) in [(true, true), (false, false)] {
            let stacks = load(&options(memo, all))?;
            let programs = stacks.verified_instructions().expect("ask for the programs");
            let naming = usize::from(stacks.finds_mappings());
            let ends_of_handlers = ["_begins", "_ends"]
                .map(|end| programs.iter().filter(|(name, _)| name.ends_with(end)).count());
            // Devices and softirqs, and those of CPUs that the machine has.
            assert!(ends_of_handlers[0] >= 2, "{programs:?}");
            assert_eq!(ends_of_handlers[0], ends_of_handlers[1], "{programs:?}");
            let others = programs.len() - 2 * ends_of_handlers[0];
            let of_sockets = 2 * usize::from(all && has_sockets());
            assert_eq!(others, naming + of_sockets + if all { 9 } else { 6 });
            for (name, instructions) in programs {
                probe::kernel_since(5, 16)?;
                let instructions = instructions.expect("the kernel says how many");
                println!("{name}: {instructions} instructions, memo {memo}");
                assert!((1..VERIFIED_MAX).contains(&instructions), "{name}: {instructions}");
            }
        }
        Ok(())
    });
}

#[test]
fn a_kernel_that_loads_the_programs_lacks_nothing() {
    check("lacking", || {
        load(&options(true, true))?;
        assert_eq!(lacking(), []);
        Ok(())
    });
}

/// This process's own threads; without tables their stacks in user mode are followed by frame pointers.
#[test]
fn threads_that_are_blocked_are_read_with_their_stacks() {
    check("blocked_threads", || {
        // bpf_copy_from_user_task().
        probe::kernel_since(5, 18)?;
        let all = StackOptions { is_system_wide: true, by_thread: false, ..options(true, false) };
        let options = StackOptions { pid_namespace: None, ..all };
        let stacks = load(&options)?;
        let load = |threads_max| {
            let blocked = stacks.load_blocked(&options, threads_max);
            blocked.unwrap_or_else(|error| panic!("{error}"))
        };
        let mut blocked = load(BLOCKED_THREADS_MAX);
        let verified = blocked.verified_instructions().expect("ask for the program");
        let verified = verified.expect("the kernel says how many");
        println!("blocked: {verified} instructions");
        assert!((1..VERIFIED_MAX).contains(&verified), "{verified}");
        let (release, wait) = channel::<()>();
        let (say, said) = channel();
        let waiter = std::thread::spawn(move || {
            let own = std::fs::read_link("/proc/thread-self").expect("the own number");
            let tid = own.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
            say.send(tid.expect("a number")).expect("say it");
            let _ = wait.recv();
        });
        let tid = said.recv().expect("a number");
        // On its way to sleep it is on its CPU still.
        let mut read = Blocked::default();
        wait_until("the thread is blocked", || {
            read = blocked.read().expect("read");
            read.threads.iter().any(|thread| thread.tid == tid && thread.state == 1)
        });
        let own = read.threads.iter().filter(|thread| thread.tid == tid).collect::<Vec<_>>();
        let [thread] = own[..] else { panic!("{own:?}") };
        assert_eq!(thread.pid, std::process::id());
        let status = std::fs::read_to_string(format!("/proc/self/task/{tid}/status"));
        let status = status.expect("a status");
        let switches = |line: &str| {
            let line = status.lines().find_map(|l| l.strip_prefix(line)).expect("a count");
            line.trim().parse::<u64>().expect("a number")
        };
        let counted =
            switches("voluntary_ctxt_switches:") + switches("nonvoluntary_ctxt_switches:");
        assert_eq!((thread.switches, thread.state), (counted, 1));
        assert!(thread.kernel.len() > 3 && !thread.user.is_empty(), "{thread:?}");
        assert!(thread.reason.is_some() && thread.time_ns > 0, "{thread:?}");
        assert_eq!(read.left_out, 0);
        let bounded = load(1).read().expect("read");
        assert!(bounded.threads.len() == 1 && bounded.left_out > 0, "{bounded:?}");
        // Settings are not those of the object whose maps it has.
        let none = StackOptions { is_system_wide: false, ..options };
        let of_none = stacks.load_blocked(&none, 1).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!({ of_none }.read().expect("read"), Blocked::default());
        drop(release);
        waiter.join().expect("it ends");
        Ok(())
    });
}

/// Two threads that wait for each other so many times.
fn switch_often(times: u32) {
    let pass = |(from, to): (Receiver<()>, Sender<()>)| {
        for _ in 0..times {
            let _ = to.send(());
            let _ = from.recv();
        }
    };
    let ((to_one, one), (to_other, other)) = (channel(), channel());
    std::thread::scope(|scope| {
        scope.spawn(|| pass((one, to_other)));
        scope.spawn(|| pass((other, to_one)));
    });
}

/// A channel and its losses.
struct Watched {
    channel: Channel,
    /// Time of the last switch.
    last_ns: u64,
    /// The last loss, until a switch follows.
    loss: Option<Loss>,
    lost: u64,
    losses: usize,
}

impl Watched {
    /// Reads all. Losses lie between the switches around them.
    fn read(&mut self) {
        self.channel.look();
        while let Some(record) = self.channel.next_until(u64::MAX) {
            match record {
                Record::Switch(switch) => {
                    let loss = self.loss.take();
                    assert!(
                        loss.is_none_or(|loss| loss.to_ns <= switch.time_ns),
                        "{loss:?} {switch:?}"
                    );
                    self.last_ns = switch.time_ns;
                }
                Record::Lost(loss) => {
                    assert!(loss.count > 0 && loss.from_ns <= loss.to_ns, "{loss:?}");
                    // No two switches of a CPU are at the same time; account and ready file have the time of their switch.
                    assert!(loss.count <= 3 || loss.from_ns < loss.to_ns, "{loss:?}");
                    assert!(self.last_ns < loss.from_ns, "{} {loss:?}", self.last_ns);
                    self.loss = Some(loss);
                    self.lost += loss.count;
                    self.losses += 1;
                }
                Record::SwitchIn { .. }
                | Record::Ready { .. }
                | Record::Stack { .. }
                | Record::Object { .. }
                | Record::Account(_) => {}
            }
        }
        self.channel.release();
    }
}

/// A channel that nobody reads drops switches, and says how many and when.
#[test]
fn losses_of_a_channel_have_their_times() {
    /// Enough that some had switches before and behind them.
    const LOSSES: usize = 5;
    /// More than the smallest channel has room for.
    const SWITCHES: u32 = 2000;
    const ROUNDS_MAX: u32 = 100;
    check("losses_of_a_channel_have_their_times", || {
        let present = std::fs::read_to_string("/sys/devices/system/cpu/present");
        let present = present.expect("read which CPUs there are");
        let last = present.trim().rsplit([',', '-']).next().and_then(|last| last.parse().ok());
        let cpus = last.map_or(1, |last: usize| last + 1);
        let mut stacks = load(&StackOptions {
            is_system_wide: true,
            by_thread: false,
            cpus,
            channel_bytes: 8,
            ..options(true, false)
        })?;
        let open = |cpu| stacks.channels().of_cpu(cpu).expect("a channel of each CPU");
        let watched = |channel| Watched { channel, last_ns: 0, loss: None, lost: 0, losses: 0 };
        let mut all: Vec<_> = (0..cpus as u32).map(open).map(watched).collect();
        stacks.attach_switches().expect("attach the program");
        let mut rounds = 0;
        while all.iter().map(|watched| watched.losses).sum::<usize>() < LOSSES {
            switch_often(SWITCHES);
            all.iter_mut().for_each(Watched::read);
            rounds += 1;
            assert!(rounds < ROUNDS_MAX, "nothing is lost");
        }
        stacks.detach();
        let counted = stacks.lost_switches().expect("ask the program");
        for (cpu, watched) in all.iter_mut().enumerate() {
            watched.read();
            let at_end = watched.channel.lost_at_end();
            assert!(at_end.is_none_or(|loss| watched.last_ns < loss.from_ns), "{at_end:?}");
            let at_end = at_end.map_or(0, |loss| loss.count);
            assert_eq!(watched.lost + at_end, counted[cpu], "CPU {cpu}");
        }
        Ok(())
    });
}

/// Code of a process, which frame pointers lead through.
fn mappings(pid: u32) -> Vec<Mapping> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("read mappings");
    let of = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let [start, end] = [start, end].map(|at| u64::from_str_radix(at, 16).unwrap_or(0));
        let mapping = Mapping { start, end, bias: 0, table: TableNumber::NONE };
        rest.contains("r-x").then_some(mapping)
    };
    maps.lines().filter_map(of).collect()
}

/// Two programs of more than 45 frames take turns on one CPU.
#[test]
fn walks_end_at_the_depth_that_is_set() {
    check("walks_end_at_the_depth_that_is_set", || {
        let program = whit_testing::workload("deep-fp")?;
        let options = StackOptions { by_thread: false, ..options(true, false) };
        let mut stacks = load(&StackOptions { pid_namespace: None, ..options })?;
        let start = || {
            let mut program_on_cpu = Command::new("taskset");
            program_on_cpu.args(["-c", "0"]).arg(&program).args(["--seconds", "60"]);
            Load::start(program_on_cpu.stdout(Stdio::null()))
        };
        let loads = [start(), start()];
        for load in &loads {
            let maps = format!("/proc/{}/maps", load.id());
            let is_there =
                |name| std::fs::read_to_string(&maps).is_ok_and(|all| all.contains(name));
            wait_until("the program runs", || is_there("deep-fp") && is_there("libc.so"));
            let mappings = mappings(load.id());
            stacks.set_process(load.id(), &mappings, true, Instant::now()).expect("a process");
        }
        // The program records no switch of a CPU before its channel is open.
        let _channel = stacks.channels().of_cpu(0).expect("a channel");
        stacks.attach_switches().expect("attach the program");
        let counts = |stacks: &Stacks| stacks.counts(ProgramKind::Switches).expect("counts");
        // Walks, frames, and walks that ended at a limit, while so many stacks were walked.
        let walked = |stacks: &Stacks| {
            let before = counts(stacks);
            wait_until("stacks were walked", || counts(stacks).walks > before.walks + 30);
            let now = counts(stacks);
            let limited = |of: &Counts| of.ended(StopReason::FramesLimit);
            let walks = now.walks - before.walks;
            (walks, now.frames - before.frames, limited(&now) - limited(&before))
        };
        for divisor in [1, 8, 1, 4] {
            stacks.set_stack_divisor(divisor).expect("set the depth");
            // Some were walked before.
            walked(&stacks);
            let (walks, frames, limited) = walked(&stacks);
            if divisor == 1 {
                assert!(limited == 0 && frames > 40 * walks, "{walks} {frames} {limited}");
            } else {
                let most = FRAMES_MAX.div_ceil(divisor as usize) as u64;
                assert!(frames <= most * walks, "{divisor}: {walks} {frames}");
                assert!(frames > most * walks / 2, "{divisor}: {walks} {frames}");
                // The program goes up and down: some of its stacks are shorter.
                assert!(limited * 2 > walks, "{divisor}: {walks} {limited}");
            }
        }
        Ok(())
    });
}

/// Each table takes more than half of the room.
#[test]
fn tables_that_are_taken_out_leave_room_after_a_rest() {
    check("tables_that_are_taken_out_leave_room_after_a_rest", || {
        let options = StackOptions { table_bytes: 1 << 20, ..options(true, false) };
        let mut stacks = load(&StackOptions { pid_namespace: None, ..options })?;
        let rows = vec![7; 150_000];
        let parts = TableParts {
            start: 0,
            index: &[0, 150_000],
            rows: &rows,
            rules: &[[0; 8]],
            interpreter: None,
        };
        let (mut now, mut before) = (Instant::now(), None);
        for _ in 0..5 {
            let table = stacks.add_table(&parts, now).expect("there is room");
            assert_ne!(Some(table), before, "a number that is given out again is another table's");
            assert_eq!(stacks.table_bytes(), 600_008);
            assert!(stacks.add_table(&parts, now).is_err(), "there is no room");
            stacks.remove_table(table, now).expect("remove the table");
            assert_eq!(stacks.table_bytes(), 0);
            assert!(stacks.add_table(&parts, now).is_err(), "programs may still read it");
            (now, before) = (now + Duration::from_secs(2), Some(table));
        }
        Ok(())
    });
}
