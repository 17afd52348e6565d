//! Maps the types of columns and parameters to PostgreSQL's type numbers (OIDs).
//!
//! In: a [`Kind`], or an OID. Out: the OID of the kind and the size of its values, or the kind of the OID. The OIDs are
//! the same as in PostgreSQL's `pg_type.dat`.

use crate::query::output::cells::{Kind, Simple};

/// Kind, OID of the type, OID of its array type, and size of a value in bytes (negative: variable size).
const TYPES: [(Simple, u32, u32, i16); 15] = [
    (Simple::Bool, 16, 1000, 1),
    (Simple::Bytes, 17, 1001, -1),
    (Simple::Int8, 20, 1016, 8),
    (Simple::Int2, 21, 1005, 2),
    (Simple::Int4, 23, 1007, 4),
    (Simple::Text, 25, 1009, -1),
    (Simple::Json, 114, 199, -1),
    (Simple::Float4, 700, 1021, 4),
    (Simple::Float8, 701, 1022, 8),
    (Simple::Date, 1082, 1182, 4),
    (Simple::Time, 1083, 1183, 8),
    (Simple::Timestamp, 1114, 1115, 8),
    (Simple::TimestampTz, 1184, 1185, 8),
    (Simple::Interval, 1186, 1187, 16),
    (Simple::Numeric, 1700, 1231, -1),
];

/// OIDs of additional types that clients use for parameters, each with the kind that Alluvium uses for the type.
const ALIAS_OIDS: [(u32, Simple); 8] = [
    (18, Simple::Text),   // "char"
    (19, Simple::Text),   // name
    (26, Simple::Int8),   // oid
    (1042, Simple::Text), // bpchar
    (1043, Simple::Text), // varchar
    (2950, Simple::Text), // uuid
    (3802, Simple::Json), // jsonb
    (1033, Simple::Text), // aclitem
];

/// Returns the OID of a kind.
pub(super) fn number(kind: Kind) -> u32 {
    let row = TYPES.iter().find(|row| row.0 == kind.simple);
    row.map_or(25, |row| if kind.is_list { row.2 } else { row.1 })
}

/// Returns the size of a value in bytes. A negative number means a variable size.
pub(super) fn size(kind: Kind) -> i16 {
    let row = TYPES.iter().find(|row| row.0 == kind.simple && !kind.is_list);
    row.map_or(-1, |row| row.3)
}

/// Returns the kind of an OID. Returns `None` for "unknown" and for unsupported types, whose values are read as text.
pub(super) fn kind(number: u32) -> Option<Kind> {
    let plain = |simple| Kind { simple, is_list: false };
    if let Some(row) = TYPES.iter().find(|row| row.1 == number) {
        return Some(plain(row.0));
    }
    if let Some(row) = TYPES.iter().find(|row| row.2 == number) {
        return Some(Kind {
            simple: row.0,
            is_list: true,
        });
    }
    ALIAS_OIDS.iter().find(|row| row.0 == number).map(|row| plain(row.1))
}
