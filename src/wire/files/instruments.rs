//! XML of Instruments: tables of samples that `xctrace export` writes for Xcode's *Time Profiler* (`time-profile`) and
//! *CPU Profiler* (`cpu-profile`).
//!
//! A row is a sample. Instead of repeating an element, a table refers to its first occurrence by a number. In: the
//! table. Out: one profile of CPU time or cycles, or of samples if the rows have no weight. The process is the
//! outermost frame.

use hashbrown::HashMap;
use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};

use crate::files::error::FileError;
use crate::files::imported::{FileFormat, ImportedProfile, Meaning};
use alluvium_profile::call_tree::{CallTree, Calls, FrameId, LimitExceeded, NodeId, Size, SizeLimit};

/// First element of every exported file.
const ROOT: &str = "<trace-query-result";
/// Number of bytes in which the first element must begin.
const SCANNED_BYTES: usize = 256;

/// Maximum depth of nested elements; a row needs eight.
const MAX_DEPTH: usize = 64;
/// Maximum number of elements that references may refer to.
const MAX_ELEMENTS: usize = 1 << 22;
/// Maximum number of frames in a stack.
const MAX_STACK: usize = 4096;

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error(transparent)]
    Xml(#[from] quick_xml::Error),
    #[error(transparent)]
    TooMany(#[from] LimitExceeded),
    #[error("it ends within an element")]
    End,
    #[error("elements are nested more than {0} levels deep")]
    Depth(usize),
    #[error("it has more than {0} elements with a number")]
    Elements(usize),
    #[error("a stack has more than {0} frames")]
    Stack(usize),
    #[error("no earlier element of this kind has the number {0}")]
    Reference(u64),
    #[error("`{0}` is not a number")]
    Number(String),
    #[error("its samples have weights of several kinds: export one table")]
    Kinds,
    #[error("its rows have no stacks: export the table `time-profile` or `cpu-profile`")]
    NoStacks,
}

/// Returns true if the file begins like a table that `xctrace export` writes.
pub(super) fn is_like(plain: &[u8]) -> bool {
    let start = plain.trim_ascii_start();
    let start = start.get(..SCANNED_BYTES).unwrap_or(start);
    start.starts_with(b"<") && memchr::memmem::find(start, ROOT.as_bytes()).is_some()
}

/// Reads the single profile of a table.
pub(super) fn read(text: &str) -> Result<Vec<ImportedProfile>, FileError> {
    let format = FileFormat::Instruments;
    let mut reader = Reader::from_str(text);
    let mut table = Table::new();
    table
        .read(&mut reader)
        .map_err(|problem| format.invalid(&format_args!("byte {}: {problem}", reader.buffer_position())))?;
    let (kind, unit) = match table.kind {
        Some(Kind::Time) => ("cpu", "nanoseconds"),
        Some(Kind::Cycles) => ("cycles", "count"),
        Some(Kind::Samples) | None => ("samples", "count"),
    };
    let meaning = Meaning {
        name: "process_cpu",
        kind,
        unit,
        ..Meaning::default()
    };
    let profile = ImportedProfile::of_tree(table.tree, meaning).map_err(|error| format.invalid(&error))?;
    Ok(profile.into_iter().collect())
}

/// Kind of the values of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Time,
    Cycles,
    Samples,
}

/// Elements that the reader uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Row,
    Weight(Kind),
    Thread,
    Process,
    /// A stack, with or without tags.
    Stack,
    Frame,
    Binary,
    Source,
    Path,
    Other,
}

impl Element {
    fn of(name: &[u8]) -> Self {
        match name {
            b"row" => Self::Row,
            b"weight" => Self::Weight(Kind::Time),
            b"cycle-weight" => Self::Weight(Kind::Cycles),
            b"thread" => Self::Thread,
            b"process" => Self::Process,
            b"backtrace" | b"tagged-backtrace" => Self::Stack,
            b"frame" => Self::Frame,
            b"binary" => Self::Binary,
            b"source" => Self::Source,
            b"path" => Self::Path,
            _ => Self::Other,
        }
    }
}

/// Meaning of an element that references may refer to by its number.
enum Content {
    Value(Kind, i64),
    /// A process. A thread also refers to its process.
    Process(FrameId),
    Stack(Stack),
    Frame(FrameId),
    /// Path of a binary or of a source file.
    Path(Box<str>),
}

/// Range of a stack's frames in the list of all frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Stack {
    start: usize,
    end: usize,
}

/// The sample that is being read.
#[derive(Default)]
struct Row {
    value: Option<(Kind, i64)>,
    process: Option<FrameId>,
    stack: Option<Stack>,
}

/// The frame that is being read.
#[derive(Default)]
struct Frame {
    name: String,
    binary: String,
    file: String,
    line: i64,
}

/// The contents of a table that have been read so far.
struct Table {
    tree: CallTree,
    kind: Option<Kind>,
    contents: HashMap<u64, Content>,
    /// Frames of all stacks, the leaf first.
    frames: Vec<FrameId>,
    /// The innermost call of each stack that was added to `tree`, by its process and the stack.
    calls: HashMap<(FrameId, Stack), NodeId>,
    /// Open elements, with the number of each.
    open: Vec<(Element, Option<u64>)>,
    row: Row,
    frame: Frame,
    /// Index at which the frames of the current stack begin.
    stack_start: usize,
    /// Text of the innermost element.
    text: String,
}

impl Table {
    fn new() -> Self {
        Self {
            tree: CallTree::new(SizeLimit::new(Size::MAX)),
            kind: None,
            contents: HashMap::new(),
            frames: Vec::new(),
            calls: HashMap::new(),
            open: Vec::new(),
            row: Row::default(),
            frame: Frame::default(),
            stack_start: 0,
            text: String::new(),
        }
    }

    fn read(&mut self, reader: &mut Reader<&[u8]>) -> Result<(), Problem> {
        loop {
            match reader.read_event()? {
                Event::Start(tag) => self.begin(&tag)?,
                Event::Empty(tag) => {
                    self.begin(&tag)?;
                    self.end()?;
                }
                Event::End(_) => self.end()?,
                Event::Text(text) if self.takes_text() => {
                    self.text.push_str(&text.xml_content().map_err(quick_xml::Error::from)?);
                }
                Event::GeneralRef(name) if self.takes_text() => {
                    let letter = name.resolve_char_ref()?;
                    let name = name.decode().map_err(quick_xml::Error::from)?;
                    self.text.extend(letter);
                    self.text.push_str(resolve_predefined_entity(&name).unwrap_or_default());
                }
                Event::Eof if !self.open.is_empty() => return Err(Problem::End),
                Event::Eof if self.frames.is_empty() => return Err(Problem::NoStacks),
                Event::Eof => return Ok(()),
                _ => {}
            }
        }
    }

    fn takes_text(&self) -> bool {
        matches!(self.open.last(), Some((Element::Weight(_) | Element::Path, _)))
    }

    fn begin(&mut self, tag: &BytesStart<'_>) -> Result<(), Problem> {
        if self.open.len() >= MAX_DEPTH {
            return Err(Problem::Depth(MAX_DEPTH));
        }
        let mut element = Element::of(tag.name().as_ref());
        let mut number = None;
        self.text.clear();
        match element {
            Element::Row => self.row = Row::default(),
            Element::Stack => self.stack_start = self.frames.len(),
            Element::Frame => self.frame = Frame::default(),
            Element::Binary => self.frame.binary.clear(),
            _ => {}
        }
        for attribute in tag.attributes().with_checks(false) {
            let attribute = attribute.map_err(quick_xml::Error::from)?;
            match (attribute.key.into_inner(), element) {
                (_, Element::Other) => break,
                (b"ref", _) => {
                    self.refer(element, parse_number(&attribute.value)?)?;
                    // A reference has no contents.
                    element = Element::Other;
                }
                (b"id", _) => number = Some(parse_number(&attribute.value)?),
                (b"name", Element::Frame) => self.frame.name = attribute.unescape_value()?.into_owned(),
                // The name is used only if there is no path.
                (b"name", Element::Binary) if self.frame.binary.is_empty() => {
                    self.frame.binary = attribute.unescape_value()?.into_owned();
                }
                (b"path", Element::Binary) => self.frame.binary = attribute.unescape_value()?.into_owned(),
                (b"line", Element::Source) => {
                    self.frame.line = i64::try_from(parse_number(&attribute.value)?).unwrap_or_default();
                }
                (b"fmt", Element::Process) => {
                    let name = attribute.unescape_value()?;
                    self.row.process = Some(self.tree.frame(without_number(&name), "", 0)?);
                }
                _ => {}
            }
        }
        self.open.push((element, number));
        Ok(())
    }

    /// Uses the value of the earlier element with this number.
    fn refer(&mut self, element: Element, number: u64) -> Result<(), Problem> {
        let content = self.contents.get(&number).ok_or(Problem::Reference(number))?;
        match (element, content) {
            (Element::Weight(kind), Content::Value(content_kind, value)) if kind == *content_kind => {
                self.row.value = Some((kind, *value));
            }
            (Element::Thread | Element::Process, Content::Process(process)) => self.row.process = Some(*process),
            (Element::Stack, Content::Stack(stack)) => self.row.stack = Some(*stack),
            (Element::Frame, Content::Frame(frame)) => self.frames.push(*frame),
            (Element::Binary, Content::Path(path)) => self.frame.binary = path.to_string(),
            (Element::Path, Content::Path(path)) => self.frame.file = path.to_string(),
            // These elements have no number in tables that Instruments writes.
            (Element::Row | Element::Source | Element::Other, _) => {}
            _ => return Err(Problem::Reference(number)),
        }
        Ok(())
    }

    /// Handles the end of the innermost element.
    fn end(&mut self) -> Result<(), Problem> {
        let Some((element, number)) = self.open.pop() else {
            return Ok(());
        };
        let content = match element {
            Element::Row => {
                self.add()?;
                None
            }
            Element::Weight(kind) => {
                let value = i64::try_from(parse_number(self.text.trim().as_bytes())?).unwrap_or(i64::MAX);
                self.row.value = Some((kind, value));
                Some(Content::Value(kind, value))
            }
            Element::Thread | Element::Process => self.row.process.map(Content::Process),
            Element::Stack => {
                // A stack with tags contains the actual stack, which has already ended.
                let is_outer = self.frames.len() == self.stack_start;
                let stack = self.row.stack.filter(|_| is_outer).unwrap_or(Stack {
                    start: self.stack_start,
                    end: self.frames.len(),
                });
                self.stack_start = self.frames.len();
                self.row.stack = Some(stack);
                Some(Content::Stack(stack))
            }
            Element::Frame => {
                let frame = self.frame()?;
                self.frames.push(frame);
                Some(Content::Frame(frame))
            }
            Element::Binary => Some(Content::Path(self.frame.binary.as_str().into())),
            Element::Path => {
                self.frame.file.clone_from(&self.text);
                Some(Content::Path(self.text.as_str().into()))
            }
            Element::Source | Element::Other => None,
        };
        if let (Some(number), Some(content)) = (number, content) {
            self.contents.insert(number, content);
        }
        if self.contents.len() > MAX_ELEMENTS {
            return Err(Problem::Elements(MAX_ELEMENTS));
        }
        Ok(())
    }

    /// Returns the frame that has been read. If the function is unknown, the frame has the name of its binary.
    fn frame(&mut self) -> Result<FrameId, LimitExceeded> {
        let Frame {
            name,
            binary,
            file,
            line,
        } = &self.frame;
        if !name.is_empty() && !name.starts_with("0x") {
            return self.tree.frame_in(name, file, *line, binary);
        }
        let binary_name = binary.rsplit('/').next().unwrap_or_default();
        let name = if binary_name.is_empty() { "unknown" } else { binary_name };
        self.tree.frame_in(&format!("[{name}]"), "", 0, binary)
    }

    /// Adds the sample that has been read.
    fn add(&mut self) -> Result<(), Problem> {
        let row = std::mem::take(&mut self.row);
        let (kind, value) = row.value.unwrap_or((Kind::Samples, 1));
        if *self.kind.get_or_insert(kind) != kind {
            return Err(Problem::Kinds);
        }
        let process = match row.process {
            Some(process) => process,
            None => self.tree.frame("[unknown]", "", 0)?,
        };
        // A sample without a stack belongs to its process.
        let stack = row.stack.unwrap_or(Stack { start: 0, end: 0 });
        let node = match self.calls.get(&(process, stack)) {
            Some(node) => *node,
            None => self.call(process, stack)?,
        };
        Ok(self.tree.add(node, value)?)
    }

    /// Adds the calls of a stack below its process, and returns the innermost call.
    fn call(&mut self, process: FrameId, stack: Stack) -> Result<NodeId, Problem> {
        let frames = self.frames.get(stack.start..stack.end).unwrap_or_default();
        if frames.len() > MAX_STACK {
            return Err(Problem::Stack(MAX_STACK));
        }
        let mut node = self.tree.call_frame(self.tree.root(), process)?;
        for frame in frames.iter().rev() {
            node = self.tree.call_frame(node, *frame)?;
        }
        self.calls.insert((process, stack), node);
        Ok(node)
    }
}

fn parse_number(digits: &[u8]) -> Result<u64, Problem> {
    let text = String::from_utf8_lossy(digits);
    let number = text.parse();
    number.map_err(|_| Problem::Number(text.chars().take(40).collect()))
}

/// Returns the name of a process such as `shop (17)` without the number.
fn without_number(process: &str) -> &str {
    let split = process.strip_suffix(')').and_then(|process| process.rsplit_once(" ("));
    match split {
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => process,
    }
}

#[cfg(test)]
mod tests {
    use crate::files::FileFormat;
    use crate::files::tests::{describe, read_text};

    /// Written like the output of `xctrace export`: weights, threads, stacks, frames, binaries and paths that occur
    /// again are references, also in stacks with tags. One sample has no stack.
    const TABLE: &str = r#"<?xml version="1.0"?>
<trace-query-result>
<node xpath='//trace-toc[1]/run[1]/data[1]/table[11]'>
<schema name="time-profile"><col><mnemonic>time</mnemonic><name>Sample Time</name></col></schema>
<row><sample-time id="1" fmt="00:00.300.613">300613208</sample-time>
 <thread id="2" fmt="Main Thread 0x12aa (My App, pid: 581)"><tid id="3" fmt="0x12aa">4778</tid>
  <process id="4" fmt="My App (581)"><pid id="5" fmt="581">581</pid></process></thread><process ref="4"/>
 <core id="6" fmt="CPU 0 (E Core)">0</core><thread-state id="7" fmt="Running">Running</thread-state>
 <weight id="8" fmt="1.00 ms">1000000</weight>
 <backtrace id="9"><frame id="10" name="Array&lt;Int&gt;.sum()" addr="0x1001">
   <binary id="11" name="App" UUID="E5D9" arch="arm64" load-addr="0x1000" path="/Apps/App"/>
   <source line="39"><path id="12">/src/a&amp;b.swift</path></source></frame>
  <frame id="13" name="0x1a0241c35" addr="0x1a0241c35"><binary id="14" name="dyld" path="/usr/lib/dyld"/></frame>
 </backtrace></row>
<row><sample-time id="15">301613208</sample-time><thread ref="2"/><process ref="4"/><weight ref="8"/>
 <backtrace ref="9"/></row>
<row><thread ref="2"/><weight ref="8"/><tagged-backtrace id="16" fmt="main"><backtrace id="17">
  <frame id="18" name="main" addr="0x1002"><binary ref="11"></binary><source line="7"><path ref="12"/></source></frame>
  <frame ref="13"/></backtrace></tagged-backtrace></row>
<row><thread ref="2"/><weight ref="8"/><tagged-backtrace ref="16"/></row>
<row><process id="19" fmt="sh (9)"/><weight id="20" fmt="2.00 ms">2000000</weight><sentinel/></row>
</node>
</trace-query-result>
"#;

    fn error(text: &str) -> String {
        read_text(text).unwrap_err().to_string()
    }

    #[test]
    fn a_table_of_instruments_has_the_time_of_its_samples() {
        let imported = read_text(TABLE).unwrap();
        assert_eq!(imported.format, FileFormat::Instruments);
        let mut actual = describe(&imported);
        actual[0].2.sort();
        let stacks = [
            "My App;[dyld];Array<Int>.sum() /src/a&b.swift:39",
            "My App;[dyld];main /src/a&b.swift:7",
            "sh",
        ];
        let stacks = stacks.map(str::to_owned).to_vec();
        let kind = "process_cpu:cpu:nanoseconds:cpu:nanoseconds".to_owned();
        assert_eq!(actual, [(kind, 6_000_000, stacks)]);
        let mappings = &imported.profiles[0].columns.get().mappings;
        let mut files: Vec<&str> = mappings.iter().map(|mapping| mapping.file).collect();
        files.sort_unstable();
        assert_eq!(files, ["/Apps/App", "/usr/lib/dyld"]);
    }

    #[test]
    fn other_tables_have_cycles_or_samples() {
        let cycles = TABLE
            .replace("<weight", "<cycle-weight")
            .replace("</weight", "</cycle-weight");
        let actual = describe(&read_text(&cycles).unwrap());
        assert_eq!(actual[0].0, "process_cpu:cycles:count:cycles:count");
        let row = "<row><process fmt='sh'/><backtrace><frame name='main'/></backtrace></row>";
        let samples = format!("<trace-query-result><node>{row}{row}</node></trace-query-result>");
        let actual = describe(&read_text(&samples).unwrap());
        let kind = "process_cpu:samples:count:cpu:nanoseconds".to_owned();
        assert_eq!(actual, [(kind, 2, vec!["sh;main".to_owned()])]);
    }

    #[test]
    fn what_is_wrong_with_a_table_is_said_with_its_place() {
        let message = error(&TABLE.replace("<backtrace ref=\"9\"/>", "<backtrace ref=\"8\"/>"));
        assert!(
            message.starts_with("cannot read the file as Instruments: byte "),
            "{message}"
        );
        assert!(
            message.contains("no earlier element of this kind has the number 8"),
            "{message}"
        );
        let message = error(&TABLE.replace(">2000000<", ">2 ms<"));
        assert!(message.ends_with("`2 ms` is not a number"), "{message}");
        let last = "<weight id=\"20\" fmt=\"2.00 ms\">2000000</weight>";
        let message = error(&TABLE.replace(last, "<cycle-weight>9</cycle-weight>"));
        assert!(message.contains("weights of several kinds"), "{message}");
        let message = error(&TABLE[..TABLE.len() - 30]);
        assert!(message.contains("it ends within an element"), "{message}");
        let states = "<trace-query-result><node><row><process fmt='sh'/></row></node></trace-query-result>";
        assert!(error(states).contains("its rows have no stacks"), "{}", error(states));
        let toc = "<?xml version=\"1.0\"?>\n<trace-toc><run number=\"1\"/></trace-toc>\n";
        assert!(
            error(toc).contains("a table of Instruments with `xctrace export`"),
            "{}",
            error(toc)
        );
    }
}
