//! The members to join: addresses and names, in the forms of Alloy's `--cluster.join-addresses`.
//!
//! In: a list of addresses, separated by commas. Out: socket addresses. Names are looked up again for every attempt,
//! because the pods behind the name of a headless service change.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures::future::join_all;

use crate::codec::is_possible;
use alluvium_base::dns::{DnsError, System};

/// Maximum number of addresses in `--cluster.join-addresses`.
const MOST_ADDRESSES: usize = 64;
/// Maximum number of addresses that a lookup may find; further addresses are dropped.
const MOST_FOUND: usize = 1024;
/// Timeout of a DNS lookup.
const LOOKUP: Duration = Duration::from_secs(5);

/// An address or a name of possible members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Contact {
    /// An IP address and a port.
    Address(SocketAddr),
    /// A name with A and AAAA records, and the port.
    Host(String, u16),
    /// Like `Host`, but if that lookup fails, the SRV records of the name are used.
    HostOrService(String, u16),
    /// A name with SRV records, which contain the port.
    Service(String),
}

/// The reason why a text is not a list of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContactError {
    /// An item has none of the known forms.
    #[error("`{0}` is not HOST, HOST:PORT, or a name after dns+, dnssrv+ or dnssrvnoa+")]
    Text(String),
    /// The list is longer than [`MOST_ADDRESSES`].
    #[error("there are more than {MOST_ADDRESSES} addresses")]
    TooMany,
}

/// The addresses that a lookup found, and its errors.
#[derive(Debug, Default)]
pub(super) struct LookupResult {
    pub addresses: BTreeSet<SocketAddr>,
    /// Contacts without addresses, each with the reason.
    pub errors: Vec<(Contact, LookupError)>,
}

/// The reason why a lookup of a contact returned no addresses.
#[derive(Debug, thiserror::Error)]
pub(super) enum LookupError {
    /// There was no response within [`LOOKUP`].
    #[error("timeout")]
    Timeout,
    /// The system cannot resolve the name.
    #[error(transparent)]
    Host(#[from] io::Error),
    /// The SRV records of the name cannot be looked up.
    #[error(transparent)]
    Dns(#[from] DnsError),
    /// The name has no SRV records, or their targets have no addresses.
    #[error("no SRV records")]
    NoRecords,
}

/// Parses a list of contacts. `port` is the port of contacts without one.
pub(super) fn parse_contacts(text: &str, port: u16) -> Result<Vec<Contact>, ContactError> {
    let texts: Vec<&str> = text.split(',').map(str::trim).filter(|text| !text.is_empty()).collect();
    if texts.len() > MOST_ADDRESSES {
        return Err(ContactError::TooMany);
    }
    texts.into_iter().map(|text| parse_contact(text, port)).collect()
}

fn parse_contact(text: &str, default_port: u16) -> Result<Contact, ContactError> {
    let error = || ContactError::Text(text.to_owned());
    for prefix in ["dnssrv+", "dnssrvnoa+"] {
        if let Some(rest) = text.strip_prefix(prefix) {
            // SRV records have their own ports.
            let (name, _) = host_and_port(rest, default_port).ok_or_else(error)?;
            return Ok(Contact::Service(name));
        }
    }
    let is_dns = text.starts_with("dns+");
    let rest = text.strip_prefix("dns+").unwrap_or(text);
    let (host, port) = host_and_port(rest, default_port).ok_or_else(error)?;
    match host.parse::<IpAddr>() {
        Ok(_) if is_dns => Err(error()),
        Ok(ip) => {
            let address = SocketAddr::new(ip, port);
            is_possible(address)
                .then_some(Contact::Address(address))
                .ok_or_else(error)
        }
        Err(_) if is_dns => Ok(Contact::Host(host, port)),
        Err(_) => Ok(Contact::HostOrService(host, port)),
    }
}

/// Splits a host and a port: `host`, `host:1`, `10.0.0.1:1`, `[::1]:1`, `::1`.
pub(super) fn host_and_port(text: &str, default_port: u16) -> Option<(String, u16)> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    if let Ok(ip) = bare.unwrap_or(text).parse::<IpAddr>() {
        return Some((ip.to_string(), default_port));
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some((address.ip().to_string(), address.port()));
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (text, default_port),
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_host = !host.is_empty() && host.len() <= 253 && host.chars().all(is_name);
    (is_host && port != 0).then(|| (host.to_owned(), port))
}

/// Looks up all contacts concurrently.
pub(super) async fn look_up(contacts: Vec<Contact>) -> LookupResult {
    let results = join_all(contacts.iter().map(|contact| async move {
        let result = tokio::time::timeout(LOOKUP, resolve(contact)).await;
        result.unwrap_or(Err(LookupError::Timeout))
    }));
    let results = results.await;
    let mut all = LookupResult::default();
    for (contact, result) in contacts.into_iter().zip(results) {
        match result {
            Ok(addresses) => all
                .addresses
                .extend(addresses.into_iter().filter(|address| is_possible(*address))),
            Err(error) => all.errors.push((contact, error)),
        }
    }
    while all.addresses.len() > MOST_FOUND {
        all.addresses.pop_last();
    }
    all
}

async fn resolve(contact: &Contact) -> Result<Vec<SocketAddr>, LookupError> {
    match contact {
        Contact::Address(address) => Ok(vec![*address]),
        Contact::Host(host, port) => hosts(host, *port).await,
        Contact::HostOrService(host, port) => match hosts(host, *port).await {
            Ok(addresses) => Ok(addresses),
            Err(error) => match services(host).await {
                Ok(addresses) if !addresses.is_empty() => Ok(addresses),
                _ => Err(error),
            },
        },
        Contact::Service(name) => {
            let addresses = services(name).await?;
            (!addresses.is_empty())
                .then_some(addresses)
                .ok_or(LookupError::NoRecords)
        }
    }
}

async fn hosts(host: &str, port: u16) -> Result<Vec<SocketAddr>, LookupError> {
    let addresses = tokio::net::lookup_host((host, port)).await?;
    Ok(addresses.collect())
}

/// Returns the addresses behind the SRV records of a name.
async fn services(name: &str) -> Result<Vec<SocketAddr>, LookupError> {
    let services = System::of_this_machine().read()?.services(name).await?;
    let services = services.into_iter().take(MOST_FOUND);
    let lookups = join_all(services.map(|(host, port)| async move { hosts(&host, port).await }));
    // If the lookup of one target fails, the addresses of the other targets are still returned.
    Ok(lookups.await.into_iter().flatten().flatten().collect())
}

impl fmt::Display for Contact {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(out, "{address}"),
            Self::Host(host, port) | Self::HostOrService(host, port) => write!(out, "{host}:{port}"),
            Self::Service(name) => out.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn all_forms_of_alloys_addresses_are_read() {
        let host = |name: &str, port| Contact::HostOrService(name.to_owned(), port);
        let expected = vec![
            Contact::Address("10.0.0.1:7000".parse().unwrap()),
            Contact::Address("10.0.0.2:12345".parse().unwrap()),
            Contact::Address("[::1]:7000".parse().unwrap()),
            Contact::Address("[fd00::1]:12345".parse().unwrap()),
            host("collector-0.collectors", 7000),
            host("collectors", 12345),
            Contact::Host("collectors".to_owned(), 7000),
            Contact::Service("_cluster._udp.collectors".to_owned()),
            Contact::Service("collectors".to_owned()),
        ];
        let text = "10.0.0.1:7000, 10.0.0.2,[::1]:7000,[fd00::1], collector-0.collectors:7000,collectors,,\
            dns+collectors:7000,dnssrv+_cluster._udp.collectors,dnssrvnoa+collectors:1";
        assert_eq!(parse_contacts(text, 12345), Ok(expected));
        assert_eq!(parse_contacts("", 12345), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_address_is_said() {
        for text in [
            "http://a",
            "a:b",
            "a:0",
            "a:70000",
            "a b",
            "dns+",
            "dns+10.0.0.1",
            "0.0.0.0:1",
            "224.0.0.1:1",
        ] {
            assert_eq!(
                parse_contacts(text, 12345),
                Err(ContactError::Text(text.to_owned())),
                "{text}"
            );
        }
        assert_eq!(
            parse_contacts(&"a,".repeat(MOST_ADDRESSES + 1), 1),
            Err(ContactError::TooMany)
        );
    }

    proptest! {
        #[test]
        fn every_address_is_read_as_it_is_written(bits in 1_u32..0xe000_0000, port in 1_u16.., other in any::<u128>()) {
            for ip in [IpAddr::from(bits.to_be_bytes()), IpAddr::from((other >> 8 | 1 << 64).to_be_bytes())] {
                let address = SocketAddr::new(ip, port);
                prop_assert_eq!(parse_contacts(&address.to_string(), 1), Ok(vec![Contact::Address(address)]));
                let bare = SocketAddr::new(ip, 1);
                prop_assert_eq!(parse_contacts(&ip.to_string(), 1), Ok(vec![Contact::Address(bare)]));
            }
        }

        #[test]
        fn texts_of_anyone_do_no_harm(text in ".{0,80}") {
            let _ = parse_contacts(&text, 1);
        }
    }

    #[tokio::test]
    async fn names_and_addresses_are_looked_up_together_and_one_that_is_not_there_hides_no_other() {
        let contacts = parse_contacts("127.0.0.1:7000,localhost:7001,dns+no.such.name.invalid:1", 1).unwrap();
        let lookup = look_up(contacts).await;
        assert!(
            lookup.addresses.contains(&"127.0.0.1:7000".parse().unwrap()),
            "{lookup:?}"
        );
        assert!(
            lookup.addresses.iter().any(|address| address.port() == 7001),
            "{lookup:?}"
        );
        assert_eq!(lookup.errors.len(), 1, "{lookup:?}");
    }
}
