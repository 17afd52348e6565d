//! The content of the screen: the flame graph of a profile, its type and its time.

use crate::cli::readers::source::Loaded;
use crate::cli::readers::tui::graph::Graph;
use alluvium_profile::flamegraph::Tree;

/// A profile that is ready to draw.
#[derive(Debug, Clone)]
pub(super) struct Picture {
    pub graph: Graph,
    /// The profile type if the profile is from a server, or the sample type if it is from a file.
    pub kind: String,
    /// Unit of the values, as the profile names it.
    pub unit: String,
    /// Time range of the profile; empty if unknown.
    pub time: String,
}

impl Picture {
    /// Computes the picture of a profile. Its type is `kind`, or the loaded sample type.
    pub(super) fn of(loaded: &Loaded, kind: Option<String>, time: String) -> Self {
        let (profile, value) = (loaded.profile(), loaded.value());
        let sample_type = profile.sample_types.get(value).copied().unwrap_or_default();
        let mut tree = Tree::by_file();
        tree.insert_profile(profile, value);
        Self {
            graph: Graph::of(&tree.to_flamegraph(0)),
            kind: kind.unwrap_or_else(|| sample_type.kind.to_owned()),
            unit: sample_type.unit.to_owned(),
            time,
        }
    }
}
