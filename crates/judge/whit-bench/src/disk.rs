//! Free space, asked before gigabytes are written.

use std::path::Path;
use std::time::Duration;

use anyhow::bail;

use crate::error::{self, Error};
use whit_types::ByteSize;

/// Left free beside the files of a benchmark.
pub(crate) const RESERVE_BYTES: u64 = 256 << 20;
/// More than any recorder writes to a disk or the page cache on one machine.
const WRITE_RATE_MAX_BYTES_PER_S: u64 = 1 << 30;

/// Bytes that this user may still write below `directory`.
pub(crate) fn available(directory: &Path) -> Result<ByteSize, Error> {
    let stat = rustix::fs::statvfs(directory)
        .map_err(|errno| error::file("ask for the free space of", directory)(errno.into()))?;
    Ok(ByteSize(stat.f_bavail.saturating_mul(stat.f_frsize)))
}

/// Fails where `needed` bytes and a reserve would not fit; `way_out` says which options help.
pub(crate) fn require(
    directory: &Path,
    needed: ByteSize,
    way_out: &'static str,
) -> Result<(), Error> {
    let available = available(directory)?;
    if available.0 < needed.0.saturating_add(RESERVE_BYTES) {
        let path = directory.display();
        bail!(
            "{path} has {available} free and the benchmark needs {needed}: free some space, {way_out}"
        );
    }
    Ok(())
}

/// An estimate from above of a recording that takes `duration`.
///
/// `rate_bytes_per_s` bounds the bytes of each second, where the recorder's options do.
pub(crate) fn recorded_at_most(duration: Duration, rate_bytes_per_s: Option<u64>) -> ByteSize {
    let rate = rate_bytes_per_s.unwrap_or(u64::MAX).min(WRITE_RATE_MAX_BYTES_PER_S);
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    ByteSize(rate.saturating_mul(millis) / 1000)
}

/// A reason to end a run before it fills the disk.
pub(crate) fn full(directory: &Path) -> Option<String> {
    let available = available(directory).ok()?;
    let reserve = ByteSize(RESERVE_BYTES);
    (available < reserve).then(|| {
        format!(
            "{} has less than {reserve} left: use another --dir, a lower --frequency or a shorter run",
            directory.display()
        )
    })
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

    #[test]
    fn a_recording_is_bounded_by_its_rate_and_by_the_machine() {
        let second = Duration::from_secs(1);
        assert_eq!(recorded_at_most(second, Some(1000)), ByteSize(1000));
        assert_eq!(recorded_at_most(second, None), ByteSize(1 << 30));
        assert_eq!(recorded_at_most(second, Some(u64::MAX)), ByteSize(1 << 30));
        assert!(recorded_at_most(Duration::from_millis(1), None) < ByteSize(2 << 20));
        assert!(recorded_at_most(Duration::MAX, None) > ByteSize(1 << 50));
    }
}
