//! The kinds of profiles that a recording can contain, with Pyroscope's names and types.

use crate::pprof::ValueType;

/// A kind of profile, which determines the meaning of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Cpu,
    Wall,
    AllocInNewTlab,
    AllocOutsideTlab,
    AllocSample,
    MonitorEnter,
    ThreadPark,
    LiveObject,
    Malloc,
}

/// Name and types of the profiles of a kind.
pub(super) struct ProfileForm {
    /// Value of the label `__name__`.
    pub name: &'static str,
    pub sample_types: &'static [ValueType<'static>],
    pub period_type: ValueType<'static>,
}

impl Kind {
    /// All kinds, in the order in which their profiles are returned.
    pub(super) const ALL: [Self; 9] = [
        Self::Cpu,
        Self::Wall,
        Self::AllocInNewTlab,
        Self::AllocOutsideTlab,
        Self::AllocSample,
        Self::MonitorEnter,
        Self::ThreadPark,
        Self::LiveObject,
        Self::Malloc,
    ];

    /// Returns true for CPU and wall clock profiles, in which each sample stands for one period of time.
    pub(super) fn is_time(self) -> bool {
        matches!(self, Self::Cpu | Self::Wall)
    }

    /// Returns name and types of the profiles of this kind.
    pub(super) fn form(self) -> &'static ProfileForm {
        match self {
            Self::Cpu => &CPU,
            Self::Wall => &WALL,
            Self::AllocInNewTlab => &ALLOC_IN_NEW_TLAB,
            Self::AllocOutsideTlab => &ALLOC_OUTSIDE_TLAB,
            Self::AllocSample => &ALLOC_SAMPLE,
            Self::MonitorEnter => &MONITOR_ENTER,
            Self::ThreadPark => &THREAD_PARK,
            Self::LiveObject => &LIVE_OBJECT,
            Self::Malloc => &MALLOC,
        }
    }
}

const fn value_type(kind: &'static str, unit: &'static str) -> ValueType<'static> {
    ValueType { kind, unit }
}

const CONTENTIONS: &[ValueType<'static>] = &[value_type("contentions", "count"), value_type("delay", "nanoseconds")];

static CPU: ProfileForm = ProfileForm {
    name: "process_cpu",
    sample_types: &[value_type("cpu", "nanoseconds")],
    period_type: value_type("cpu", "nanoseconds"),
};
static WALL: ProfileForm = ProfileForm {
    name: "wall",
    sample_types: &[value_type("wall", "nanoseconds")],
    period_type: value_type("wall", "nanoseconds"),
};
static ALLOC_IN_NEW_TLAB: ProfileForm = ProfileForm {
    name: "memory",
    sample_types: &[
        value_type("alloc_in_new_tlab_objects", "count"),
        value_type("alloc_in_new_tlab_bytes", "bytes"),
    ],
    period_type: value_type("space", "bytes"),
};
static ALLOC_OUTSIDE_TLAB: ProfileForm = ProfileForm {
    name: "memory",
    sample_types: &[
        value_type("alloc_outside_tlab_objects", "count"),
        value_type("alloc_outside_tlab_bytes", "bytes"),
    ],
    period_type: value_type("space", "bytes"),
};
static ALLOC_SAMPLE: ProfileForm = ProfileForm {
    name: "memory",
    sample_types: &[
        value_type("alloc_sample_objects", "count"),
        value_type("alloc_sample_bytes", "bytes"),
    ],
    period_type: value_type("space", "bytes"),
};
static MONITOR_ENTER: ProfileForm = ProfileForm {
    name: "mutex",
    sample_types: CONTENTIONS,
    period_type: value_type("mutex", "count"),
};
static THREAD_PARK: ProfileForm = ProfileForm {
    name: "block",
    sample_types: CONTENTIONS,
    period_type: value_type("block", "count"),
};
static LIVE_OBJECT: ProfileForm = ProfileForm {
    name: "memory",
    sample_types: &[value_type("live", "count")],
    period_type: value_type("objects", "count"),
};
static MALLOC: ProfileForm = ProfileForm {
    name: "memory",
    sample_types: &[
        value_type("malloc_objects", "count"),
        value_type("malloc_bytes", "bytes"),
    ],
    period_type: value_type("", ""),
};
