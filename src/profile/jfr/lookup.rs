//! Resolves numbers of constants to stacks, frames, names and states of threads. Each stack, method and state is read
//! once.

use hashbrown::HashMap;

use crate::jfr::budget::Budget;
use crate::jfr::chunk::Chunk;
use crate::jfr::constants::{Constants, Pool};
use crate::jfr::error::JfrError;
use crate::jfr::generated::stable_name;
use crate::jfr::reader::{Reader, Text};
use crate::jfr::samples::{FunctionLine, Samples};
use crate::jfr::texts::TextId;
use crate::jfr::types::{FieldSelection, Types};

/// State of a thread when it was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The recording has no state with this number.
    Unknown,
    Sleeping,
    Runnable,
    Other,
}

/// The resolved constants of a chunk.
pub(super) struct Lookup<'a> {
    /// A reader of the file up to the end of the chunk.
    chunk: Reader<'a>,
    types: &'a Types,
    constants: &'a Constants,
    fields: ConstantFields,
    stacks: HashMap<u64, Option<u32>>,
    functions: HashMap<u64, Option<TextId>>,
    thread_states: HashMap<u64, State>,
}

/// For each type of constant, the fields to read.
struct ConstantFields {
    stack: Option<FieldSelection>,
    frame: Option<FieldSelection>,
    method: Option<FieldSelection>,
    class: Option<FieldSelection>,
    symbol: Option<FieldSelection>,
    thread_state: Option<FieldSelection>,
}

/// Maximum length of the name of a state or of a setting, in bytes.
const MAX_SHORT_BYTES: usize = 64;

/// Memory of an entry in a table of constants, in bytes. Counted twice, because a table that grows doubles its
/// capacity.
const ENTRY_BYTES: usize = 2 * size_of::<(u64, Option<TextId>)>() + 2;

impl<'a> Lookup<'a> {
    /// Creates a lookup for the constants of a chunk of `file`.
    pub(super) fn new(file: &'a [u8], chunk: &Chunk, types: &'a Types, constants: &'a Constants) -> Self {
        let pick = |pool, names: &[&str]| types.select(constants.type_id(pool)?, names);
        let frame = types
            .iter()
            .find(|(_, class)| &*class.name == "jdk.types.StackFrame")
            .map(|(id, _)| id);
        Self {
            chunk: chunk.reader(file, chunk.start),
            types,
            constants,
            fields: ConstantFields {
                stack: pick(Pool::StackTrace, &["frames"]),
                frame: frame.and_then(|id| types.select_all(id, &["method", "lineNumber"])),
                method: pick(Pool::Method, &["type", "name"]),
                class: pick(Pool::Class, &["name"]),
                symbol: pick(Pool::Symbol, &["string"]),
                thread_state: pick(Pool::ThreadState, &["name"]),
            },
            stacks: HashMap::new(),
            functions: HashMap::new(),
            thread_states: HashMap::new(),
        }
    }

    /// Returns the index of a stack in `samples`, or `None` if the recording does not contain it. Frames without a
    /// name are omitted.
    pub(super) fn stack(
        &mut self,
        key: u64,
        samples: &mut Samples,
        recording_budget: &mut Budget,
        chunk_budget: &mut Budget,
    ) -> Result<Option<u32>, JfrError> {
        if let Some(known) = self.stacks.get(&key) {
            return Ok(*known);
        }
        let stack = self.read_stack(key, samples, recording_budget, chunk_budget)?;
        chunk_budget
            .charge(ENTRY_BYTES)
            .map_err(|kind| self.chunk.error(kind))?;
        self.stacks.insert(key, stack);
        Ok(stack)
    }

    fn read_stack(
        &mut self,
        key: u64,
        samples: &mut Samples,
        recording_budget: &mut Budget,
        chunk_budget: &mut Budget,
    ) -> Result<Option<u32>, JfrError> {
        let [frames] = self.fields(Pool::StackTrace, key, |picks| picks.stack.as_ref(), chunk_budget)?;
        if frames == 0 {
            return Ok(None);
        }
        let mut reader = self.chunk.with_position(frames as usize);
        let start = samples.frames.len();
        for _ in 0..reader.number()? {
            let origin = reader;
            let mut numbers = [0; 2];
            let Some(selection) = &self.fields.frame else {
                return Ok(None);
            };
            chunk_budget.step().map_err(|kind| origin.error(kind))?;
            self.types.read(&mut reader, selection, chunk_budget, &mut numbers)?;
            let [method, line] = numbers;
            if let Some(function) = self.function(method, samples, recording_budget, chunk_budget)? {
                // A frame of a generated class has the line -1, which is larger than any line.
                let line = i32::try_from(line).map_or(0, i32::unsigned_abs);
                let index = samples.function_line(FunctionLine { function, line }, recording_budget);
                index
                    .and_then(|index| samples.push_frame(index, recording_budget))
                    .map_err(|kind| origin.error(kind))?;
            }
        }
        let stack = samples.stack(start, recording_budget);
        stack.map(Some).map_err(|kind| reader.error(kind))
    }

    /// Returns the name of a method: class name, dot, method name. Returns `None` if a part is missing.
    fn function(
        &mut self,
        key: u64,
        samples: &mut Samples,
        recording_budget: &mut Budget,
        chunk_budget: &mut Budget,
    ) -> Result<Option<TextId>, JfrError> {
        if let Some(known) = self.functions.get(&key) {
            return Ok(*known);
        }
        let mut function = None;
        if self.constants.position(Pool::Method, key).is_some() {
            let [class, name] = self.fields(Pool::Method, key, |picks| picks.method.as_ref(), chunk_budget)?;
            if self.constants.position(Pool::Class, class).is_some() {
                let [class] = self.fields(Pool::Class, class, |picks| picks.class.as_ref(), chunk_budget)?;
                let (class, name) = (self.symbol(class, chunk_budget)?, self.symbol(name, chunk_budget)?);
                let (class, name) = (class.characters(), name.characters());
                let text = samples
                    .texts
                    .add(&[&stable_name(&class), ".", &stable_name(&name)], recording_budget);
                function = Some(text.map_err(|kind| self.chunk.error(kind))?);
            }
        }
        chunk_budget
            .charge(ENTRY_BYTES)
            .map_err(|kind| self.chunk.error(kind))?;
        self.functions.insert(key, function);
        Ok(function)
    }

    /// Returns the state of a thread by its number.
    pub(super) fn thread_state(&mut self, key: u64, chunk_budget: &mut Budget) -> Result<State, JfrError> {
        if let Some(known) = self.thread_states.get(&key) {
            return Ok(*known);
        }
        let thread_state = if self.constants.position(Pool::ThreadState, key).is_none() {
            State::Unknown
        } else {
            let [position] = self.fields(
                Pool::ThreadState,
                key,
                |picks| picks.thread_state.as_ref(),
                chunk_budget,
            )?;
            let name = self.text(position, chunk_budget)?;
            match &*self.short_text(name, chunk_budget)? {
                "STATE_SLEEPING" => State::Sleeping,
                "STATE_RUNNABLE" => State::Runnable,
                _ => State::Other,
            }
        };
        chunk_budget
            .charge(ENTRY_BYTES)
            .map_err(|kind| self.chunk.error(kind))?;
        self.thread_states.insert(key, thread_state);
        Ok(thread_state)
    }

    /// Returns the characters of a string, or an empty text if it is longer than [`MAX_SHORT_BYTES`].
    pub(super) fn short_text(&self, text: Text<'_>, chunk_budget: &mut Budget) -> Result<String, JfrError> {
        let text = self.resolved(text, chunk_budget)?;
        let is_short = text.length() <= MAX_SHORT_BYTES;
        Ok(if is_short {
            text.characters().into()
        } else {
            String::new()
        })
    }

    /// Resolves a string that is encoded as a number in the pool of strings. Many values may refer to one string, so
    /// each use is charged with the length of the string.
    fn resolved<'t>(&self, text: Text<'t>, chunk_budget: &mut Budget) -> Result<Text<'t>, JfrError>
    where
        'a: 't,
    {
        let Text::Constant(key) = text else {
            return Ok(text);
        };
        let Some(position) = self.constants.position(Pool::String, key) else {
            return Ok(Text::Empty);
        };
        let mut reader = self.chunk.with_position(position);
        let text = reader.text()?;
        chunk_budget.charge(text.length()).map_err(|kind| reader.error(kind))?;
        Ok(text)
    }

    /// Returns the string at a position. Position 0 means that there is no string.
    fn text(&self, position: u64, chunk_budget: &mut Budget) -> Result<Text<'a>, JfrError> {
        match position {
            0 => Ok(Text::Empty),
            position => self.resolved(self.chunk.with_position(position as usize).text()?, chunk_budget),
        }
    }

    fn symbol(&self, key: u64, chunk_budget: &mut Budget) -> Result<Text<'a>, JfrError> {
        let [position] = self.fields(Pool::Symbol, key, |picks| picks.symbol.as_ref(), chunk_budget)?;
        self.text(position, chunk_budget)
    }

    /// Returns the picked fields of a constant, or zeros if it does not exist.
    fn fields<const N: usize>(
        &self,
        pool: Pool,
        key: u64,
        pick: impl Fn(&ConstantFields) -> Option<&FieldSelection>,
        chunk_budget: &mut Budget,
    ) -> Result<[u64; N], JfrError> {
        let mut numbers = [0; N];
        if let Some(position) = self.constants.position(pool, key)
            && let Some(pick) = pick(&self.fields)
        {
            self.types.read(
                &mut self.chunk.with_position(position),
                pick,
                chunk_budget,
                &mut numbers,
            )?;
        }
        Ok(numbers)
    }
}
