//! A virtual PMU under any guest: no panic. The guest sees the values of a PMU of plain arithmetic,
//! in each way of reusing and releasing host events.
#![no_main]

use whit_fuzz::fuzz_target;
use whit_vpmu::Backing;

#[path = "../../crates/pmu/whit-vpmu/tests/support/mod.rs"]
mod support;

use support::guest::{Pair, Setting, Step, register, value};

/// Longest row of steps.
const STEPS_MAX: usize = 2000;

/// Takes numbers off the input; 0 behind its end.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (head, rest) = self.0.split_at(N.min(self.0.len()));
        self.0 = rest;
        let mut bytes = [0; N];
        bytes[..head.len()].copy_from_slice(head);
        bytes
    }

    fn u8(&mut self) -> u8 {
        self.take::<1>()[0]
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

fn step(setting: &Setting, input: &mut Input<'_>) -> Step {
    let model = &setting.model;
    match input.u8() % 20 {
        0..=3 => Step::Read(register(model, input.u32())),
        4..=10 => {
            let msr = register(model, input.u32());
            Step::Write(msr, value(model, input.u64()))
        }
        11..=16 => {
            let which = input.u8();
            let count = u64::from(u16::from_le_bytes(input.take()) % 700);
            Step::Occur { code: usize::from(which % 4), kernel: which & 4 != 0, count }
        }
        17 => Step::Tick(u64::from(input.u32()) % 80_000_000),
        18 => match input.u8() % 5 {
            0 => Step::Release,
            1 => Step::Poll,
            kernel @ 2..=3 => Step::Emulate { kernel: kernel == 2 },
            _ => Step::Migrate,
        },
        _ => Step::Apic(input.u32()),
    }
}

fuzz_target!(|data| {
    let mut input = Input(data);
    let models = support::models();
    let [kind, how] = input.take();
    let setting = Setting {
        model: models[usize::from(kind) % models.len()],
        backing: if how & 1 == 0 { Backing::Reuse } else { Backing::Recreate },
        lingers: how & 2 != 0,
        pmis_per_tick_max: if how & 4 == 0 { 5000 } else { 2 },
    };
    let mut pair = Pair::new(setting);
    for _ in 0..STEPS_MAX {
        if input.0.is_empty() {
            break;
        }
        let step = step(&setting, &mut input);
        pair.step(&step);
    }
    pair.compare();
});
