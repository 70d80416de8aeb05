//! Serves the page of a made-up profile until a line or the end of standard input: `cargo run -p whit-serve --example
//! serve_page [hostile]`. It has 100 samples, 100 µs apart, and a last one after 100 s, so that buckets of the page hold several.

use std::error::Error;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;
use whit_annotate::Code;
use whit_page::{Content, HtmlOptions, write_served};
use whit_profile::model::{
    CommId, DsoId, EventId, EventInfo, FacetsId, NodeId, Profile, SampleRow, SingleSample, Singles,
    ThreadId, ThreadInfo,
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
    let times: Vec<u64> = (0..100).map(|at| at * 100_000).chain([100_000_000_000]).collect();
    profile.rows.push(SampleRow {
        event: EventId(0),
        thread: ThreadId(0),
        comm: CommId(0),
        facets: FacetsId(0),
        node: NodeId::NONE,
        samples: times.len() as u64,
        period: 10 * times.len() as u64,
    });
    let single = |time| SingleSample { time: TimestampNs(time), row: 0, cpu: None, period: 10 };
    let samples = times.into_iter().map(single).collect();
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
        ranges: Box::new(move |range| ranges.columns(range)),
        firefox: None,
        symbols: Symbols::new(Box::new(|| Ok((Vec::new(), NoBinaries)))),
    };
    let server = Server::bind(([127, 0, 0, 1], 0).into(), Token::random()?, Bounds::default())?;
    println!("{}/", server.url());
    io::stdout().flush()?;
    Ok(server.run(&site, io::stdin())?)
}
