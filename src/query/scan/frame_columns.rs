//! The columns of a list of frames, in the table `stacks` and in the view `flat`.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, Int32Array, Int64Array, StringArray};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Int32Type, Int64Type};

use crate::query::common::error::QueryError;
use crate::store::common::schema;

/// The child arrays of a list of frames.
pub(crate) struct FrameColumns<'a> {
    /// Function, file, mapping and build id.
    pub(crate) texts: [&'a StringArray; 4],
    pub(crate) line: &'a Int64Array,
    pub(crate) address: &'a Int64Array,
    pub(crate) inlined: &'a BooleanArray,
    /// A field that frames have only in `flat`.
    pub(crate) start_line: Option<&'a Int32Array>,
}

/// Returns the type of the frames of `flat`, leaf first: the frames of the table `stacks`, each with the line at which
/// its function starts.
pub(crate) fn flat_frames() -> DataType {
    DataType::List(flat_frame())
}

/// Returns the list element of [`flat_frames`].
pub(crate) fn flat_frame() -> FieldRef {
    Arc::new(Field::new("element", DataType::Struct(flat_frame_fields()), false))
}

/// Returns the fields of [`flat_frame`]: the fields of a frame in `stacks`, and the line at which the function starts.
pub(crate) fn flat_frame_fields() -> Fields {
    let start_line = Arc::new(Field::new(START_LINE, DataType::Int32, false));
    schema::frame_fields().iter().cloned().chain([start_line]).collect()
}

/// The field of a frame of `flat` with the line at which its function starts.
const START_LINE: &str = "start_line";

impl<'a> FrameColumns<'a> {
    pub(crate) fn new(frames: &'a dyn Array) -> Result<Self, QueryError> {
        let error = || QueryError::internal("the frames of a stack do not have the expected columns");
        let frames = frames.as_struct_opt().ok_or_else(error)?;
        let text = |name: &str| {
            frames
                .column_by_name(name)
                .and_then(|column| column.as_string_opt::<i32>())
        };
        let number = |name: &str| {
            frames
                .column_by_name(name)
                .and_then(|column| column.as_primitive_opt::<Int64Type>())
        };
        Ok(Self {
            texts: [
                text("function").ok_or_else(error)?,
                text("file").ok_or_else(error)?,
                text("mapping").ok_or_else(error)?,
                text("build_id").ok_or_else(error)?,
            ],
            line: number("line").ok_or_else(error)?,
            address: number("address").ok_or_else(error)?,
            inlined: frames
                .column_by_name("inlined")
                .and_then(|column| column.as_boolean_opt())
                .ok_or_else(error)?,
            start_line: frames
                .column_by_name(START_LINE)
                .and_then(|column| column.as_primitive_opt::<Int32Type>()),
        })
    }
}
