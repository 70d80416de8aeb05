//! Triggers with and without a recorder, a disk, and bounds.

use super::*;
use crate::described::{Length, Size};
use std::fs;
use std::path::Path;
use std::time::Instant;
use tempfile::TempDir;
use whit_perfdata::reader::Recording;
use whit_testing::wait::wait_until;
use whit_trigger::Rule;
use whit_types::ByteSize;

const STREAM: &str = "../../../tests/recordings/golden/perf-pipe/recording.data";

fn settings(folder: &Path, min_interval_s: f64) -> Settings {
    let on = vec!["exit:1".parse::<Rule>().unwrap()];
    let trigger =
        whit_trigger::Settings { on, min_interval_s, ..whit_trigger::Settings::default() };
    Settings {
        folder: folder.to_owned(),
        flight: Length::seconds(5),
        trigger,
        ..Settings::default()
    }
}

/// A flight recorder whose events are those of the test.
struct Place {
    dir: TempDir,
    recorder: Recorder,
    shared: Arc<Shared>,
}

impl Place {
    fn of(dir: TempDir, change: impl FnOnce(&mut Settings)) -> Place {
        let mut settings = settings(dir.path(), 0.0);
        change(&mut settings);
        let plan = Plan::of(&settings).unwrap();
        let folder = Folder::open(&plan.root).unwrap();
        let (shared, log) = (Arc::<Shared>::default(), Log::new(Box::new(io::sink())));
        let recorder = Recorder::new(plan, folder, shared.clone(), log);
        Place { dir, recorder, shared }
    }

    fn new() -> Place {
        Place::of(tempfile::tempdir().unwrap(), |_| ())
    }

    /// A recorder's stream, which obeys no command.
    fn begin(&self) {
        let bounds = Bounds { keep_ns: u64::MAX, bytes_max: 1 << 30 };
        let stream = LiveStream::new(bounds, Instant::now());
        let bytes = fs::read(STREAM).unwrap();
        stream.with_window(|window, now_ns| window.push(&bytes, now_ns).unwrap());
        self.shared.follow(&stream);
    }

    /// A recorder's stream, which has these records before it says that its rings are empty.
    fn begin_with(&self, newest: &[u8], bytes_max: usize) -> whit_live::recorder::Recorder {
        let (path, bounds) =
            (self.dir.path().join("newest"), Bounds { keep_ns: u64::MAX, bytes_max });
        fs::write(&path, newest).unwrap();
        // The mark is a FINISHED_ROUND record with the number of the order.
        let mark = r"\104\0\0\0\0\0\020\0\1\0\0\0\0\0\0\0";
        let mut command = std::process::Command::new("sh");
        command.arg("-c").arg(format!(
            "cat {STREAM}; read line; sleep 0.2; cat {}; printf '{mark}'; exec sleep 60",
            path.display()
        ));
        let parts = whit_live::recorder::Parts {
            stream: LiveStream::new(bounds, Instant::now()),
            changed: Box::new(|| ()),
            obeys: true,
            said: Box::new(|_| ()),
            is_hurried: true,
            end_timeout: Duration::from_secs(5),
        };
        let recorder = whit_live::recorder::Recorder::start(command, parts).unwrap();
        wait_until("the stream begins", || recorder.stream().has_begun());
        self.shared.follow(recorder.stream());
        recorder
    }

    fn event(&mut self) -> DumpStatus {
        self.recorder.take(&Trigger::now(Kind::Request, "\u{1b}now"));
        self.shared.status()
    }

    fn files(&self) -> Vec<PathBuf> {
        let found = fs::read_dir(self.dir.path().join(FOLDER)).unwrap().flatten();
        found
            .map(|it| it.path())
            .filter(|it| it.extension().is_some_and(|it| it == "data"))
            .collect()
    }
}

#[test]
fn an_event_becomes_a_file_that_says_why() {
    let mut place = Place::new();
    assert_eq!(place.event().without_recorder, 1);
    place.begin();
    let status = place.event();
    assert_eq!((status.dumps, status.files, status.failed), (1, 1, 0));
    // Nobody answers the command, and the recording has just begun.
    assert_eq!((status.without_newest, status.short_dumps), (1, 1));
    assert!(status.last_ms > 0.0 && status.max_ms >= status.last_ms);
    let [file] = &place.files()[..] else { panic!("{:?}", place.files()) };
    assert_eq!(status.last_file, Some(file.display().to_string()));
    assert_eq!(status.bytes, fs::metadata(file).unwrap().len());
    let recording = Recording::open(file).unwrap();
    let cause = recording.features.dump_cause().unwrap();
    assert_eq!((cause.kind.as_str(), cause.wanted_ns), ("request", 5_000_000_000));
    assert!(cause.detail.starts_with("\u{1b}now (the newest records are missing"));
    assert!(cause.covered_ns < cause.wanted_ns);
    assert!(recording.warnings.is_empty(), "{:?}", recording.warnings);
}

/// The samples of the stream.
fn samples() -> Vec<Vec<u8>> {
    let stream = fs::read(STREAM).unwrap();
    let (mut rest, mut samples) = (&stream[16..], Vec::new());
    while let Some((record, behind)) = whit_perfdata::record::RawRecord::split(rest) {
        if record.header.kind == whit_perfdata::record::record_type::SAMPLE {
            samples.push(rest[..rest.len() - behind.len()].to_vec());
        }
        rest = behind;
    }
    samples
}

fn count(bytes: &[u8], part: &[u8]) -> usize {
    bytes.windows(part.len()).filter(|bytes| *bytes == part).count()
}

#[test]
fn records_that_come_while_a_dump_is_written_are_in_it() {
    let mut place = Place::new();
    let sample = &samples()[0];
    let _recorder = place.begin_with(&sample.repeat(3), 1 << 30);
    let status = place.event();
    assert_eq!((status.dumps, status.without_newest, status.failed), (1, 0, 0), "{status:?}");
    let file = status.last_file.unwrap();
    let before = count(&fs::read(STREAM).unwrap(), sample);
    assert_eq!(count(&fs::read(&file).unwrap(), sample), before + 3);
    let recording = Recording::open(Path::new(&file)).unwrap();
    assert!(recording.warnings.is_empty(), "{:?}", recording.warnings);
    assert_eq!(recording.features.dump_cause().unwrap().detail, "\u{1b}now");
}

#[test]
fn a_dump_has_no_gap_where_too_much_comes_meanwhile() {
    let mut place = Place::new();
    let samples = samples();
    let (sample, older) = (&samples[0], &samples[1]);
    assert_ne!(sample, older);
    let bytes_max = 400 << 10;
    let newest = sample.repeat((1 << 20) / sample.len());
    let _recorder = place.begin_with(&newest, bytes_max);
    let status = place.event();
    assert_eq!((status.dumps, status.without_newest, status.short_dumps), (1, 0, 1), "{status:?}");
    let file = fs::read(status.last_file.unwrap()).unwrap();
    // The last ones, and nothing of those before.
    let kept = count(&file, sample) * sample.len();
    assert!(kept > bytes_max / 3 && kept <= bytes_max, "{kept}");
    assert_eq!(count(&file, older), 0);
}

#[test]
fn newest_records_count_for_the_bounds() {
    let change = |it: &mut Settings| {
        let stream = fs::metadata(STREAM).unwrap().len();
        it.trigger.bytes_per_day = 2 * stream;
    };
    let mut place = Place::of(tempfile::tempdir().unwrap(), change);
    let _recorder = place.begin_with(&samples()[0].repeat(20_000), 1 << 30);
    let status = place.event();
    assert_eq!((status.dumps, status.failed), (0, 0));
    assert_eq!(status.suppressed.bytes_per_day, 1);
    assert!(place.files().is_empty());
}

#[test]
fn bounds_suppress_dumps_also_after_a_restart() {
    let mut place = Place::of(tempfile::tempdir().unwrap(), |it| it.trigger.dumps_per_day = 2);
    place.begin();
    assert_eq!([place.event().dumps, place.event().dumps, place.event().dumps], [1, 2, 2]);
    let status = place.shared.status();
    assert_eq!(status.suppressed.dumps_per_day, 1);
    let Place { dir, recorder, .. } = place;
    drop(recorder);
    let mut place = Place::of(dir, |it| it.trigger.dumps_per_day = 2);
    place.begin();
    let status = place.event();
    assert_eq!((status.dumps, status.files, status.suppressed.dumps_per_day), (0, 2, 1));
}

#[test]
fn a_dump_that_alone_is_too_large_is_suppressed() {
    let mut place = Place::of(tempfile::tempdir().unwrap(), |it| it.trigger.bytes_per_day = 100);
    place.begin();
    let status = place.event();
    assert_eq!((status.dumps, status.suppressed.bytes_per_day), (0, 1));
    assert!(place.files().is_empty());
}

#[test]
fn a_disk_that_fails_is_counted_and_later_dumps_are_written() {
    let mut place = Place::new();
    place.begin();
    let folder = place.dir.path().join(FOLDER);
    fs::remove_dir_all(&folder).unwrap();
    let status = place.event();
    assert_eq!((status.dumps, status.failed), (0, 1));
    assert!(status.last_error.unwrap().contains(&folder.display().to_string()));
    fs::create_dir(&folder).unwrap();
    assert_eq!(place.event().dumps, 1);
    assert_eq!(place.files().len(), 1);
}

#[test]
fn old_dumps_go() {
    let mut place = Place::of(tempfile::tempdir().unwrap(), |it| it.dump_bytes = Size(ByteSize(1)));
    place.begin();
    let first = place.event().last_file.unwrap();
    let status = place.event();
    assert_eq!((status.dumps, status.files, status.removed_by_age_or_bytes), (2, 1, 1));
    assert!(!Path::new(&first).exists() && Path::new(&status.last_file.unwrap()).exists());
}

#[test]
fn other_settings_take_the_folder_and_the_socket_over() {
    let dir = tempfile::tempdir().unwrap();
    let with_socket = |seconds| {
        let mut settings = settings(dir.path(), 0.0);
        settings.flight = Length::seconds(seconds);
        settings.trigger.socket = Some(dir.path().join("socket"));
        Plan::of(&settings).unwrap()
    };
    let log = Log::new(Box::new(io::sink()));
    let old = Flight::start(with_socket(5), &log).unwrap();
    assert!(old.is_of(&with_socket(5)) && !old.is_of(&with_socket(6)));
    let error = Flight::start(with_socket(6), &log).map(drop).unwrap_err().to_string();
    assert!(error.contains("another whit watch writes here"), "{error}");
    old.stop();
    let new = Flight::start(with_socket(6), &log).unwrap();
    assert!(old.resume().is_err());
    new.stop();
    old.resume().unwrap();
    assert!(old.status()["triggers"]["rules"][0]["rule"] == "exit:1");
    let none = Settings { flight: Length::seconds(0), ..settings(dir.path(), 0.0) };
    assert!(Plan::of(&none).is_none());
}

#[test]
fn a_reload_replaces_the_recorder_and_a_wrong_one_brings_the_old_one_back() {
    use crate::maker::Standard;
    use crate::service::Maker;
    let dir = tempfile::tempdir().unwrap();
    let maker = Standard::new(&Log::new(Box::new(io::sink())));
    let with = |seconds, socket: &str| {
        let mut settings = settings(dir.path(), 0.0);
        settings.flight = Length::seconds(seconds);
        settings.trigger.socket = Some(dir.path().join(socket));
        settings
    };
    let keeper = |settings: &Settings| maker.keeper(settings).map(Option::unzip);
    let has_triggers = |keeper: &Arc<dyn Keeper>| !keeper.status()["triggers"].is_null();
    let old = keeper(&with(5, "socket")).unwrap().0.unwrap();
    let new = keeper(&with(6, "socket")).unwrap().0.unwrap();
    assert_eq!((has_triggers(&old), has_triggers(&new)), (false, true));
    assert!(keeper(&with(7, "missing/socket")).is_err());
    assert!(has_triggers(&new));
    assert!(keeper(&with(0, "socket")).unwrap().0.is_none());
    assert!(!has_triggers(&new));
}
