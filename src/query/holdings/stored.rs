//! Counts the files of tenants by table and by day. The numbers come from the Delta logs, so no data file is read.

use std::collections::BTreeMap;

use crate::store::common::schema::Table;
use crate::store::tables::snapshot::Snapshot;
use alluvium_profile::Tenants;

/// Maximum number of days that are listed. The newest days are kept.
const MAX_DAYS: usize = 62;

/// The numbers of the files that the tables of some tenants currently use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Holdings {
    /// The numbers of each table, sorted by the table's name.
    pub(crate) tables: Vec<(&'static str, Holding)>,
    /// The numbers of each day of the data, oldest first. A day is given as days since 1970-01-01.
    pub(crate) days: Vec<(i32, Holding)>,
}

/// Number of files, their size in bytes, and the number of their rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) rows: u64,
}

impl Holding {
    fn add(&mut self, bytes: u64, rows: u64) {
        self.files += 1;
        self.bytes += bytes;
        self.rows += rows;
    }
}

/// Counts the files of tenants.
pub(crate) fn holdings(snapshot: &Snapshot, tenants: &Tenants) -> Holdings {
    let mut tables: Vec<(Table, Holding)> = Table::ALL.map(|table| (table, Holding::default())).into();
    let mut days: BTreeMap<i32, Holding> = BTreeMap::new();
    for file in snapshot.files.iter().filter(|file| tenants.has(&file.tenant)) {
        if let Some((_, holding)) = tables.iter_mut().find(|(table, _)| *table == file.table) {
            holding.add(file.size, file.rows);
        }
        days.entry(file.day).or_default().add(file.size, file.rows);
    }
    let mut tables: Vec<_> = tables
        .into_iter()
        .map(|(table, holding)| (table.name(), holding))
        .collect();
    tables.sort_unstable_by_key(|(name, _)| *name);
    let older = days.len().saturating_sub(MAX_DAYS);
    Holdings {
        tables,
        days: days.into_iter().skip(older).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tables::snapshot::FileEntry;

    #[test]
    fn files_are_counted_by_table_and_by_day_and_those_of_others_are_not() {
        let file = |tenant: &str, table, day, size, rows| FileEntry {
            table,
            path: String::new(),
            size,
            rows,
            tenant: tenant.parse().unwrap(),
            day,
            time: None,
            profile_type: None,
            series: None,
            checksum: None,
        };
        let snapshot = Snapshot {
            files: vec![
                file("one", Table::Profiles, 20_000, 10, 1),
                file("one", Table::Profiles, 20_001, 20, 2),
                file("one", Table::Samples, 20_001, 300, 30),
                file("two", Table::Samples, 20_001, 5000, 500),
            ]
            .into(),
            ..Snapshot::default()
        };
        let summary = holdings(&snapshot, &"one".parse().unwrap());
        let holding = |files, bytes, rows| Holding { files, bytes, rows };
        assert_eq!(
            summary.tables,
            [
                ("profiles", holding(2, 30, 3)),
                ("samples", holding(1, 300, 30)),
                ("series", Holding::default()),
                ("stacks", Holding::default()),
            ]
        );
        assert_eq!(
            summary.days,
            [(20_000, holding(1, 10, 1)), (20_001, holding(2, 320, 32))]
        );
        let many_days = Snapshot {
            files: (0..100).map(|day| file("one", Table::Stacks, day, 1, 1)).collect(),
            ..Snapshot::default()
        };
        let days = holdings(&many_days, &"one".parse().unwrap()).days;
        assert_eq!((days.len(), days[0].0, days[61].0), (MAX_DAYS, 38, 99));
    }
}
