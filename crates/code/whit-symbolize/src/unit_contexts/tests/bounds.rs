//! Debug information that asks for more than its size allows.

use std::time::{Duration, Instant};

use super::*;
use crate::metered::Meter;

/// The least stack of a thread that looks up.
const STACK_BYTES: usize = 2 << 20;

const BEGIN: u64 = 0x1000;
const SIZE: u64 = 0x100;

fn uleb(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        bytes.push(if value == 0 { low } else { low | 0x80 });
        if value == 0 {
            return bytes;
        }
    }
}

fn abbreviation(code: u64, tag: DwTag, has_children: bool, attributes: &[(DwAt, u8)]) -> Vec<u8> {
    let mut bytes = [uleb(code), uleb(tag.0.into()), vec![u8::from(has_children)]].concat();
    for (name, form) in attributes {
        bytes.extend(uleb(name.0.into()));
        bytes.push(*form);
    }
    bytes.extend([0, 0]);
    bytes
}

const ADDRESS: u8 = gimli::DW_FORM_addr.0 as u8;
const DATA8: u8 = gimli::DW_FORM_data8.0 as u8;
const STRING: u8 = gimli::DW_FORM_string.0 as u8;
const REF4: u8 = gimli::DW_FORM_ref4.0 as u8;

/// Numbers of the entries' abbreviations.
const UNIT: u8 = 1;
const FUNCTION: u8 = 2;
const INLINED: u8 = 3;
const ABSTRACT: u8 = 4;
const BARE: u8 = 5;

fn abbreviations() -> Vec<u8> {
    use gimli::{DW_AT_abstract_origin as ORIGIN, DW_AT_high_pc as HIGH, DW_AT_low_pc as LOW};
    use gimli::{DW_AT_name as NAME, DW_TAG_inlined_subroutine as INLINED_TAG};
    let range = [(LOW, ADDRESS), (HIGH, DATA8)];
    let with = |attribute: (DwAt, u8)| [&[attribute][..], &range].concat();
    [
        abbreviation(UNIT.into(), gimli::DW_TAG_compile_unit, true, &with((NAME, STRING))),
        abbreviation(FUNCTION.into(), gimli::DW_TAG_subprogram, true, &with((NAME, STRING))),
        abbreviation(INLINED.into(), INLINED_TAG, true, &with((ORIGIN, REF4))),
        abbreviation(ABSTRACT.into(), gimli::DW_TAG_subprogram, false, &[(ORIGIN, REF4)]),
        abbreviation(BARE.into(), INLINED_TAG, false, &[]),
    ]
    .concat()
}

fn range(begin: u64, size: u64) -> Vec<u8> {
    [begin.to_le_bytes(), size.to_le_bytes()].concat()
}

fn named(entry: u8, name: &str, begin: u64, size: u64) -> Vec<u8> {
    [&[entry], name.as_bytes(), &[0], &range(begin, size)[..]].concat()
}

/// Bytes in front of a unit's entries: length, version, offset of abbreviations, size of addresses.
const HEAD_BYTES: usize = 11;

/// A unit of DWARF 4 with these entries below its own.
fn unit(entries: &[u8]) -> Vec<u8> {
    let own = named(UNIT, "u", BEGIN, 2 * SIZE);
    let rest = [&[4, 0, 0, 0, 0, 0, 8][..], &own, entries, &[0]].concat();
    [&(rest.len() as u32).to_le_bytes()[..], &rest].concat()
}

/// Where the first entry of [`unit`] is.
fn first_entry() -> u32 {
    (HEAD_BYTES + named(UNIT, "u", BEGIN, 2 * SIZE).len()) as u32
}

fn sections(abbreviations: Vec<u8>, units: Vec<u8>) -> DebugSections {
    DebugSections::from_parts(vec![
        (SectionId::DebugAbbrev, abbreviations),
        (SectionId::DebugInfo, units),
    ])
}

fn terminated(mut abbreviations: Vec<u8>) -> Vec<u8> {
    abbreviations.push(0);
    abbreviations
}

/// A function with so many levels of inlined ones, and one without any behind it.
fn nested(levels: usize) -> DebugSections {
    let origin = first_entry();
    let inlined = [&[INLINED], &origin.to_le_bytes()[..], &range(BEGIN, SIZE)].concat();
    let entries = [
        [&[ABSTRACT], &origin.to_le_bytes()[..]].concat(),
        named(FUNCTION, "deep", BEGIN, SIZE),
        inlined.repeat(levels),
        vec![0; levels + 1],
        named(FUNCTION, "flat", BEGIN + SIZE, SIZE),
        vec![0],
    ];
    sections(terminated(abbreviations()), unit(&entries.concat()))
}

fn count_at(contexts: &mut UnitContexts<'_>, svma: u64) -> Result<usize, Refused> {
    contexts.look_up(svma, describe).map(|found| found.len())
}

/// In a thread with little stack, as fast as ten million bytes have to be read.
fn in_bounds(check: impl FnOnce() + Send + 'static) {
    let began = Instant::now();
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    thread.spawn(check).unwrap().join().expect("no panic");
    let took = began.elapsed();
    // Without a bound these take minutes or all memory; a slow machine needs a second or two.
    assert!(took < Duration::from_secs(30), "took {took:?}");
}

#[test]
fn a_function_that_nests_a_million_deep_has_no_inlined_functions() {
    in_bounds(|| {
        let sections = nested(1_000_000);
        let mut contexts = UnitContexts::new(&sections);
        for _ in 0..2 {
            assert_eq!(count_at(&mut contexts, BEGIN), Err(Refused::Nesting));
            assert_eq!(count_at(&mut contexts, BEGIN + SIZE), Ok(1));
        }
    });
}

#[test]
fn compilers_nest_less_deep_than_the_bound() {
    in_bounds(|| {
        let sections = nested(150);
        assert_eq!(count_at(&mut UnitContexts::new(&sections), BEGIN), Ok(151));
    });
}

#[test]
fn a_table_of_abbreviations_that_many_units_share_is_not_read_for_each() {
    in_bounds(|| {
        let more = (100..100_100).flat_map(|code| {
            abbreviation(code, gimli::DW_TAG_variable, false, &[(gimli::DW_AT_name, STRING)])
        });
        let table = terminated([abbreviations(), more.collect()].concat());
        let sections = sections(table, unit(&[]).repeat(2000));
        let mut contexts = UnitContexts::new(&sections);
        assert_eq!(count_at(&mut contexts, BEGIN), Err(Refused::Reading));
        assert!(contexts.whole.is_none() && contexts.units.is_empty());
    });
}

#[test]
fn entries_of_a_byte_do_not_fill_the_memory() {
    in_bounds(|| {
        let entries = [named(FUNCTION, "wide", BEGIN, SIZE), vec![BARE; 10_000_000], vec![0]];
        let sections = sections(terminated(abbreviations()), unit(&entries.concat()));
        assert_eq!(count_at(&mut UnitContexts::new(&sections), BEGIN), Err(Refused::Reading));
    });
}

#[test]
fn names_that_lead_in_circles_are_absent() {
    in_bounds(|| {
        let itself = first_entry();
        let entries = [
            [&[ABSTRACT], &itself.to_le_bytes()[..]].concat(),
            named(FUNCTION, "f", BEGIN, SIZE),
            [&[INLINED], &itself.to_le_bytes()[..], &range(BEGIN, SIZE)].concat(),
            vec![0, 0],
        ];
        let sections = sections(terminated(abbreviations()), unit(&entries.concat()));
        assert_eq!(count_at(&mut UnitContexts::new(&sections), BEGIN), Ok(2));
    });
}

#[test]
fn parsed_units_are_freed_where_more_is_looked_up() {
    let steps_of = |look_up: &dyn Fn(&mut UnitContexts<'_>)| {
        let many = 1 << 20;
        let sections = three_units().with_meter(Meter::new(many, 2 * many));
        look_up(&mut UnitContexts::new(&sections));
        many - sections.meter().kept_left()
    };
    let near = |contexts: &mut UnitContexts<'_>| {
        assert_eq!(names(&contexts.look_up(0x1000, describe).unwrap()), ["near"]);
    };
    let far = |contexts: &mut UnitContexts<'_>| {
        assert_eq!(names(&contexts.look_up(0x2018, describe).unwrap()), ["inlined", "far"]);
    };
    let most = steps_of(&near).max(steps_of(&far));
    // Room for either of them alone, and for all looks but the last.
    let sections = three_units().with_meter(Meter::new(most + 1, 10 * (most + 1)));
    let mut contexts = UnitContexts::new(&sections);
    for _ in 0..3 {
        near(&mut contexts);
        far(&mut contexts);
    }
    let refused = (0..40).find_map(|_| {
        contexts.look_up(0x1000, describe).err().or(contexts.look_up(0x2018, describe).err())
    });
    assert_eq!(refused, Some(Refused::Reading));
}
