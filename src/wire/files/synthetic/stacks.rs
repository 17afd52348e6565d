//! The stacks of a profile as a tree of calls. The other modules write the files of all formats from this tree.

use hashbrown::HashMap;

use alluvium_profile::pprof::Profile;

/// Length of a tick in nanoseconds. The values of a profile times this length are CPU time.
pub(crate) const TICK_NANOS: i64 = 10_000_000;

/// A function at a line of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Frame<'a> {
    pub name: &'a str,
    pub file: &'a str,
    pub line: i64,
}

/// A call. `frame` is an index in [`Stacks::frames`], and `caller` is a smaller index in [`Stacks::calls`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Call {
    pub caller: Option<usize>,
    pub frame: usize,
}

/// The stacks of a profile as a tree of calls.
pub(super) struct Stacks<'a> {
    pub frames: Vec<Frame<'a>>,
    pub calls: Vec<Call>,
    /// The call at the leaf of each sample's stack, and the sample's ticks.
    pub samples: Vec<(usize, i64)>,
}

impl<'a> Stacks<'a> {
    pub(super) fn of(profile: &Profile<'a>) -> Self {
        let (mut frames, mut calls) = (Vec::new(), Vec::new());
        let (mut known_frames, mut known_calls) = (HashMap::new(), HashMap::new());
        let mut samples = Vec::new();
        for sample in 0..profile.sample_count() {
            let mut caller = None;
            let locations = profile.stack(sample).iter().rev();
            let locations = locations.filter_map(|location| profile.locations.get(*location as usize));
            for line in locations.flat_map(|location| profile.lines_of(location).iter().rev()) {
                let Some(function) = profile.functions.get(line.function as usize) else {
                    continue;
                };
                let frame = Frame {
                    name: function.name,
                    file: function.file,
                    line: line.line,
                };
                let frame = index(&mut frames, &mut known_frames, frame);
                caller = Some(index(&mut calls, &mut known_calls, Call { caller, frame }));
            }
            let ticks = profile.values_of(sample).first().copied().unwrap_or_default();
            samples.extend(caller.map(|leaf| (leaf, ticks)));
        }
        Self { frames, calls, samples }
    }

    /// Returns the indices of the frames of the stack that ends in the call `leaf`, the leaf first.
    pub(super) fn path(&self, leaf: usize) -> Vec<usize> {
        let calls = std::iter::successors(self.calls.get(leaf), |call| self.calls.get(call.caller?));
        calls.map(|call| call.frame).collect()
    }

    pub(super) fn total(&self) -> i64 {
        self.samples.iter().map(|(_, ticks)| ticks).sum()
    }
}

/// Returns the index of an item, and adds the item if it is new.
fn index<T: Copy + Eq + std::hash::Hash>(items: &mut Vec<T>, indices: &mut HashMap<T, usize>, item: T) -> usize {
    *indices.entry(item).or_insert_with(|| {
        items.push(item);
        items.len() - 1
    })
}
