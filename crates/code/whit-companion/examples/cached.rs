//! Lists what debuginfod's clients have cached of a build id.
//!
//! `cargo run -p whit-companion --example cached -- BUILDID`

use whit_companion::{Cache, DEBUG_SECTIONS, Request, SYMBOL_SECTIONS};

fn main() {
    let id = std::env::args().nth(1).unwrap_or_else(|| "abcd".to_owned());
    let Some(request) = Request::parse(&format!("{id} whole")) else {
        eprintln!("{id} is no build id: eu-readelf -n FILE shows that of a file");
        std::process::exit(2);
    };
    let Some(cache) = Cache::standard(&|name| std::env::var_os(name)) else {
        eprintln!("there is no place for a cache: set HOME or DEBUGINFOD_CACHE_PATH");
        std::process::exit(1);
    };
    let sections = SYMBOL_SECTIONS.iter().chain(&DEBUG_SECTIONS);
    let sections = sections.map(|name| cache.section(request.id, name));
    for file in std::iter::once(cache.whole(request.id)).chain(sections) {
        if let Ok(metadata) = file.metadata() {
            println!("{:>12} {}", metadata.len(), file.display());
        }
    }
}
