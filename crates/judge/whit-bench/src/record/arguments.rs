//! Values of options.

use std::time::Duration;

use whit_types::ByteSize;

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.001..=3600.0).contains(seconds));
    let seconds = seconds.ok_or("a number of seconds from 0.001 to 3600")?;
    Ok(Duration::from_secs_f64(seconds))
}

pub(super) fn frequency(text: &str) -> Result<String, String> {
    let is_rate = text.parse::<u32>().is_ok_and(|rate| rate > 0);
    (is_rate || text == "max")
        .then(|| text.to_owned())
        .ok_or_else(|| "a number of Hz, or 'max'".into())
}

/// As both recorders take it.
pub(super) fn ring_size(text: &str) -> Result<String, String> {
    let size = text.parse().map(|ByteSize(bytes)| bytes);
    let is_size = size.is_ok_and(u64::is_power_of_two) && text.ends_with(['K', 'M', 'G']);
    is_size.then(|| text.to_owned()).ok_or_else(|| "a power of two with K, M or G, as 512K".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked_before_anything_runs() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert!(seconds("0").is_err() && seconds("NaN").is_err() && seconds("x").is_err());
        assert_eq!((frequency("max"), frequency("99")), (Ok("max".into()), Ok("99".into())));
        assert!(frequency("0").is_err() && frequency("fast").is_err());
        assert_eq!(ring_size("512K"), Ok("512K".into()));
        assert!(ring_size("500K").is_err() && ring_size("128").is_err() && ring_size("").is_err());
    }
}
