//! Recordings that carry the names of their frames: `whit export --archive`, `whit record --embed-symbols`.

use crate::failure::bail_usage;
use crate::sources::{Place, Sources};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use whit_annotate::{Syntax, Wanted, Weights, annotate};
use whit_page::HotCode;
use whit_perfdata::attr::SampleType;
use whit_perfdata::chained::chained_events;
use whit_perfdata::export::{self, features_of_file};
use whit_perfdata::names::{fill, pack};
use whit_perfdata::reader::{Form, Recording};
use whit_perfdata::writer::FileWriter;
use whit_profile::switches::{self, SamplesAndSwitches, SwitchOptions};
use whit_profile::{
    Chained, ChainedRecords, NotedNames, ReadOptions, Reading, Samples, SourceLine, WithCode,
    own_names,
};
use whit_sys::unnamed_file::UnnamedFile;
use whit_view::annotate::{AnnotateOptions, Annotated, write_json};

/// Functions whose code goes into a recording, those with most samples first.
const MAX_FUNCTIONS: usize = 1000;

/// Bytes that are written at once.
const WRITE_BYTES: usize = 1 << 20;

const UNNAMED: &str = "the recording with names cannot take its name";

/// How much a recording carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Extent {
    /// The names and lines of sampled addresses
    Hot,
    /// The same, and the code of the functions with samples
    All,
}

/// A written recording.
pub(crate) struct Written {
    pub(crate) records: Chained,
    pub(crate) names_bytes: u64,
}

/// Whether stacks have to be unwound before a recording reads the same without the binaries.
pub(crate) fn has_dumps(recording: &Recording) -> bool {
    let mut events = recording.events.iter();
    events.any(|event| event.attr.sample_type.contains(SampleType::STACK_USER))
}

/// Writes a recording into one file, with call chains in the place of stack dumps and with the names of its frames.
pub(crate) fn write_with_names(
    recording: &Recording,
    options: &ReadOptions,
    extent: Extent,
    out: &mut File,
    update: &(dyn Fn(u64, u64) + Sync),
) -> Result<Written> {
    let mut options = options.clone();
    // Names that the recording carries already go on with it.
    options.names.symbols.embedded = own_names(recording).unwrap_or_default();
    let reading = Reading::open(recording, &options).with_progress(update);
    let records = write_records(reading, out)?;
    let written = Recording::from_file(&recording.path, out.try_clone()?)?;
    let names_bytes = add_names(&written, options, extent, out)?;
    Ok(Written { records, names_bytes })
}

fn write_records(reading: Reading<'_>, out: &mut File) -> Result<Chained> {
    let recording = reading.recording();
    let events = chained_events(&recording.events);
    let mut file = FileWriter::create(BufWriter::with_capacity(WRITE_BYTES, out), &events)?;
    let mut put = |_: usize, records: &[u8]| match recording.form {
        Form::Pipe => file.append(&export::without_description(records)),
        Form::Directory => file.append(&export::without_rounds(records)),
        Form::File => file.append(records),
    };
    let written = reading.answer(ChainedRecords { put: &mut put })?;
    let mut features = features_of_file(recording, &events);
    if written.samples > 0 || features.unwound().is_some() {
        features.set_unwound(&written.unwound);
    }
    drop(file.finish(&features)?);
    Ok(written)
}

/// Adds the names of its frames to a recording that has room for them. An error leaves it as it was. Gives the size
/// of the names.
pub(crate) fn add_names(
    recording: &Recording,
    options: ReadOptions,
    extent: Extent,
    file: &File,
) -> Result<u64> {
    let options = options.with_notes();
    let reading = Reading::open(recording, &options);
    if switches::may_show(recording) {
        let switches = SwitchOptions { locks: true, ..SwitchOptions::default() };
        reading.answer(SamplesAndSwitches { samples: Samples::default(), switches })?;
    }
    let lines = match extent {
        Extent::Hot => Vec::new(),
        Extent::All => ask_for_code(reading)?,
    };
    let names = pack(&reading.answer(NotedNames { lines: &lines })?)?;
    fill(file, &names)?;
    Ok(names.len() as u64)
}

/// Takes functions apart as `whit annotate` and pages do, so that the answers about their code are noted. Gives the
/// texts of their source lines.
fn ask_for_code(reading: Reading<'_>) -> Result<Vec<(SourceLine, String)>> {
    let samples = Samples { leaves: true, ..Samples::default() };
    let (profile, finder) = reading.answer(WithCode(samples))?;
    let weights = Weights::new(&profile);
    let wanted = Wanted { dsos: Vec::new(), event: None };
    let options = AnnotateOptions { source: true, inline: true, ..AnnotateOptions::default() };
    let (mut sources, mut lines) = (Sources::new(Place::default()), BTreeMap::new());
    let mut line_text = |line: &SourceLine| {
        let text = finder.own_line(line).or_else(|| sources.text(line));
        if let Some(text) = &text {
            lines.insert(line.clone(), text.clone());
        }
        text
    };
    for chosen in weights.hottest(MAX_FUNCTIONS, 0.0, &wanted, &finder) {
        let dso = chosen.dso;
        let functions = [annotate(chosen, &finder, Syntax::default())];
        let annotated = Annotated { profile: &profile, weights: &weights, functions: &functions };
        write_json(&mut io::sink(), &annotated, &options, &mut line_text)?;
        finder.release(dso);
    }
    let _ = HotCode::new(&profile, &finder, &mut line_text);
    Ok(lines.into_iter().collect())
}

/// Adds names to a finished recording of this machine. Stack dumps become call chains; else its records stay as they
/// are. An error leaves it as it was.
pub(crate) fn embed(path: &Path, options: ReadOptions, extent: Extent) -> Result<u64> {
    let recording = Recording::open(path)?;
    if !has_dumps(&recording) {
        let data = match recording.form {
            Form::Directory => path.join("data"),
            Form::File | Form::Pipe => path.to_owned(),
        };
        let file = File::options().read(true).write(true).open(data)?;
        return add_names(&recording, options, extent, &file);
    }
    if recording.form == Form::Directory {
        bail_usage!("the recording is a directory: `whit export --archive` writes it as one file");
    }
    replace(path, |new| {
        let written = write_with_names(&recording, &options, extent, new, &|_, _| ())?;
        new.set_permissions(std::fs::metadata(path)?.permissions())?;
        new.sync_data()?;
        Ok(written.names_bytes)
    })
}

/// Puts a new file in the place of one when it is whole. A process that is killed before leaves nothing, where the file
/// system has files without a name.
fn replace<T>(path: &Path, fill: impl FnOnce(&mut File) -> Result<T>) -> Result<T> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let Ok(mut new) = UnnamedFile::create_in(folder) else {
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        let filled = fill(new.as_file_mut())?;
        new.persist(path).context(UNNAMED)?;
        return Ok(filled);
    };
    let filled = fill(new.file())?;
    let builder = tempfile::Builder::new();
    let named = builder.make_in(folder, |name| Ok(new.link(name)?)).context(UNNAMED)?;
    named.persist(path).context(UNNAMED)?;
    Ok(filled)
}
