//! Times in the store's form: microseconds since 1970, and days in UTC.

/// Number of microseconds of an hour.
pub const HOUR_US: i64 = 3_600_000_000;
/// Number of microseconds of a day, which has 24 hours in UTC.
pub const DAY_US: i64 = 24 * HOUR_US;

/// Converts a time in microseconds to days since 1970.
pub fn day_of(time_us: i64) -> i32 {
    time_us
        .div_euclid(DAY_US)
        .clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
}

/// A time span in microseconds since 1970, including its start but not its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeSpan {
    /// First microsecond of the span.
    pub start: i64,
    /// First microsecond after the span.
    pub end: i64,
}

impl TimeSpan {
    /// All times except the last microsecond that fits in 64 bits, because the end is excluded.
    pub const ALL: Self = Self::new(i64::MIN, i64::MAX);

    /// Creates the span from `start` up to but not including `end`.
    pub const fn new(start: i64, end: i64) -> Self {
        Self { start, end }
    }

    /// Returns the span of a day, given in days since 1970.
    pub fn of_day(day: i32) -> Self {
        let start = i64::from(day).saturating_mul(DAY_US);
        Self::new(start, start.saturating_add(DAY_US))
    }

    /// Returns true if the span contains no time.
    pub fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// Returns true if the span contains a time.
    pub fn contains(self, time: i64) -> bool {
        self.start <= time && time < self.end
    }

    /// Returns true if the span contains any time from `first` to `last`, both inclusive.
    pub fn touches(self, first: i64, last: i64) -> bool {
        self.start <= last && first < self.end
    }

    /// Returns the first and the last day that overlap the span.
    pub fn days(self) -> std::ops::RangeInclusive<i32> {
        day_of(self.start)..=day_of(self.end.saturating_sub(1))
    }
}
