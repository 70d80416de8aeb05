//! The programs that unwind stacks, and the running kernel's verifier.

#[path = "../cgroups/support/mod.rs"]
#[allow(dead_code)]
mod support;

use std::sync::mpsc::{Receiver, Sender, channel};

use whit_bpf::stacks::channel::{Channel, Loss, Record};
use whit_bpf::stacks::{StackOptions, Stacks, lacking};

use crate::support::{Skip, check, probe};

/// The verifier gives up at a million. Kernels differ in how often they look at the same instruction;
/// this leaves them room.
const VERIFIED_MAX: u32 = 200_000;

fn options(memo: bool, all: bool) -> StackOptions {
    StackOptions {
        is_system_wide: false,
        by_thread: true,
        pid_namespace: all.then_some(1),
        kernel_stacks: true,
        user_stacks: true,
        memo,
        perf_samples: false,
        traces: all,
        probes: all,
        wakes: all,
        cpus: 1,
        channel_bytes: 1 << 20,
    }
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
            assert_eq!(programs.len(), naming + if all { 8 } else { 5 });
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
                        loss.is_none_or(|loss| loss.to_ns < switch.time_ns),
                        "{loss:?} {switch:?}"
                    );
                    self.last_ns = switch.time_ns;
                }
                Record::Lost(loss) => {
                    assert!(loss.count > 0 && loss.from_ns <= loss.to_ns, "{loss:?}");
                    // No two switches of a CPU are at the same time.
                    assert!(loss.count == 1 || loss.from_ns < loss.to_ns, "{loss:?}");
                    assert!(self.last_ns < loss.from_ns, "{} {loss:?}", self.last_ns);
                    self.loss = Some(loss);
                    self.lost += loss.count;
                    self.losses += 1;
                }
                Record::SwitchIn { .. } | Record::Stack { .. } => {}
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
