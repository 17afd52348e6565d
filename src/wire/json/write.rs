//! Writes values field by field into one buffer, without a `String` for each number. Responses consist mostly of
//! numbers.

use bytes::Bytes;

/// A value that can be written as JSON.
pub trait ToJson {
    /// Returns true for the default value of the type. A field without presence is omitted if it has this value.
    fn is_default(&self) -> bool {
        false
    }

    /// Appends the value as JSON.
    fn write(&self, out: &mut Writer);
}

/// A JSON buffer, with a flag for the first field of a message.
pub struct Writer {
    out: Vec<u8>,
    is_first: bool,
}

impl Writer {
    /// Creates an empty buffer with this capacity in bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            out: Vec::with_capacity(bytes),
            is_first: true,
        }
    }

    /// Returns the JSON text written so far.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// Writes a message with these fields.
    pub fn message(&mut self, fields: impl FnOnce(&mut Self)) {
        self.out.push(b'{');
        self.is_first = true;
        fields(self);
        self.out.push(b'}');
        self.is_first = false;
    }

    /// Writes a field unless it has its default value. Field names need no escaping.
    pub fn field(&mut self, name: &str, value: &impl ToJson) {
        if value.is_default() {
            return;
        }
        if !self.is_first {
            self.out.push(b',');
        }
        self.is_first = false;
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        value.write(self);
    }

    fn serde(&mut self, value: &(impl serde::Serialize + ?Sized)) {
        // Writing texts and numbers to a `Vec` cannot fail.
        let _ = serde_json::to_writer(&mut self.out, value);
    }

    /// Writes a number as a string, because not all readers keep 64-bit JSON numbers exact.
    fn quoted(&mut self, number: impl itoa::Integer) {
        self.out.push(b'"');
        self.out
            .extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        self.out.push(b'"');
    }
}

macro_rules! write_values {
    ($($kind:ty, $default:expr, |$value:ident, $out:ident| $write:expr;)*) => {$(
        impl ToJson for $kind {
            fn is_default(&self) -> bool {
                *self == $default
            }

            fn write(&self, $out: &mut Writer) {
                let $value = self;
                $write
            }
        }
    )*};
}

write_values! {
    i64, 0, |value, out| out.quoted(*value);
    u64, 0, |value, out| out.quoted(*value);
    i32, 0, |value, out| out.serde(value);
    u32, 0, |value, out| out.serde(value);
    bool, false, |value, out| out.serde(value);
    f64, 0.0, |value, out| match *value {
        value if value.is_nan() => out.serde("NaN"),
        f64::INFINITY => out.serde("Infinity"),
        f64::NEG_INFINITY => out.serde("-Infinity"),
        value => out.serde(&value),
    };
    String, "", |value, out| out.serde(value.as_str());
    Bytes, Bytes::new(), |value, out| {
        out.serde(&base64::Engine::encode(&base64::engine::general_purpose::STANDARD, value));
    };
}

/// Bytes to write in hexadecimal.
pub(crate) struct HexText<'a>(pub &'a [u8]);

impl ToJson for HexText<'_> {
    fn is_default(&self) -> bool {
        self.0.is_empty()
    }

    fn write(&self, out: &mut Writer) {
        let digits: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        out.serde(&digits);
    }
}

/// An enum name, or the number of an unknown value.
impl ToJson for Result<&'static str, i32> {
    fn write(&self, out: &mut Writer) {
        match self {
            Ok(name) => out.serde(name),
            Err(number) => out.serde(number),
        }
    }
}

/// A field with presence, written if it is set, even to its default value.
impl<T: ToJson> ToJson for Option<T> {
    fn is_default(&self) -> bool {
        self.is_none()
    }

    fn write(&self, out: &mut Writer) {
        if let Some(value) = self {
            value.write(out);
        }
    }
}

impl<T: ToJson> ToJson for Vec<T> {
    fn is_default(&self) -> bool {
        self.is_empty()
    }

    fn write(&self, out: &mut Writer) {
        out.out.push(b'[');
        for (index, value) in self.iter().enumerate() {
            if index > 0 {
                out.out.push(b',');
            }
            value.write(out);
        }
        out.out.push(b']');
    }
}
