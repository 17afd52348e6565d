//! JSON as Go's `encoding/json` reads it, for responses of services that are written for Go clients.
//!
//! In: bytes. Out: a value, or an error with line and column. Two rules differ from `serde_json`. `null` stands for the
//! empty value of every type (no items, no fields, an empty text, 0, false). If no field name matches exactly, upper
//! and lower case are ignored.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::{CowStrDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer as _, MapAccess, SeqAccess,
    Visitor,
};

/// Parses a text that consists of a single value.
pub fn from_slice<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let value = T::deserialize(Go(&mut deserializer))?;
    deserializer.end()?;
    Ok(value)
}

/// Field names of a struct; empty for other types.
type Fields = &'static [&'static str];

/// Wraps a deserializer, a sequence or a seed, so that it follows Go's rules.
struct Go<D>(D);

/// Expected type of a value that is not null.
#[derive(Clone, Copy)]
enum Expected {
    Bool,
    Signed,
    Unsigned,
    Float,
    Text,
    Seq,
    Map,
    Struct(&'static str, Fields),
}

/// A visitor that visits the empty value in place of null.
struct OrEmpty<V> {
    visitor: V,
    expected: Expected,
}

/// A visitor that applies Go's rules to the contents of a value.
struct Inside<V> {
    visitor: V,
    fields: Fields,
}

struct Entries<A> {
    map: A,
    fields: Fields,
}

macro_rules! or_empty {
    ($($method:ident: $expected:ident,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.deserialize_option(OrEmpty { visitor, expected: Expected::$expected })
        }
    )*};
}

macro_rules! inside {
    ($($method:ident($($argument:ident: $kind:ty),*),)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($argument: $kind,)* visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method($($argument,)* Inside { visitor, fields: &[] })
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Go<D> {
    type Error = D::Error;

    or_empty! {
        deserialize_bool: Bool,
        deserialize_i8: Signed,
        deserialize_i16: Signed,
        deserialize_i32: Signed,
        deserialize_i64: Signed,
        deserialize_u8: Unsigned,
        deserialize_u16: Unsigned,
        deserialize_u32: Unsigned,
        deserialize_u64: Unsigned,
        deserialize_f32: Float,
        deserialize_f64: Float,
        deserialize_char: Text,
        deserialize_str: Text,
        deserialize_string: Text,
        deserialize_seq: Seq,
        deserialize_map: Map,
    }

    inside! {
        deserialize_any(),
        deserialize_bytes(),
        deserialize_byte_buf(),
        deserialize_option(),
        deserialize_unit(),
        deserialize_unit_struct(name: &'static str),
        deserialize_tuple(length: usize),
        deserialize_tuple_struct(name: &'static str, length: usize),
        deserialize_enum(name: &'static str, variants: Fields),
        deserialize_identifier(),
        deserialize_ignored_any(),
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        // `serde_json` uses a private newtype name that begins with `$` for the raw text of a value.
        if name.starts_with('$') {
            return self.0.deserialize_newtype_struct(name, visitor);
        }
        self.0.deserialize_newtype_struct(name, Inside { visitor, fields: &[] })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: Fields,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let expected = Expected::Struct(name, fields);
        self.0.deserialize_option(OrEmpty { visitor, expected })
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for OrEmpty<V> {
    type Value = V::Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(out)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        let visitor = self.visitor;
        match self.expected {
            Expected::Bool => visitor.visit_bool(false),
            Expected::Signed | Expected::Unsigned => visitor.visit_u64(0),
            Expected::Float => visitor.visit_f64(0.0),
            Expected::Text => visitor.visit_str(""),
            Expected::Seq => visitor.visit_seq(SeqDeserializer::<_, E>::new(std::iter::empty::<()>())),
            Expected::Map | Expected::Struct(..) => {
                visitor.visit_map(MapDeserializer::<_, E>::new(std::iter::empty::<((), ())>()))
            }
        }
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let visitor = self.visitor;
        let fields: Fields = &[];
        match self.expected {
            Expected::Bool => deserializer.deserialize_bool(visitor),
            Expected::Signed => deserializer.deserialize_i64(visitor),
            Expected::Unsigned => deserializer.deserialize_u64(visitor),
            Expected::Float => deserializer.deserialize_f64(visitor),
            Expected::Text => deserializer.deserialize_str(visitor),
            Expected::Seq => deserializer.deserialize_seq(Inside { visitor, fields }),
            Expected::Map => deserializer.deserialize_map(Inside { visitor, fields }),
            Expected::Struct(name, fields) => deserializer.deserialize_struct(name, fields, Inside { visitor, fields }),
        }
    }
}

macro_rules! forward {
    ($($method:ident($kind:ty),)*) => {$(
        fn $method<E: Error>(self, value: $kind) -> Result<V::Value, E> {
            self.visitor.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Inside<V> {
    type Value = V::Value;

    forward! {
        visit_bool(bool),
        visit_i64(i64),
        visit_u64(u64),
        visit_f64(f64),
        visit_str(&str),
        visit_borrowed_str(&'de str),
        visit_string(String),
        visit_bytes(&[u8]),
        visit_borrowed_bytes(&'de [u8]),
        visit_byte_buf(Vec<u8>),
    }

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(out)
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_some(Go(deserializer))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_newtype_struct(Go(deserializer))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_seq(Go(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        let fields = self.fields;
        self.visitor.visit_map(Entries { map, fields })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_enum(variant)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Go<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Go(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Entries<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        if self.fields.is_empty() {
            return self.map.next_key_seed(seed);
        }
        let Some(key) = self.map.next_key::<Cow<'de, str>>()? else {
            return Ok(None);
        };
        let other = self.fields.iter().find(|field| field.eq_ignore_ascii_case(&key));
        let is_exact = self.fields.contains(&key.as_ref());
        let key = other.filter(|_| !is_exact).map_or(key, |field| Cow::Borrowed(*field));
        let key: CowStrDeserializer<'_, A::Error> = key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.map.next_value_seed(Go(seed))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Go<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Go(deserializer))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::value::RawValue;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "PascalCase", deny_unknown_fields)]
    struct Service {
        id: String,
        #[serde(default)]
        port: u16,
        #[serde(default)]
        tags: Vec<String>,
        #[serde(default)]
        meta: BTreeMap<String, String>,
        #[serde(default)]
        inner: Option<Box<Service>>,
        #[serde(default)]
        is_on: bool,
        #[serde(default)]
        weight: f64,
    }

    fn service(id: &str) -> Service {
        Service {
            id: id.to_owned(),
            port: 0,
            tags: Vec::new(),
            meta: BTreeMap::new(),
            inner: None,
            is_on: false,
            weight: 0.0,
        }
    }

    fn read<T: DeserializeOwned>(json: &str) -> Result<T, String> {
        from_slice(json.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn null_is_the_empty_value_of_every_type() {
        assert_eq!(read::<Vec<Service>>("null"), Ok(Vec::new()));
        let json =
            r#"{"Id": null, "Port": null, "Tags": null, "Meta": null, "Inner": null, "IsOn": null, "Weight": null}"#;
        assert_eq!(read(json), Ok(service("")));
        let json = r#"[{"Id": "a", "Tags": [null, "x"], "Meta": {"k": null}}]"#;
        let expected = Service {
            tags: vec![String::new(), "x".to_owned()],
            meta: BTreeMap::from([("k".to_owned(), String::new())]),
            ..service("a")
        };
        assert_eq!(read(json), Ok(vec![expected]));
    }

    #[test]
    fn names_of_fields_match_in_any_case_and_keys_of_maps_do_not() {
        let json = r#"{"id": "a", "PORT": 7, "meta": {"K": "1", "k": "2"}, "inner": {"ID": "b"}}"#;
        let expected = Service {
            port: 7,
            meta: ["K", "k"]
                .iter()
                .zip(["1", "2"])
                .map(|(key, value)| (key.to_string(), value.to_owned()))
                .collect(),
            inner: Some(Box::new(service("b"))),
            ..service("a")
        };
        assert_eq!(read(json), Ok(expected));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (json, expected) in [
            (
                r#"{"Id": 1}"#,
                "invalid type: integer `1`, expected a string at line 1 column 8",
            ),
            (
                r#"{"Id": "a", "Tags": 1}"#,
                "invalid type: integer `1`, expected a sequence at line 1 column 21",
            ),
            (
                r#"{"Id": "a", "Port": 70000}"#,
                "invalid value: integer `70000`, expected u16 at line 1 column 25",
            ),
            (r#"{"Id": "a", "Name": 1}"#, "unknown field `Name`"),
            ("{\"Id\": \"a\"} x", "trailing characters at line 1 column 13"),
            ("{}", "missing field `Id` at line 1 column 2"),
        ] {
            let error = read::<Service>(json).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn values_of_any_type_are_read_as_they_stand() {
        let json = r#"{"a": [1, null, {"b": 2.5}]}"#;
        assert_eq!(read::<serde_json::Value>(json), Ok(serde_json::from_str(json).unwrap()));
        assert_eq!(read::<Box<RawValue>>(json).unwrap().get(), json);
        assert_eq!(read::<(u8, Option<u8>)>("[1, null]"), Ok((1, None)));
    }
}
