//! The cluster as components see it: its members, and the owner of each key.
//!
//! In: the members that the protocol has found. Out: a [`Cluster`] for components, which holds the current [`View`] and
//! notifies observers of the next one. A program that runs alone has a cluster without a view, and owns all keys.

use std::sync::Arc;

use tokio::sync::watch;

use crate::member::Member;
use crate::ring::Ring;

/// The cluster of this program; by default, the program runs alone. Clones are handles to the same cluster.
#[derive(Clone, Default)]
pub struct Cluster(Option<Arc<watch::Receiver<Arc<View>>>>);

/// A handle that notifies one observer of changes.
pub struct Changes(Option<watch::Receiver<Arc<View>>>);

/// The cluster as this member sees it.
#[derive(Clone, Debug)]
pub struct View {
    /// All members, including this one, sorted.
    pub members: Vec<Member>,
    /// This member, as it appears in `members`.
    pub own: Member,
    /// The state of this member.
    pub part: Part,
    ring: Ring,
}

/// The state of a member, with Alloy's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The member owns no keys, because it has not found the other members yet, or there are too few members.
    Viewer,
    /// The member owns its share of the keys.
    Participant,
    /// The member is about to leave the cluster and owns no keys.
    Terminating,
}

/// The owner of a key. Members that know of each other agree on the owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The member that has this view.
    Own,
    /// The member with this name.
    Other(Arc<str>),
    /// Unknown, because this member is not a participant.
    Unknown,
}

impl Part {
    /// All states, for metrics.
    pub(crate) const ALL: [Self; 3] = [Self::Viewer, Self::Participant, Self::Terminating];

    /// The name of the state in Alloy's metrics and API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Participant => "participant",
            Self::Terminating => "terminating",
        }
    }
}

impl View {
    /// Creates the view of `own`, which knows `others`. Takes milliseconds for hundreds of members.
    pub fn new(own: Member, others: Vec<Member>, part: Part) -> Self {
        let mut members = others;
        members.push(own.clone());
        members.sort_unstable();
        Self {
            ring: Ring::new(members.iter().map(|member| member.name.clone())),
            members,
            own,
            part,
        }
    }

    /// Returns the owner of a key, as this member sees it.
    pub fn owner(&self, key: u64) -> Owner {
        match (self.part, self.ring.owner(key)) {
            (Part::Participant, Some(name)) if *name == self.own.name && self.bears_its_name() => Owner::Own,
            (Part::Participant, Some(name)) => Owner::Other(name.clone()),
            _ => Owner::Unknown,
        }
    }

    /// Returns true if this member owns its share of the keys.
    pub fn is_participant(&self) -> bool {
        self.part == Part::Participant
    }

    /// Returns false if another member with the same name has started later. That member then owns the keys of both.
    pub(crate) fn bears_its_name(&self) -> bool {
        let namesakes = self.members.iter().filter(|member| member.name == self.own.name);
        namesakes.max().is_none_or(|last| *last == self.own)
    }
}

impl Cluster {
    /// Creates a cluster that receives its views from this channel.
    pub fn new(views: watch::Receiver<Arc<View>>) -> Self {
        Self(Some(Arc::new(views)))
    }

    /// Returns the current view; `None` for a program that runs alone.
    pub fn view(&self) -> Option<Arc<View>> {
        self.0.as_ref().map(|views| views.borrow().clone())
    }

    /// Returns a handle that notifies its owner of changes after this call.
    pub fn changes(&self) -> Changes {
        let changes = self.0.as_deref().map(|views| {
            let mut views = views.clone();
            views.mark_unchanged();
            views
        });
        Changes(changes)
    }
}

impl Changes {
    /// Waits for the next change; never returns in a program that runs alone.
    pub async fn next(&mut self) {
        if let Some(views) = &mut self.0
            && views.changed().await.is_ok()
        {
            return;
        }
        // The cluster has ended, and so the program is ending.
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, started: u64) -> Member {
        Member {
            name: name.into(),
            started,
            address: ([127, 0, 0, 1], 1).into(),
        }
    }

    #[test]
    fn each_key_has_one_owner_whoever_is_asked() {
        let all = [member("a", 1), member("b", 2), member("c", 3)];
        let views = all.clone().map(|own| {
            let others = all.iter().filter(|other| **other != own).cloned().collect();
            View::new(own, others, Part::Participant)
        });
        for key in (0..1000).map(|number| u64::MAX / 1000 * number) {
            let owners: Vec<&View> = views.iter().filter(|view| view.owner(key) == Owner::Own).collect();
            let [owner] = owners.as_slice() else {
                panic!("{owners:?}")
            };
            let others = views.iter().filter(|view| view.own != owner.own);
            others.for_each(|view| assert_eq!(view.owner(key), Owner::Other(owner.own.name.clone())));
        }
    }

    #[test]
    fn who_takes_no_part_owns_nothing() {
        for part in [Part::Viewer, Part::Terminating] {
            assert_eq!(View::new(member("a", 1), Vec::new(), part).owner(1), Owner::Unknown);
        }
        assert_eq!(
            View::new(member("a", 1), Vec::new(), Part::Participant).owner(1),
            Owner::Own
        );
    }

    #[test]
    fn of_two_members_with_one_name_the_last_started_is_meant() {
        let (old, new) = (member("a", 1), member("a", 2));
        let view_of_old = View::new(old.clone(), vec![new.clone()], Part::Participant);
        let view_of_new = View::new(new, vec![old], Part::Participant);
        assert_eq!(
            (view_of_old.bears_its_name(), view_of_new.bears_its_name()),
            (false, true)
        );
        assert_eq!(view_of_old.owner(1), Owner::Other("a".into()));
        assert_eq!(view_of_new.owner(1), Owner::Own);
    }

    #[tokio::test]
    async fn a_program_that_runs_alone_sees_no_cluster_and_no_change_of_it() {
        let alone = Cluster::default();
        assert!(alone.view().is_none());
        let waiting = tokio::time::timeout(std::time::Duration::from_millis(20), async {
            alone.changes().next().await;
        });
        assert!(waiting.await.is_err());
    }
}
