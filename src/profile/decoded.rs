//! Decoded profiles that can be passed between threads: columns together with the buffer that holds their texts.
//!
//! In: a buffer and a function that decodes it. Out: [`Columns`]. A [`DecodedProfile`] contains such columns. A sink
//! can use them directly, or convert them to the bytes of a [`RawProfile`].

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use self_cell::self_cell;

use crate::pprof::{self, Profile, Strings};
use crate::{Labels, RawProfile};

self_cell! {
    struct Cell {
        owner: Bytes,
        #[covariant]
        dependent: Profile,
    }
}

/// Columns and the buffer that they borrow from.
pub struct Columns(Cell);

impl Columns {
    /// Decodes a buffer with `read`, and stores the buffer and the columns.
    pub fn read<E>(buffer: Bytes, read: impl for<'a> FnOnce(&'a Bytes) -> Result<Profile<'a>, E>) -> Result<Self, E> {
        Cell::try_new(buffer, read).map(Self)
    }

    /// Creates columns with their own buffer, into which each text of the profile is copied once.
    pub fn copied(profile: Profile<'_>) -> Self {
        let mut strings = Strings::default();
        let profile = profile.map_texts(|text| {
            strings.index(text);
            text
        });
        let mut ends = Vec::with_capacity(strings.texts().len());
        let mut buffer = String::with_capacity(strings.texts().iter().map(|text| text.len()).sum());
        for text in strings.texts() {
            buffer.push_str(text);
            ends.push(buffer.len());
        }
        let Ok(columns) = Self::read(buffer.into(), |buffer| {
            let texts = std::str::from_utf8(buffer).unwrap_or_default();
            Ok::<_, Infallible>(profile.map_texts(|text| {
                let end = ends.get(strings.index(text) as usize).copied().unwrap_or_default();
                texts.get(end.saturating_sub(text.len())..end).unwrap_or_default()
            }))
        });
        columns
    }

    /// Returns the columns, which borrow from the buffer.
    pub fn get(&self) -> &Profile<'_> {
        self.0.borrow_dependent()
    }

    /// Changes the columns in place.
    pub fn change(&mut self, change: impl for<'a> FnOnce(&mut Profile<'a>)) {
        self.0.with_dependent_mut(|_, profile| change(profile));
    }

    /// Returns the buffer that holds the texts of the columns, except for texts that are constants of the program.
    pub fn buffer(&self) -> &Bytes {
        self.0.borrow_owner()
    }

    /// Separates the columns from the buffer and passes both to `with`.
    pub fn take<T>(mut self, with: impl for<'a> FnOnce(&'a Bytes, Profile<'a>) -> T) -> T {
        self.0
            .with_dependent_mut(|buffer, profile| with(buffer, std::mem::take(profile)))
    }

    /// Returns the memory of the columns and the buffer in bytes.
    pub fn bytes(&self) -> usize {
        self.buffer().len() + self.get().column_bytes()
    }
}

impl fmt::Debug for Columns {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "columns of {} samples", self.get().sample_count())
    }
}

/// A decoded profile on its way to a sink.
#[derive(Debug)]
pub struct DecodedProfile {
    /// Labels of the series, `__name__` among them.
    pub labels: Labels,
    /// Id that the sender assigned; empty if there is none.
    pub id: Arc<str>,
    /// The columns with their buffer.
    pub columns: Columns,
    /// The same profile as pprof, compressed or not, if it was received in that form.
    pub pprof: Option<Bytes>,
}

impl DecodedProfile {
    /// Returns the profile as bytes, and its columns. If the profile was not received as pprof, its columns are encoded
    /// without compression.
    pub fn into_parts(self) -> (RawProfile, Columns) {
        let pprof = self.pprof.unwrap_or_else(|| pprof::encode(self.columns.get()).into());
        let raw = RawProfile {
            labels: self.labels,
            id: self.id,
            pprof,
        };
        (raw, self.columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pprof::{Builder, ValueType};
    use crate::synthetic::{Names, Shape, cpu_profile};
    use crate::{ProfileSink, RefusedProfile};
    use alluvium_base::BoxFuture;

    fn decoded(pprof: Option<Bytes>) -> DecodedProfile {
        let columns = Columns::read(Bytes::from_static(b"main;work"), |text| {
            let text = std::str::from_utf8(text)?;
            let mut builder = Builder::new(Profile {
                sample_types: vec![ValueType {
                    kind: "cpu",
                    unit: "nanoseconds",
                }],
                ..Profile::default()
            });
            let stack: Vec<u32> = text.rsplit(';').map(|name| builder.named(name)).collect();
            builder.sample(stack, [], &[7]);
            Ok::<_, std::str::Utf8Error>(builder.finish())
        });
        DecodedProfile {
            labels: Labels::from_pairs([("service_name", "shop")]),
            id: "1".into(),
            columns: columns.unwrap(),
            pprof,
        }
    }

    #[test]
    fn bytes_are_those_that_came_or_say_the_same_as_the_columns() {
        let original = Bytes::from_static(b"as they came");
        let (raw, columns) = decoded(Some(original.clone())).into_parts();
        assert_eq!(raw.pprof, original);
        assert_eq!(columns.get().functions[0].name, "work");
        let (raw, columns) = decoded(None).into_parts();
        assert_eq!(pprof::decode(&raw.pprof).as_ref(), Ok(columns.get()));
        assert!(columns.bytes() > columns.buffer().len());
        assert_eq!(
            columns.take(|text, profile| (text.len(), profile.sample_count())),
            (9, 1)
        );
    }

    #[test]
    fn copied_columns_say_the_same_and_hold_each_text_once() {
        let names = Names::new(50);
        let shape = Shape {
            functions: 50,
            samples: 40,
            depth: 7,
            labelled_every: 3,
        };
        let profile = cpu_profile(&names, shape, 3);
        let columns = Columns::copied(profile.clone());
        assert_eq!(columns.get(), &profile);
        let mut strings = Strings::default();
        let mapped_profile = profile.clone().map_texts(|text| {
            strings.index(text);
            text
        });
        assert_eq!(mapped_profile, profile);
        let length: usize = strings.texts().iter().map(|text| text.len()).sum();
        assert_eq!(columns.buffer().len(), length);
    }

    #[tokio::test]
    async fn a_sink_that_has_no_use_for_columns_gets_bytes() {
        struct OfBytes;
        impl ProfileSink for OfBytes {
            fn append(&self, profiles: Vec<RawProfile>) -> BoxFuture<'_, Vec<RefusedProfile>> {
                assert!(profiles.iter().all(|profile| pprof::decode(&profile.pprof).is_ok()));
                assert_eq!(profiles.len(), 2);
                Box::pin(std::future::ready(Vec::new()))
            }
        }
        let errors = OfBytes.append_decoded(vec![decoded(None), decoded(None)]).await;
        assert!(errors.is_empty());
    }
}
