//! Sizes of tables, and the time to make them:
//! `cargo run --release -p whit-bpf-engine --example table_cost -- FILE…`

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use whit_bpf_engine::unwind_tables::TableStore;
use whit_elf::ElfImage;
use whit_unwind::table::{RULE_BITS, wire};

fn main() {
    println!(
        "file                          text MB  eh_frame MB   rows  rules  table MB  build ms  decode ms  unsupported rows"
    );
    for path in std::env::args().skip(1) {
        let path = Path::new(&path);
        let image = match ElfImage::open(path) {
            Ok(image) => image,
            Err(reason) => {
                println!("{}: {reason}", path.display());
                continue;
            }
        };
        let start = Instant::now();
        let (table, _) = match TableStore::default().table(&image, None) {
            Ok(found) => found,
            Err(why) => {
                println!("{}: {why}", path.display());
                continue;
            }
        };
        let build_ms = start.elapsed().as_secs_f64() * 1e3;
        let bytes = wire::encode(&table);
        let start = Instant::now();
        assert_eq!(wire::decode(&bytes).map(|table| table.rows().len()), Ok(table.rows().len()));
        let decode_ms = start.elapsed().as_secs_f64() * 1e3;
        let mut bases = BTreeMap::new();
        for row in table.rows() {
            let rule = table.rules()[(row & ((1 << RULE_BITS) - 1)) as usize];
            if let whit_unwind::table::Base::Unsupported(what) = rule.base {
                *bases.entry(format!("{what:?}")).or_insert(0) += 1;
            }
        }
        let text: u64 =
            image.segments().iter().filter(|s| s.executable).map(|s| s.memory_size_bytes).sum();
        let eh_frame = image.section_contents(".eh_frame").map_or(0, |bytes| bytes.len());
        println!(
            "{:<28} {:>8.1} {:>11.1} {:>7} {:>6} {:>9.1} {:>9.0} {:>9.0}  {bases:?}",
            path.file_name().unwrap_or_default().display().to_string(),
            text as f64 / 1e6,
            eh_frame as f64 / 1e6,
            table.rows().len(),
            table.rules().len(),
            table.size_bytes() as f64 / 1e6,
            build_ms,
            decode_ms,
        );
    }
}
