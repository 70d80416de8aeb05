//! Third suite: damaged bytes. For all of them: no panic, no hang, bounded memory. Where the file
//! does not fit together, the message has its name and the offset.

use crate::golden::kept;
use crate::golden::library::{NAME, Outcome, peak_memory_bytes, show};
use crate::golden::made;
use whit_view::warning::warning_text;

/// Values at the edges of fields, and of the readers' arithmetic.
const HOSTILE: [u64; 9] =
    [0, 1, 7, 0x7fff, 0xffff_ffff, 0x8000_0000, 0x1000_0000_0000, i64::MAX as u64, u64::MAX];

/// The fewest of them that find most.
const EDGES: [u64; 4] = [0, 7, 0x8000_0000, u64::MAX];

/// Random changes per kept recording, and how many bytes each changes at most.
const CHANGES: u64 = 40;
const MAX_CHANGED_BYTES: u64 = 12;

/// All of the suite together, with everything else that runs in this process.
const MAX_MEMORY_BYTES: u64 = 1 << 30;

/// The guarantees for any bytes.
fn survive(what: &str, bytes: &[u8]) -> Outcome {
    let outcome = show(what, bytes);
    match &outcome {
        Outcome::Refused(error) => assert!(error.contains(NAME), "{what}: {error}"),
        Outcome::Shown(profile) => {
            let counted: u64 = profile.events.iter().map(|event| event.samples).sum();
            let samples = bytes.len() as u64 / 8;
            let is_compressed =
                profile.stats.by_type.iter().any(|(kind, _)| kind.starts_with("COMPR"));
            assert!(counted <= samples || is_compressed, "{what}: {counted} samples");
        }
    }
    outcome
}

fn assert_memory(what: &str) {
    if let Some(peak) = peak_memory_bytes() {
        assert!(peak < MAX_MEMORY_BYTES, "{what}: {peak} bytes of memory");
    }
}

/// Sets every aligned field of `width` bytes of a generated recording to each of these values; the
/// features, which are mostly zeros, only where asked for.
fn sweep(name: &str, width: usize, values: &[u64], with_features: bool) {
    let made = made::all().into_iter().find(|made| made.name == name).expect("a recording");
    let bytes = made.bytes;
    let features = made.recording.map_or(bytes.len(), |made| made.file_and_parts().1.features);
    let end = if with_features { bytes.len() } else { features };
    for at in (0..end - width).step_by(width) {
        let len = bytes.len() as u64;
        for value in values.iter().copied().chain([len, len + 1 - at as u64]) {
            let mut changed = bytes.clone();
            changed[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
            if changed != bytes {
                survive(&format!("{name}: {value:#x} ({width} bytes) at {at}"), &changed);
            }
        }
    }
    assert_memory(name);
}

#[test]
fn every_field_of_a_sample() {
    sweep("every-field", 4, &HOSTILE, false);
}

#[test]
fn features() {
    sweep("processes", 4, &EDGES, true);
}

#[test]
fn registers_and_stacks() {
    sweep("arm64-dwarf", 8, &EDGES, false);
    sweep("lbr-call-stack", 8, &EDGES, false);
}

#[test]
fn side_band_and_losses() {
    sweep("losses", 4, &EDGES, false);
    sweep("rare-records", 4, &EDGES, false);
}

#[test]
fn old_recordings() {
    sweep("old-2.6.34", 4, &EDGES, false);
}

#[test]
fn pipes() {
    sweep("pipe", 4, &EDGES, true);
}

#[test]
fn compressed_and_aux_records() {
    sweep("new-7.0", 4, &EDGES, false);
    sweep("auxtrace", 8, &EDGES, false);
}

/// Numbers that are the same in each run (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

#[test]
fn random_changes_of_kept_recordings() {
    for (name, path) in kept::files() {
        let bytes = std::fs::read(&path).expect("a kept recording");
        for seed in 0..CHANGES {
            let mut random = Random(seed);
            let mut changed = bytes.clone();
            for _ in 0..1 + random.below(MAX_CHANGED_BYTES) {
                let at = random.below(bytes.len() as u64) as usize;
                // One bit, or the whole byte.
                match random.below(2) {
                    0 => changed[at] ^= 1 << random.below(8),
                    _ => changed[at] = random.below(256) as u8,
                }
            }
            survive(&format!("{name}, seed {seed}"), &changed);
        }
    }
    assert_memory("random changes");
}

/// Where the file does not fit together, the message has its name, the place, and the bytes there.
#[test]
fn messages_name_file_and_offset() {
    let made = made::all().into_iter().find(|made| made.name == "processes").expect("processes");
    let (bytes, parts) = made.recording.expect("a file").file_and_parts();
    let spoil = |at: usize, value: u64| {
        let mut spoilt = bytes.clone();
        spoilt[at..at + 8].copy_from_slice(&value.to_le_bytes());
        spoilt
    };
    let len = bytes.len();
    let past = |at: u64| format!("at offset {at}, past the end of the file ({len} bytes)");
    let refused = [
        (8, 50, "its header says a size of 50 bytes".to_owned()),
        (16, 3, "an event attribute of 3 bytes cannot be".to_owned()),
        (24, 1 << 40, past(1 << 40)),
        (32, u64::MAX, "more than 65,536 events".to_owned()),
        (32, 150, format!("at offset {} is 150 bytes long", parts.attrs)),
        (40, 1 << 30, "its records are said to start at offset 1073741824".to_owned()),
        (parts.attrs + 128, 1 << 33, past(1 << 33)),
        (parts.attrs + 136, 1 << 40, "more than 64 MiB of ids".to_owned()),
    ];
    for (at, value, says) in refused {
        let error = survive(&says, &spoil(at, value)).error();
        assert!(error.contains(NAME) && error.contains(&says), "{value:#x} at {at}: {error}");
    }
    // The type and size of the second record, a sample.
    let second = parts.data + usize::from(bytes[parts.data + 6]);
    assert_eq!(bytes[second..second + 8], [9, 0, 0, 0, 2, 0, 40, 0]);
    let shown = [
        (48, 1 << 50, format!("cut short at offset {len}")),
        (second, 9, format!("the record at offset {second} says a size of 0 bytes")),
        (parts.features, 1 << 45, past(1 << 45)),
        (parts.features + 8, 1 << 28, "more than 134217728 bytes of features".to_owned()),
    ];
    for (at, value, says) in shown {
        let profile = survive(&says, &spoil(at, value)).profile();
        let found = profile
            .warnings
            .iter()
            .map(warning_text)
            .any(|text| text.exact().contains(NAME) && text.exact().contains(&says));
        assert!(found, "{value:#x} at {at}: {:?}", profile.warnings);
    }
}

/// Lengths that are allowed to be large: their bytes must be there before memory is taken.
#[test]
fn claims_take_no_memory() {
    let made = made::all().into_iter().find(|made| made.name == "processes").expect("processes");
    let mut recording = made.recording.expect("a file");
    let (event, _, name) = recording.events[0].clone();
    // All ids and all features of thousands of events share the same bytes.
    recording.events = (0..4000).map(|_| (event.clone(), vec![11], name)).collect();
    let (mut bytes, parts) = recording.file_and_parts();
    bytes.resize(8 << 20, 0);
    let len = bytes.len() as u64;
    for entry in 0..4000 {
        let at = parts.attrs + entry * 144 + 128;
        bytes[at..at + 8].copy_from_slice(&0u64.to_le_bytes());
        bytes[at + 8..at + 16].copy_from_slice(&(len / 8 * 8).to_le_bytes());
    }
    let error = survive("shared ids", &bytes).error();
    assert!(error.contains("more than 64 MiB of ids"), "{error}");
    assert_memory("shared ids");
}
