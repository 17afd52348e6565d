//! The four tables and their columns: the promise to every reader, ours and others'.
//!
//! Changing a column is a new [`LAYOUT_VERSION`]. Unsigned 64-bit identities (series, stack) are stored bit for bit as signed
//! ones, because Delta has no unsigned integers.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};

/// Version of the layout, kept in the table property `alluvium.layoutVersion` and in the data folder's `VERSION` file.
pub const LAYOUT_VERSION: u32 = 1;

/// One of the Delta tables; the folder under the store's root has its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// One row a stored profile and type.
    Profiles,
    /// One row a profile, type and stack.
    Samples,
    /// One row a distinct stack.
    Stacks,
    /// One row a distinct series.
    Series,
}

impl Table {
    /// All tables, in the order in which a flush commits them: names before what refers to them.
    pub const ALL: [Table; 4] = [Table::Stacks, Table::Series, Table::Samples, Table::Profiles];

    /// Name in SQL and folder name.
    pub const fn name(self) -> &'static str {
        match self {
            Table::Profiles => "profiles",
            Table::Samples => "samples",
            Table::Stacks => "stacks",
            Table::Series => "series",
        }
    }

    /// Columns in order, the partition columns `tenant` and `day` first. `day` is the UTC day of `time` (of first sight for stacks and
    /// series: a stack or series is written again on each day on which it occurs, so that whole days can be dropped).
    pub fn schema(self) -> SchemaRef {
        let mut fields = vec![
            Field::new("tenant", DataType::Utf8, false),
            Field::new("day", DataType::Date32, false),
        ];
        fields.extend(match self {
            Table::Profiles => vec![
                Field::new("time", timestamp(), false),
                Field::new("series", DataType::Int64, false),
                Field::new("profile_type", DataType::Utf8, false),
                Field::new("total", DataType::Int64, false),
                Field::new("sample_count", DataType::Int64, false),
                Field::new("duration_ns", DataType::Int64, false),
                Field::new("period", DataType::Int64, false),
                Field::new("profile_id", DataType::Utf8, false),
            ],
            Table::Samples => vec![
                Field::new("time", timestamp(), false),
                Field::new("series", DataType::Int64, false),
                Field::new("profile_type", DataType::Utf8, false),
                Field::new("stack", DataType::Int64, false),
                Field::new("value", DataType::Int64, false),
                Field::new("span_id", DataType::Utf8, true),
                Field::new("trace_id", DataType::Utf8, true),
            ],
            Table::Stacks => vec![
                Field::new("stack", DataType::Int64, false),
                Field::new("frames", frames(), false),
            ],
            Table::Series => vec![
                Field::new("series", DataType::Int64, false),
                Field::new("service_name", DataType::Utf8, false),
                Field::new("labels", labels(), false),
            ],
        });
        Arc::new(Schema::new(fields))
    }
}

/// Start of a profile: microseconds since 1970 in UTC, the resolution of Delta's timestamp.
pub fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// The frames of a stack, leaf first.
pub fn frames() -> DataType {
    DataType::List(frame())
}

/// A frame of a stack. Inlined functions are frames of their own, `inlined` is true for all but
/// the outermost function of an address.
pub fn frame() -> FieldRef {
    Arc::new(Field::new("element", DataType::Struct(frame_fields()), false))
}

/// The columns of a frame.
pub fn frame_fields() -> Fields {
    Fields::from(vec![
        Field::new("function", DataType::Utf8, false),
        Field::new("file", DataType::Utf8, false),
        Field::new("line", DataType::Int64, false),
        Field::new("mapping", DataType::Utf8, false),
        Field::new("address", DataType::Int64, false),
        Field::new("build_id", DataType::Utf8, false),
        Field::new("inlined", DataType::Boolean, false),
    ])
}

/// The labels of a series without `__name__` and other `__` labels: `map<string, string>`.
pub fn labels() -> DataType {
    let entries = DataType::Struct(Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Utf8, true),
    ]));
    DataType::Map(Arc::new(Field::new("key_value", entries, false)), false)
}
