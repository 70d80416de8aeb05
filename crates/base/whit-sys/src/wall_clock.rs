//! The time of day in the local time zone, for names of files and for headings.

use std::mem::MaybeUninit;
use std::time::{Duration, SystemTime};

const NS_PER_HUNDREDTH: u32 = 10_000_000;

/// A moment as `YYYYMMDDhhmmsscc` in local time, `cc` being hundredths of a second: how `perf record`
/// marks the files that it switches between. Before 1970 and after the year 9999 it is that of 1970.
pub fn stamp(moment: SystemTime) -> String {
    let since = moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let seconds = libc::time_t::try_from(since.as_secs()).unwrap_or(0);
    let tm = local(seconds).filter(|tm| tm.tm_year < 8100).unwrap_or_else(epoch);
    format!(
        "{:04}{:02}{:02}{:02}{:02}{:02}{:02}",
        tm.tm_year + 1900,
        tm.tm_mon + 1,
        tm.tm_mday,
        tm.tm_hour,
        tm.tm_min,
        tm.tm_sec,
        since.subsec_nanos() / NS_PER_HUNDREDTH
    )
}

/// A moment as `ctime(3)` writes it, without the end of the line: `Sun Nov 22 02:29:14 2026`, in
/// local time.
pub fn ctime(moment: SystemTime) -> String {
    const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let since = moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let seconds = libc::time_t::try_from(since.as_secs()).unwrap_or(0);
    let tm = local(seconds).unwrap_or_else(epoch);
    let name = |names: &[&'static str], index: i32| {
        usize::try_from(index).ok().and_then(|index| names.get(index).copied()).unwrap_or("???")
    };
    format!(
        "{} {} {:2} {:02}:{:02}:{:02} {}",
        name(&DAYS, tm.tm_wday),
        name(&MONTHS, tm.tm_mon),
        tm.tm_mday,
        tm.tm_hour,
        tm.tm_min,
        tm.tm_sec,
        i64::from(tm.tm_year) + 1900
    )
}

fn local(seconds: libc::time_t) -> Option<libc::tm> {
    let mut tm = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both point to live values of the right type.
    let result = unsafe { libc::localtime_r(&seconds, tm.as_mut_ptr()) };
    if result.is_null() {
        return None;
    }
    // SAFETY: all-zero is a valid tm, and the call has filled it.
    Some(unsafe { tm.assume_init() })
}

fn epoch() -> libc::tm {
    // SAFETY: all-zero is a valid tm.
    let mut tm: libc::tm = unsafe { MaybeUninit::zeroed().assume_init() };
    (tm.tm_year, tm.tm_mday) = (70, 1);
    tm
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_have_sixteen_digits_and_grow_with_time() {
        let at = |ms| stamp(SystemTime::UNIX_EPOCH + Duration::from_millis(ms));
        assert_eq!(at(1_700_000_000_120).len(), 16);
        assert!(at(1_700_000_000_120).ends_with("12"));
        assert!(at(1_700_000_000_000) < at(1_700_000_000_010));
        assert!(at(1_700_000_000_990) < at(1_700_000_001_000));
        let far = stamp(SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 50));
        assert!(far.starts_with("19700101"), "{far}");
    }

    #[test]
    fn headings_have_the_form_of_ctime() {
        // The eleventh day at noon in London is the eleventh everywhere but on some islands.
        let text = ctime(SystemTime::UNIX_EPOCH + Duration::from_secs(10 * 86400 + 43200));
        assert_eq!(text.len(), "Sun Jan 11 12:00:00 1970".len(), "{text}");
        assert!(text.contains(" Jan 1") && text.ends_with(":00:00 1970") || text.contains(":30:"));
    }
}
