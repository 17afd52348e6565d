//! Tests of checksums: reads of any range return the written bytes and never an altered byte.

use std::io::Seek as _;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;

use super::*;
use crate::store::common::schema::Table;
use alluvium_profile::TenantId;

/// Returns a file of several blocks and row groups, and its entry.
fn written(rows: i64) -> (File, FileEntry) {
    let values = |factor: i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(
            (0..rows).map(|row| row.wrapping_mul(factor)),
        ))
    };
    let batch = RecordBatch::try_from_iter([("a", values(0x9e37_79b9_7f4a_7c15_u64 as i64)), ("b", values(3))]);
    let batch = batch.unwrap();
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_max_row_group_row_count(Some(5000))
        .set_data_page_row_count_limit(700)
        .build();
    let summed = ChecksumWriter::new(tempfile::tempfile().unwrap());
    let mut writer = ArrowWriter::try_new(summed, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    let (file, size, checksum) = ChecksumWriter::finish(writer).unwrap().into_parts();
    let entry = FileEntry {
        table: Table::Samples,
        path: "x".to_owned(),
        size,
        rows: rows as u64,
        tenant: TenantId::anonymous(),
        day: 0,
        time: None,
        profile_type: None,
        series: None,
        checksum: Some(checksum),
    };
    (file, entry)
}

fn read(file: &File, entry: &FileEntry) -> Result<Vec<RecordBatch>, String> {
    let mut file = file.try_clone().unwrap();
    file.rewind().unwrap();
    let (source, _) = VerifiedFile::open(file, entry).map_err(|error| error.to_string())?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(source).map_err(|error| error.to_string())?;
    let batches: Result<Vec<RecordBatch>, _> = reader.build().map_err(|error| error.to_string())?.collect();
    batches.map_err(|error| error.to_string())
}

#[test]
fn a_file_is_read_as_it_was_written_or_not_at_all() {
    let (file, entry) = written(20_000);
    let checksum = entry.checksum.unwrap();
    assert!(entry.size > 10 * BLOCK_BYTES, "{}", entry.size);
    assert_eq!(
        hash_of(&file).ok(),
        Some(xxh3_64(&[])),
        "the position of the file is at its end"
    );
    let old = FileEntry {
        checksum: Some(Checksum { tail: None, ..checksum }),
        ..entry.clone()
    };
    let expected = read(&file, &entry).unwrap();
    assert_eq!(expected.iter().map(RecordBatch::num_rows).sum::<usize>(), 20_000);
    assert_eq!(read(&file, &old).unwrap(), expected);
    for step in 0..400 {
        let offset = step * 7919 % entry.size;
        let mut byte = [0];
        file.read_exact_at(&mut byte, offset).unwrap();
        file.write_all_at(&[byte[0] ^ (1 << (step % 8))], offset).unwrap();
        for entry in [&entry, &old] {
            let result = read(&file, entry);
            let result = result.map(|batches| batches.len());
            assert!(
                result
                    .as_ref()
                    .is_err_and(|error| error.contains("differ from the written ones")),
                "a flip at {offset} of {}: {result:?}",
                entry.size
            );
        }
        file.write_all_at(&byte, offset).unwrap();
    }
    assert_eq!(read(&file, &entry).unwrap(), expected);
    // A read must also fail after bytes were cut off or added.
    file.set_len(entry.size - 1).unwrap();
    assert!(read(&file, &entry).unwrap_err().contains("the table's log says"));
}

#[test]
fn every_range_is_covered_by_blocks_that_are_verified_once() {
    let (file, entry) = written(20_000);
    let (size, tail) = (entry.size, entry.checksum.unwrap().tail.unwrap());
    let mut bytes = vec![0; size as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    let metadata = metadata_of(
        &Bytes::from(bytes[tail.start as usize..].to_vec()),
        size,
        PageIndexPolicy::Optional,
    );
    let sums = BlockChecksums::of(&metadata.unwrap(), size, tail).unwrap();
    let ranges = [
        0..1,
        BLOCK_BYTES - 1..BLOCK_BYTES + 1,
        5 * BLOCK_BYTES..6 * BLOCK_BYTES,
        tail.start - 1..tail.start,
        tail.start..size,
        size - 8..size,
        7..7,
    ];
    let covers = sums.verified_ranges(&ranges);
    assert!(covers.is_sorted_by(|left, right| left.end < right.start));
    for range in ranges.iter().filter(|range| !range.is_empty()) {
        assert!(
            covers
                .iter()
                .any(|cover| cover.start <= range.start && cover.end >= range.end)
        );
    }
    for cover in &covers {
        let part = &bytes[cover.start as usize..cover.end as usize];
        assert_eq!(sums.verify(cover.start, part), Ok(()));
        for index in [0, part.len() / 2, part.len() - 1] {
            let mut altered = part.to_vec();
            altered[index] ^= 4;
            assert!(sums.verify(cover.start, &altered).is_err(), "{cover:?}, {index}");
        }
        assert!(sums.verify(cover.start, &part[..part.len() - 1]).is_err(), "{cover:?}");
    }
}

#[test]
fn a_file_without_rows_of_its_own_has_checksums_too() {
    let (file, entry) = written(0);
    assert!(read(&file, &entry).unwrap().is_empty());
}
