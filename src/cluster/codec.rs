//! The encoding of messages between members: sender, receiver, message, and entries about known members.
//!
//! In: bytes from any sender. Out: headers and entries of `foca`, with limited sizes. The codec refuses addresses that
//! no member can have (0.0.0.0, multicast), so that no attacker can make a member send datagrams to such an address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::string::FromUtf8Error;
use std::sync::Arc;

use bytes::{Buf, BufMut, TryGetError};
use foca::{Header, Message, State};

use crate::member::{self, Member, NameError};

/// Encodes and decodes messages of the member at the address `own`.
pub(super) struct Codec {
    pub own: SocketAddr,
}

/// The reason why bytes are not a message, or why an item does not fit into a message.
#[derive(Debug, thiserror::Error)]
pub(super) enum CodecError {
    /// The bytes end before the message does.
    #[error("the message ends early")]
    Short(#[from] TryGetError),
    /// A tag has an unknown value.
    #[error("the tag of {0} is {1}, which is unknown")]
    Unknown(&'static str, u8),
    /// The bytes of a name are not UTF-8.
    #[error("invalid member name: {0}")]
    Encoding(#[from] FromUtf8Error),
    /// A name that no member can have.
    #[error("invalid member name: {0}")]
    Name(#[from] NameError),
    /// An address that no member can have.
    #[error("{0} cannot be a member's address")]
    Address(SocketAddr),
    /// The buffer has too little room for the encoded item.
    #[error("the message is full")]
    Full,
}

impl foca::Codec<Member> for Codec {
    type Error = CodecError;

    fn encode_header(&mut self, header: &Header<Member>, mut buf: impl BufMut) -> Result<(), CodecError> {
        let mut bytes = Vec::new();
        put_member(&mut bytes, &header.src);
        bytes.put_u16(header.src_incarnation);
        put_member(&mut bytes, &header.dst);
        put_message(&mut bytes, &header.message);
        put_all(&mut buf, &bytes)
    }

    fn decode_header(&mut self, mut buf: impl Buf) -> Result<Header<Member>, CodecError> {
        let src = named(get_member(&mut buf)?)?;
        let src_incarnation = buf.try_get_u16()?;
        let mut dst = get_member(&mut buf)?;
        let message = get_message(&mut buf)?;
        // A joining member does not know our name, and may have reached us at an address that we do not advertise.
        if message == Message::Announce && dst.name.is_empty() {
            dst = Member::anyone_at(self.own);
        }
        Ok(Header {
            src,
            src_incarnation,
            dst,
            message,
        })
    }

    fn encode_member(&mut self, entry: &foca::Member<Member>, mut buf: impl BufMut) -> Result<(), CodecError> {
        let mut bytes = Vec::new();
        put_member(&mut bytes, entry.id());
        bytes.put_u16(entry.incarnation());
        bytes.put_u8(match entry.state() {
            State::Alive => 0,
            State::Suspect => 1,
            State::Down => 2,
        });
        put_all(&mut buf, &bytes)
    }

    fn decode_member(&mut self, mut buf: impl Buf) -> Result<foca::Member<Member>, CodecError> {
        let member = named(get_member(&mut buf)?)?;
        let incarnation = buf.try_get_u16()?;
        let state = match buf.try_get_u8()? {
            0 => State::Alive,
            1 => State::Suspect,
            2 => State::Down,
            other => return Err(CodecError::Unknown("a state", other)),
        };
        Ok(foca::Member::new(member, incarnation, state))
    }
}

/// Writes all bytes, or none if they do not fit.
fn put_all(buf: &mut impl BufMut, bytes: &[u8]) -> Result<(), CodecError> {
    if buf.remaining_mut() < bytes.len() {
        return Err(CodecError::Full);
    }
    buf.put_slice(bytes);
    Ok(())
}

fn put_member(bytes: &mut Vec<u8>, member: &Member) {
    // Names are checked where they enter the program.
    bytes.put_u8(u8::try_from(member.name.len()).unwrap_or(0));
    bytes.put_slice(member.name.as_bytes());
    bytes.put_u64(member.started);
    match member.address.ip() {
        IpAddr::V4(ip) => {
            bytes.put_u8(4);
            bytes.put_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            bytes.put_u8(6);
            bytes.put_slice(&ip.octets());
        }
    }
    bytes.put_u16(member.address.port());
}

fn get_member(buf: &mut impl Buf) -> Result<Member, CodecError> {
    let length = usize::from(buf.try_get_u8()?);
    let mut name = vec![0; length];
    buf.try_copy_to_slice(&mut name)?;
    let name = String::from_utf8(name)?;
    let started = buf.try_get_u64()?;
    let ip = match buf.try_get_u8()? {
        4 => IpAddr::from(Ipv4Addr::from_bits(buf.try_get_u32()?)),
        6 => IpAddr::from(Ipv6Addr::from_bits(buf.try_get_u128()?)),
        other => return Err(CodecError::Unknown("an address", other)),
    };
    let address = SocketAddr::new(ip, buf.try_get_u16()?);
    if !is_possible(address) {
        return Err(CodecError::Address(address));
    }
    Ok(Member {
        name: Arc::from(name),
        started,
        address,
    })
}

/// Returns the member if its name is valid. Only the receiver of a message may lack a name.
fn named(member: Member) -> Result<Member, CodecError> {
    member::check_name(&member.name)?;
    Ok(member)
}

/// Returns true for an address to which a member may send datagrams.
pub(super) fn is_possible(address: SocketAddr) -> bool {
    let ip = address.ip().to_canonical();
    let is_broadcast = ip == IpAddr::V4(Ipv4Addr::BROADCAST);
    address.port() != 0 && !ip.is_unspecified() && !ip.is_multicast() && !is_broadcast
}

fn put_message(bytes: &mut Vec<u8>, message: &Message<Member>) {
    let put_probe = |bytes: &mut Vec<u8>, tag: u8, member: &Member, number: u8| {
        bytes.put_slice(&[tag, number]);
        put_member(bytes, member);
    };
    match message {
        Message::Ping(number) => bytes.put_slice(&[1, *number]),
        Message::Ack(number) => bytes.put_slice(&[2, *number]),
        Message::PingReq { target, probe_number } => put_probe(bytes, 3, target, *probe_number),
        Message::IndirectPing { origin, probe_number } => put_probe(bytes, 4, origin, *probe_number),
        Message::IndirectAck { target, probe_number } => put_probe(bytes, 5, target, *probe_number),
        Message::ForwardedAck { origin, probe_number } => put_probe(bytes, 6, origin, *probe_number),
        Message::Announce => bytes.put_u8(7),
        Message::Feed => bytes.put_u8(8),
        Message::Gossip => bytes.put_u8(9),
        Message::Broadcast => bytes.put_u8(10),
        Message::TurnUndead => bytes.put_u8(11),
    }
}

fn get_message(buf: &mut impl Buf) -> Result<Message<Member>, CodecError> {
    let tag = buf.try_get_u8()?;
    Ok(match tag {
        1 => Message::Ping(buf.try_get_u8()?),
        2 => Message::Ack(buf.try_get_u8()?),
        3..=6 => {
            let probe_number = buf.try_get_u8()?;
            let member = named(get_member(buf)?)?;
            match tag {
                3 => Message::PingReq {
                    target: member,
                    probe_number,
                },
                4 => Message::IndirectPing {
                    origin: member,
                    probe_number,
                },
                5 => Message::IndirectAck {
                    target: member,
                    probe_number,
                },
                _ => Message::ForwardedAck {
                    origin: member,
                    probe_number,
                },
            }
        }
        7 => Message::Announce,
        8 => Message::Feed,
        9 => Message::Gossip,
        10 => Message::Broadcast,
        11 => Message::TurnUndead,
        other => return Err(CodecError::Unknown("a message", other)),
    })
}

#[cfg(test)]
mod tests {
    use foca::Codec as _;
    use proptest::prelude::*;

    use super::*;

    fn codec() -> Codec {
        Codec {
            own: ([127, 0, 0, 1], 9).into(),
        }
    }

    fn member() -> impl Strategy<Value = Member> {
        let ip = prop_oneof![
            (1_u32..0xe000_0000).prop_map(|bits| IpAddr::from(Ipv4Addr::from_bits(bits))),
            (1_u128 << 120..1 << 121).prop_map(|bits| IpAddr::from(Ipv6Addr::from_bits(bits))),
        ];
        ("[a-z]{1,128}", any::<u64>(), ip, 1_u16..).prop_map(|(name, started, ip, port)| Member {
            name: name.into(),
            started,
            address: SocketAddr::new(ip, port),
        })
    }

    fn message() -> impl Strategy<Value = Message<Member>> {
        let probe = |make: fn(Member, u8) -> Message<Member>| {
            (member(), any::<u8>()).prop_map(move |(member, number)| make(member, number))
        };
        prop_oneof![
            any::<u8>().prop_map(Message::Ping),
            any::<u8>().prop_map(Message::Ack),
            probe(|target, probe_number| Message::PingReq { target, probe_number }),
            probe(|origin, probe_number| Message::IndirectPing { origin, probe_number }),
            probe(|target, probe_number| Message::IndirectAck { target, probe_number }),
            probe(|origin, probe_number| Message::ForwardedAck { origin, probe_number }),
            Just(Message::Announce),
            Just(Message::Feed),
            Just(Message::Gossip),
            Just(Message::Broadcast),
            Just(Message::TurnUndead),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            src in member(), dst in member(), message in message(), src_incarnation in any::<u16>(),
            state in 0_usize..3,
        ) {
            let entry = foca::Member::new(dst.clone(), 7, [State::Alive, State::Suspect, State::Down][state]);
            let header = Header { src, src_incarnation, dst, message };
            let mut bytes = Vec::new();
            codec().encode_header(&header, &mut bytes).unwrap();
            codec().encode_member(&entry, &mut bytes).unwrap();
            let mut rest = bytes.as_slice();
            prop_assert_eq!(codec().decode_header(&mut rest).unwrap(), header);
            prop_assert_eq!(codec().decode_member(&mut rest).unwrap(), entry);
            prop_assert!(rest.is_empty());
            // A message that ends early anywhere is an error.
            for end in 0..bytes.len() {
                let mut rest = &bytes[..end];
                let read = codec().decode_header(&mut rest).map(|_| codec().decode_member(&mut rest));
                prop_assert!(!matches!(read, Ok(Ok(_))));
            }
        }

        #[test]
        fn bytes_of_anyone_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = codec().decode_header(&mut bytes.as_slice());
            let _ = codec().decode_member(&mut bytes.as_slice());
        }
    }

    #[test]
    fn who_announces_itself_to_an_address_means_us() {
        let header = |message| Header {
            src: Member::new("a".into(), ([127, 0, 0, 1], 1).into()),
            src_incarnation: 0,
            dst: Member::anyone_at(([10, 0, 0, 1], 2).into()),
            message,
        };
        let received = |message| {
            let mut bytes = Vec::new();
            codec().encode_header(&header(message), &mut bytes).unwrap();
            codec().decode_header(&mut bytes.as_slice()).unwrap().dst.address
        };
        assert_eq!(received(Message::Announce), codec().own);
        assert_eq!(received(Message::Gossip).to_string(), "10.0.0.1:2");
    }

    #[test]
    fn nobody_is_made_to_send_to_everybody_and_what_does_not_fit_is_not_begun() {
        for address in [
            "0.0.0.0:1",
            "224.0.0.1:1",
            "255.255.255.255:1",
            "10.0.0.1:0",
            "[::]:1",
            "[ff02::1]:1",
        ] {
            assert!(!is_possible(address.parse().unwrap()), "{address}");
        }
        let member = Member::new("a".into(), ([127, 0, 0, 1], 1).into());
        let mut bytes = Vec::new();
        let error = codec().encode_member(&foca::Member::alive(member), (&mut bytes).limit(5));
        assert!(matches!(error, Err(CodecError::Full)) && bytes.is_empty());
    }
}
