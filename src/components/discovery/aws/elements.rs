//! Elements of XML responses whose texts become labels.

use std::fmt;
use std::marker::PhantomData;

use chrono::{DateTime, SecondsFormat};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::common::discovery::meta_labels::host_port;

/// Declares an object of a response. Each line of `labels` is a label, without its prefix, and the element with the
/// text of the label. Each line of `parts` is a child that is not a text.
macro_rules! elements {
    (
        $(#[doc = $doc:literal])*
        $vis:vis struct $name:ident {
            labels { $( $label:ident : $kind:ty = $element:literal ),* $(,)? }
            $( parts { $( $part:ident : $type:ty = $part_element:literal ),* $(,)? } )?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Deserialize)]
        $vis struct $name {
            $( #[serde(rename = $element)] $vis $label: Option<$kind>, )*
            $( $( #[serde(rename = $part_element, default)] $vis $part: $type, )* )?
        }

        impl $name {
            /// Returns name and text of each label whose element the object has.
            $vis fn labels(&self) -> impl Iterator<Item = (&'static str, String)> {
                let labels = [$( (stringify!($label), self.$label.as_ref().map(ToString::to_string)) ),*];
                labels.into_iter().filter_map(|(name, text)| Some((name, text?)))
            }
        }
    };
}
pub(super) use elements;

/// A list: all children of an element. Each service has its own name for the children.
pub(super) struct List<T>(pub(super) Vec<T>);

/// A time. The label contains whole seconds.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Time(String);

/// A tag of a cluster, an instance or a cache.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Tag {
    key: Option<String>,
    value: Option<String>,
}

elements! {
    /// A host and port at which a database or cache is reachable.
    pub(super) struct Endpoint {
        labels {
            address: String = "Address",
            hosted_zone_id: String = "HostedZoneId",
            port: String = "Port",
        }
    }
}

impl Endpoint {
    /// Returns the endpoint as an address, if the endpoint has a host and a port.
    pub(super) fn host_port(&self) -> Option<String> {
        Some(host_port(self.address.as_ref()?, self.port.as_ref()?))
    }
}

impl List<Tag> {
    /// Returns the tags that have a name and a value.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&String, &String)> {
        let tags = self.0.iter();
        tags.filter_map(|tag| Some((tag.key.as_ref()?, tag.value.as_ref()?)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match DateTime::parse_from_rfc3339(&self.0) {
            Ok(time) => formatter.write_str(&time.to_utc().to_rfc3339_opts(SecondsFormat::Secs, true)),
            Err(_) => formatter.write_str(&self.0),
        }
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Children(PhantomData))
    }
}

struct Children<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Children<T> {
    type Value = List<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of elements")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut children: A) -> Result<List<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(name) = children.next_key::<String>()? {
            // The names of attributes and of text between the children start with these characters.
            if name.starts_with(['@', '$']) {
                children.next_value::<IgnoredAny>()?;
            } else {
                items.push(children.next_value()?);
            }
        }
        Ok(List(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_of_a_time_has_whole_seconds_in_utc() {
        for (text, label) in [
            ("2026-01-12T23:09:03.957Z", "2026-01-12T23:09:03Z"),
            ("2026-01-12T23:09:03+01:00", "2026-01-12T22:09:03Z"),
            ("soon", "soon"),
        ] {
            assert_eq!(Time(text.to_owned()).to_string(), label);
        }
    }

    #[test]
    fn a_list_has_all_children_whatever_their_names() {
        let list = |xml: &str| quick_xml::de::from_str::<List<String>>(xml).unwrap().0;
        assert_eq!(
            list("<L x=\"1\">\n <member>a</member>\n <SubnetId>b</SubnetId>\n</L>"),
            ["a", "b"]
        );
        assert_eq!(list("<L> </L>"), [""; 0]);
        assert_eq!(list("<L/>"), [""; 0]);
    }
}
