//! Writes a page from a made-up profile, for the page's tests and for work on the page:
//! `cargo run -p whit-page --example sample_page -- KIND FILE`.
//!
//! Kinds: `server` (a key-value server beside a JIT-compiled process), `hostile` (names that try
//! to break out of the page), `waits` (with context switches), `hostile-waits`.
//! Recordings make `requests`, `compare` (two of them), and `compare-shop` (the samples of one of their commands).
//! By size: `large` (more call tree nodes than a page embeds), `bench` (10^6 samples of 64 CPUs), `samples` (10^7
//! samples), `threads` (5,000 threads that wait), `nameless` (no symbols), `one` (a single sample) and `empty`.

mod bench;
mod builder;
mod code;
mod compare;
mod extreme;
mod requests;
mod server;
mod small;
mod waits;

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};

use whit_page::{Content, HtmlOptions, write_content};
use whit_profile::model::Profile;
use whit_profile::switches::Switches;
use whit_view::hists::Filters;

fn profile(kind: &str) -> Option<(Profile, Option<Switches>)> {
    let profile = match kind {
        "server" => server::profile(),
        "hostile" => small::hostile(),
        "large" => small::large(),
        "bench" => bench::profile(),
        "one" => small::one(),
        "empty" => small::empty(),
        "samples" => extreme::samples(),
        "nameless" => extreme::nameless(),
        "waits" => return Some(with_switches(waits::profile())),
        "hostile-waits" => return Some(with_switches(extreme::hostile_waits())),
        "threads" => return Some(with_switches(extreme::threads())),
        _ => return None,
    };
    Some((profile, None))
}

fn with_switches((profile, switches): (Profile, Switches)) -> (Profile, Option<Switches>) {
    (profile, Some(switches))
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, path] = &arguments[..] else {
        return Err("usage: sample_page KIND FILE; the head of its source lists the kinds".into());
    };
    if let "compare" | "compare-shop" = kind.as_str() {
        let comms = if kind == "compare" { vec![] } else { vec!["shop".to_owned()] };
        let filters = Filters { comms, ..Filters::default() };
        let (diff, sides) = compare::sides(&filters)?;
        let (comparison, profile) = compare::page(&diff, sides, &filters)?;
        let measures = compare::measures()?;
        let comparison = comparison.with_measures(&measures);
        let content = Content { comparison: Some(&comparison), ..Content::default() };
        let mut out = BufWriter::new(File::create(path)?);
        let options =
            HtmlOptions { title: "before.data → after.data".into(), ..HtmlOptions::default() };
        let summary = write_content(&profile, &content, &options, &mut out)?;
        println!("{path}: {summary:?}");
        return Ok(out.flush()?);
    }
    let (profile, switches, requests) = match kind.as_str() {
        "requests" => {
            let (profile, switches, requests) = requests::recorded()?;
            (profile, Some(switches), Some(requests))
        }
        _ => {
            let (profile, switches) =
                profile(kind).ok_or_else(|| format!("no sample page of kind '{kind}'"))?;
            (profile, switches, (kind == "hostile-waits").then(requests::hostile))
        }
    };
    let mut out = BufWriter::new(File::create(path)?);
    let summary = {
        let options = HtmlOptions { begins_with_switches: true, ..HtmlOptions::default() };
        let name = match kind.as_str() {
            // Debug information may have names without their namespaces.
            "server" => Some("FastHash::operator()(std::string_view) const".to_owned()),
            "hostile" => Some(small::long_hostile_name()),
            _ => None,
        };
        let code = name.map(|name| code::of(&profile, &name));
        let content = Content {
            switches: switches.as_ref(),
            code: code.as_ref(),
            requests: requests.as_ref(),
            ..Content::default()
        };
        write_content(&profile, &content, &options, &mut out)?
    };
    out.flush()?;
    println!("{path}: {summary:?}");
    Ok(())
}
