//! First suite: the same recording as old, present and coming versions of perf would have written it
//! gives the same report.

use crate::golden::encode::{
    Attr, Id, Kernel, Recording, bytes, feature, field, flag, kind, marker, misc, record,
};
use crate::golden::library::{Stacks, options, show, stacks};
use whit_profile::model::Profile;
use whit_view::warning::warning_text;

/// `PERF_ATTR_SIZE_VER0` to `VER9`, and a future size.
const ATTR_SIZES: [usize; 11] = [64, 72, 80, 96, 104, 112, 120, 128, 136, 144, 200];

const BASE: u64 = 0x40_0000;
const PROGRAM: &str = "/opt/whit-golden/first";

/// How a recording is written; the default is how perf 6.1 does it.
#[derive(Clone, Copy)]
struct Style {
    attr_size: usize,
    /// Where samples carry the id of their event.
    id_field: u64,
    sample_id_all: bool,
    /// Mappings with inode.
    mmap2: bool,
    /// Mappings with build id.
    build_id: bool,
    described: bool,
}

impl Style {
    const USUAL: Style = Style {
        attr_size: 128,
        id_field: field::IDENTIFIER,
        sample_id_all: true,
        mmap2: true,
        build_id: false,
        described: true,
    };

    fn recording(self) -> Recording {
        let mut attr = Attr::software(
            0,
            self.id_field | field::IP | field::TID | field::TIME | field::CPU | field::CALLCHAIN,
        );
        if !self.sample_id_all {
            attr.flags &= !flag::SAMPLE_ID_ALL;
        }
        let faults = Attr { config: 2, ..attr.clone() };
        let kernel = Kernel::of(&attr);
        let id = Id { pid: 600, tid: 601, time: 1_000, cpu: 1, id: 11 };
        let mut data = kernel.kernel_map();
        data.extend(kernel.comm("styled", true, Id { tid: 600, ..id }));
        data.extend(kernel.comm("worker", false, id));
        data.extend(self.map(&kernel, id));
        for (at, event) in (0..9u64).zip([11, 12, 11].into_iter().cycle()) {
            data.extend(self.sample(Id { time: 2_000 + at, id: event, ..id }));
        }
        let events = vec![(attr, vec![11], "cpu-clock"), (faults, vec![12], "page-faults")];
        let mut recording = Recording::new(events, data);
        recording.attr_size = self.attr_size;
        if self.described { recording.described() } else { recording }
    }

    fn map(self, kernel: &Kernel, id: Id) -> Vec<u8> {
        let at = (BASE, 0x1000, 0);
        if !self.mmap2 {
            return kernel.mmap(PROGRAM, at, misc::USER, id);
        }
        if !self.build_id {
            return kernel.mmap2(PROGRAM, at, id);
        }
        kernel.record(kind::MMAP2, misc::USER | misc::MMAP_BUILD_ID, id, |b| {
            b.i32(id.pid).i32(id.tid).words(&[at.0, at.1, at.2]);
            b.u8(20).raw(&[0; 3]).raw(&[7; 20]).u32(5).u32(2).c_str(PROGRAM, 8);
        })
    }

    fn sample(self, id: Id) -> Vec<u8> {
        let ip = BASE + 0x208;
        record(kind::SAMPLE, misc::USER, |b| {
            if self.id_field == field::IDENTIFIER {
                b.u64(id.id);
            }
            b.u64(ip).i32(id.pid).i32(id.tid).u64(id.time);
            if self.id_field == field::ID {
                b.u64(id.id);
            }
            b.u32(id.cpu).u32(0).u64(3).words(&[marker::USER, ip, ip + 0x10]);
        })
    }
}

fn shown(what: &str, bytes: &[u8]) -> Profile {
    let profile = show(what, bytes).profile();
    assert!(profile.warnings.is_empty(), "{what}: {:?}", profile.warnings);
    profile
}

fn expected() -> Stacks {
    let expected = stacks(&shown("usual", &Style::USUAL.recording().file()));
    let stack = |event: &str| format!("{event} worker first_code;first_code");
    let counts = [(stack("cpu-clock"), (6, 6000)), (stack("page-faults"), (3, 3000))];
    assert_eq!(expected, counts.into());
    expected
}

#[test]
fn attributes_of_every_size() {
    let expected = expected();
    for attr_size in ATTR_SIZES {
        let recording = Style { attr_size, ..Style::USUAL }.recording();
        for (form, bytes) in [("file", recording.file()), ("pipe", recording.pipe())] {
            let profile = shown(&format!("{attr_size} bytes in a {form}"), &bytes);
            assert_eq!(stacks(&profile), expected, "{attr_size} bytes in a {form}");
        }
    }
}

#[test]
fn ids_trailers_and_mappings_of_all_times() {
    let expected = expected();
    let usual = Style::USUAL;
    let styles = [
        ("ids at their old place", Style { id_field: field::ID, ..usual }),
        ("no trailers", Style { sample_id_all: false, ..usual }),
        ("no trailers, old ids", Style { sample_id_all: false, id_field: field::ID, ..usual }),
        ("mappings without inode", Style { mmap2: false, ..usual }),
        ("names of events not described", Style { described: false, ..usual }),
    ];
    for (what, style) in styles {
        let mut profile = shown(what, &style.recording().file());
        for event in &mut profile.events {
            // Nobody named them, so their modifiers are added.
            event.name = event.name.exact().replace(":HG", "").into();
        }
        assert_eq!(stacks(&profile), expected, "{what}");
    }
}

#[test]
fn a_build_id_in_a_mapping_is_used() {
    let style = Style { build_id: true, ..Style::USUAL };
    let profile = show("build id", &style.recording().file()).profile();
    let warning = warning_text(&profile.warnings[0]);
    assert!(warning.exact().contains("07070707"), "{warning}");
    assert!(stacks(&profile).keys().all(|stack| stack.contains(" worker 0x")));
}

/// A frame of one raw block (RFC 8878).
fn zstd_frame(content: &[u8]) -> Vec<u8> {
    bytes(|b| {
        b.u32(0xfd2f_b528).u8(0).u8(8 << 3);
        b.raw(&(1 | (content.len() as u32) << 3).to_le_bytes()[..3]).raw(content);
    })
}

#[test]
fn both_kinds_of_compression() {
    let expected = expected();
    let plain = Style::USUAL.recording();
    for part_size in [9, 100, 4000] {
        let parts = zstd_frame(&plain.data);
        let parts = parts.chunks(part_size);
        let compressed = parts.clone().map(|part| {
            record(kind::COMPRESSED, 0, |b| {
                b.raw(part);
            })
        });
        let padded = parts.map(|part| {
            record(kind::COMPRESSED2, 0, |b| {
                b.u64(part.len() as u64).raw(part);
                b.0.resize(b.0.len().next_multiple_of(8), 0xff);
            })
        });
        for data in [compressed.collect::<Vec<_>>().concat(), padded.collect::<Vec<_>>().concat()] {
            let recording = Recording { data, ..plain.clone() };
            for bytes in [recording.file(), recording.pipe()] {
                assert_eq!(stacks(&shown("compressed", &bytes)), expected, "parts of {part_size}");
            }
        }
    }
}

#[test]
fn unknown_records_and_features_are_counted_and_skipped() {
    let expected = expected();
    let mut recording = Style::USUAL.recording();
    let unknown = [23, 63, 85, 127, 128, 0x1_0000, u32::MAX];
    for kind in unknown {
        // A record of a future kernel or perf, with bytes like a trailer, and with none.
        recording.data.extend(record(kind, 0xffff, |b| {
            b.raw(&[0xff; 48]);
        }));
        recording.data.extend(record(kind, 0, |_| {}));
    }
    recording.features.extend((32..224).map(|number| (number, vec![0xff; 16])));
    let profile = shown("unknown", &recording.file());
    assert_eq!(stacks(&profile), expected);
    let counted = profile.stats.by_type.iter().find(|(name, _)| name == "UNKNOWN");
    assert_eq!(counted.map(|(_, count)| *count), Some(2 * unknown.len() as u64));
}

#[test]
fn whole_versions() {
    // Before 2.6.33 there were no features, and the header was another one.
    let mut before = Style::USUAL.recording().file();
    before[..8].copy_from_slice(b"PERFFILE");
    let error = show("2.6.32", &before).error();
    assert!(error.contains("some/perf.data") && error.contains("2.6.33"), "{error}");
    before[..8].copy_from_slice(b"2ELIFREP");
    let error = show("big-endian", &before).error();
    assert!(error.contains("some/perf.data") && error.contains("big-endian"), "{error}");
    // 2.6.33 to 2.6.37 had no feature but build ids.
    let oldest = Style { attr_size: 64, sample_id_all: false, id_field: field::ID, ..Style::USUAL };
    let mut recording = Style { mmap2: false, described: false, ..oldest }.recording();
    recording.features.retain(|(number, _)| *number == feature::BUILD_ID);
    recording.event_types = vec![(0, "cpu-clock"), (2, "page-faults")];
    let profile = shown("2.6.34", &recording.file());
    let samples: Vec<_> = profile.events.iter().map(|event| event.samples).collect();
    assert_eq!(samples, [6, 3]);
}

#[test]
fn a_machine_that_whit_cannot_unwind() {
    let attr = Attr {
        regs_user: 3,
        stack_user: 16,
        ..Attr::software(
            0,
            field::IP | field::TID | field::TIME | field::REGS_USER | field::STACK_USER,
        )
    };
    let kernel = Kernel::of(&attr);
    let id = Id { pid: 600, tid: 600, time: 1_000, cpu: 0, id: 11 };
    let mut data = kernel.comm("foreign", true, id);
    data.extend(kernel.mmap2(PROGRAM, (BASE, 0x1000, 0), id));
    data.extend(record(kind::SAMPLE, misc::USER, |b| {
        b.u64(BASE + 0x208).i32(600).i32(600).u64(2_000);
        b.u64(2).words(&[1, 2]).u64(16).words(&[3, 4]).u64(16);
    }));
    let recording = Recording::new(vec![(attr, vec![11], "cycles")], data).of("riscv64", "6.1.0");
    let profile = show("riscv64", &recording.file()).profile();
    let warning = warning_text(&profile.warnings[0]);
    assert!(warning.exact().starts_with("1 user stacks were not unwound"));
    assert_eq!(options(1).threads, 1);
}
