//! Reads values by protobuf's rules for JSON: a number may be a string, bytes are base64 in either alphabet, and `null`
//! is the default value.

use std::fmt;

use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};

/// Accepts base64 with and without padding, since clients differ.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Parses a message from JSON text.
pub(crate) fn read<M: FromJson + Default>(text: &[u8]) -> Result<M, serde_json::Error> {
    let mut message = M::default();
    let mut reader = serde_json::Deserializer::from_slice(text);
    message.read(&mut reader)?;
    reader.end()?;
    Ok(message)
}

/// A value that can be read from JSON.
pub trait FromJson {
    /// Replaces the value with the parsed one.
    fn read<'de, D: Deserializer<'de>>(&mut self, reader: D) -> Result<(), D::Error>;
}

/// The fields of a message. The generated code implements this trait for its messages, and `otlp::json` for those of
/// OTLP.
pub trait Fields {
    /// Name of each field in protobuf's JSON and in the proto file. Both are accepted.
    const NAMES: &'static [[&'static str; 2]];

    /// Reads the field with this index in [`Fields::NAMES`].
    fn read_field<'de, A: MapAccess<'de>>(&mut self, index: usize, map: &mut A) -> Result<(), A::Error>;
}

impl<M: Fields> FromJson for M {
    fn read<'de, D: Deserializer<'de>>(&mut self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(MessageVisitor(self))
    }
}

/// A field as a target for serde.
pub(crate) struct Field<'a, T>(pub &'a mut T);

impl<'de, T: FromJson> DeserializeSeed<'de> for Field<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        self.0.read(reader)
    }
}

/// An enum field as a target for serde, with the function that maps a name to its number.
pub(crate) struct Enum<'a, T>(pub &'a mut T, pub fn(&str) -> Option<i32>);

impl<'de, T: From<i32>> DeserializeSeed<'de> for Enum<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        struct EnumVisitor(fn(&str) -> Option<i32>);

        impl Visitor<'_> for EnumVisitor {
            type Value = Option<i32>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a name of an enumeration")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Option<i32>, E> {
                Ok(self.0(name))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Option<i32>, E> {
                Ok(i32::try_from(number).ok())
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Option<i32>, E> {
                Ok(i32::try_from(number).ok())
            }

            fn visit_unit<E: Error>(self) -> Result<Option<i32>, E> {
                Ok(None)
            }
        }

        if let Some(number) = reader.deserialize_any(EnumVisitor(self.1))? {
            *self.0 = number.into();
        }
        Ok(())
    }
}

/// A bytes field that is hexadecimal in JSON, as a target for serde.
pub(crate) struct Hex<'a>(pub &'a mut Vec<u8>);

impl<'de> DeserializeSeed<'de> for Hex<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        *self.0 = reader.deserialize_any(ScalarVisitor {
            expected: "bytes in hexadecimal",
            convert: |scalar| match scalar {
                Scalar::Null => Some(Vec::new()),
                Scalar::Text(text) => hexadecimal_bytes(text),
                _ => None,
            },
        })?;
        Ok(())
    }
}

struct MessageVisitor<'a, M>(&'a mut M);

impl<'de, M: Fields> Visitor<'de> for MessageVisitor<'_, M> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        // The generator checks that no message has more than 64 fields.
        let mut read_fields = 0_u64;
        while let Some(index) = map.next_key_seed(FieldName(M::NAMES))? {
            let Some(index) = index else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if read_fields & 1 << index != 0 {
                return Err(A::Error::duplicate_field(M::NAMES[index][0]));
            }
            read_fields |= 1 << index;
            self.0.read_field(index, &mut map)?;
        }
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Maps a field's name to its index; `None` for an unknown name.
struct FieldName(&'static [[&'static str; 2]]);

impl<'de> DeserializeSeed<'de> for FieldName {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Option<usize>, D::Error> {
        reader.deserialize_identifier(self)
    }
}

impl Visitor<'_> for FieldName {
    type Value = Option<usize>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Option<usize>, E> {
        Ok(self.0.iter().position(|names| names.contains(&name)))
    }
}

impl<T: FromJson + Default> FromJson for Option<T> {
    fn read<'de, D: Deserializer<'de>>(&mut self, reader: D) -> Result<(), D::Error> {
        struct OptionVisitor<'a, T>(&'a mut Option<T>);

        impl<'de, T: FromJson + Default> Visitor<'de> for OptionVisitor<'_, T> {
            type Value = ();

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a value or null")
            }

            fn visit_some<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
                self.0.insert(T::default()).read(reader)
            }

            fn visit_none<E: Error>(self) -> Result<(), E> {
                Ok(())
            }
        }

        reader.deserialize_option(OptionVisitor(self))
    }
}

impl<T: FromJson + Default> FromJson for Vec<T> {
    fn read<'de, D: Deserializer<'de>>(&mut self, reader: D) -> Result<(), D::Error> {
        struct ListVisitor<'a, T>(&'a mut Vec<T>);

        impl<'de, T: FromJson + Default> Visitor<'de> for ListVisitor<'_, T> {
            type Value = ();

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
                let mut value = T::default();
                while list.next_element_seed(Field(&mut value))?.is_some() {
                    self.0.push(std::mem::take(&mut value));
                }
                Ok(())
            }

            fn visit_unit<E: Error>(self) -> Result<(), E> {
                Ok(())
            }
        }

        reader.deserialize_any(ListVisitor(self))
    }
}

/// A JSON value that can become a number, a string or a boolean.
enum Scalar<'a> {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(&'a str),
}

impl Scalar<'_> {
    fn unexpected(&self) -> Unexpected<'_> {
        match self {
            Scalar::Null => Unexpected::Unit,
            Scalar::Bool(value) => Unexpected::Bool(*value),
            Scalar::Integer(_) => Unexpected::Other("another number"),
            Scalar::Float(value) => Unexpected::Float(*value),
            Scalar::Text(text) => Unexpected::Str(text),
        }
    }
}

/// Builds a value from a scalar without copying its text.
struct ScalarVisitor<T> {
    expected: &'static str,
    convert: fn(&Scalar<'_>) -> Option<T>,
}

impl<T> ScalarVisitor<T> {
    fn value<E: Error>(self, scalar: &Scalar<'_>) -> Result<T, E> {
        (self.convert)(scalar).ok_or_else(|| E::invalid_value(scalar.unexpected(), &self.expected))
    }
}

impl<T> Visitor<'_> for ScalarVisitor<T> {
    type Value = T;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.expected)
    }

    fn visit_unit<E: Error>(self) -> Result<T, E> {
        self.value(&Scalar::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<T, E> {
        self.value(&Scalar::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<T, E> {
        self.value(&Scalar::Integer(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<T, E> {
        self.value(&Scalar::Integer(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<T, E> {
        self.value(&Scalar::Float(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<T, E> {
        self.value(&Scalar::Text(value))
    }
}

/// Implements [`FromJson`] for scalar types. Each type is followed by the text that names it in errors, and by the JSON
/// forms that it accepts. Each form has an expression that gives the value as an `Option`.
macro_rules! read_scalars {
    ($($kind:ty, $expected:literal, { $($pattern:pat => $value:expr,)* })*) => {$(
        impl FromJson for $kind {
            fn read<'de, D: Deserializer<'de>>(&mut self, reader: D) -> Result<(), D::Error> {
                *self = reader.deserialize_any(ScalarVisitor {
                    expected: $expected,
                    convert: |scalar| match scalar {
                        Scalar::Null => Some(<$kind>::default()),
                        $($pattern => $value,)*
                        _ => None,
                    },
                })?;
                Ok(())
            }
        }
    )*};
}

macro_rules! read_integers {
    ($($kind:ty, $expected:literal;)*) => {
        read_scalars! {$(
            $kind, $expected, {
                Scalar::Integer(value) => (*value).try_into().ok(),
                Scalar::Float(value) => integer(*value).and_then(|value| value.try_into().ok()),
                Scalar::Text(text) => text.parse().ok(),
            }
        )*}
    };
}

read_integers! {
    i64, "an integer of 64 bits";
    u64, "an integer of 64 bits that is not negative";
    i32, "an integer of 32 bits";
    u32, "an integer of 32 bits that is not negative";
}

read_scalars! {
    bool, "true or false", {
        Scalar::Bool(value) => Some(*value),
    }
    f64, "a number", {
        Scalar::Integer(value) => Some(*value as f64),
        Scalar::Float(value) => Some(*value),
        Scalar::Text(text) => text.parse().ok(),
    }
    String, "a text", {
        Scalar::Text(text) => Some((*text).to_owned()),
    }
    Bytes, "bytes in base64", {
        Scalar::Text(text) => base64_bytes(text),
    }
}

/// Converts a float without a fraction: `1.0` and `1e3` are also integers.
fn integer(value: f64) -> Option<i128> {
    (value.fract() == 0.0).then_some(value as i128)
}

fn base64_bytes(text: &str) -> Option<Bytes> {
    let is_url_safe = text.contains(['-', '_']);
    let decoded = if is_url_safe {
        base64::Engine::decode(&BASE64, text.replace('-', "+").replace('_', "/"))
    } else {
        base64::Engine::decode(&BASE64, text)
    };
    decoded.ok().map(Bytes::from)
}

fn hexadecimal_bytes(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| Some(char::from(*byte).to_digit(16)? as u8);
    let pairs = text.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    });
    pairs.collect()
}
