//! Free space, asked before gigabytes are written.

use std::path::Path;

use crate::Error;
use whit_types::ByteSize;

/// Left free beside the files of a benchmark.
pub const RESERVE_BYTES: u64 = 256 << 20;

/// Bytes that this user may still write below `directory`.
pub fn available(directory: &Path) -> Result<ByteSize, Error> {
    let stat = rustix::fs::statvfs(directory)
        .map_err(|errno| Error::file("ask for the free space of", directory)(errno.into()))?;
    Ok(ByteSize(stat.f_bavail.saturating_mul(stat.f_frsize)))
}

/// Fails where `needed` bytes and a reserve would not fit; `way_out` says which options help.
pub fn require(directory: &Path, needed: ByteSize, way_out: &'static str) -> Result<(), Error> {
    let available = available(directory)?;
    if available.0 < needed.0.saturating_add(RESERVE_BYTES) {
        let path = directory.to_owned();
        return Err(Error::DiskSpace { path, available, needed, way_out });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_little_fits_and_too_much_does_not() {
        let directory = std::env::temp_dir();
        assert!(available(&directory).unwrap().0 > 0);
        let error = require(&directory, ByteSize(u64::MAX), "use --less").unwrap_err();
        assert!(error.to_string().contains("use --less"), "{error}");
        require(&directory, ByteSize(0), "use --less").unwrap();
        assert!(available(Path::new("/nonexistent")).is_err());
    }
}
