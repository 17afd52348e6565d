//! The currently known objects of one kind, and the keys of the objects that have changed since the last refresh.
//!
//! In: events of a watch. Out: objects by key, each with the labels that do not depend on other objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::common::arguments::targets::Target;
use crate::common::arguments::texts::Texts;
use crate::common::kubernetes::objects::{Key, Metadata, Resource};
use crate::common::kubernetes::watch::Event;

/// Maximum number of objects of a kind. They need some hundred megabytes of memory.
pub(super) const MAX_OBJECTS: usize = 200_000;

/// A kind of objects with labels for targets.
pub(super) trait Described: Resource + Sized {
    /// Returns the labels that depend on this object alone.
    fn labels(&self) -> Target;
}

/// The labels of an object, and the object without its metadata. The labels are built before the metadata is removed.
pub(super) struct StoredObject<T> {
    pub(super) labels: Target,
    pub(super) object: T,
}

/// The objects of one kind.
pub(super) struct Store<T> {
    /// The objects by key. `None` stands for an object that exists and whose content is no longer needed.
    objects: BTreeMap<Key, Option<Box<StoredObject<T>>>>,
    /// Keys of objects that were added, changed or removed.
    changed: BTreeSet<Key>,
    /// Known objects that a list in progress has not returned so far, by the namespace of the list. An empty name
    /// stands for all namespaces.
    missing: BTreeMap<Arc<str>, BTreeSet<Key>>,
    /// Number of objects left out since the start of the last list because the store is full.
    left_out: usize,
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            changed: BTreeSet::new(),
            missing: BTreeMap::new(),
            left_out: 0,
        }
    }
}

impl<T: Described> Store<T> {
    /// Applies an event from the watch of `namespace`. An empty name stands for all namespaces.
    pub(super) fn take(&mut self, namespace: &Arc<str>, event: Event<T>, texts: &mut Texts) {
        match event {
            Event::ListBegins => {
                let is_listed = |key: &&Key| namespace.is_empty() || key.namespace == *namespace;
                let known = self.objects.keys().filter(is_listed).cloned().collect();
                self.missing.insert(namespace.clone(), known);
                self.left_out = 0;
            }
            Event::Present(objects) => objects
                .into_iter()
                .for_each(|object| self.put(namespace, object, texts)),
            Event::Absent(key) => self.remove(key),
            Event::ListEnds => {
                let missing = self.missing.remove(namespace).unwrap_or_default();
                missing.into_iter().for_each(|key| self.remove(key));
            }
        }
    }

    fn put(&mut self, namespace: &Arc<str>, mut object: T, texts: &mut Texts) {
        let key = object.metadata().key();
        let key = Key {
            namespace: texts.share(key.namespace),
            name: texts.share(key.name),
        };
        if let Some(missing) = self.missing.get_mut(namespace) {
            missing.remove(&key);
        }
        if self.objects.len() >= MAX_OBJECTS && !self.objects.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        let labels = texts.share_all(object.labels());
        *object.metadata_mut() = Metadata::default();
        self.objects
            .insert(key.clone(), Some(Box::new(StoredObject { labels, object })));
        self.changed.insert(key);
    }

    fn remove(&mut self, key: Key) {
        if self.objects.remove(&key).is_some() {
            self.changed.insert(key);
        }
    }
}

impl<T> Store<T> {
    /// Returns the content of an object, unless it was dropped.
    pub(super) fn get(&self, key: &Key) -> Option<&StoredObject<T>> {
        self.objects.get(key)?.as_deref()
    }

    /// Returns true if the object exists. Its content may have been dropped.
    pub(super) fn contains(&self, key: &Key) -> bool {
        self.objects.contains_key(key)
    }

    /// Iterates over the objects whose content was not dropped.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &StoredObject<T>)> {
        self.objects
            .iter()
            .filter_map(|(key, object)| Some((key, object.as_deref()?)))
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns the keys of objects that were added, changed or removed since the last refresh.
    pub(super) fn changed(&self) -> &BTreeSet<Key> {
        &self.changed
    }

    /// Drops the content of all changed objects, and marks them as unchanged. The keys of existing objects stay.
    pub(super) fn empty(&mut self) {
        for key in std::mem::take(&mut self.changed) {
            if let Some(content) = self.objects.get_mut(&key) {
                *content = None;
            }
        }
    }

    /// Marks each object as unchanged if `is_settled` returns true for its key.
    pub(super) fn settle(&mut self, is_settled: &dyn Fn(&Key) -> bool) {
        self.changed.retain(|key| !is_settled(key));
    }

    /// Returns the number of objects left out because the store is full.
    pub(super) fn left_out(&self) -> usize {
        self.left_out
    }
}
