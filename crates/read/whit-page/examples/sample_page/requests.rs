//! Requests: those of a recording, and hostile ones.

use std::error::Error;
use std::path::Path;

use whit_page::{
    CallRow, MAX_PATHS, PathData, PathPiece, PathRow, RequestTable, RequestTables, TailRow,
};
use whit_perfdata::reader::Recording;
use whit_profile::model::Profile;
use whit_profile::switches::{SamplesAndSwitches, SwitchOptions, Switches};
use whit_profile::{ReadOptions, Reading, Samples, SinglesWanted};
use whit_symbolize::{DebugDirs, SymbolizerConfig};
use whit_types::TimestampNs;
use whit_why::{AllRequests, SlowestOfEach};

use crate::small::HOSTILE;

/// The recording that the tests of requests share.
const RECORDING: &str = "../../../tests/recordings/requests/requests.data";

/// Its samples, waits and requests.
pub(crate) fn recorded() -> Result<(Profile, Switches, RequestTables), Box<dyn Error>> {
    let recording = Recording::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join(RECORDING))?;
    let options = ReadOptions::new(1, SymbolizerConfig::new(DebugDirs::none()));
    let reading = Reading::open(&recording, &options);
    let samples = Samples { singles: Some(SinglesWanted::Few), ..Samples::default() };
    let switches = SwitchOptions { max_spans: whit_page::MAX_SPANS, ..SwitchOptions::default() };
    let (profile, switches) = reading.answer(SamplesAndSwitches { samples, switches })?;
    let requests = reading.answer(AllRequests::default())?;
    let paths = Ok(reading.answer(SlowestOfEach(MAX_PATHS))?);
    Ok((profile, switches, RequestTables::new(&requests, &paths)))
}

/// Every text of them is hostile.
pub(crate) fn hostile() -> RequestTables {
    let mut names = HOSTILE.iter().map(|name| (*name).to_owned()).cycle();
    let mut name = || names.next().unwrap_or_default();
    let piece = PathPiece {
        duration_ns: 500,
        kind: "lock",
        text: name(),
        explains: Some(name()),
        ..PathPiece::default()
    };
    let row = PathRow { duration_ns: 500, pieces: 1, what: name(), explains: Some(name()) };
    let path = PathData {
        lanes: vec![(1, Some(1), name())],
        pieces: vec![piece],
        pieces_count: 1,
        rows: vec![row],
        rows_left_out: 0,
    };
    let call = CallRow {
        from: TimestampNs(1_000),
        duration_ns: 500,
        thread: (1, Some(1)),
        thread_name: name(),
        key: Some(name()),
        split: [100, 0, 0, 400, 0],
        path: Some(path),
    };
    let table = RequestTable {
        name: name(),
        durations_ns: vec![500],
        remarks: vec![name()],
        quantiles: vec![("max", 500, call.split)],
        tail_calls: (1, 0),
        tail: vec![TailRow { what: name(), slow_ns: 400.0, ..TailRow::default() }],
        calls: vec![call],
    };
    RequestTables { names: vec![table], no_paths: Some(name()) }
}
