//! What is known of the rows of a file without opening it.

use crate::profile::{ProfileTypeId, SeriesId, StackId};

/// Smallest and largest value of a column of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bounds<T> {
    /// Smallest value of the column.
    pub least: T,
    /// Largest value of the column.
    pub most: T,
}

/// Count of rows, and the bounds of the columns that prune.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FileStats {
    /// Number of rows of the file.
    pub rows: u64,
    /// Microseconds since 1970.
    pub time: Option<Bounds<i64>>,
    /// Profile types that the rows are of.
    pub profile_type: Option<Bounds<ProfileTypeId>>,
    /// Series that the rows are of.
    pub series: Option<Bounds<SeriesId>>,
    /// Stacks that the rows are of.
    pub stack: Option<Bounds<StackId>>,
}

impl<T: Ord> Bounds<T> {
    /// From `least` to `most`, both included.
    pub fn new(least: T, most: T) -> Self {
        Self { least, most }
    }

    /// Whether a value lies between them.
    pub fn contains(&self, value: &T) -> bool {
        (&self.least..=&self.most).contains(&value)
    }

    /// The value when there is only one.
    pub fn single(&self) -> Option<&T> {
        (self.least == self.most).then_some(&self.least)
    }
}

/// Widens bounds so that values lie between them.
pub fn extend<T: Ord + Copy>(bounds: &mut Option<Bounds<T>>, values: impl IntoIterator<Item = T>) {
    for value in values {
        let Bounds { least, most } = bounds.unwrap_or(Bounds::new(value, value));
        *bounds = Some(Bounds::new(least.min(value), most.max(value)));
    }
}

/// Widens bounds so that the id of a profile type lies between them.
pub(crate) fn extend_type(bounds: &mut Option<Bounds<ProfileTypeId>>, id: &str) {
    match bounds {
        None => *bounds = Some(Bounds::new(id.into(), id.into())),
        Some(bounds) if id < bounds.least.as_str() => bounds.least = id.into(),
        Some(bounds) if id > bounds.most.as_str() => bounds.most = id.into(),
        Some(_) => {}
    }
}
