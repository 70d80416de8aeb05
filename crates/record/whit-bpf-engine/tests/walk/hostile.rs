//! The walk ends, in its own memory, for any contents of tables, mappings, registers and stacks.

use proptest::prelude::*;

use whit_testing::{Skip, check};
use whit_types::Arch;

use crate::host::{Host, HostMapping, HostStack, INTERPRETER_WORDS, Image, NO_TABLE_YET, REASONS};

/// Addresses, counts and offsets near each other, so that most of them mean something.
fn near() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0u64..0x400,
        4 => 0x1000u64..0x1400,
        1 => any::<u64>(),
        1 => Just(u64::MAX),
    ]
}

/// One whose loop and state are near everything else, with small offsets.
fn interpreter() -> impl Strategy<Value = [u64; INTERPRETER_WORDS]> {
    let offsets = prop::collection::vec((0u32..20, 0u32..20), INTERPRETER_WORDS - 6);
    (prop::array::uniform5(near()), offsets).prop_map(|(addresses, offsets)| {
        let mut words = [0; INTERPRETER_WORDS];
        words[..5].copy_from_slice(&addresses);
        for (word, (low, high)) in words[6..].iter_mut().zip(offsets) {
            *word = u64::from(low * 8) | u64::from(high * 8) << 32;
        }
        words
    })
}

prop_compose! {
    fn images()(
        words in prop::collection::vec(prop_oneof![0u32..20, any::<u32>()], 0..60),
        rules in prop::collection::vec(
            prop_oneof![
                (0u64..18, 0u64..256, any::<i16>(), -64i32..200).prop_map(|(base, flags, fp, cfa)| {
                    base | flags << 8 | u64::from(fp as u16) << 16 | u64::from(cfa as u32) << 32
                }),
                any::<u64>(),
            ],
            0..20,
        ),
        tables in prop::collection::vec((near(), prop::array::uniform5(0u32..30)), 0..5),
        interpreters in prop::collection::vec(interpreter(), 0..30),
        mappings in prop::collection::vec((near(), near(), near(), 0u32..6), 0..8),
        generation in 0u32..2,
    ) -> Image {
        let mappings = mappings.into_iter();
        let mappings = mappings.map(|(start, size, bias, table)| HostMapping {
            start,
            end: start.wrapping_add(size),
            bias,
            table,
        });
        let mappings = mappings.collect();
        Image { words, rules, tables, generation, mappings, interpreters }
    }
}

prop_compose! {
    fn stacks()(
        ip in near(),
        sp in near(),
        fp in near(),
        extra in near(),
        values in prop::collection::vec(near(), 0..200),
        cut in 0usize..8,
        others in prop::collection::vec((near(), prop::collection::vec(near(), 0..100)), 0..4),
        (tid, kept_thread) in (near(), near()),
        frames_max in 0u64..200,
    ) -> HostStack {
        let mut bytes: Vec<u8> = values.into_iter().flat_map(u64::to_le_bytes).collect();
        bytes.truncate(bytes.len().saturating_sub(cut));
        let words = |words: Vec<u64>| words.into_iter().flat_map(u64::to_le_bytes).collect();
        let memory = others.into_iter().map(|(at, values)| (at, words(values))).collect();
        HostStack { ip, sp, fp, extra, bytes, tid, kept_thread, frames_max, memory }
    }
}

#[test]
fn the_walk_always_ends_for_a_reason_inside_its_own_memory() {
    walk_hostile(Arch::X86_64);
}

#[test]
fn the_walk_of_arm64_always_ends_for_a_reason_inside_its_own_memory() {
    walk_hostile(Arch::Aarch64);
}

fn walk_hostile(arch: Arch) {
    let host = match Host::compile_for(arch) {
        Ok(host) => host,
        Err(Skip(reason)) => return whit_testing::skip("the walk of hostile stacks", &reason),
    };
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let inputs = (images(), prop::collection::vec(stacks(), 1..20));
    runner
        .run(&inputs, |(image, stacks)| {
            for chain in host.walk(&image, &stacks) {
                prop_assert!((1..REASONS).contains(&chain.reason), "{chain:?}");
                prop_assert!((1..=127).contains(&chain.frames.len()), "{chain:?}");
            }
            Ok(())
        })
        .unwrap();
}

/// Its number was given out again: the mapping is one of before.
#[test]
fn a_table_of_another_generation_is_not_there_yet() {
    check("walk_of_another_generation", || {
        let host = Host::compile()?;
        let mapping = HostMapping { start: 0x1000, end: 0x2000, bias: 0, table: 3 };
        let stack =
            HostStack { ip: 0x1100, sp: 0x5000, bytes: vec![0; 64], ..HostStack::default() };
        let reason = |generation| {
            let (tables, mappings) = (vec![(0, [0; 5]); 4], vec![mapping]);
            let image = Image { tables, mappings, generation, ..Image::default() };
            host.walk(&image, std::slice::from_ref(&stack))[0].reason
        };
        assert_ne!(reason(0), NO_TABLE_YET);
        assert_eq!(reason(1), NO_TABLE_YET);
        Ok(())
    });
}
