//! Writes a page from a made-up profile, for the page's tests and for work on the page:
//! `cargo run -p whit-view --example sample_page -- KIND FILE`.
//!
//! Kinds: `server` (a key-value server beside a JIT-compiled process), `hostile` (names that try
//! to break out of the page), `large` (more call tree nodes than a page embeds), `one` (a single
//! sample), `empty`.

mod builder;
mod server;
mod small;

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};

use whit_profile::model::Profile;
use whit_view::html::{HtmlOptions, write_html};

fn profile(kind: &str) -> Option<Profile> {
    Some(match kind {
        "server" => server::profile(),
        "hostile" => small::hostile(),
        "large" => small::large(),
        "one" => small::one(),
        "empty" => small::empty(),
        _ => return None,
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, path] = arguments.as_slice() else {
        return Err("usage: sample_page server|hostile|large|one|empty FILE".into());
    };
    let profile = profile(kind).ok_or_else(|| format!("no sample page of kind '{kind}'"))?;
    let mut out = BufWriter::new(File::create(path)?);
    let summary = write_html(&profile, &HtmlOptions::default(), &mut out)?;
    out.flush()?;
    println!("{path}: {summary:?}");
    Ok(())
}
