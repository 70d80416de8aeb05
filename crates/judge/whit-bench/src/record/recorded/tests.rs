use super::*;
use std::fs::{self, File};
use whit_perfdata::attr::{Attr, AttrFlags, SampleType, pmu_type};
use whit_perfdata::encode::push_record;
use whit_perfdata::feature::{EventDesc, Features};
use whit_perfdata::ledger::Ledger;
use whit_perfdata::writer::FileWriter;

/// Records of CPU 0 and 1, as two rings would have them drained in turn.
pub(in crate::record) struct Records(pub(in crate::record) Vec<u8>);

impl Records {
    fn push(&mut self, kind: u32, words: &[u64]) -> &mut Self {
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        push_record(&mut self.0, kind, 0, &body);
        self
    }

    fn sample(&mut self, cpu: u64, time: u64) -> &mut Self {
        // identifier, ip, pid and tid, time, cpu.
        self.push(record_type::SAMPLE, &[7, 0x1000, 1, time, cpu])
    }

    fn lost(&mut self, cpu: u64, time: u64, count: u64) -> &mut Self {
        // id, lost; pid and tid, time, cpu, identifier.
        self.push(record_type::LOST, &[7, count, 1, time, cpu, 7])
    }

    fn lost_samples(&mut self, count: u64) -> &mut Self {
        self.push(record_type::LOST_SAMPLES, &[count, 0, 500, 0, 7])
    }

    /// Both rings overflow; each LOST record is the first record of the next drain.
    pub(in crate::record) fn two_rings() -> Records {
        let mut records = Records(Vec::new());
        // A task that was there before: no time, no ring.
        records.push(record_type::COMM, &[1, u64::from_le_bytes(*b"comm\0\0\0\0"), 0, 0, 0, 7]);
        records.sample(0, 100).sample(0, 110).sample(1, 105).sample(1, 190);
        records.push(record_type::FINISHED_ROUND, &[]);
        records.lost(0, 150, 4).sample(0, 151).lost(1, 200, 6).sample(1, 300);
        records
    }
}

pub(in crate::record) fn write(
    path: &Path,
    records: &[u8],
    sample_type: SampleType,
    ledger: Option<&Ledger>,
) {
    let flags = AttrFlags::SAMPLE_ID_ALL;
    let attr = Attr { pmu_type: pmu_type::SOFTWARE, sample_type, flags, ..Attr::default() };
    let event = EventDesc { attr, ids: vec![7], name: "cpu-clock".into() };
    let mut writer = FileWriter::create(File::create(path).unwrap(), &[event]).unwrap();
    writer.append(records).unwrap();
    let mut features = Features::default();
    if let Some(ledger) = ledger {
        features.set_ledger(ledger);
    }
    writer.finish(&features).unwrap();
}

pub(in crate::record) fn with_cpu() -> SampleType {
    without_cpu() | SampleType::CPU
}

fn without_cpu() -> SampleType {
    SampleType::IDENTIFIER | SampleType::IP | SampleType::TID | SampleType::TIME
}

fn read(records: &Records, ledger: Option<&Ledger>) -> Recorded {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("perf.data");
    write(&path, &records.0, with_cpu(), ledger);
    Recorded::read(&path).unwrap()
}

#[test]
fn every_ring_has_pauses_of_its_own() {
    let recorded = read(&Records::two_rings(), None);
    assert_eq!((recorded.samples, recorded.records, recorded.rings), (6, 8, 2));
    assert_eq!((recorded.lost_records, recorded.lost_chunks, recorded.lost), (10, 2, 10));
    // Not 150 - 190 and 200 - 151, as the order of the file would have it.
    assert_eq!(recorded.paused_ns, Some((150 - 110) + (200 - 190)));
    assert_eq!(recorded.elapsed_ns, Some(2 * (300 - 100)));
    assert_eq!(recorded.data_loss(), Some(50.0 / 400.0));
    assert_eq!(recorded.lost_share(), 10.0 / 18.0);
    assert_eq!((recorded.compression_ratio(), recorded.unreadable_bytes), (1.0, 0));
}

#[test]
fn the_order_in_which_rings_were_drained_does_not_matter() {
    let mut other = Records(Vec::new());
    other.sample(1, 105).sample(1, 190).lost(1, 200, 6).sample(1, 300);
    other.sample(0, 100).sample(0, 110).lost(0, 150, 4).sample(0, 151);
    let (one, other) = (read(&Records::two_rings(), None), read(&other, None));
    assert_eq!((one.paused_ns, one.elapsed_ns), (other.paused_ns, other.elapsed_ns));
}

#[test]
fn perfs_summary_contains_lost_records_and_whits_does_not() {
    let mut records = Records::two_rings();
    records.lost_samples(13);
    assert_eq!(read(&records, None).lost, 13);
    let ledger = Ledger { lost_records: 23, paused_ns: 50, elapsed_ns: 400, ..Ledger::default() };
    let recorded = read(&records, Some(&ledger));
    assert_eq!((recorded.lost, recorded.lost_samples), (23, 13));
    let expected = LedgerLoss { samples: 0, lost: 23, paused_ns: 50, elapsed_ns: 400 };
    assert_eq!(recorded.ledger, Some(expected));
}

#[test]
fn without_cpus_there_is_no_figure_instead_of_a_wrong_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("perf.data");
    let mut records = Records(Vec::new());
    records.push(record_type::SAMPLE, &[7, 0x1000, 1, 100]);
    records.push(record_type::LOST, &[7, 3, 1, 200, 7]);
    write(&path, &records.0, without_cpu(), None);
    let recorded = Recorded::read(&path).unwrap();
    assert_eq!((recorded.data_loss(), recorded.lost, recorded.samples), (None, 3, 1));
}

#[test]
fn directories_and_cut_files_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let records = Records::two_rings();
    write(&directory.path().join("data"), &[], with_cpu(), None);
    fs::write(directory.path().join("data.0"), &records.0).unwrap();
    let mut second = Records(Vec::new());
    second.sample(2, 400);
    let cut = [&second.0[..], &second.0[..10]].concat();
    fs::write(directory.path().join("data.1"), cut).unwrap();
    let recorded = Recorded::read(directory.path()).unwrap();
    assert_eq!((recorded.samples, recorded.rings, recorded.unreadable_bytes), (7, 3, 10));
    assert_eq!(recorded.elapsed_ns, Some(3 * 300));
}

#[test]
fn compressed_records_are_read_and_give_the_ratio() {
    let mut records = Records(Vec::new());
    for time in 1..1000 {
        records.sample(0, time);
    }
    let packed = zstd::stream::encode_all(&records.0[..], 1).unwrap();
    let mut outer = Vec::new();
    push_record(&mut outer, record_type::COMPRESSED, 0, &packed);
    let recorded = read(&Records(outer), None);
    assert_eq!(recorded.samples, 999);
    let ratio = records.0.len() as f64 / packed.len() as f64;
    assert!((recorded.compression_ratio() - ratio).abs() < 1e-9, "{recorded:?}");
}

#[test]
fn an_empty_recording_has_no_loss_and_none_is_an_error() {
    let empty = read(&Records(Vec::new()), None);
    assert_eq!((empty.samples, empty.lost_share(), empty.data_loss()), (0, 0.0, None));
    assert!(Recorded::read(Path::new("/nonexistent/perf.data")).is_err());
}
