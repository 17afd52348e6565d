//! A pprof profile in memory: columns over one buffer. Ids of the wire format are resolved to indices. Strings are
//! borrowed.

/// A decoded, validated profile. Every index in it is in bounds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile<'a> {
    /// Meaning of each value of a sample.
    pub sample_types: Vec<ValueType<'a>>,
    /// The event that triggers samples.
    pub period_type: ValueType<'a>,
    /// Number of units of `period_type` between two samples.
    pub period: i64,
    /// Start of the collection as Unix time in nanoseconds; 0 if unknown.
    pub time_nanos: i64,
    /// Length of the collection in nanoseconds; 0 if unknown.
    pub duration_nanos: i64,
    /// Sample type that a viewer shows first; may be empty.
    pub default_sample_type: &'a str,
    /// Free text from the producer of the profile.
    pub comments: Vec<&'a str>,
    /// Regular expression for the frames that viewers omit; may be empty.
    pub drop_frames: &'a str,
    /// Regular expression for the frames that viewers show even if they match `drop_frames`; may be empty.
    pub keep_frames: &'a str,
    /// Binaries that locations refer to.
    pub mappings: Vec<Mapping<'a>>,
    /// Functions that lines refer to.
    pub functions: Vec<Function<'a>>,
    /// Code addresses that samples refer to.
    pub locations: Vec<Location>,
    /// Lines of all locations. Each location owns a range of lines. Within a location, the innermost inlined function
    /// comes first.
    pub lines: Vec<Line>,
    /// Location indices of all samples, leaf first within a sample.
    pub sample_locations: Vec<u32>,
    /// Sample `i` owns `sample_locations[sample_starts[i]..sample_starts[i + 1]]`. There is one entry more than there
    /// are samples (empty profile: `[0]`).
    pub sample_starts: Vec<u32>,
    /// Values, row by row: sample `i` owns `values[i * sample_types.len()..][..sample_types.len()]`.
    pub values: Vec<i64>,
    /// Labels of all samples, one after the other.
    pub labels: Vec<SampleLabel<'a>>,
    /// Sample `i` owns `labels[label_starts[i]..label_starts[i + 1]]`. There is one entry more than there are
    /// samples.
    pub label_starts: Vec<u32>,
}

/// A type and its unit, such as `cpu` / `nanoseconds`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ValueType<'a> {
    /// `cpu`, `alloc_space`, ...
    pub kind: &'a str,
    /// `nanoseconds`, `bytes`, `count`, ...
    pub unit: &'a str,
}

/// A binary mapped into the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Mapping<'a> {
    /// First address of the mapping.
    pub start: u64,
    /// End address (exclusive).
    pub limit: u64,
    /// File offset of the first address.
    pub offset: u64,
    /// Path of the file or a name such as `[vdso]`.
    pub file: &'a str,
    /// Build id of the binary in hexadecimal digits.
    pub build_id: &'a str,
    /// The four `has_*` flags: functions, filenames, line numbers, inline frames.
    pub has: [bool; 4],
}

/// A function in the source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Function<'a> {
    /// Readable (demangled) name.
    pub name: &'a str,
    /// Name in the binary (mangled).
    pub system_name: &'a str,
    /// Path of the source file.
    pub file: &'a str,
    /// Line at which the function starts; 0 if unknown.
    pub start_line: i64,
}

/// A code address with the functions at it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Location {
    /// Index of its mapping, or [`Location::NO_MAPPING`].
    pub mapping: u32,
    /// Address of the code; 0 if unknown.
    pub address: u64,
    /// Start of its lines in [`Profile::lines`].
    pub lines_start: u32,
    /// End of its lines in [`Profile::lines`].
    pub lines_end: u32,
    /// True if the linker folded several functions into one.
    pub is_folded: bool,
}

impl Location {
    /// Value of `mapping` for a location outside of every mapping.
    pub const NO_MAPPING: u32 = u32::MAX;
}

/// A function and a line in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Line {
    /// Index of the function in [`Profile::functions`].
    pub function: u32,
    /// Line number; 0 if unknown.
    pub line: i64,
}

/// A label of a sample, text or number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SampleLabel<'a> {
    /// A text label: key and value.
    Text(&'a str, &'a str),
    /// A number label: key, value and unit.
    Number(&'a str, i64, &'a str),
}

impl<'a> Profile<'a> {
    /// Returns the number of samples in the profile.
    pub fn sample_count(&self) -> usize {
        self.sample_starts.len().saturating_sub(1)
    }

    /// Returns the location indices of sample `index`, leaf first.
    pub fn stack(&self, index: usize) -> &[u32] {
        &self.sample_locations[self.sample_starts[index] as usize..self.sample_starts[index + 1] as usize]
    }

    /// Returns the values of sample `index`, one per sample type.
    pub fn values_of(&self, index: usize) -> &[i64] {
        let width = self.sample_types.len();
        &self.values[index * width..(index + 1) * width]
    }

    /// Returns the labels of sample `index`.
    pub fn labels_of(&self, index: usize) -> &[SampleLabel<'a>] {
        &self.labels[self.label_starts[index] as usize..self.label_starts[index + 1] as usize]
    }

    /// Returns the memory of the columns in bytes, without the borrowed texts.
    pub fn column_bytes(&self) -> usize {
        fn bytes_of<T>(column: &Vec<T>) -> usize {
            column.capacity() * size_of::<T>()
        }
        bytes_of(&self.sample_types)
            + bytes_of(&self.comments)
            + bytes_of(&self.mappings)
            + bytes_of(&self.functions)
            + bytes_of(&self.locations)
            + bytes_of(&self.lines)
            + bytes_of(&self.sample_locations)
            + bytes_of(&self.sample_starts)
            + bytes_of(&self.values)
            + bytes_of(&self.labels)
            + bytes_of(&self.label_starts)
    }

    /// Returns the index of the sample type that is shown first: the type that the profile names, or else the last
    /// type.
    pub fn default_value(&self) -> usize {
        let named = |kind: &ValueType<'_>| kind.kind == self.default_sample_type;
        let named = self.sample_types.iter().position(named);
        let named = named.filter(|_| !self.default_sample_type.is_empty());
        named.unwrap_or(self.sample_types.len().saturating_sub(1))
    }

    /// Returns the lines of a location, innermost first.
    pub fn lines_of(&self, location: &Location) -> &[Line] {
        &self.lines[location.lines_start as usize..location.lines_end as usize]
    }
}
