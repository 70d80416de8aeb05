//! Reads mangled names from standard input and prints the readable form of each, one a line.

use std::io::{self, BufRead, BufWriter, Write};

use whit_symbolize::demangle;

fn main() -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for name in io::stdin().lock().split(b'\n') {
        writeln!(out, "{}", demangle(&name?))?;
    }
    out.flush()
}
