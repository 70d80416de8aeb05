//! Days of the calendar.

/// Year, month (0 to 11) and day of month (1 to 31) of a day since 1970-01-01, in the Gregorian
/// calendar: cycles of 400 years have 146097 days; years are counted from March so that the leap
/// day comes last.
pub fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_TO_1970_FROM_MARCH_0: u64 = 719_468;
    const CYCLE_DAYS: u64 = 146_097;
    let days = days + DAYS_TO_1970_FROM_MARCH_0;
    let (cycle, in_cycle) = (days / CYCLE_DAYS, days % CYCLE_DAYS);
    let year = (in_cycle - in_cycle / 1460 + in_cycle / 36_524 - in_cycle / 146_096) / 365;
    let in_year = in_cycle - (365 * year + year / 4 - year / 100);
    let from_march = (5 * in_year + 2) / 153;
    let day = in_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12;
    (cycle * 400 + year + u64::from(month < 2), month, day)
}
