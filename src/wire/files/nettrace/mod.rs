//! `.nettrace`: .NET traces of versions 4 and 5, as `dotnet-trace collect` writes them.
//!
//! A file is a list of blocks: descriptions of events, stacks of addresses, and events. The sample profiler writes an
//! event about every millisecond for every thread, with the thread's stack. The runtime writes an event with the
//! address of each method, mostly at the end. In: the whole file. Out: `wall`, the time of all threads, and
//! `process_cpu`, the part of that time in which the threads ran managed code. `dotnet-trace` calls this part CPU time.
//! A sample lasts until the next sample of its thread.

mod blobs;
mod cursor;
mod names;
#[cfg(test)]
mod tests;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::files::error::FileError;
use crate::files::imported::{FileFormat, ImportedProfile, Meaning};
use crate::files::nettrace::blobs::{Blobs, Event};
use crate::files::nettrace::cursor::{Cursor, Problem, Text};
use crate::files::nettrace::names::Names;
use alluvium_profile::call_tree::{CallTree, Calls, FrameId, Size, SizeLimit};

/// First bytes of every file.
pub(super) const MAGIC: &[u8] = b"Nettrace";

/// In supported versions, the magic is followed by the length of this text, and then by the text. Later versions have a
/// zero instead of the length.
const SERIALIZATION: &[u8] = b"!FastSerialization.1";

// Tags of objects.
const NULL: u8 = 1;
const BEGIN: u8 = 5;
const END: u8 = 6;

/// Newest supported version of the first object, `Trace`.
const NEWEST: u32 = 5;

// Limits on memory: stacks that events may still refer to, stacks of samples, and threads.
const MAX_LIVE_STACKS: usize = 1 << 20;
const MAX_STACKS: usize = 1 << 20;
const MAX_THREADS: usize = 1 << 16;
/// Maximum total length in bytes of the texts from which the names of a profile are built. A method may occur often,
/// and one long text may be part of many names.
const MAX_NAME_BYTES: usize = 64 << 20;

/// Payload of a sample taken in managed code.
const MANAGED: u32 = 2;

const SECOND_NANOS: u128 = 1_000_000_000;
/// Maximum duration of the last sample of a thread. The last sample lasts for the sample interval of the file, but not
/// longer than this limit.
const MAX_INTERVAL_NANOS: u32 = 1_000_000_000;

/// Reads the profiles of a file.
pub(super) fn read(plain: &[u8]) -> Result<Vec<ImportedProfile>, FileError> {
    profiles(plain).map_err(|problem| FileFormat::Nettrace.invalid(&problem))
}

fn profiles(plain: &[u8]) -> Result<Vec<ImportedProfile>, Problem> {
    let mut cursor = Cursor::new(plain);
    cursor.bytes(MAGIC.len())?;
    if cursor.u32()? as usize != SERIALIZATION.len() {
        return Err(Problem::Version(cursor.u32()?));
    }
    if cursor.bytes(SERIALIZATION.len())? != SERIALIZATION {
        return Err(cursor.malformed("it is not serialized by `!FastSerialization.1`"));
    }
    let mut trace = Trace::default();
    loop {
        match cursor.u8()? {
            NULL => break,
            BEGIN => object(&mut trace, &mut cursor)?,
            _ => return Err(cursor.malformed("no object begins here")),
        }
    }
    trace.finish()
}

/// Reads the object after the tag that begins it.
fn object<'a>(trace: &mut Trace<'a>, cursor: &mut Cursor<'a>) -> Result<(), Problem> {
    if cursor.bytes(2)? != [BEGIN, NULL] {
        return Err(cursor.malformed("an object has no type"));
    }
    let _version = cursor.u32()?;
    let least_version = cursor.u32()?;
    let length = cursor.u32()?;
    let name = cursor.bytes(length as usize)?;
    end(cursor)?;
    if name == b"Trace" {
        if least_version > NEWEST {
            return Err(Problem::Version(least_version));
        }
        trace.header = Some(TraceHeader::read(cursor)?);
    } else {
        let length = cursor.u32()?;
        cursor.align()?;
        let block = cursor.part(length as usize)?;
        match name {
            b"MetadataBlock" => trace.add_descriptions(block)?,
            b"StackBlock" => trace.add_stacks(block)?,
            b"EventBlock" => trace.add_events(block)?,
            // After a sequence point, no event refers to an earlier stack.
            b"SPBlock" => trace.stacks.clear(),
            _ => {}
        }
    }
    end(cursor)
}

fn end(cursor: &mut Cursor<'_>) -> Result<(), Problem> {
    match cursor.u8()? {
        END => Ok(()),
        _ => Err(cursor.malformed("an object does not end here")),
    }
}

/// Data about the whole trace, from the first object.
#[derive(Debug, Clone, Copy)]
struct TraceHeader {
    time_nanos: i64,
    /// Clock ticks at the beginning of the trace, and ticks per second.
    start: u64,
    frequency: u64,
    pointer_bytes: usize,
    interval_nanos: u32,
}

impl TraceHeader {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, Problem> {
        let mut date = [0; 8];
        for part in &mut date {
            *part = cursor.u16()?;
        }
        let header = Self {
            time_nanos: unix_nanos(date).unwrap_or(0),
            start: cursor.u64()?,
            frequency: cursor.u64()?,
            pointer_bytes: cursor.u32()? as usize,
            interval_nanos: {
                // The process id and the number of processors come first.
                cursor.u64()?;
                cursor.u32()?
            },
        };
        if header.frequency == 0 {
            return Err(cursor.malformed("the clock has no frequency"));
        }
        if !matches!(header.pointer_bytes, 4 | 8) {
            return Err(cursor.malformed("addresses have neither four nor eight bytes"));
        }
        Ok(header)
    }

    fn nanos(&self, ticks: u64) -> i64 {
        let nanos = u128::from(ticks) * SECOND_NANOS / u128::from(self.frequency.max(1));
        i64::try_from(nanos).unwrap_or(i64::MAX)
    }

    /// Returns the sample interval in ticks.
    fn interval_ticks(&self) -> u64 {
        let nanos = u128::from(self.interval_nanos.min(MAX_INTERVAL_NANOS));
        u64::try_from(nanos * u128::from(self.frequency) / SECOND_NANOS).unwrap_or(u64::MAX)
    }
}

/// Converts year, month, day of the week, day, hour, minute, second and millisecond in UTC to Unix nanoseconds.
fn unix_nanos([year, month, _, day, hour, minute, second, milli]: [u16; 8]) -> Option<i64> {
    let [month, day, hour, minute, second, milli] = [month, day, hour, minute, second, milli].map(u32::from);
    let date = chrono::NaiveDate::from_ymd_opt(year.into(), month, day)?;
    let time = date.and_hms_milli_opt(hour, minute, second, milli)?;
    time.and_utc().timestamp_nanos_opt()
}

/// Events that the reader uses.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Sample,
    Method,
    Module,
}

impl Kind {
    fn of(provider: Text<'_>, event: u32) -> Option<Self> {
        // The runtime reports code that is loaded or unloaded during the trace. The rundown provider reports all code
        // at the beginning and the end of the trace.
        let is_runtime = || provider.equals("Microsoft-Windows-DotNETRuntime");
        let is_rundown = || provider.equals("Microsoft-Windows-DotNETRuntimeRundown");
        match event {
            0 if provider.equals("Microsoft-DotNETCore-SampleProfiler") => Some(Self::Sample),
            143 | 144 if is_runtime() || is_rundown() => Some(Self::Method),
            152 | 153 if is_runtime() => Some(Self::Module),
            153 | 154 if is_rundown() => Some(Self::Module),
            _ => None,
        }
    }
}

/// A stack with its times in ticks.
struct Stack<'a> {
    /// Addresses as they are in the file, the leaf first.
    addresses: &'a [u8],
    wall: u64,
    managed: u64,
}

/// The last sample of a thread.
struct Last {
    time: u64,
    stack: usize,
    is_managed: bool,
}

/// The contents of a file that have been read so far.
#[derive(Default)]
struct Trace<'a> {
    header: Option<TraceHeader>,
    kinds: HashMap<u32, Kind>,
    /// Index in `times` for each stack that events may refer to.
    stacks: HashMap<u32, usize>,
    /// Index in `times` for each list of addresses.
    stack_indices: HashMap<&'a [u8], usize>,
    times: Vec<Stack<'a>>,
    threads: HashMap<u64, Last>,
    last_time: u64,
    names: Names<'a>,
}

impl<'a> Trace<'a> {
    /// Reads a block of event descriptions.
    fn add_descriptions(&mut self, block: Cursor<'a>) -> Result<(), Problem> {
        let mut blobs = Blobs::of(block)?;
        while let Some(Event { mut payload, .. }) = blobs.next()? {
            let id = payload.u32()?;
            let provider = payload.text()?;
            match Kind::of(provider, payload.u32()?) {
                Some(kind) => self.kinds.insert(id, kind),
                None => self.kinds.remove(&id),
            };
        }
        Ok(())
    }

    /// Reads a block of stacks.
    fn add_stacks(&mut self, mut block: Cursor<'a>) -> Result<(), Problem> {
        let first = block.u32()?;
        let count = block.u32()?;
        for offset in 0..count {
            let length = block.u32()?;
            let addresses = block.bytes(length as usize)?;
            let stack = self.stack(addresses, block.position())?;
            if self.stacks.len() >= MAX_LIVE_STACKS {
                return Err(Problem::TooManyParts {
                    position: block.position(),
                    limit: MAX_LIVE_STACKS,
                    parts: "stacks without a sequence point between them",
                });
            }
            self.stacks.insert(first.wrapping_add(offset), stack);
        }
        Ok(())
    }

    /// Returns the index of a stack; `position` is the position for errors.
    fn stack(&mut self, addresses: &'a [u8], position: usize) -> Result<usize, Problem> {
        match self.stack_indices.entry(addresses) {
            Entry::Occupied(occupied) => Ok(*occupied.get()),
            Entry::Vacant(_) if self.times.len() >= MAX_STACKS => Err(Problem::TooManyParts {
                position,
                limit: MAX_STACKS,
                parts: "stacks",
            }),
            Entry::Vacant(vacant) => {
                let index = *vacant.insert(self.times.len());
                self.times.push(Stack {
                    addresses,
                    wall: 0,
                    managed: 0,
                });
                Ok(index)
            }
        }
    }

    /// Reads a block of events.
    fn add_events(&mut self, block: Cursor<'a>) -> Result<(), Problem> {
        let mut blobs = Blobs::of(block)?;
        while let Some(event) = blobs.next()? {
            match self.kinds.get(&event.kind) {
                Some(Kind::Sample) => self.add_sample(event)?,
                Some(Kind::Method) => self.names.add_method(event.payload)?,
                Some(Kind::Module) => self.names.add_module(event.payload)?,
                None => {}
            }
        }
        Ok(())
    }

    fn add_sample(&mut self, mut event: Event<'a>) -> Result<(), Problem> {
        let is_managed = event.payload.u32()? == MANAGED;
        let position = event.payload.position();
        // A sample whose stack was lost has no known frames.
        let stack = match self.stacks.get(&event.stack) {
            Some(stack) => *stack,
            None => self.stack(&[], position)?,
        };
        self.last_time = self.last_time.max(event.time);
        let last = Last {
            time: event.time,
            stack,
            is_managed,
        };
        if let Some(before) = self.threads.insert(event.thread, last) {
            self.add(&before, event.time.saturating_sub(before.time));
        } else if self.threads.len() > MAX_THREADS {
            return Err(Problem::TooManyParts {
                position,
                limit: MAX_THREADS,
                parts: "threads",
            });
        }
        Ok(())
    }

    /// Adds the duration of a sample to its stack.
    fn add(&mut self, sample: &Last, ticks: u64) {
        if let Some(stack) = self.times.get_mut(sample.stack) {
            stack.wall = stack.wall.saturating_add(ticks);
            if sample.is_managed {
                stack.managed = stack.managed.saturating_add(ticks);
            }
        }
    }

    fn finish(mut self) -> Result<Vec<ImportedProfile>, Problem> {
        let header = self.header.ok_or(Problem::NoHeader)?;
        if self.threads.is_empty() {
            return Err(Problem::NoSamples);
        }
        if self.names.len() == 0 {
            return Err(Problem::NoNames);
        }
        for (_, last) in std::mem::take(&mut self.threads) {
            self.add(&last, header.interval_ticks());
        }
        self.names.sort();
        let cpu = self.profile(&header, ["process_cpu", "cpu"], |stack| stack.managed)?;
        let wall = self.profile(&header, ["wall", "wall"], |stack| stack.wall)?;
        Ok(cpu.into_iter().chain(wall).collect())
    }

    fn profile(
        &self,
        header: &TraceHeader,
        [name, kind]: [&str; 2],
        ticks: impl Fn(&Stack<'_>) -> u64,
    ) -> Result<Option<ImportedProfile>, Problem> {
        let mut tree = CallTree::new(SizeLimit::new(Size::MAX));
        let mut frames = Frames {
            ids: vec![None; self.names.len()],
            name_bytes: 0,
        };
        let unknown = tree.frame("[unknown]", "", 0)?;
        for stack in &self.times {
            let value = header.nanos(ticks(stack));
            if value == 0 {
                continue;
            }
            let mut node = tree.root();
            if stack.addresses.is_empty() {
                node = tree.call_frame(node, unknown)?;
            }
            for (index, address) in stack.addresses.chunks_exact(header.pointer_bytes).enumerate().rev() {
                // A return address is after the call, which may be the last instruction of a method.
                let address = number(address).saturating_sub(u64::from(index > 0));
                let frame = match self.names.find(address) {
                    Some(method) => self.frame(&mut tree, &mut frames, method)?,
                    None => unknown,
                };
                node = tree.call_frame(node, frame)?;
            }
            tree.add(node, value)?;
        }
        let meaning = Meaning {
            name,
            kind,
            unit: "nanoseconds",
            period: header.interval_nanos.into(),
            time_nanos: header.time_nanos,
            duration_nanos: header.nanos(self.last_time.saturating_sub(header.start)),
        };
        Ok(ImportedProfile::of_tree(tree, meaning)?)
    }

    /// Returns the frame of a method. Its name is built only once.
    fn frame(&self, tree: &mut CallTree, frames: &mut Frames, method: usize) -> Result<FrameId, Problem> {
        if let Some(frame_id) = frames.ids.get(method).copied().flatten() {
            return Ok(frame_id);
        }
        frames.name_bytes = frames.name_bytes.saturating_add(self.names.length(method));
        if frames.name_bytes > MAX_NAME_BYTES {
            return Err(Problem::Names(MAX_NAME_BYTES));
        }
        let (name, file) = self.names.name(method);
        let frame = tree.frame_in(&name, "", 0, &file)?;
        if let Some(entry) = frames.ids.get_mut(method) {
            *entry = Some(frame);
        }
        Ok(frame)
    }
}

/// Frames of a profile by method.
struct Frames {
    ids: Vec<Option<FrameId>>,
    /// Total length in bytes of the texts from which the names were built so far.
    name_bytes: usize,
}

/// Decodes an address of four or eight bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}
