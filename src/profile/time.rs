//! Times of profiles as the store keeps them: microseconds since 1970, in days by UTC.

/// Microseconds of an hour.
pub const HOUR_US: i64 = 3_600_000_000;
/// Microseconds of a day.
pub const DAY_US: i64 = 24 * HOUR_US;

/// Days since 1970 of a time in microseconds.
pub fn day_of(time_us: i64) -> i32 {
    time_us
        .div_euclid(DAY_US)
        .clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
}

/// The days that a span of microseconds (end not included) touches, first and last.
pub fn days_of((start, end): (i64, i64)) -> (i32, i32) {
    (day_of(start), day_of(end.saturating_sub(1)))
}
