//! References between the tables. Every stack and series to which a row refers must have its own row, of the same
//! tenant and day.
//!
//! In: files of rows, and files of names (stacks or series). Out: the files with rows that refer to missing names. The
//! check holds the ids of the names of one tenant's day in memory, eight bytes each, and one batch of rows.

use std::collections::{BTreeMap, HashSet};

use arrow::array::AsArray as _;
use arrow::datatypes::Int64Type;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::store::common::schema::Table;
use crate::store::tables::root::Root;
use crate::store::tables::snapshot::FileEntry;
use alluvium_profile::TenantId;

/// Tables of names, and the column by which rows refer to them.
pub(crate) const NAMES: [(Table, &str); 2] = [(Table::Stacks, "stack"), (Table::Series, "series")];

/// A file with rows that refer to missing names, or an unreadable file.
pub(crate) struct Fault {
    pub(crate) file: FileEntry,
    /// `reference` or `file-unreadable`.
    pub(crate) kind: &'static str,
    pub(crate) detail: String,
}

/// Checks the references from `rows` to `names`. If a file of stacks (or series) is in `damaged`, the references to
/// stacks (or series) of that tenant and day are not checked.
pub(crate) fn follow(root: &Root, rows: &[FileEntry], names: &[FileEntry], damaged: &HashSet<String>) -> Vec<Fault> {
    let mut faults = Vec::new();
    let names = by_day(names);
    for (day, rows) in by_day(rows) {
        let names = names.get(&day).map_or(&[][..], Vec::as_slice);
        for (table, column) in NAMES {
            let names: Vec<&FileEntry> = names.iter().copied().filter(|file| file.table == table).collect();
            if names.iter().any(|file| damaged.contains(&file.path)) {
                continue;
            }
            match read_ids(root, &names, column) {
                Ok(known) => {
                    let has_column = |file: &&&FileEntry| file.table.schema().index_of(column).is_ok();
                    faults.extend(
                        rows.iter()
                            .filter(has_column)
                            .filter_map(|file| missing_names(root, file, column, &known)),
                    );
                }
                Err(fault) => faults.push(*fault),
            }
        }
    }
    faults
}

fn by_day(files: &[FileEntry]) -> BTreeMap<(&TenantId, i32), Vec<&FileEntry>> {
    let mut days: BTreeMap<(&TenantId, i32), Vec<&FileEntry>> = BTreeMap::new();
    for file in files {
        days.entry((&file.tenant, file.day)).or_default().push(file);
    }
    days
}

/// Returns the sorted ids in files of names.
fn read_ids(root: &Root, files: &[&FileEntry], column: &str) -> Result<Vec<i64>, Box<Fault>> {
    let mut known = Vec::new();
    for file in files {
        read_values(root, file, column, |names| known.extend_from_slice(names))?;
    }
    known.sort_unstable();
    known.dedup();
    Ok(known)
}

fn missing_names(root: &Root, file: &FileEntry, column: &str, known: &[i64]) -> Option<Fault> {
    let mut rows = 0_u64;
    let mut one = None;
    let read = read_values(root, file, column, |names| {
        for name in names.iter().filter(|name| known.binary_search(name).is_err()) {
            rows += 1;
            one = Some(*name);
        }
    });
    match (read, one) {
        (Err(fault), _) => Some(*fault),
        (Ok(()), None) => None,
        (Ok(()), Some(one)) => Some(Fault {
            file: file.clone(),
            kind: "reference",
            detail: format!(
                "{rows} of {} rows refer to a {column} without a row on that day, such as {one}",
                file.rows
            ),
        }),
    }
}

/// Passes all values of an integer column to `give`.
fn read_values(root: &Root, file: &FileEntry, column: &str, mut give: impl FnMut(&[i64])) -> Result<(), Box<Fault>> {
    let mut read = || -> Result<(), Box<dyn std::error::Error>> {
        let builder = ParquetRecordBatchReaderBuilder::try_new(root.open_file(&file.path, file.size)?)?;
        let mask = ProjectionMask::columns(builder.parquet_schema(), [column]);
        for batch in builder.with_projection(mask).build()? {
            let batch = batch?;
            let values = batch
                .column_by_name(column)
                .and_then(|values| values.as_primitive_opt::<Int64Type>());
            give(
                values
                    .ok_or_else(|| format!("it has no column `{column}` of integers"))?
                    .values(),
            );
        }
        Ok(())
    };
    read().map_err(|error| {
        Box::new(Fault {
            file: file.clone(),
            kind: "file-unreadable",
            detail: error.to_string(),
        })
    })
}
