//! Statistics about the rows of a file, available without opening it.

use alluvium_profile::{ProfileTypeId, SeriesId, StackId};

/// Smallest and largest value of a column of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bounds<T> {
    /// Smallest value of the column.
    pub min: T,
    /// Largest value of the column.
    pub max: T,
}

/// Row count of a file, and bounds of the columns by which readers can skip it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FileStats {
    /// Number of rows of the file.
    pub rows: u64,
    /// Bounds of the times in microseconds since 1970.
    pub time: Option<Bounds<i64>>,
    /// Bounds of the profile types.
    pub profile_type: Option<Bounds<ProfileTypeId>>,
    /// Bounds of the series ids.
    pub series: Option<Bounds<SeriesId>>,
    /// Bounds of the stack ids.
    pub stack: Option<Bounds<StackId>>,
}

impl<T: Ord> Bounds<T> {
    /// Creates bounds from `min` to `max`, both included.
    pub fn new(min: T, max: T) -> Self {
        Self { min, max }
    }

    /// Returns true if a value lies between the bounds.
    pub fn contains(&self, value: &T) -> bool {
        (&self.min..=&self.max).contains(&value)
    }

    /// Returns the value if both bounds are equal.
    pub fn single(&self) -> Option<&T> {
        (self.min == self.max).then_some(&self.min)
    }
}

/// Widens bounds to include `values`.
pub fn extend<T: Ord + Copy>(bounds: &mut Option<Bounds<T>>, values: impl IntoIterator<Item = T>) {
    for value in values {
        let Bounds { min, max } = bounds.unwrap_or(Bounds::new(value, value));
        *bounds = Some(Bounds::new(min.min(value), max.max(value)));
    }
}

/// Widens bounds to include the id of a profile type.
pub(crate) fn extend_type(bounds: &mut Option<Bounds<ProfileTypeId>>, id: &str) {
    match bounds {
        None => *bounds = Some(Bounds::new(id.into(), id.into())),
        Some(bounds) if id < bounds.min.as_str() => bounds.min = id.into(),
        Some(bounds) if id > bounds.max.as_str() => bounds.max = id.into(),
        Some(_) => {}
    }
}
