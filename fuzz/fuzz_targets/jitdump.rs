//! jitdump files of any bytes.
#![no_main]

use std::path::Path;

use whit_fuzz::fuzz_target;
use whit_symbolize::JitDump;
use whit_types::{Avma, FileOffset, TimestampNs};
use whit_unwind::Bytes;

fuzz_target!(|data| {
    let Ok(dump) = JitDump::from_bytes(Path::new("fuzz.dump"), Bytes::from(data.to_vec())) else {
        return;
    };
    for word in data.windows(8).step_by(8) {
        let word = u64::from_le_bytes(word.try_into().expect("8 bytes"));
        for time in [TimestampNs(0), TimestampNs(word), TimestampNs(u64::MAX)] {
            if let Ok(offset) = dump.locate(Avma(word), Some(time)) {
                let _ = dump.resolve(offset);
            }
        }
        let _ = dump.resolve(FileOffset(word));
    }
});
