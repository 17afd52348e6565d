//! The address that this member advertises, at which other members reach it.
//!
//! In: the flags, the listen address, the interfaces of the machine. Out: one address.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use crate::codec::is_possible;
use crate::join::host_and_port;
use alluvium_base::interfaces;

/// Interface name that stands for all interfaces.
const ALL: &str = "all";

/// The reason why there is no address to advertise.
#[derive(Debug, thiserror::Error)]
pub enum AdvertiseError {
    /// The configured address has an invalid form.
    #[error("`{0}` is not HOST or HOST:PORT")]
    Text(String),
    /// The host of the configured address cannot be looked up.
    #[error("cannot look up `{address}`: {source}")]
    Lookup { address: String, source: io::Error },
    /// The host of the configured address has no address.
    #[error("`{0}` has no address")]
    NoAddress(String),
    #[error("cannot list network interfaces: {0}")]
    Interfaces(#[source] io::Error),
    /// None of the configured interfaces has a usable address.
    #[error(
        "none of the interfaces {0} has an address to advertise: set --cluster.advertise-address or \
         --cluster.advertise-interfaces (`all` for any)"
    )]
    NoInterface(String),
    /// The address is, for example, a multicast address.
    #[error("{0} cannot be a member's address")]
    Impossible(SocketAddr),
}

/// Returns the address to advertise. In order of preference: the address `configured`, the listen address, the address
/// of an interface, or the source address of packets to `toward`.
pub(super) async fn address(
    configured: &str,
    interfaces: &str,
    listening: SocketAddr,
    toward: Option<SocketAddr>,
) -> Result<SocketAddr, AdvertiseError> {
    let address = if !configured.is_empty() {
        named(configured, listening.port()).await?
    } else if !listening.ip().is_unspecified() {
        listening
    } else {
        let of_machine = interfaces::addresses().map_err(AdvertiseError::Interfaces)?;
        let source_address = || toward.and_then(on_the_way).filter(|ip| is_heard(ip, listening.ip()));
        let Some(ip) = of_interfaces(interfaces, &of_machine, listening.ip()).or_else(source_address) else {
            return Err(AdvertiseError::NoInterface(interfaces.to_owned()));
        };
        SocketAddr::new(ip, listening.port())
    };
    if is_possible(address) {
        Ok(address)
    } else {
        Err(AdvertiseError::Impossible(address))
    }
}

async fn named(configured: &str, port: u16) -> Result<SocketAddr, AdvertiseError> {
    let Some((host, port)) = host_and_port(configured, port) else {
        return Err(AdvertiseError::Text(configured.to_owned()));
    };
    let addresses = tokio::net::lookup_host((host, port)).await;
    let mut addresses = addresses.map_err(|source| AdvertiseError::Lookup {
        address: configured.to_owned(),
        source,
    })?;
    addresses
        .next()
        .ok_or_else(|| AdvertiseError::NoAddress(configured.to_owned()))
}

/// Returns the first usable address at which a socket on `listening` receives packets. The interfaces are searched in
/// the order of `names`.
fn of_interfaces(names: &str, of_machine: &[(String, IpAddr)], listening: IpAddr) -> Option<IpAddr> {
    let is_usable = |ip: &IpAddr| {
        // Other members can reach a link-local address only with a scope, which is not advertised.
        let is_of_link = match ip {
            IpAddr::V4(ip) => ip.is_link_local(),
            IpAddr::V6(ip) => ip.is_unicast_link_local(),
        };
        !ip.is_loopback() && !is_of_link && is_heard(ip, listening)
    };
    names.split(',').map(str::trim).find_map(|name| {
        let mut of_name = of_machine.iter().filter(|(other, _)| name == ALL || name == other);
        of_name.find(|(_, ip)| is_usable(ip)).map(|(_, ip)| *ip)
    })
}

/// Returns true if a socket on `listening` receives packets to `ip`: a socket on [::] receives both families.
fn is_heard(ip: &IpAddr, listening: IpAddr) -> bool {
    ip.is_ipv4() || listening.is_ipv6()
}

/// Returns the source address that the system would use to send to another address.
fn on_the_way(to: SocketAddr) -> Option<IpAddr> {
    let any = match to {
        SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
    };
    // Connecting a UDP socket sends nothing.
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(to).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn advertise(
        configured: &str,
        interfaces: &str,
        listening: &str,
        toward: Option<&str>,
    ) -> Result<String, String> {
        let toward = toward.map(|toward| toward.parse().unwrap());
        let advertised = address(configured, interfaces, listening.parse().unwrap(), toward).await;
        advertised
            .map(|address| address.to_string())
            .map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn what_is_given_goes_first_then_what_is_listened_on_then_how_others_are_reached() {
        assert_eq!(
            advertise("10.0.0.1", "lo", "0.0.0.0:7", None).await.unwrap(),
            "10.0.0.1:7"
        );
        assert_eq!(
            advertise("10.0.0.1:8", "lo", "127.0.0.1:7", None).await.unwrap(),
            "10.0.0.1:8"
        );
        assert!(
            advertise("localhost", "", "0.0.0.0:7", None)
                .await
                .unwrap()
                .ends_with(":7")
        );
        assert_eq!(advertise("", "lo", "127.0.0.1:7", None).await.unwrap(), "127.0.0.1:7");
        let advertised = advertise("", "none0", "0.0.0.0:7", Some("127.0.0.1:9")).await;
        assert_eq!(advertised.unwrap(), "127.0.0.1:7");
        let error = advertise("", "none0", "0.0.0.0:7", None).await.unwrap_err();
        assert!(error.contains("--cluster.advertise-interfaces"), "{error}");
        // A machine without IPv6 has no route to that address.
        if UdpSocket::bind("[::1]:0").is_ok() {
            assert_eq!(
                advertise("", "none0", "[::]:7", Some("[::1]:9")).await.unwrap(),
                "[::1]:7"
            );
        }
        assert!(advertise("", "none0", "0.0.0.0:7", Some("[::1]:9")).await.is_err());
        for invalid in ["0.0.0.0", "10.0.0.1:0", "a b", "224.0.0.1"] {
            assert!(advertise(invalid, "", "127.0.0.1:7", None).await.is_err(), "{invalid}");
        }
    }

    #[test]
    fn interfaces_are_tried_in_the_order_in_which_they_are_named() {
        let entry = |(name, ip): (&str, &str)| (name.to_owned(), ip.parse().unwrap());
        let machine = [
            ("lo", "127.0.0.1"),
            ("en0", "10.0.0.2"),
            ("eth0", "fe80::1"),
            ("eth0", "fd00::1"),
            ("eth0", "10.0.0.1"),
        ];
        let machine = machine.map(entry);
        let first = |names: &str, listening: &str| {
            of_interfaces(names, &machine, listening.parse().unwrap()).map(|ip| ip.to_string())
        };
        assert_eq!(first("eth0,en0", "0.0.0.0").as_deref(), Some("10.0.0.1"));
        assert_eq!(first("eth0,en0", "::").as_deref(), Some("fd00::1"));
        assert_eq!(first("eth1, en0", "0.0.0.0").as_deref(), Some("10.0.0.2"));
        assert_eq!(first("all", "0.0.0.0").as_deref(), Some("10.0.0.2"));
        assert_eq!(first("lo", "0.0.0.0"), None);
    }
}
