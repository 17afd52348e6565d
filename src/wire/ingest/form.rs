//! Parses multipart/form-data (RFC 7578) from a complete body. The parts are slices of the body.
//!
//! In: content type and body. Out: named parts. The caller limits the size; this module limits the number of parts.

use bytes::Bytes;
use memchr::memmem;

/// Maximum number of parts of a form: the protocol uses four.
const MAX_PARTS: usize = 32;

/// Maximum size of a part's headers in bytes.
const MAX_HEAD_BYTES: usize = 8 << 10;

/// A field of a form with its content.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Parameter `name` of the part's `Content-Disposition`.
    pub name: String,
    /// The bytes between the part's headers and the next boundary.
    pub content: Bytes,
}

/// The reason why a body is not a form. Parts are numbered from 1.
#[derive(Debug, thiserror::Error)]
pub(super) enum FormError {
    #[error("the content type has no boundary")]
    NoBoundary,
    #[error("the boundary must have 1 to 70 characters")]
    BoundaryLength,
    #[error("the boundary does not occur in the body")]
    NoParts,
    #[error("more than {MAX_PARTS} parts")]
    TooManyParts,
    #[error("part {0} is cut off")]
    Truncated(usize),
    #[error("part {0} has no end of headers")]
    OpenHeaders(usize),
    #[error("part {part} has {bytes} bytes of headers, the limit is {MAX_HEAD_BYTES}")]
    LongHeaders { part: usize, bytes: usize },
    #[error("part {0} has no end")]
    NoEnd(usize),
    #[error("part {0} has no name")]
    NoName(usize),
}

/// Splits a form into its parts.
pub(super) fn parse(content_type: &str, body: &Bytes) -> Result<Vec<Part>, FormError> {
    let boundary = parameter(content_type, "boundary").ok_or(FormError::NoBoundary)?;
    if boundary.is_empty() || boundary.len() > 70 {
        return Err(FormError::BoundaryLength);
    }
    let opening = format!("--{boundary}");
    let delimiter = format!("\r\n--{boundary}");
    let finder = memmem::Finder::new(delimiter.as_bytes());
    // The first boundary may be at the very beginning, without a line end before it.
    let mut position = if body.starts_with(opening.as_bytes()) {
        opening.len()
    } else {
        finder.find(body).ok_or(FormError::NoParts)? + delimiter.len()
    };
    let mut parts = Vec::new();
    loop {
        let rest = body.get(position..).unwrap_or_default();
        if rest.starts_with(b"--") {
            return Ok(parts);
        }
        if parts.len() == MAX_PARTS {
            return Err(FormError::TooManyParts);
        }
        let part = parts.len() + 1;
        let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let rest = rest.get(blanks..).unwrap_or_default();
        if !rest.starts_with(b"\r\n") {
            return Err(FormError::Truncated(part));
        }
        let start = position + blanks;
        let head_length = memmem::find(rest, b"\r\n\r\n").ok_or(FormError::OpenHeaders(part))?;
        if head_length > MAX_HEAD_BYTES {
            return Err(FormError::LongHeaders {
                part,
                bytes: head_length,
            });
        }
        let head = String::from_utf8_lossy(rest.get(..head_length).unwrap_or_default());
        // If a part has no content, the line end that begins the delimiter may also be the end of the empty line after
        // the headers.
        let content_start = start + head_length + 4;
        let search_start = content_start - 2;
        let delimiter_offset = finder
            .find(body.get(search_start..).unwrap_or_default())
            .ok_or(FormError::NoEnd(part))?;
        let content_end = (search_start + delimiter_offset).max(content_start);
        parts.push(Part {
            name: part_name(&head).ok_or(FormError::NoName(part))?,
            content: body.slice(content_start..content_end),
        });
        position = search_start + delimiter_offset + delimiter.len();
    }
}

fn part_name(head: &str) -> Option<String> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(header, _)| header.trim().eq_ignore_ascii_case("content-disposition"))
        .and_then(|(_, value)| parameter(value, "name"))
}

/// Returns the value of a parameter in a header, without quotes.
fn parameter(header: &str, requested_name: &str) -> Option<String> {
    header.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case(requested_name)
            .then(|| value.trim().trim_matches('"').to_owned())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TYPE: &str = "multipart/form-data; boundary=\"x y\"";

    #[test]
    fn parts_are_slices_between_boundaries() {
        let body = Bytes::from_static(
            b"preamble\r\n--x y\r\nContent-Disposition: form-data; name=\"profile\"; filename=\"a;b\"\r\n\
              Content-Type: application/octet-stream\r\n\r\n\x1f\x8b\r\n--x\r\n\r\n--x y \r\n\
              content-disposition: form-data; name=empty\r\n\r\n\r\n--x y--\r\nepilogue",
        );
        let parts = parse(TYPE, &body).unwrap();
        assert_eq!(parts.len(), 2);
        assert_eq!(
            (parts[0].name.as_str(), parts[0].content.as_ref()),
            ("profile", &b"\x1f\x8b\r\n--x\r\n"[..])
        );
        assert_eq!((parts[1].name.as_str(), parts[1].content.as_ref()), ("empty", &b""[..]));
    }

    #[test]
    fn broken_forms_are_refused() {
        for (kind, body) in [
            ("multipart/form-data", "--x--"),
            (TYPE, ""),
            (TYPE, "--x y"),
            (TYPE, "--x y\r\nContent-Disposition: form-data; name=a\r\n\r\ncontent"),
            (
                TYPE,
                "--x y\r\nContent-Disposition: form-data\r\n\r\ncontent\r\n--x y--",
            ),
            (TYPE, "--x y\r\nno end of headers\r\n--x y--"),
            (
                TYPE,
                &format!("--x y\r\n{}\r\n\r\n\r\n--x y--", "a".repeat(MAX_HEAD_BYTES + 1)),
            ),
            (
                TYPE,
                &format!("--x y{}--", "\r\nname: name=a\r\n\r\n\r\n--x y".repeat(MAX_PARTS + 1)),
            ),
        ] {
            assert!(parse(kind, &Bytes::copy_from_slice(body.as_bytes())).is_err(), "{body}");
        }
        assert_eq!(parse(TYPE, &Bytes::from_static(b"--x y--")).unwrap(), []);
    }

    proptest! {
        #[test]
        fn what_is_put_in_comes_out(
            contents in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 0..5),
        ) {
            let mut body = Vec::new();
            for content in &contents {
                body.extend_from_slice(b"--b0undary\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n");
                body.extend_from_slice(content);
                body.extend_from_slice(b"\r\n");
            }
            body.extend_from_slice(b"--b0undary--\r\n");
            let parts = parse("multipart/form-data;boundary=b0undary", &body.into()).unwrap();
            let actual: Vec<_> = parts.into_iter().map(|part| part.content.to_vec()).collect();
            prop_assert_eq!(actual, contents);
        }

        #[test]
        fn garbage_never_panics(text in "(\r\n|--x|:|;|name=|a| ){0,60}") {
            let _ = parse("multipart/form-data; boundary=x", &text.into_bytes().into());
        }
    }
}
