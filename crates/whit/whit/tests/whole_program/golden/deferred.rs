//! User call chains in records of their own meet their samples wherever both stand.

use std::io::{Seek, Write};
use std::path::Path;

use whit_perfdata::reader::Recording as Opened;
use whit_perfdata::stream::BLOCK_SIZE_BYTES;
use whit_profile::model::Profile;
use whit_profile::switches::SamplesAndSwitches;
use whit_profile::{Reading, Samples};
use whit_view::stdio::{self, StdioOptions};
use whit_view::warning::warning_text;

use crate::golden::encode::{Attr, Kernel, Recording};
use crate::golden::library::{NAME, options};
use crate::golden::made::deferred::{attr, awaiting, deferred};

/// Frames of each user call chain, and chains in all: several blocks of samples and of records.
const DEPTH: u64 = 20;
const CHAINS: u64 = 8_000;

fn open(attr: Attr, data: Vec<u8>) -> Opened {
    let bytes = Recording::new(vec![(attr, vec![11], "cpu-clock")], data).file();
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(&bytes).and_then(|()| file.rewind()).expect("fill a temporary file");
    Opened::from_file(Path::new(NAME), file).expect("open")
}

fn load(recording: &Opened, threads: usize) -> Profile {
    Reading::open(recording, &options(threads)).answer(Samples::default()).expect("load")
}

fn report(profile: &Profile) -> Vec<u8> {
    let mut text = Vec::new();
    stdio::write_report(&mut text, profile, &StdioOptions::default()).expect("write");
    text
}

/// The report of a recording that is read in order of time, with its switches.
fn report_in_order(recording: &Opened) -> Vec<u8> {
    let loaded = Reading::open(recording, &options(2)).answer(SamplesAndSwitches::default());
    report(&loaded.expect("load switches").0)
}

fn warned(profile: &Profile) -> Vec<String> {
    let about = |text: &String| text.contains("deferred");
    profile.warnings.iter().map(|warning| warning_text(warning).to_string()).filter(about).collect()
}

/// Samples and records; records are those of the samples, in order.
fn parts() -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let kernel = Kernel::of(&attr());
    let chain = |number: u64| -> Vec<u64> {
        (0..DEPTH).map(|frame| 0x40_0000 + 0x1000 * (number % 7) + 8 * frame).collect()
    };
    let tid = |number: u64| 8400 + (number % 3) as i32;
    let samples = (0..CHAINS).map(|n| awaiting(tid(n), 10 * n, n << 32 | 1)).collect();
    let records = (0..CHAINS)
        .map(|n| deferred(&kernel, (tid(n), 10 * n + 5), n << 32 | 1, &chain(n)))
        .collect();
    (samples, records)
}

#[test]
fn chains_meet_samples_in_any_order_of_the_recording() {
    let (samples, records) = parts();
    let sizes = [&samples, &records].map(|part| part.iter().map(Vec::len).sum::<usize>());
    assert!(sizes.iter().all(|size| *size > 2 * BLOCK_SIZE_BYTES), "{sizes:?}");
    let interleaved: Vec<u8> =
        samples.iter().zip(&records).flat_map(|(s, r)| [&s[..], r].concat()).collect();
    let interleaved = open(attr(), interleaved);
    let wanted_in_order = report_in_order(&interleaved);
    let wanted = load(&interleaved, 1);
    assert_eq!(warned(&wanted), [""; 0]);
    let depth = |profile: &Profile| profile.nodes.len();
    assert!(depth(&wanted) > 7 * DEPTH as usize, "{} nodes", depth(&wanted));
    let wanted = report(&wanted);
    for (what, data) in [
        ("records follow", [samples.concat(), records.concat()].concat()),
        ("records lead", [records.concat(), samples.concat()].concat()),
    ] {
        let recording = open(attr(), data);
        for threads in [1, 3] {
            let profile = load(&recording, threads);
            assert_eq!(warned(&profile), [""; 0], "{what}");
            // Not assert_eq: the texts are long.
            assert!(report(&profile) == wanted, "{what}, {threads} threads");
        }
        assert!(report_in_order(&recording) == wanted_in_order, "{what}, in order of time");
    }
}

/// Two samples of one stay in the kernel: one beside the record, one in another block.
#[test]
fn a_chain_meets_samples_in_its_block_and_in_others() {
    let (samples, records) = parts();
    let again: Vec<u8> = samples.concat();
    let interleaved: Vec<u8> =
        samples.iter().zip(&records).flat_map(|(s, r)| [&s[..], r].concat()).collect();
    for data in [[again.clone(), interleaved.clone()].concat(), [interleaved, again].concat()] {
        let profile = load(&open(attr(), data), 2);
        assert_eq!(warned(&profile), [""; 0]);
        assert_eq!(profile.events[0].samples, 2 * CHAINS);
        let leaves = profile.rows.len();
        assert_eq!(leaves, 3 * 7, "one row for a thread and a chain");
    }
}

#[test]
fn samples_and_chains_without_a_match_are_counted() {
    let (samples, records) = parts();
    let some = |parts: &[Vec<u8>], step: usize| -> Vec<u8> {
        parts
            .iter()
            .enumerate()
            .filter(|(n, _)| n % step != 0)
            .flat_map(|(_, p)| p.clone())
            .collect()
    };
    let lost = |step: u64| CHAINS.div_ceil(step);
    let without_records = [samples.concat(), some(&records, 10)].concat();
    let profile = load(&open(attr(), without_records), 2);
    let said = warned(&profile);
    let counts = format!("{} of {CHAINS} samples", lost(10));
    assert!(said.len() == 1 && said[0].starts_with(&counts), "{said:?}");

    let without_samples = [some(&samples, 8), records.concat()].concat();
    let profile = load(&open(attr(), without_samples), 2);
    let said = warned(&profile);
    assert!(said.len() == 1 && said[0].starts_with(&format!("{} deferred", lost(8))), "{said:?}");

    // No event asked for them.
    let flags = Attr { flags: crate::golden::encode::flag::USUAL, ..attr() };
    let said = warned(&load(&open(flags, [samples.concat(), records.concat()].concat()), 1));
    assert!(said.len() == 1 && said[0].starts_with(&format!("{CHAINS} deferred")), "{said:?}");
}

#[test]
fn records_shorter_than_their_fields_are_counted() {
    let (samples, mut records) = parts();
    // The number of addresses, behind header and cookie.
    records[7][16..24].copy_from_slice(&u64::MAX.to_le_bytes());
    let profile = load(&open(attr(), [samples.concat(), records.concat()].concat()), 2);
    let said: Vec<_> =
        profile.warnings.iter().map(|warning| warning_text(warning).to_string()).collect();
    let begins = |text: &str| said.iter().any(|said| said.starts_with(text));
    assert!(begins(&format!("1 of {CHAINS} samples")), "{said:?}");
    assert!(begins("records that are shorter than their fields say, left out: 1"), "{said:?}");
}
