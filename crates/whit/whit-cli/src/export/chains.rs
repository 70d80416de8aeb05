//! `whit export --chains`: the recording with call chains in the place of stack dumps.

use super::ExportArgs;
use super::destination::folder_of;
use super::perf::{
    DATA, buffered, part_name, say_written, whole_directory, whole_file, with_advice,
};
use crate::message;
use crate::progress::during;
use anyhow::Result;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use whit_perfdata::chained::chained_events;
use whit_perfdata::export;
use whit_perfdata::reader::{Form, Recording};
use whit_perfdata::writer::FileWriter;
use whit_profile::{Chained, ChainedRecords, Reading};
use whit_view::warning::warning_text;

/// Bytes of a stream that are written at once.
const WRITE_BYTES: usize = 1 << 20;

/// Writes the recording.
pub(super) fn run(args: &ExportArgs, recording: &Recording, output: &Path) -> Result<u8> {
    let options = args.load.symbols.options(recording)?;
    let parent = folder_of(output);
    let written = during("writing", false, |update| {
        let reading = Reading::open(recording, &options).with_progress(update);
        match recording.form {
            Form::Directory => whole_directory(output, parent, |folder| {
                let mut parts = Parts::create(folder, recording.streams.len())?;
                write(reading, &mut File::create(folder.join(DATA))?, &mut parts)
            }),
            Form::File | Form::Pipe => {
                whole_file(output, parent, |data| write(reading, data, &mut Parts::default()))
            }
        }
    });
    let written = written.map_err(|error| with_advice(output, error))?;
    keep_time(recording, output);
    written.warnings.iter().map(warning_text).for_each(message::error);
    if written.samples == 0 {
        message::note(
            "no stack was dumped: the call chains are those of the recorder, as --perf writes them",
        );
    }
    say_written(written.records, written.bytes, output)
}

/// Reports say when the original was written. Without that, they say the time of the export.
pub(super) fn keep_time(recording: &Recording, output: &Path) {
    if let Ok(modified) = recording.path.metadata().and_then(|original| original.modified()) {
        let _ = File::open(output).and_then(|new| new.set_modified(modified));
    }
}

fn write(reading: Reading<'_>, data: &mut File, parts: &mut Parts) -> Result<Chained> {
    let recording = reading.recording();
    let events = chained_events(&recording.events);
    let mut file = FileWriter::create(buffered(data), &events)?;
    let is_pipe = recording.form == Form::Pipe;
    let mut put = |stream, records: &[u8]| match stream {
        0 if is_pipe => file.append(&export::without_description(records)),
        0 => file.append(records),
        _ => parts.append(stream, records),
    };
    let written = reading.answer(ChainedRecords { put: &mut put })?;
    let mut features = export::features(recording, &events);
    if written.samples > 0 || features.unwound().is_some() {
        features.set_unwound(&written.unwound);
    }
    drop(file.finish(&features)?);
    parts.finish()?;
    Ok(written)
}

/// The further streams of a directory, which are written one behind the other.
#[derive(Default)]
struct Parts {
    folder: PathBuf,
    open: Option<(usize, BufWriter<File>)>,
}

impl Parts {
    /// Empty files: a stream without records has one, too.
    fn create(folder: &Path, streams: usize) -> io::Result<Parts> {
        for stream in 1..streams {
            File::create(folder.join(part_name(stream)))?;
        }
        Ok(Parts { folder: folder.to_owned(), open: None })
    }

    fn append(&mut self, stream: usize, records: &[u8]) -> io::Result<()> {
        if let Some((open, file)) = &mut self.open
            && *open == stream
        {
            return file.write_all(records);
        }
        self.finish()?;
        let file = File::create(self.folder.join(part_name(stream)))?;
        let (_, file) = self.open.insert((stream, BufWriter::with_capacity(WRITE_BYTES, file)));
        file.write_all(records)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.open.take().map_or(Ok(()), |(_, mut file)| file.flush())
    }
}
