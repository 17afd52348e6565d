//! Compares encodings of the samples table on one head; prints a table, asserts only that the choice in `files.rs` is not the worst.
//!
//! Run with `cargo test --lib store::files::layout -- --ignored --nocapture`. The data are synthetic: four services of three pods, twenty
//! profiles each, stacks that repeat from profile to profile.

use parquet::basic::Encoding;
use parquet::file::properties::WriterPropertiesBuilder;

use super::*;
use crate::profile::synthetic::{Names, Shape, cpu_profile};
use crate::profile::{Labels, RawProfile, pprof};
use crate::store::head::day_of;
use crate::store::{ingest, limits::Limits};

const SHAPE: Shape = Shape {
    functions: 2000,
    samples: 1500,
    depth: 40,
    labelled_every: 0,
};
const START_NS: i64 = 1_800_000_000_000_000_000;

/// What a candidate changes in the properties of `files.rs`.
type Change = fn(WriterPropertiesBuilder) -> WriterPropertiesBuilder;

const CANDIDATES: [(&str, Change); 9] = [
    ("as written", |properties| properties),
    ("time delta", |properties| {
        encoded(properties, "time", Encoding::DELTA_BINARY_PACKED)
    }),
    ("stack delta", |properties| {
        encoded(properties, "stack", Encoding::DELTA_BINARY_PACKED)
    }),
    ("stack plain", |properties| {
        encoded(properties, "stack", Encoding::PLAIN)
    }),
    ("value delta", |properties| {
        encoded(properties, "value", Encoding::DELTA_BINARY_PACKED)
    }),
    ("value plain", |properties| {
        encoded(properties, "value", Encoding::PLAIN)
    }),
    ("value split", |properties| {
        encoded(properties, "value", Encoding::BYTE_STREAM_SPLIT)
    }),
    ("pages 100,000", |properties| {
        properties.set_data_page_row_count_limit(100_000)
    }),
    ("zstd 1", |properties| {
        properties.set_compression(Compression::ZSTD(ZstdLevel::try_new(1).unwrap()))
    }),
];

fn encoded(properties: WriterPropertiesBuilder, column: &str, encoding: Encoding) -> WriterPropertiesBuilder {
    properties
        .set_column_dictionary_enabled(ColumnPath::from(column), false)
        .set_column_encoding(ColumnPath::from(column), encoding)
}

#[test]
#[ignore = "a measurement, some ten seconds without optimisation"]
fn layout() {
    let head = Head::new(Arc::default());
    let tenant: Arc<str> = "t".into();
    let names = Names::new(SHAPE.functions);
    let mut state = 12_345u64;
    let mut random = |limit: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) % limit
    };
    let mut rows = 0;
    for pod in 0..12 {
        let mut profile = cpu_profile(&names, SHAPE, pod / 3);
        for step in 0..20i64 {
            profile.time_nanos = START_NS + step * 15_000_000_000 + random(1000) as i64 * 1_000_000;
            for values in profile.values.chunks_mut(2) {
                // Each profile meets two of five stacks.
                let ticks = if random(5) < 3 {
                    0
                } else {
                    1 + 100 / (1 + random(100)) as i64
                };
                values.copy_from_slice(&[ticks, ticks * 10_000_000]);
            }
            let labels = [
                ("__name__", "process_cpu".to_owned()),
                ("service_name", format!("service{}", pod / 3)),
                ("pod", format!("pod{pod}")),
            ];
            let raw = RawProfile {
                labels: Labels::from_pairs(labels),
                id: "".into(),
                pprof: pprof::encode(&profile).into(),
            };
            rows += head.apply(&tenant, &ingest::prepare(&raw, 0, &Limits::unlimited()).unwrap());
        }
    }
    println!(
        "{rows} rows, {:.1} bytes a row in memory",
        head.bytes() as f64 / rows as f64
    );
    let sizes: Vec<u64> = CANDIDATES
        .iter()
        .map(|(name, change)| {
            let size = size(&head, &tenant, *change);
            println!("{name:15} {:.3} bytes a row", size as f64 / rows as f64);
            size
        })
        .collect();
    assert!(sizes[0] < *sizes.iter().max().unwrap());
}

fn size(head: &Head, tenant: &Arc<str>, change: Change) -> u64 {
    let mut writer: Option<ArrowWriter<Vec<u8>>> = None;
    head.sorted(Table::Samples, tenant, day_of(START_NS / 1000), |batch| {
        let writer = writer.get_or_insert_with(|| {
            let properties = change(builder(Table::Samples, FLUSHED).unwrap()).build();
            ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap()
        });
        writer.write(batch).map_err(|error| error.to_string())
    })
    .unwrap();
    writer.unwrap().into_inner().unwrap().len() as u64
}
