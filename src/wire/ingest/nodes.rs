//! Nodes of Pyroscope's older binary formats `tree` and `trie`, each node before its children.
//!
//! In: bytes. Out: names and values with their levels, or an error with its byte offset. A node is the length of its
//! name, the name, its own value and the number of its children. All numbers are varints. The format determines the
//! meaning of a name.

use crate::connect::ConnectError;
use crate::ingest::format::{Opening, Payload, ReadError, too_large};
use crate::ingest::meaning::Meaning;
use crate::ingest::query::IngestQuery;
use alluvium_profile::DecodedProfile;
use alluvium_profile::call_tree::{CallTree, Calls, Counter, LimitExceeded, Size, SizeLimit};

/// Maximum number of levels. A level costs the sender only three bytes, but takes additional memory here.
const MAX_LEVELS: usize = 1 << 16;

/// A format that consists of nodes, `tree` or `trie`.
pub(super) trait Walk {
    /// Name of the format, for errors.
    const NAME: &'static str;

    /// Passes the calls and values of `bytes` to `calls`.
    fn walk<Taker: Calls>(bytes: &[u8], calls: &mut Taker) -> Result<(), NodeError>;
}

/// Returns the memory in bytes that [`read`] takes. Walks over all nodes without storing them.
pub(super) fn memory<Form: Walk>(payload: &Payload, opening: Opening) -> Result<usize, ConnectError> {
    let bytes = &payload.content;
    if bytes.len() > opening.limit() {
        return Err(too_large(opening.limit()));
    }
    Ok(size::<Form>(bytes)?.bytes())
}

/// Reads the profile of an upload. Returns an empty list if no stack has a value, for example for an idle process.
pub(super) fn read<Form: Walk>(
    payload: &Payload,
    query: &IngestQuery,
    opening: Opening,
) -> Result<Vec<DecodedProfile>, ReadError> {
    let bytes = &payload.content;
    if bytes.len() > opening.limit() {
        return Err(too_large(opening.limit()).into());
    }
    let meaning = Meaning::of(&query.app, query)?;
    let mut tree = CallTree::new(SizeLimit::new(size::<Form>(bytes)?));
    Form::walk(bytes, &mut tree).map_err(refused::<Form>)?;
    let (columns, _) = tree
        .into_columns(meaning.profile(query), meaning.scale)
        .map_err(|error| ConnectError::too_large(error.to_string()))?;
    Ok(columns
        .map(|columns| meaning.decoded(query, columns))
        .into_iter()
        .collect())
}

fn size<Form: Walk>(bytes: &[u8]) -> Result<Size, ConnectError> {
    let mut counter = Counter::new();
    Form::walk(bytes, &mut counter).map_err(refused::<Form>)?;
    Ok(counter.size())
}

fn refused<Form: Walk>(error: NodeError) -> ConnectError {
    match error.problem {
        Problem::TooMany(error) => ConnectError::too_large(error.to_string()),
        _ => ConnectError::invalid(format!("cannot read the profile as a {}: {error}", Form::NAME)),
    }
}

/// Reason why the bytes are not nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset}: {problem}")]
pub(super) struct NodeError {
    /// Offset of the node, or of a number in it.
    offset: usize,
    problem: Problem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Problem {
    #[error("the bytes end within a number")]
    Truncated,
    #[error("a number has more than 64 bits")]
    Overlong,
    #[error("a name has {length} bytes, {left} are left")]
    Name { length: u64, left: usize },
    #[error("a name is not UTF-8")]
    Utf8,
    #[error("the value {0} is larger than a profile may have")]
    Value(u64),
    #[error("there are more than {MAX_LEVELS} levels")]
    Levels,
    #[error("{0} bytes follow the last node")]
    Rest(usize),
    #[error("{0}")]
    TooMany(LimitExceeded),
}

/// A node with its level in the tree.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Node<'a> {
    /// Number of nodes above this node.
    pub level: usize,
    pub name: &'a [u8],
    /// Value of the node without the values of its children.
    pub value: i64,
    /// Offset of the node's first byte.
    offset: usize,
}

impl Node<'_> {
    /// Returns an error about this node.
    pub(super) fn too_many(&self, error: LimitExceeded) -> NodeError {
        NodeError {
            offset: self.offset,
            problem: Problem::TooMany(error),
        }
    }

    /// Decodes a name that ends in this node. In the format `trie`, it may begin in a node above. An error states the
    /// position of this node.
    pub(super) fn text<'a>(&self, name: &'a [u8]) -> Result<&'a str, NodeError> {
        std::str::from_utf8(name).map_err(|_| error(self.offset, Problem::Utf8))
    }
}

/// Reads nodes one by one.
pub(super) struct Nodes<'a> {
    bytes: &'a [u8],
    position: usize,
    /// Number of nodes still to come in each open level.
    pending_nodes: Vec<u64>,
}

impl<'a> Nodes<'a> {
    /// Creates a reader that begins at the single root of `bytes`.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            position: 0,
            pending_nodes: vec![1],
        }
    }

    /// Returns the next node, or `None` after the last one.
    pub(super) fn next_node(&mut self) -> Result<Option<Node<'a>>, NodeError> {
        let offset = self.position;
        loop {
            match self.pending_nodes.last_mut() {
                Some(0) => {
                    self.pending_nodes.pop();
                }
                Some(count) => {
                    *count -= 1;
                    break;
                }
                None if offset < self.bytes.len() => {
                    return Err(error(offset, Problem::Rest(self.bytes.len() - offset)));
                }
                None => return Ok(None),
            }
        }
        let level = self.pending_nodes.len() - 1;
        let name = self.name()?;
        let value_offset = self.position;
        let value = self.varint()?;
        let value = i64::try_from(value).map_err(|_| error(value_offset, Problem::Value(value)))?;
        let children = self.varint()?;
        if children > 0 {
            if self.pending_nodes.len() == MAX_LEVELS {
                return Err(error(offset, Problem::Levels));
            }
            self.pending_nodes.push(children);
        }
        Ok(Some(Node {
            level,
            name,
            value,
            offset,
        }))
    }

    fn name(&mut self) -> Result<&'a [u8], NodeError> {
        let offset = self.position;
        let length = self.varint()?;
        let rest = self.bytes.get(self.position..).unwrap_or_default();
        let name = usize::try_from(length).ok().and_then(|length| rest.get(..length));
        let name = name.ok_or_else(|| {
            let left = rest.len();
            error(offset, Problem::Name { length, left })
        })?;
        self.position += name.len();
        Ok(name)
    }

    fn varint(&mut self) -> Result<u64, NodeError> {
        let offset = self.position;
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let Some(byte) = self.bytes.get(self.position) else {
                return Err(error(offset, Problem::Truncated));
            };
            self.position += 1;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if *byte < 0x80 {
                return Ok(value);
            }
        }
        Err(error(offset, Problem::Overlong))
    }
}

fn error(offset: usize, problem: Problem) -> NodeError {
    NodeError { offset, problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::testing::put_node;

    /// Level, name and value of a node.
    type NodeParts<'a> = (usize, &'a [u8], i64);

    fn all(bytes: &[u8]) -> Result<Vec<NodeParts<'_>>, NodeError> {
        let mut nodes = Nodes::new(bytes);
        let mut parts = Vec::new();
        while let Some(node) = nodes.next_node()? {
            parts.push((node.level, node.name, node.value));
        }
        Ok(parts)
    }

    #[test]
    fn each_node_has_its_level_and_value() {
        let mut bytes = Vec::new();
        for (name, value, children) in [
            (&b""[..], 0, 2),
            (b"main", 300, 1),
            (b"work", i64::MAX as u64, 0),
            (b"idle", 0, 0),
        ] {
            put_node(&mut bytes, name, value, children);
        }
        let expected = [
            (0, &b""[..], 0),
            (1, b"main", 300),
            (2, b"work", i64::MAX),
            (1, b"idle", 0),
        ];
        assert_eq!(all(&bytes).unwrap(), expected);
        for length in 0..bytes.len() {
            assert!(all(&bytes[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_byte() {
        let deep: Vec<u8> = [0, 0, 1].repeat(MAX_LEVELS);
        for (bytes, error) in [
            (&b""[..], "byte 0: the bytes end within a number"),
            (&[0, 0, 0, 7], "byte 3: 1 bytes follow the last node"),
            (&[0, 0, 2, 0, 0, 0], "byte 6: the bytes end within a number"),
            (&[0, 0, 1, 5, b'a'], "byte 3: a name has 5 bytes, 1 are left"),
            (&[0, 0x80], "byte 1: the bytes end within a number"),
            (&[0xff; 11], "byte 0: a number has more than 64 bits"),
            (
                &[0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 0],
                "byte 1: the value 9223372036854775808 is larger than a profile may have",
            ),
            (&deep, "byte 196605: there are more than 65536 levels"),
        ] {
            assert_eq!(all(bytes).unwrap_err().to_string(), error);
        }
    }
}
