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
use alluvium_profile::pprof::{MAX_RATIO, gunzip_start, is_gzip};
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

/// Number of decompressed bytes from which [`is_packed`] detects a format.
const START_BYTES: usize = 512;

/// Returns true if a body without `Content-Encoding` is gzip around a format that does not decompress its content
/// itself: a form, or text. Profiles in the pprof format are passed on compressed, as they were received.
pub fn is_packed(query: &IngestQuery, content_type: &str, body: &[u8]) -> bool {
    if !is_gzip(body) {
        return false;
    }
    match selected_format(query, content_type) {
        _ if is_form(content_type) => true,
        Ok(Some(format)) => !format.opens_gzip,
        Ok(None) => {
            let start = gunzip_start(body, START_BYTES);
            (jfr::JFR.is_like)(&start) || is_text(&start)
        }
        Err(_) => false,
    }
}

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
        let selected_format = selected_format(query, content_type)?;
        let is_converted = is_utf16(&body);
        let body = without_mark(body);
        if is_form(content_type) && selected_format.is_none_or(|format| !format.field.is_empty()) {
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

/// Returns true for the start of a text: it is UTF-16, or it has no control characters except tabs and line ends. In
/// the first bytes of a pprof profile, the numbers and lengths of messages are such characters.
fn is_text(start: &[u8]) -> bool {
    let is_control = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r');
    let is_plain = !(pprof::PPROF.is_like)(start) && !start.iter().any(is_control);
    !start.is_empty() && (is_plain || is_utf16(start))
}

fn is_form(content_type: &str) -> bool {
    content_type.contains("multipart/form-data")
}

/// Returns the format that the request names: by content type, or by the parameter `format`. An unknown format is an
/// error with status 422.
fn selected_format(query: &IngestQuery, content_type: &str) -> Result<Option<&'static Format>, ConnectError> {
    let type_format = FORMATS
        .into_iter()
        .find(|format| !format.content_type.is_empty() && content_type.contains(format.content_type));
    match (type_format, query.format.as_str()) {
        (Some(format), _) => Ok(Some(format)),
        (None, "") => Ok(None),
        (None, name) => FORMATS
            .into_iter()
            .find(|format| format.names.contains(&name))
            .map(Some)
            .ok_or_else(|| ConnectError::invalid(format!("format `{name}` is unknown")).with_status(422)),
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
