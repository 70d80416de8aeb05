//! Serves the page of a made-up profile until a line or the end of standard input: `cargo run -p whit-serve --example
//! serve_page [hostile]`. It has 100 samples, 100 µs apart, of two functions in turn, and a last one after 1,600 s, so that buckets of the page hold several.

use std::error::Error;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;
use whit_annotate::Code;
use whit_page::{Content, HtmlOptions, write_served};
use whit_profile::model::{
    CallNode, CommId, DsoId, DsoInfo, DsoKind, EventId, EventInfo, FacetsId, Frame, FrameId,
    FunctionId, FunctionInfo, NodeId, Profile, SampleRow, SingleSample, Singles, ThreadId,
    ThreadInfo,
};
use whit_profile::{CodeBytes, NoCode, SourceOf};
use whit_serve::{Binaries, Bounds, Server, Site, Symbols, Token};
use whit_types::{Pid, Svma, Tid, TimestampNs};

/// No code at all.
struct NoBinaries;

impl Code for NoBinaries {
    fn function_at(&self, _: DsoId, _: Svma) -> Option<Range<Svma>> {
        None
    }

    fn name_at(&self, _: DsoId, _: Svma) -> Option<(Arc<str>, u64)> {
        None
    }

    fn bytes(&self, _: DsoId, _: Range<Svma>) -> Result<CodeBytes, NoCode> {
        Err(NoCode::NotInFile)
    }

    fn source_of(&self, _: DsoId, _: Svma) -> SourceOf {
        SourceOf::default()
    }
}

impl Binaries for NoBinaries {
    fn base(&self, _: DsoId) -> Option<Svma> {
        None
    }

    fn release(&self, _: DsoId) {}
}

/// Tries to end the data block, to run a handler and to turn the direction of text.
const HOSTILE: &str = "</script><img src=x onerror=\"window.pwned = 1\">\u{202e}\u{1b}[2J";

fn profile(is_hostile: bool) -> Profile {
    let mut profile = Profile::default();
    let comm = if is_hostile { HOSTILE } else { "worker" };
    profile.events.push(EventInfo { name: "cycles".into(), ..EventInfo::default() });
    profile.comms.push(comm.into());
    profile.recording.path = comm.into();
    profile.threads.push(ThreadInfo { pid: Pid(1), tid: Tid(1), comm: CommId(0) });
    let times: Vec<u64> = (0..100).map(|at| at * 100_000).chain([1_600_000_000_000]).collect();
    let dso = DsoId(0);
    let binary = DsoInfo {
        path: "server".into(),
        short_name: "server".into(),
        build_id: None,
        kind: DsoKind::Elf,
    };
    profile.dsos.push(binary);
    for (index, name) in ["even", "odd"].into_iter().enumerate() {
        let id = index as u32;
        profile.functions.push(FunctionInfo { name: name.into(), dso, known: true });
        profile.frames.push(Frame {
            function: FunctionId(id),
            address: Svma(0),
            source: None,
            inlined: false,
            kernel: false,
        });
        profile.nodes.push(CallNode { parent: NodeId::NONE, frame: FrameId(id) });
        let samples = (times.len() + 1 - index) as u64 / 2;
        profile.rows.push(SampleRow {
            event: EventId(0),
            thread: ThreadId(0),
            comm: CommId(0),
            facets: FacetsId(0),
            node: NodeId(id),
            samples,
            period: 10 * samples,
        });
    }
    let single = |(at, time)| SingleSample {
        time: TimestampNs(time),
        row: at as u32 % 2,
        cpu: None,
        period: 10,
    };
    let samples = times.into_iter().enumerate().map(single).collect();
    profile.singles = Some(Singles { samples, ..Singles::default() });
    profile
}

fn main() -> Result<(), Box<dyn Error>> {
    let is_hostile = std::env::args().nth(1).as_deref() == Some("hostile");
    let mut page = Vec::new();
    let (_, ranges) = write_served(
        &profile(is_hostile),
        &Content::default(),
        &HtmlOptions::default(),
        &mut page,
    )?;
    let site = Site {
        page: page.into(),
        ranges: Box::new(|range| ranges.columns(range)),
        lanes: Box::new(|range, thread| ranges.lane(range, thread)),
        firefox: None,
        symbols: Symbols::new(Box::new(|| Ok((Vec::new(), NoBinaries)))),
    };
    let server = Server::bind(([127, 0, 0, 1], 0).into(), Token::random()?, Bounds::default())?;
    println!("{}/", server.url());
    io::stdout().flush()?;
    Ok(server.run(&site, io::stdin())?)
}
