//! Writes recordings for tests: metadata as recorders write it, and any constants and events.

/// Numbers of the types of a test recording.
pub(super) const CLASS: u64 = 20;
pub(super) const METHOD: u64 = 28;
pub(super) const STACK_TRACE: u64 = 26;
pub(super) const SYMBOL: u64 = 30;
pub(super) const THREAD_STATE: u64 = 25;
pub(super) const EXECUTION_SAMPLE: u64 = 101;
pub(super) const ALLOC_IN_NEW_TLAB: u64 = 102;
pub(super) const MONITOR_ENTER: u64 = 104;
pub(super) const ACTIVE_SETTING: u64 = 108;
pub(super) const WALL_CLOCK_SAMPLE: u64 = 118;

/// A type: number, name, and fields. A field has a name, a type number, and marks: `c` for a constant, `a` for an
/// array.
type Type = (u64, &'static str, &'static [(&'static str, u64, &'static str)]);

const STRING: u64 = 9;
const INT: u64 = 7;
const LONG: u64 = 8;
const BOOLEAN: u64 = 4;
const STACK_FRAME: u64 = 27;

const TYPES: &[Type] = &[
    (BOOLEAN, "boolean", &[]),
    (INT, "int", &[]),
    (LONG, "long", &[]),
    (STRING, "java.lang.String", &[]),
    (
        CLASS,
        "java.lang.Class",
        &[("classLoader", 22, "c"), ("name", SYMBOL, "c")],
    ),
    (22, "jdk.types.ClassLoader", &[("name", SYMBOL, "c")]),
    (THREAD_STATE, "jdk.types.ThreadState", &[("name", STRING, "")]),
    (
        STACK_TRACE,
        "jdk.types.StackTrace",
        &[("truncated", BOOLEAN, ""), ("frames", STACK_FRAME, "a")],
    ),
    (
        STACK_FRAME,
        "jdk.types.StackFrame",
        &[
            ("method", METHOD, "c"),
            ("lineNumber", INT, ""),
            ("bytecodeIndex", INT, ""),
        ],
    ),
    (
        METHOD,
        "jdk.types.Method",
        &[("type", CLASS, "c"), ("name", SYMBOL, "c"), ("descriptor", SYMBOL, "c")],
    ),
    (SYMBOL, "jdk.types.Symbol", &[("string", STRING, "")]),
    (
        EXECUTION_SAMPLE,
        "jdk.ExecutionSample",
        &[
            ("startTime", LONG, ""),
            ("stackTrace", STACK_TRACE, "c"),
            ("state", THREAD_STATE, "c"),
            ("contextId", LONG, ""),
            ("spanId", LONG, ""),
            ("spanName", LONG, ""),
        ],
    ),
    (
        ALLOC_IN_NEW_TLAB,
        "jdk.ObjectAllocationInNewTLAB",
        &[
            ("startTime", LONG, ""),
            ("stackTrace", STACK_TRACE, "c"),
            ("objectClass", CLASS, "c"),
            ("allocationSize", LONG, ""),
            ("tlabSize", LONG, ""),
        ],
    ),
    (
        MONITOR_ENTER,
        "jdk.JavaMonitorEnter",
        &[
            ("startTime", LONG, ""),
            ("duration", LONG, ""),
            ("stackTrace", STACK_TRACE, "c"),
        ],
    ),
    (
        ACTIVE_SETTING,
        "jdk.ActiveSetting",
        &[
            ("startTime", LONG, ""),
            ("id", LONG, ""),
            ("name", STRING, ""),
            ("value", STRING, ""),
        ],
    ),
    (
        WALL_CLOCK_SAMPLE,
        "profiler.WallClockSample",
        &[
            ("startTime", LONG, ""),
            ("stackTrace", STACK_TRACE, "c"),
            ("state", THREAD_STATE, "c"),
            ("samples", INT, ""),
        ],
    ),
];

/// Creates a small recording of two chunks, with CPU samples of `shop/Cart.add` and `shop/Main.main`, allocations and
/// a lock.
pub(crate) fn small() -> Vec<u8> {
    let first = Chunk::new()
        .stack(1, &[("shop/Cart.add", 12), ("shop/Main.main", 3)])
        .setting(EXECUTION_SAMPLE, "event", "itimer")
        .setting(EXECUTION_SAMPLE, "interval", "20000000")
        .event(EXECUTION_SAMPLE, &[1, 1, 5, 0, 0])
        .event(EXECUTION_SAMPLE, &[1, 1, 0, 0xabc, 0])
        .event(ALLOC_IN_NEW_TLAB, &[1, 5, 16, 4096]);
    let second = Chunk::new()
        .stack(1, &[("shop/Main.main", 4)])
        .event(EXECUTION_SAMPLE, &[1, 1, 0, 0, 0])
        .event(WALL_CLOCK_SAMPLE, &[1, 2, 3])
        .event(MONITOR_ENTER, &[30, 1]);
    [first.finish(), second.finish()].concat()
}

/// Bytes of values, one after the other.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Bytes(pub Vec<u8>);

impl Bytes {
    pub(super) fn number(mut self, mut value: u64) -> Self {
        for _ in 0..8 {
            if value < 0x80 {
                self.0.push(value as u8);
                return self;
            }
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }

    pub(super) fn numbers(self, values: &[u64]) -> Self {
        values.iter().fold(self, |bytes, value| bytes.number(*value))
    }

    pub(super) fn text(mut self, text: &str) -> Self {
        self.0.push(3);
        self = self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }
}

/// Creates an event that starts with its size. The size includes the size field, which is padded to four bytes.
fn event(body: &[u8]) -> Vec<u8> {
    let size = body.len() + 4;
    let mut bytes: Vec<u8> = (0..4).map(|index| (size >> (7 * index)) as u8 & 0x7f).collect();
    bytes[..3].iter_mut().for_each(|byte| *byte |= 0x80);
    bytes.extend_from_slice(body);
    bytes
}

/// A chunk while a test writes it.
#[derive(Default)]
pub(super) struct Chunk {
    /// For each event with constants: the number of the type, and the constants with their numbers.
    pools: Vec<(u64, Vec<(u64, Bytes)>)>,
    events: Vec<u8>,
}

impl Chunk {
    /// Creates a chunk with the thread states 0 (default), 1 (runnable) and 2 (sleeping).
    pub(super) fn new() -> Self {
        let states = ["STATE_DEFAULT", "STATE_RUNNABLE", "STATE_SLEEPING"];
        let states = (0..).zip(states.map(|name| Bytes::default().text(name)));
        Self::default().constants(THREAD_STATE, states)
    }

    pub(super) fn constants(mut self, id: u64, values: impl IntoIterator<Item = (u64, Bytes)>) -> Self {
        self.pools.push((id, values.into_iter().collect()));
        self
    }

    /// Adds stack `key` with these frames, leaf first, as `Class.method` and line. Every frame has its own method,
    /// class and symbols.
    pub(super) fn stack(self, key: u64, frames: &[(&str, u64)]) -> Self {
        let mut symbols = Vec::new();
        let (mut methods, mut classes) = (Vec::new(), Vec::new());
        let mut stack = Bytes::default().numbers(&[0, frames.len() as u64]);
        for (index, (name, line)) in (0..).zip(frames) {
            let constant_id = key * 1000 + index;
            let (class, method) = name.split_once('.').unwrap();
            symbols.push((2 * constant_id, Bytes::default().text(class)));
            symbols.push((2 * constant_id + 1, Bytes::default().text(method)));
            classes.push((constant_id, Bytes::default().numbers(&[0, 2 * constant_id])));
            methods.push((
                constant_id,
                Bytes::default().numbers(&[constant_id, 2 * constant_id + 1, 0]),
            ));
            stack = stack.numbers(&[constant_id, *line, 0]);
        }
        self.constants(SYMBOL, symbols)
            .constants(CLASS, classes)
            .constants(METHOD, methods)
            .constants(STACK_TRACE, [(key, stack)])
    }

    /// Adds an event with these numbers after its start time.
    pub(super) fn event(mut self, id: u64, numbers: &[u64]) -> Self {
        let body = Bytes::default().numbers(&[id, 12345]).numbers(numbers);
        self.events.extend_from_slice(&event(&body.0));
        self
    }

    pub(super) fn setting(mut self, id: u64, name: &str, value: &str) -> Self {
        let body = Bytes::default()
            .numbers(&[ACTIVE_SETTING, 12345, id])
            .text(name)
            .text(value);
        self.events.extend_from_slice(&event(&body.0));
        self
    }

    /// Returns the bytes of the chunk. Ticks are microseconds.
    pub(super) fn finish(&self) -> Vec<u8> {
        let mut chunk = vec![0; 68];
        let metadata_at = chunk.len();
        chunk.extend_from_slice(&metadata());
        chunk.extend_from_slice(&self.events);
        let mut constants_at = 0_usize;
        for (id, values) in &self.pools {
            let start = chunk.len();
            let delta = match constants_at {
                0 => 0,
                before => before as i64 - start as i64,
            };
            let mut body = Bytes::default().numbers(&[1, 0, 0, delta as u64, 0, 1, *id, values.len() as u64]);
            for (key, value) in values {
                body = body.number(*key).bytes(&value.0);
            }
            chunk.extend_from_slice(&event(&body.0));
            constants_at = start;
        }
        let header = [
            chunk.len() as i64,
            constants_at as i64,
            metadata_at as i64,
            1_700_000_000_000_000_000,
            10_000_000_000,
            0,
            1_000_000,
        ];
        chunk[..8].copy_from_slice(b"FLR\0\0\x02\0\x01");
        for (slot, number) in chunk[8..].chunks_exact_mut(8).zip(header) {
            slot.copy_from_slice(&number.to_be_bytes());
        }
        chunk[64..68].copy_from_slice(&1_u32.to_be_bytes());
        chunk
    }
}

/// Creates the event that describes [`TYPES`].
fn metadata() -> Vec<u8> {
    let mut texts: Vec<String> = Vec::new();
    let mut index = |text: &str| {
        let known = texts.iter().position(|known| known == text);
        known.unwrap_or_else(|| {
            texts.push(text.to_owned());
            texts.len() - 1
        }) as u64
    };
    let mut element = |name: &str, attributes: &[(&str, &str)], children: u64| {
        let mut bytes = Bytes::default().numbers(&[index(name), attributes.len() as u64]);
        for (key, value) in attributes {
            bytes = bytes.numbers(&[index(key), index(value)]);
        }
        bytes.number(children).0
    };
    let mut tree = element("root", &[], 2);
    tree.extend(element("metadata", &[], TYPES.len() as u64));
    for (id, name, fields) in TYPES {
        let id = id.to_string();
        tree.extend(element(
            "class",
            &[("name", name), ("id", &id)],
            1 + fields.len() as u64,
        ));
        tree.extend(element("annotation", &[("class", "1")], 0));
        for (name, id, marks) in *fields {
            let id = id.to_string();
            let mut attributes = vec![("name", *name), ("class", &id)];
            if marks.contains('c') {
                attributes.push(("constantPool", "true"));
            }
            if marks.contains('a') {
                attributes.push(("dimension", "1"));
            }
            tree.extend(element("field", &attributes, 0));
        }
    }
    tree.extend(element("region", &[("locale", "en_US"), ("gmtOffset", "0")], 0));
    let body = Bytes::default().numbers(&[0, 0, 0, 1, texts.len() as u64]);
    let body = texts.iter().fold(body, |body, text| body.text(text));
    event(&body.bytes(&tree).0)
}
