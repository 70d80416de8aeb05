//! Whole ways from a profile made by hand to annotated functions.

use super::*;
use proptest::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use whit_profile::model::*;
use whit_profile::{CodeBytes, NoCode, SourceLine, SourceOf};
use whit_types::{InstructionSet, Pid, Svma, Tid};

/// A binary whose functions of 16 bytes begin at each multiple of 16, up to an end.
struct Binary {
    code_end: u64,
}

const CODE: [u8; 16] = [
    // push; mov; sub; jne to the sub; call; nop; ret
    0x55, 0x48, 0x89, 0xe5, 0x83, 0xe8, 0x05, 0x75, 0xfb, 0xe8, 0x08, 0, 0, 0, 0x90, 0xc3,
];

impl Code for Binary {
    fn function_at(&self, _: DsoId, address: Svma) -> Option<Range<Svma>> {
        let start = address.0 & !15;
        (start < 0x1000).then(|| Svma(start)..Svma(start + 16))
    }

    fn name_at(&self, _: DsoId, address: Svma) -> Option<(Arc<str>, u64)> {
        Some(("callee".into(), address.0 & 15))
    }

    fn bytes(&self, _: DsoId, range: Range<Svma>) -> Result<CodeBytes, NoCode> {
        let there = self.code_end.saturating_sub(range.start.0).min(16);
        let bytes = CODE[..there as usize].to_vec();
        Ok(CodeBytes { bytes, instruction_set: InstructionSet::X86_64 })
    }

    fn source_of(&self, _: DsoId, address: Svma) -> SourceOf {
        let line = |line: u64| SourceLine { file: "a.c".into(), line: line as u32 };
        let inlined = (address.0 % 16 > 6).then(|| ("inner".into(), Some(line(3))));
        // The last byte comes from nowhere.
        let own = (address.0 % 16 < 15).then(|| line(address.0 % 16 / 4));
        SourceOf { line: own, inlined: inlined.into_iter().collect() }
    }
}

const ALL: Binary = Binary { code_end: u64::MAX };

/// Samples of two events in a binary: event, address, name of the function, samples and period.
fn profile(samples: &[(u32, u64, &str, u64, u64)]) -> Profile {
    let mut profile = Profile::default();
    for name in ["cycles", "faults"] {
        profile.events.push(EventInfo { name: name.into(), ..EventInfo::default() });
    }
    for name in ["/bin/app", "/lib/other.so"] {
        let short_name = name.rsplit('/').next().unwrap_or_default().into();
        let (path, kind) = (name.into(), DsoKind::Elf);
        profile.dsos.push(DsoInfo { path, short_name, build_id: None, kind });
    }
    profile.threads.push(ThreadInfo { pid: Pid(1), tid: Tid(1), comm: CommId(0) });
    for (event, address, name, samples, period) in samples {
        let known = profile.functions.iter().position(|it| it.name.exact() == *name);
        let function = known.unwrap_or_else(|| {
            let info = FunctionInfo { name: (*name).into(), dso: DsoId(0), known: true };
            profile.functions.push(info);
            profile.functions.len() - 1
        });
        let function = FunctionId(function as u32);
        let address = Svma(*address);
        let frame = Frame { function, address, source: None, inlined: false, kernel: false };
        profile.frames.push(frame);
        let frame = FrameId(profile.frames.len() as u32 - 1);
        profile.nodes.push(CallNode { parent: NodeId::NONE, frame });
        let node = NodeId(profile.nodes.len() as u32 - 1);
        let (event, thread, comm, facets) = (EventId(*event), ThreadId(0), CommId(0), FacetsId(0));
        let (samples, period) = (*samples, *period);
        profile.rows.push(SampleRow { event, thread, comm, facets, node, samples, period });
        let info = &mut profile.events[event.index()];
        (info.samples, info.period) = (info.samples + samples, info.period + period);
    }
    profile
}

fn weight(samples: u64, period: u64) -> Weight {
    Weight { samples, period }
}

fn only(profile: &Profile, name: &str, binary: &Binary) -> AnnotatedFunction {
    let mut found = Weights::new(profile).find(name, &Wanted::default(), binary);
    assert_eq!(found.len(), 1);
    annotate(found.remove(0), binary, Syntax::Att)
}

#[test]
fn samples_belong_to_the_instruction_that_their_address_lies_in() {
    // The second and third lie in one instruction.
    let samples = [(0, 0x20, "f", 1, 10), (0, 0x21, "f", 2, 20), (0, 0x23, "f", 3, 30)];
    let profile = profile(&samples);
    let function = only(&profile, "f", &ALL);
    let code = function.code.unwrap();
    let of = |row: usize| code.rows[row].weights.of(EventId(0));
    assert_eq!((of(0), of(1), of(2)), (weight(1, 10), weight(5, 50), weight(0, 0)));
    assert_eq!(function.chosen.weights.of(EventId(0)), weight(6, 60));
    assert_eq!(code.jumps.width(), 3);
    let call = code.rows.iter().find(|row| row.instruction.text.starts_with("call")).unwrap();
    assert_eq!(call.target_name, Some(("callee".into(), 6)));
}

#[test]
fn functions_of_one_name_in_a_binary_are_apart() {
    let profile = profile(&[(0, 0x20, "f", 1, 10), (0, 0x45, "f", 2, 20), (0, 0x90, "g", 9, 90)]);
    let weights = Weights::new(&profile);
    let found = weights.find("f", &Wanted::default(), &ALL);
    let starts: Vec<u64> = found.iter().map(|one| one.range.start.0).collect();
    assert_eq!(starts, [0x40, 0x20]);
    // Together they would be heavier than the limit.
    let hottest = weights.hottest(9, 20.0, &Wanted::default(), &ALL);
    assert_eq!(hottest.iter().map(|one| one.range.start.0).collect::<Vec<_>>(), [0x90]);
}

#[test]
fn the_hottest_of_any_event_come_first() {
    let samples = [(0, 0x10, "a", 5, 70), (0, 0x20, "b", 5, 30), (1, 0x20, "b", 1, 1)];
    let profile = profile(&samples);
    let weights = Weights::new(&profile);
    let names = |limit, wanted: &Wanted| -> Vec<u64> {
        let found = weights.hottest(limit, 0.0, wanted, &ALL);
        found.iter().map(|one| one.range.start.0).collect()
    };
    assert_eq!(names(2, &Wanted::default()), [0x20, 0x10]);
    assert_eq!(names(1, &Wanted::default()), [0x20]);
    let cycles = Wanted { event: Some(EventId(0)), ..Wanted::default() };
    assert_eq!(names(2, &cycles), [0x10, 0x20]);
    let elsewhere = Wanted { dsos: vec!["other.so".into()], ..Wanted::default() };
    assert!(names(2, &elsewhere).is_empty());
    let here = Wanted { dsos: vec!["app".into()], ..Wanted::default() };
    assert_eq!(names(2, &here).len(), 2);
}

#[test]
fn a_function_is_found_by_an_address_in_it() {
    let profile = profile(&[(0, 0x20, "f", 1, 10)]);
    let weights = Weights::new(&profile);
    let find = |name| weights.find(name, &Wanted::default(), &ALL).len();
    assert_eq!((find("0x2f"), find("0x30"), find("0xzz"), find("2f")), (1, 0, 0, 0));
}

#[test]
fn inlined_functions_name_those_around_them() {
    let profile = profile(&[(0, 0x20, "f", 1, 10), (0, 0x39, "g", 1, 10)]);
    let weights = Weights::new(&profile);
    assert_eq!(weights.inlined_into("inner", &ALL), ["g"]);
    assert_eq!(weights.inlined_into("space::inner", &ALL), ["g"]);
    assert!(weights.inlined_into("dinner", &ALL).is_empty());
    assert!(weights.inlined_into("f", &ALL).is_empty());
}

#[test]
fn addresses_behind_a_cut_file_have_rows() {
    let profile = profile(&[(0, 0x21, "f", 1, 10), (0, 0x2c, "f", 4, 40)]);
    let code = only(&profile, "f", &Binary { code_end: 0x24 }).code.unwrap();
    let last = code.rows.last().unwrap();
    assert_eq!((last.instruction.address, &*last.instruction.text), (Svma(0x2c), "(no code)"));
    assert_eq!(last.weights.of(EventId(0)), weight(4, 40));
}

#[test]
fn a_function_without_bounds_is_not_guessed_at() {
    let profile = profile(&[(0, 0x2000, "f", 1, 10), (0, 0x2008, "f", 1, 10)]);
    let found = Weights::new(&profile).find("f", &Wanted::default(), &ALL);
    assert_eq!(found.len(), 1);
    let range = found[0].range.clone();
    assert_eq!(range, Svma(0x2000)..Svma(0x2009));
    let function = annotate(found.into_iter().next().unwrap(), &ALL, Syntax::Att);
    assert_eq!(function.code, Err(NoCode::NoBounds));
}

proptest! {
    /// Instructions and lines have all samples of their function, of each event, wherever its code ends.
    #[test]
    fn parts_add_up_to_the_function(
        samples in prop::collection::vec((0u32..2, 0x20u64..0x30, 1u64..9, 0u64..1000), 1..40),
        code_end in 0x20u64..0x40,
    ) {
        let named: Vec<_> =
            samples.iter().map(|(e, a, s, p)| (*e, *a, "f", *s, *p)).collect();
        let profile = profile(&named);
        let function = only(&profile, "f", &Binary { code_end });
        let code = function.code.unwrap();
        for event in [EventId(0), EventId(1)] {
            let sum = |parts: &mut dyn Iterator<Item = &EventWeights>| {
                parts.fold(Weight::default(), |mut sum, part| {
                    sum.add(part.of(event));
                    sum
                })
            };
            let info = &profile.events[event.index()];
            let expected = weight(info.samples, info.period);
            prop_assert_eq!(function.chosen.weights.of(event), expected);
            prop_assert_eq!(sum(&mut code.rows.iter().map(|row| &row.weights)), expected);
            prop_assert_eq!(sum(&mut code.lines.iter().map(|line| &line.weights)), expected);
        }
    }
}
