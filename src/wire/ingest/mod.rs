//! `/ingest`, the protocol of Pyroscope's older SDKs: parameters in the query, profiles in the body.
//!
//! In: query text, content type and body. Out: decoded profiles. Each format has a module and an entry in [`FORMATS`].

mod form;
mod format;
mod jfr;
mod meaning;
mod nodes;
mod perf_script;
mod pprof;
mod query;
mod speedscope;
mod spies;
mod text;
mod tree;
mod trie;
mod upload_id;

use bytes::Bytes;

use crate::byte_order::{is_utf16, without_mark};
use crate::connect::ConnectError;
use crate::ingest::format::{Format, Payload};
use alluvium_profile::pprof::MAX_RATIO;
use alluvium_profile::{DecodedProfile, RawProfile};

pub use format::{Opening, ReadError};
pub use query::IngestQuery;
pub use upload_id::{set_profile_ids, set_upload_id, upload_id};

/// The supported formats. If a request names no format, the first format that detects its body is used.
static FORMATS: [&Format; 8] = [
    &pprof::PPROF,
    &jfr::JFR,
    &trie::TRIE,
    &tree::TREE,
    &speedscope::SPEEDSCOPE,
    &perf_script::PERF_SCRIPT,
    &text::LINES,
    &text::GROUPS,
];

/// Returns the maximum number of bytes to process for a body with a compressed profile: the largest size that the body
/// can decompress to, up to `max_bytes`, but at least the length of the body.
pub fn work_bytes(body_bytes: usize, max_bytes: usize) -> usize {
    body_bytes.max(body_bytes.saturating_mul(MAX_RATIO).min(max_bytes))
}

/// A request split into its parts, before decompression.
pub struct Upload {
    format: &'static Format,
    payload: Payload,
    /// Number of bytes that the content takes in addition to the body. Zero if the body has no UTF-16 mark.
    converted_bytes: usize,
}

impl Upload {
    /// Detects the format of a body. An unsupported format is an error with status 422.
    pub fn new(query: &IngestQuery, content_type: &str, body: Bytes) -> Result<Self, ConnectError> {
        let type_format = FORMATS
            .into_iter()
            .find(|format| !format.content_type.is_empty() && content_type.contains(format.content_type));
        let selected_format = match (type_format, query.format.as_str()) {
            (Some(format), _) => Some(format),
            (None, "") => None,
            (None, name) => Some(
                FORMATS
                    .into_iter()
                    .find(|format| format.names.contains(&name))
                    .ok_or_else(|| ConnectError::invalid(format!("format `{name}` is unknown")).with_status(422))?,
            ),
        };
        let is_converted = is_utf16(&body);
        let body = without_mark(body);
        let is_form = content_type.contains("multipart/form-data");
        if is_form && selected_format.is_none_or(|format| !format.field.is_empty()) {
            return Self::of_form(selected_format, content_type, &body);
        }
        let format = selected_format
            .or_else(|| FORMATS.into_iter().find(|format| (format.is_like)(&body)))
            .unwrap_or(&text::GROUPS);
        Ok(Self {
            format,
            converted_bytes: if is_converted { body.len() } else { 0 },
            payload: Payload {
                content: body,
                fields: Vec::new(),
            },
        })
    }

    fn of_form(
        selected_format: Option<&'static Format>,
        content_type: &str,
        body: &Bytes,
    ) -> Result<Self, ConnectError> {
        let fields = form::parse(content_type, body)
            .map_err(|reason| ConnectError::invalid(format!("cannot read the form: {reason}")))?;
        let content_of = |name: &str| {
            let field = fields.iter().find(|field| field.name == name)?;
            Some(field.content.clone())
        };
        let selection = FORMATS
            .into_iter()
            .filter(|format| {
                !format.field.is_empty() && selected_format.is_none_or(|selected| std::ptr::eq(selected, *format))
            })
            .find_map(|format| Some((format, content_of(format.field)?)));
        let (format, content) = selection.ok_or_else(|| {
            let field = selected_format.unwrap_or(&pprof::PPROF).field;
            ConnectError::invalid(format!("the form has no field `{field}`"))
        })?;
        Ok(Self {
            format,
            payload: Payload { content, fields },
            converted_bytes: 0,
        })
    }

    /// Returns the maximum memory in bytes that [`Upload::read`] takes. Rejects content that is too large.
    pub fn memory(&self, opening: Opening) -> Result<usize, ConnectError> {
        let bytes = (self.format.memory)(&self.payload, opening)?;
        Ok(bytes.saturating_add(self.converted_bytes))
    }

    /// Reads the profiles. The error has status 413 if a profile is too large, and 400 or 422 if it is invalid.
    pub fn read(&self, query: &IngestQuery, opening: Opening) -> Result<Vec<DecodedProfile>, ReadError> {
        (self.format.read)(&self.payload, query, opening)
    }
}

/// Reads an upload into pprof profiles without the memory budget of a server, for tests and fuzz targets. `max_bytes`
/// is the largest decompressed size.
pub fn read(query: &str, content_type: &str, body: Bytes, max_bytes: usize) -> Result<Vec<RawProfile>, ConnectError> {
    let profiles = read_columns(query, content_type, body, max_bytes)?;
    Ok(profiles.into_iter().map(|profile| profile.into_parts().0).collect())
}

/// Reads an upload into columns without the memory budget of a server, for the module `files`.
pub(crate) fn read_columns(
    query: &str,
    content_type: &str,
    body: Bytes,
    max_bytes: usize,
) -> Result<Vec<DecodedProfile>, ConnectError> {
    let query = IngestQuery::parse(query, 0)?;
    let upload = Upload::new(&query, content_type, body)?;
    let opening = Opening::AtMost(max_bytes);
    upload.memory(opening)?;
    match upload.read(&query, opening) {
        Ok(profiles) => Ok(profiles),
        Err(ReadError::Refused(error)) => Err(error),
        Err(ReadError::LargerThanAnnounced) => Err(format::too_large(max_bytes)),
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
