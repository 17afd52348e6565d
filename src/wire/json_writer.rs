//! Protobuf's JSON form written field by field into one buffer: 64-bit numbers as texts, fields with their default value left out.
//!
//! It knows no message. The generated code makes a `String` of every number first, which is most of the cost of an answer of numbers.

/// A buffer, and whether the next field is the first of its message.
pub(crate) struct Writer {
    out: Vec<u8>,
    is_first: bool,
}

impl Writer {
    /// An empty buffer.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self {
            out: Vec::with_capacity(bytes),
            is_first: true,
        }
    }

    /// What was written.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// Begins a message.
    pub(crate) fn begin(&mut self) {
        self.out.push(b'{');
        self.is_first = true;
    }

    /// Ends a message.
    pub(crate) fn end(&mut self) {
        self.out.push(b'}');
        self.is_first = false;
    }

    /// The name of a field, before its value.
    pub(crate) fn key(&mut self, key: &str) {
        if !self.is_first {
            self.out.push(b',');
        }
        self.is_first = false;
        self.text(key);
        self.out.push(b':');
    }

    /// A signed number.
    pub(crate) fn number(&mut self, key: &str, value: i64) {
        if value != 0 {
            self.key(key);
            self.quoted(value < 0, value.unsigned_abs());
        }
    }

    /// A number without a sign.
    pub(crate) fn unsigned(&mut self, key: &str, value: u64) {
        if value != 0 {
            self.key(key);
            self.quoted(false, value);
        }
    }

    /// A truth value.
    pub(crate) fn flag(&mut self, key: &str, value: bool) {
        if value {
            self.key(key);
            self.out.extend_from_slice(b"true");
        }
    }

    /// A list of texts.
    pub(crate) fn texts(&mut self, key: &str, texts: &[String]) {
        self.list(key, texts, |writer, text| writer.text(text));
    }

    /// A list of signed numbers.
    pub(crate) fn numbers(&mut self, key: &str, values: &[i64]) {
        self.list(key, values, |writer, value| {
            writer.quoted(*value < 0, value.unsigned_abs());
        });
    }

    /// A list of numbers without a sign.
    pub(crate) fn unsigneds(&mut self, key: &str, values: &[u64]) {
        self.list(key, values, |writer, value| writer.quoted(false, *value));
    }

    /// A message.
    pub(crate) fn message(&mut self, key: &str, fields: impl FnOnce(&mut Self)) {
        self.key(key);
        self.begin();
        fields(self);
        self.end();
    }

    /// A list of messages.
    pub(crate) fn messages<T>(&mut self, key: &str, items: &[T], fields: impl Fn(&mut Self, &T)) {
        self.list(key, items, |writer, item| {
            writer.begin();
            fields(writer, item);
            writer.end();
        });
    }

    fn list<T>(&mut self, key: &str, items: &[T], each: impl Fn(&mut Self, &T)) {
        if items.is_empty() {
            return;
        }
        self.key(key);
        self.out.push(b'[');
        for (position, item) in items.iter().enumerate() {
            if position > 0 {
                self.out.push(b',');
            }
            each(self, item);
        }
        self.out.push(b']');
        self.is_first = false;
    }

    fn text(&mut self, text: &str) {
        // Writing text into a Vec cannot fail.
        let _ = serde_json::to_writer(&mut self.out, text);
    }

    /// A number as text: JSON's numbers are too short for 64 bits.
    fn quoted(&mut self, is_negative: bool, rest: u64) {
        let mut digits = itoa::Buffer::new();
        self.out.push(b'"');
        if is_negative {
            self.out.push(b'-');
        }
        self.out.extend_from_slice(digits.format(rest).as_bytes());
        self.out.push(b'"');
    }
}
