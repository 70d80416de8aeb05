//! The programs that unwind stacks, and the running kernel's verifier.

#[path = "../cgroups/support/mod.rs"]
#[allow(dead_code)]
mod support;

use whit_bpf::stacks::{StackOptions, Stacks, lacking};

use crate::support::{Skip, check, probe};

/// The verifier gives up at a million. Kernels differ in how often they look at the same instruction;
/// this leaves them room.
const VERIFIED_MAX: u32 = 200_000;

fn load(memo: bool, all: bool) -> Result<Stacks, Skip> {
    let options = StackOptions {
        is_system_wide: false,
        by_thread: true,
        pid_namespace: all.then_some(1),
        kernel_stacks: true,
        user_stacks: true,
        memo,
        perf_samples: false,
        traces: all,
        wakes: all,
        cpus: 1,
        channel_bytes: 1 << 20,
    };
    probe::bpf_stacks()?;
    Ok(Stacks::load(&options).unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn the_verifier_has_far_less_to_look_at_than_it_would() {
    check("verified_instructions", || {
        for (memo, all) in [(true, true), (false, false)] {
            let stacks = load(memo, all)?;
            let programs = stacks.verified_instructions().expect("ask for the programs");
            let naming = usize::from(stacks.finds_mappings());
            assert_eq!(programs.len(), naming + if all { 7 } else { 5 });
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
        load(true, true)?;
        assert_eq!(lacking(), []);
        Ok(())
    });
}
