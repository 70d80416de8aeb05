//! Writes the last while of a recorder's stream: `whit record -a -o - | last_second 10 > last.data`.

use std::io::{Read, Write, stdin, stdout};
use std::time::Instant;
use whit_live::{Bounds, Window};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds: u64 = std::env::args().nth(1).as_deref().unwrap_or("1").parse()?;
    let bounds = Bounds { keep_ns: seconds * 1_000_000_000, bytes_max: 64 << 20 };
    let (mut window, begin) = (Window::new(bounds), Instant::now());
    let mut bytes = vec![0; 1 << 16];
    loop {
        let read = stdin().read(&mut bytes)?;
        if read == 0 {
            break;
        }
        window.push(&bytes[..read], begin.elapsed().as_nanos() as u64)?;
    }
    let mut out = stdout().lock();
    window.write_to(&mut out)?;
    Ok(out.flush()?)
}
