//! Datasets of the golden recordings: the rows are those of the recordings, and an error names each broken file.

use parquet::basic::{Repetition, Type as Physical};
use parquet::data_type::Int64Type;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use whit_dataset::{
    Dataset, DatasetError, Export, Exported, Facts, Outcome, export, panics_are_caught,
};
use whit_perfdata::reader::Recording;
use whit_profile::ReadOptions;
use whit_symbolize::{DebugDirs, SymbolizerConfig};
use whit_tables::{
    AnyTable, Cancel, Cursor, Database, Defect, SCHEMA, Store, TABLES, Value, Wanted, find,
};
use whit_testing::golden::Golden;

/// Behind all golden recordings.
const NOW: Duration = Duration::from_secs(1 << 32);

fn database(golden: &Golden) -> Database {
    let dirs = DebugDirs { symfs: Some(Golden::folder().join("root")), ..DebugDirs::none() };
    let recording = Recording::open(&golden.path).expect("a golden recording");
    let options = ReadOptions::new(2, SymbolizerConfig::new(dirs));
    Database::new(vec![(recording, options)], Cancel::default())
}

fn golden(name: &str) -> Golden {
    Golden::all().into_iter().find(|golden| golden.name == name).expect("a golden recording")
}

fn facts() -> Facts<'static> {
    let (now, modified) = (UNIX_EPOCH + NOW, UNIX_EPOCH + Duration::from_secs(86_400));
    Facts { version: "1.2.3", now, modified, force: false }
}

fn add(root: &Path, golden: &Golden) -> Exported {
    match export(root, &database(golden), facts()).expect("an export") {
        Outcome::Written(exported) => exported,
        present @ Outcome::Present { .. } => panic!("{}: {present:?}", golden.name),
    }
}

fn open(root: &Path) -> Dataset {
    Dataset::open(root, Cancel::default()).expect("a dataset")
}

/// All rows, or the error that ended them.
fn read(mut cursor: Box<dyn Cursor>, columns: usize) -> Result<Vec<Vec<Value>>, String> {
    let mut rows = Vec::new();
    while cursor.advance().map_err(|error| error.to_string())? {
        rows.push((0..columns).map(|column| cursor.value(column)).collect());
    }
    Ok(rows)
}

/// Fixed texts are texts in a file.
fn plain(value: Value) -> Value {
    match value {
        Value::Name(name) => Value::Text(name.into()),
        other => other,
    }
}

/// Rows in an order of their own.
fn sorted(rows: Vec<Vec<Value>>) -> Vec<String> {
    let row = |row: Vec<Value>| format!("{:?}", row.into_iter().map(plain).collect::<Vec<_>>());
    let mut rows: Vec<String> = rows.into_iter().map(row).collect();
    rows.sort_unstable();
    rows
}

fn rows_of(dataset: &Dataset, table: &str, wanted: &Wanted) -> Result<Vec<Vec<Value>>, String> {
    let table = find(table).expect("a table");
    read(dataset.open(table, wanted), table.columns().len())
}

fn all_of(dataset: &Dataset, table: &str) -> Result<Vec<Vec<Value>>, String> {
    rows_of(dataset, table, &Wanted::everything())
}

/// The file of the only recording.
fn file(root: &Path, table: &str) -> PathBuf {
    let mut folder = root.join(table);
    loop {
        let mut entries = std::fs::read_dir(&folder).expect("a folder");
        folder = entries.next().expect("an entry").expect("an entry").path();
        if folder.extension().is_some_and(|extension| extension == "parquet") {
            return folder;
        }
    }
}

/// All files with their bytes.
fn content(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut files, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push((path.clone(), std::fs::read(&path).expect("a file"))),
            }
        }
    }
    files.sort();
    files
}

fn time_of(table: &dyn AnyTable) -> Option<usize> {
    table.columns().iter().position(|column| column.name == "ts")
}

#[test]
fn a_dataset_has_the_rows_of_its_recordings_in_order_of_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let goldens = Golden::all();
    assert!(goldens.len() > 20);
    let ids: Vec<i64> = goldens.iter().map(|golden| add(folder.path(), golden).id).collect();
    let dataset = open(folder.path());
    assert_eq!(dataset.len(), goldens.len());
    assert!(dataset.defects().is_empty());
    let mut compared = 0;
    for (golden, id) in goldens.iter().zip(ids) {
        // The numbers of call sites come from the order in which tables are read.
        let database = database(golden).numbered_from(id);
        for table in TABLES {
            let (width, all) = (table.columns().len(), Wanted::everything());
            let expected = read(table.open(&database, &all), width).expect("rows");
            let wanted = Wanted { recording: Some(id), ..all };
            let found = rows_of(&dataset, table.name(), &wanted).expect("rows");
            if let Some(time) = time_of(table).filter(|_| table.name() != "loss") {
                let times = found.iter().map(|row| match row[time] {
                    Value::Int(ns) => ns,
                    ref other => panic!("{other:?}"),
                });
                assert!(times.is_sorted(), "{} of {}", table.name(), golden.name);
            }
            compared += found.len();
            assert_eq!(sorted(found), sorted(expected), "{} of {}", table.name(), golden.name);
        }
    }
    assert!(compared > 900, "{compared}");
}

#[test]
fn a_recording_is_added_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let (root, golden) = (folder.path(), golden("perf-fp"));
    let id = add(root, &golden).id;
    let before = content(root);
    // Another copy, written at another time, by another version.
    let copy = root.join("_copy.data");
    std::fs::copy(&golden.path, &copy).expect("a copy");
    let copied = Golden { name: "copy".to_owned(), path: copy.clone() };
    let later = Facts { version: "9", modified: UNIX_EPOCH + NOW, ..facts() };
    match export(root, &database(&copied), later).expect("an export") {
        Outcome::Present { id: known, .. } => assert_eq!(known, id),
        written @ Outcome::Written(_) => panic!("{written:?}"),
    }
    std::fs::remove_file(copy).expect("the copy is there");
    assert_eq!(content(root), before);
    let forced = export(root, &database(&golden), Facts { force: true, ..facts() });
    assert!(matches!(forced, Ok(Outcome::Written(exported)) if exported.id == id));
    assert_eq!(content(root), before, "equal recordings make equal files");
}

#[test]
fn recordings_that_are_published_together_are_as_those_published_alone() {
    let (alone, together) = (tempfile::tempdir(), tempfile::tempdir());
    let (alone, together) = (alone.expect("a folder"), together.expect("a folder"));
    let goldens = ["perf-fp", "losses"].map(golden);
    let ids = goldens.each_ref().map(|golden| add(alone.path(), golden).id);
    let mut export = Export::new(together.path());
    let mut added = Vec::new();
    for golden in &goldens {
        match export.add(&database(golden), facts()).expect("an export") {
            Outcome::Written(exported) => added.push(exported.id),
            present @ Outcome::Present { .. } => panic!("{present:?}"),
        }
    }
    assert_eq!(added, ids);
    let again = export.add(&database(&goldens[0]), facts()).expect("an export");
    assert!(matches!(again, Outcome::Present { id, .. } if id == ids[0]), "{again:?}");
    assert!(Dataset::open(together.path(), Cancel::default()).is_err(), "nothing has a name yet");
    export.publish().expect("names");
    let names = |root: &Path| -> Vec<(PathBuf, Vec<u8>)> {
        let files = content(root).into_iter();
        files
            .map(|(path, bytes)| (path.strip_prefix(root).expect("a part").into(), bytes))
            .collect()
    };
    assert_eq!(names(together.path()), names(alone.path()));
    export.publish().expect("nothing to publish");
    let known = export.add(&database(&goldens[1]), facts()).expect("an export");
    assert!(matches!(known, Outcome::Present { id, .. } if id == ids[1]), "{known:?}");
}

/// Without a time of day, a recording has the date of its file.
#[test]
fn copies_of_a_recording_that_are_published_together_have_one_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let golden = golden("perf-fp");
    let mut export = Export::new(folder.path());
    for modified in [facts().modified, UNIX_EPOCH + NOW] {
        let facts = Facts { modified, force: true, ..facts() };
        let outcome = export.add(&database(&golden), facts).expect("an export");
        assert!(matches!(outcome, Outcome::Written(_)), "{outcome:?}");
    }
    export.publish().expect("names");
    let alone = tempfile::tempdir().expect("a folder");
    add(alone.path(), &golden);
    assert_eq!(content(folder.path()).len(), content(alone.path()).len());
}

#[test]
fn recordings_that_were_not_published_are_not_there() {
    let folder = tempfile::tempdir().expect("a folder");
    add(folder.path(), &golden("losses"));
    let before = content(folder.path());
    let mut export = Export::new(folder.path());
    let outcome = export.add(&database(&golden("perf-fp")), facts()).expect("an export");
    assert!(matches!(outcome, Outcome::Written(_)));
    assert_ne!(content(folder.path()), before, "its files are in the folder of those that run");
    drop(export);
    assert_eq!(content(folder.path()), before);
}

/// The export that is run again has a copy with another date.
#[test]
fn an_export_that_was_killed_between_names_is_completed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (root, golden) = (folder.path(), golden("perf-fp"));
    add(root, &golden);
    let before = content(root);
    std::fs::remove_file(file(root, "recording")).expect("the last file");
    add(root, &self::golden("losses"));
    let dataset = open(root);
    let [Defect::Dataset(defect)] = &dataset.defects()[..] else { panic!("no defect") };
    assert!(defect.contains("1 recordings are not whole"), "{defect}");
    assert_eq!(all_of(&dataset, "sample").expect("rows").len(), 3, "the other one alone");
    let later = Facts { modified: UNIX_EPOCH + NOW, ..facts() };
    let outcome = export(root, &database(&golden), later).expect("an export");
    assert!(matches!(outcome, Outcome::Written(_)));
    let after = content(root);
    assert!(before.iter().all(|file| after.contains(file)));
    assert_eq!(after.len(), 2 * before.len());
    assert!(open(root).defects().is_empty());
}

#[test]
fn the_folder_of_a_killed_export_is_removed_and_that_of_a_running_one_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let writing = folder.path().join("_writing");
    let (dead, alive) = (writing.join("dead"), writing.join("alive"));
    for folder in [&dead, &alive] {
        std::fs::create_dir_all(folder).expect("a folder");
        std::fs::write(folder.join("sample"), "half").expect("a file");
    }
    let lock = File::open(&alive).expect("a folder");
    lock.lock().expect("a lock");
    add(folder.path(), &golden("losses"));
    assert!(!dead.exists());
    assert!(alive.join("sample").exists());
    assert_eq!(std::fs::read_dir(writing).expect("a folder").count(), 1);
}

/// Each defect is made in the file of `sample`, and stands beside a part of its message.
#[test]
fn broken_files_are_named_with_the_way_out() {
    type Break = fn(&Path);
    let breaks: [(Break, &str); 7] = [
        (|path| cut(path, 2), "no whole Parquet file"),
        (|path| std::fs::write(path, "").expect("a file"), "no whole Parquet file"),
        (|path| std::fs::remove_file(path).expect("a file"), "the file is missing"),
        (
            |path| write_anew(path, &[("whit.schema", "1")], None),
            "have version 1, and this whit reads version",
        ),
        (|path| write_anew(path, &[], None), "whit did not write this file"),
        (
            |path| write_anew(path, &own_metadata("sample"), Some("weight")),
            "the column weight is not in it",
        ),
        (
            |path| write_anew(path, &own_metadata("wait"), None),
            "is in the folder of sample, and has another table",
        ),
    ];
    for (break_it, said) in breaks {
        let folder = tempfile::tempdir().expect("a folder");
        add(folder.path(), &golden("perf-fp"));
        let path = file(folder.path(), "sample");
        break_it(&path);
        let dataset = open(folder.path());
        let error = all_of(&dataset, "sample").expect_err(said);
        assert!(error.contains(said), "{error}");
        assert!(error.contains(&path.display().to_string()), "{error}");
        assert!(!all_of(&dataset, "thread").expect("other tables are read").is_empty());
        let forced =
            export(folder.path(), &database(&golden("perf-fp")), Facts { force: true, ..facts() });
        assert!(matches!(forced, Ok(Outcome::Written(_))), "{said}");
        assert_eq!(all_of(&open(folder.path()), "sample").expect("rows").len(), 6, "{said}");
    }
}

/// The file that says which recording it is.
#[test]
fn a_damaged_file_of_the_recording_is_mended_by_force_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    add(root, &golden("perf-fp"));
    let before = content(root);
    let path = file(root, "recording");
    for parts in [2, u64::MAX] {
        cut(&path, parts);
        let again = export(root, &database(&golden("perf-fp")), facts()).expect_err("damaged");
        assert!(again.to_string().contains("export the recording with -f"), "{again}");
        let force = Facts { force: true, ..facts() };
        let forced = export(root, &database(&golden("perf-fp")), force);
        assert!(matches!(forced, Ok(Outcome::Written(_))), "{forced:?}");
        assert_eq!(content(root), before);
    }
    // Elsewhere it may be another recording.
    cut(&path, 2);
    let other_day = Facts { modified: UNIX_EPOCH + NOW, force: true, ..facts() };
    assert!(export(root, &database(&golden("perf-fp")), other_day).is_err());
}

#[test]
fn a_dataset_of_another_version_gets_no_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    add(root, &golden("perf-fp"));
    write_anew(&file(root, "recording"), &[("whit.schema", "1")], None);
    let before = content(root);
    let error = export(root, &database(&golden("losses")), facts()).expect_err("a refusal");
    assert!(error.to_string().contains("export into another folder"), "{error}");
    assert_eq!(content(root), before);
    // A damaged file of another recording is no reason against an export.
    cut(&file(root, "recording"), 2);
    assert!(export(root, &database(&golden("losses")), facts()).is_ok());
}

/// Small files that say that they have many rows.
#[test]
fn groups_of_rows_that_whit_never_wrote_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    add(folder.path(), &golden("losses"));
    let path = file(folder.path(), "cpu");
    for (rows, is_read) in [(1 << 20, true), ((1 << 20) + 1, false)] {
        write_nulls(&path, rows);
        let size = path.metadata().expect("metadata").len();
        assert!(size < 1 << 16, "{size}");
        let found = all_of(&open(folder.path()), "cpu");
        match is_read {
            true => assert_eq!(found.expect("rows").len(), rows),
            false => assert!(found.expect_err("a refusal").contains("groups of rows")),
        }
    }
}

/// Writes a group of rows without values.
fn write_nulls(path: &Path, rows: usize) {
    let reader = SerializedFileReader::new(File::open(path).expect("a file")).expect("Parquet");
    let schema = reader.metadata().file_metadata().schema_descr().root_schema_ptr();
    let pairs =
        own_metadata("cpu").map(|(key, value)| KeyValue::new(key.to_owned(), value.to_owned()));
    let properties =
        WriterProperties::builder().set_key_value_metadata(Some(pairs.to_vec())).build();
    let out = File::create(path).expect("a file");
    let mut writer =
        SerializedFileWriter::new(out, schema, Arc::new(properties)).expect("a writer");
    let mut group = writer.next_row_group().expect("a group");
    while let Some(mut column) = group.next_column().expect("a column") {
        let levels = vec![0; rows];
        let written = column.typed::<Int64Type>().write_batch(&[], Some(levels.as_slice()), None);
        written.expect("a column");
        column.close().expect("a column");
    }
    group.close().expect("a group");
    writer.close().expect("a file");
}

fn cut(path: &Path, parts: u64) {
    let file = File::options().write(true).open(path).expect("a file");
    let length = file.metadata().expect("metadata").len();
    file.set_len(length / parts).expect("a cut file");
}

fn own_metadata(table: &'static str) -> [(&'static str, &'static str); 2] {
    let schema: &'static str = Box::leak(SCHEMA.to_string().into_boxed_str());
    [("whit.schema", schema), ("whit.table", table)]
}

/// Writes an empty file with the columns of another one, but for one of them.
fn write_anew(path: &Path, metadata: &[(&str, &str)], without: Option<&str>) {
    let reader = SerializedFileReader::new(File::open(path).expect("a file")).expect("Parquet");
    let schema = reader.metadata().file_metadata().schema_descr().root_schema().get_fields();
    let fields: Vec<TypePtr> =
        schema.iter().filter(|field| Some(field.name()) != without).cloned().collect();
    let schema = Type::group_type_builder("sample").with_fields(fields).build().expect("a schema");
    let pairs =
        metadata.iter().map(|(key, value)| KeyValue::new(key.to_string(), value.to_string()));
    let properties =
        WriterProperties::builder().set_key_value_metadata(Some(pairs.collect())).build();
    let file = File::create(path).expect("a file");
    let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties));
    writer.expect("a writer").close().expect("a file");
}

/// As programs write that compress otherwise.
#[test]
fn another_compression_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    add(folder.path(), &golden("losses"));
    let path = file(folder.path(), "cpu");
    // The last element of the column's name, and the number of zstd; 2 is that of Snappy.
    let mut bytes = std::fs::read(&path).expect("a file");
    let at = bytes.windows(6).position(|bytes| bytes == b"\x03cpu\x15\x0c").expect("a column");
    bytes[at + 5] = 2;
    std::fs::write(&path, bytes).expect("a file");
    let error = all_of(&open(folder.path()), "cpu").expect_err("an error");
    assert!(error.contains("compressed with SNAPPY") && error.contains("-f"), "{error}");
}

#[test]
fn a_column_of_another_type_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    add(folder.path(), &golden("losses"));
    let path = file(folder.path(), "process");
    let field = |name: &str| {
        let builder = Type::primitive_type_builder(name, Physical::DOUBLE);
        Arc::new(builder.with_repetition(Repetition::OPTIONAL).build().expect("a type"))
    };
    let fields = ["upid", "recording_id", "pid", "name"].map(field).to_vec();
    let schema = Type::group_type_builder("process").with_fields(fields).build().expect("a schema");
    let pairs =
        own_metadata("process").map(|(key, value)| KeyValue::new(key.to_owned(), value.to_owned()));
    let properties =
        WriterProperties::builder().set_key_value_metadata(Some(pairs.to_vec())).build();
    let out = File::create(&path).expect("a file");
    let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties));
    writer.expect("a writer").close().expect("a file");
    let error = all_of(&open(folder.path()), "process").expect_err("an error");
    assert!(error.contains("the column upid has another type in it"), "{error}");
}

#[test]
fn a_damaged_file_gives_an_error_or_rows_and_no_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    add(folder.path(), &golden("perf-fp"));
    let path = file(folder.path(), "sample");
    let whole = std::fs::read(&path).expect("a file");
    let mut reported = 0;
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        std::fs::write(&path, &bytes).expect("a file");
        reported += usize::from(all_of(&open(folder.path()), "sample").is_err());
    }
    assert!(reported > whole.len() / 10, "{reported} of {}", whole.len());
}

/// Programs print nothing about panics of the library, and say the error.
#[test]
fn panics_of_the_library_are_known_as_caught() {
    let folder = tempfile::tempdir().expect("a folder");
    add(folder.path(), &golden("losses"));
    let path = file(folder.path(), "cpu");
    let whole = std::fs::read(&path).expect("a file");
    let known = Arc::new(AtomicUsize::new(0));
    let (counter, say) = (known.clone(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |info| match panics_are_caught() {
        true => drop(counter.fetch_add(1, Ordering::Relaxed)),
        false => say(info),
    }));
    let mut reported = 0;
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        std::fs::write(&path, &bytes).expect("a file");
        let error = all_of(&open(folder.path()), "cpu").err();
        reported += usize::from(error.is_some_and(|error| error.contains("contradict themselves")));
    }
    drop(std::panic::take_hook());
    assert!(reported > 0, "no damage made the library panic");
    // Other tests of this program may read damaged files at the same time.
    assert!(known.load(Ordering::Relaxed) >= reported, "{known:?} of {reported}");
    assert!(!panics_are_caught());
}

#[test]
fn files_of_others_are_left_out_and_named() {
    let folder = tempfile::tempdir().expect("a folder");
    add(folder.path(), &golden("losses"));
    let foreign = file(folder.path(), "recording").with_file_name("mine.parquet");
    std::fs::write(&foreign, "PAR1").expect("a file");
    let dataset = open(folder.path());
    let [Defect::Dataset(defect)] = &dataset.defects()[..] else { panic!("no defect") };
    assert!(defect.contains("mine.parquet: it is left out"), "{defect}");
    assert_eq!(all_of(&dataset, "recording").expect("rows").len(), 1);
}

#[test]
fn a_recording_under_two_hosts_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    add(folder.path(), &golden("perf-fp"));
    let path = file(folder.path(), "recording");
    let own = path.parent().and_then(Path::parent).expect("the folder of the host");
    let date = path.parent().and_then(Path::file_name).expect("a date");
    let other = own.with_file_name("host=copy").join(date);
    std::fs::create_dir_all(&other).expect("a folder");
    std::fs::copy(&path, other.join(path.file_name().expect("a name"))).expect("a copy");
    let error = Dataset::open(folder.path(), Cancel::default()).err().expect("an error");
    assert!(matches!(error, DatasetError::SameNumber { .. }), "{error}");
    assert!(error.to_string().contains("host=copy"), "{error}");
}

#[test]
fn a_folder_without_recordings_is_no_dataset() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = Dataset::open(folder.path(), Cancel::default()).err().expect("an error");
    assert!(error.to_string().contains("whit export --parquet"), "{error}");
}

#[test]
fn two_versions_of_whit_write_one_dataset() {
    let folder = tempfile::tempdir().expect("a folder");
    add(folder.path(), &golden("losses"));
    let other = Facts { version: "7.8.9", ..facts() };
    export(folder.path(), &database(&golden("perf-fp")), other).expect("an export");
    assert_eq!(all_of(&open(folder.path()), "sample").expect("rows").len(), 9);
}

/// Files of other hosts and recordings are not opened: here they are gone.
#[test]
fn constraints_leave_files_unopened() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    let goldens = Golden::all();
    let ids: Vec<i64> = goldens.iter().map(|golden| add(root, golden).id).collect();
    let wanted_id = ids[goldens.iter().position(|it| it.name == "perf-fp").expect("a golden")];
    let one = open(root);
    let hosts =
        rows_of(&one, "recording", &Wanted { recording: Some(wanted_id), ..Wanted::everything() });
    let table = find("recording").expect("a table");
    let at = table.columns().iter().position(|column| column.name == "host").expect("a column");
    let Value::Text(host) = hosts.expect("rows")[0][at].clone() else { panic!("no host") };
    let strange = root.join("sample/host=__HIVE_DEFAULT_PARTITION__");
    for date in std::fs::read_dir(strange).expect("recordings without a host") {
        for entry in std::fs::read_dir(date.expect("an entry").path()).expect("a folder") {
            std::fs::remove_file(entry.expect("an entry").path()).expect("a file");
        }
    }
    let dataset = open(root);
    assert!(all_of(&dataset, "sample").is_err());
    let everything = Wanted::everything;
    let of_host = Wanted { host: Some(host.to_string()), ..everything() };
    assert!(rows_of(&dataset, "sample", &of_host).expect("rows").len() > 100);
    let of_recording = Wanted { recording: Some(wanted_id), ..everything() };
    assert_eq!(rows_of(&dataset, "sample", &of_recording).expect("rows").len(), 6);
    let of_day = Wanted { from_date: Some("2026-01-01".to_owned()), ..everything() };
    assert!(!rows_of(&dataset, "sample", &of_day).expect("rows").is_empty());
    let before = Wanted { to_date: Some("1960-01-01".to_owned()), ..everything() };
    assert_eq!(rows_of(&dataset, "sample", &before), Ok(Vec::new()));
}

/// The clock of the host is an hour ahead of the one that exports.
#[test]
fn a_clock_that_is_ahead_is_reported() {
    let golden = Golden::all().into_iter().find(|golden| end_of(golden).is_some());
    let golden = golden.expect("a golden recording with a time of day");
    let end = end_of(&golden).expect("a time of day");
    let hour = Duration::from_secs(3600);
    for (now, ahead) in [(end - hour, Some(hour)), (end + hour, None), (end, None)] {
        let folder = tempfile::tempdir().expect("a folder");
        let outcome = export(folder.path(), &database(&golden), Facts { now, ..facts() });
        let Ok(Outcome::Written(exported)) = outcome else { panic!("{outcome:?}") };
        assert_eq!(exported.clock_ahead, ahead);
    }
}

/// The time of day of the last record: the sum of two columns.
fn end_of(golden: &Golden) -> Option<SystemTime> {
    let table = find("recording").expect("a table");
    let mut cursor = table.open(&database(golden), &Wanted::everything());
    assert!(cursor.advance().expect("a row"));
    let number = |name: &str| {
        let at = table.columns().iter().position(|column| column.name == name);
        match cursor.value(at.expect("a column")) {
            Value::Int(number) => u64::try_from(number).ok(),
            _ => None,
        }
    };
    let ns = number("last_ts")?.checked_add(number("clock_offset_ns")?)?;
    Some(UNIX_EPOCH + Duration::from_nanos(ns))
}

#[test]
fn an_export_that_cannot_write_leaves_the_dataset_as_it_was() {
    let folder: TempDir = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    add(root, &golden("losses"));
    let before = content(root);
    // A file stands where a folder has to be.
    let file = root.join("a-file");
    std::fs::write(&file, "").expect("a file");
    let failed = export(&file, &database(&golden("perf-fp")), facts());
    assert!(matches!(failed, Err(DatasetError::Io { .. })), "{failed:?}");
    std::fs::remove_file(file).expect("a file");
    assert_eq!(content(root), before);
}
