//! Requests: intervals of a thread that begin with a sample of one event and end with one of another.
//!
//! The names of both events say which request they belong to. Their samples have the stack pointer of user mode as a
//! field, which tells nested calls from each other, and at the beginning perhaps a key. Samples of data that goes through
//! the sockets of a server have a [`SocketData`] in place of that.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// In front of the names of both events.
const PREFIX: &str = "request:";

/// The field with the stack pointer.
pub const STACK_POINTER: &str = "sp";
/// The field with the address above the stack of a goroutine. Its stack may move meanwhile: the distance to this address
/// stays. The goroutine is in the fields of [`crate::goroutine`].
pub const STACK_TOP: &str = "stack_top";
/// The field with the key: a number or a text.
pub const KEY: &str = "key";

/// Which end of a request an event is at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Edge {
    /// The call of the function.
    Begin,
    /// Its return.
    End,
}

impl Edge {
    const ALL: [Edge; 2] = [Edge::Begin, Edge::End];

    fn word(self) -> &'static str {
        match self {
            Edge::Begin => ":begin",
            Edge::End => ":end",
        }
    }
}

/// The name of an event of the requests `name`.
pub fn event_name(name: &str, edge: Edge) -> String {
    format!("{PREFIX}{name}{}", edge.word())
}

/// The name of the requests whose event has this name; `None` for other events.
pub fn request_of(event: &str) -> Option<(&str, Edge)> {
    let name = event.strip_prefix(PREFIX)?;
    Edge::ALL.into_iter().find_map(|edge| Some((name.strip_suffix(edge.word())?, edge)))
}

/// The other end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peer {
    /// Address and port.
    Internet(SocketAddr),
    /// The process that made it, by its number; 0 where that is not known.
    Process(u32),
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Internet(address) => address.fmt(f),
            Peer::Process(0) => f.write_str("unknown process"),
            Peer::Process(number) => write!(f, "process {number}"),
        }
    }
}

/// The step of a system call with a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SocketStep {
    /// It has received so many bytes.
    Received(u32),
    /// It has received that the other end sends no more.
    Ended,
    /// It is about to send.
    SendBegins,
    /// It has sent so many bytes.
    Sent(u32),
    /// It was to send, and has sent nothing.
    SentNothing,
}

/// The raw data of a sample of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SocketData {
    /// The connection: no other one of the machine has this number.
    pub connection: u64,
    /// By the edge of the event and the data.
    pub step: SocketStep,
    /// The other end; `None` for a family of addresses that is not known here.
    pub peer: Option<Peer>,
}

/// `struct socket_mark` of the programs.
const SOCKET_DATA_BYTES: usize = 32;
/// In the place of sent bytes: a call begins, or has sent none.
const SEND_BEGINS: u32 = 0;
const SENT_NOTHING: u32 = u32::MAX;
/// Families of addresses: `include/linux/socket.h`.
const AF_UNIX: u16 = 1;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

impl SocketData {
    /// Reads it from the raw data of a sample of an event; `None` for shorter data.
    pub fn parse(edge: Edge, raw: &[u8]) -> Option<SocketData> {
        let raw: &[u8; SOCKET_DATA_BYTES] = raw.first_chunk()?;
        let word = |at: usize| raw[at..].first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        let half = |at: usize| raw[at..].first_chunk().map(|bytes| u16::from_le_bytes(*bytes));
        // The port and the address are in the order of the network.
        let port = u16::from_be(half(14)?);
        let address = |address: IpAddr| Peer::Internet(SocketAddr::new(address, port));
        let peer = match half(12)? {
            AF_INET => Some(address(IpAddr::from(*raw[16..].first_chunk::<4>()?))),
            AF_INET6 => Some(address(IpAddr::from(*raw[16..].first_chunk::<16>()?).to_canonical())),
            AF_UNIX => Some(Peer::Process(word(16)?)),
            _ => None,
        };
        let connection = u64::from_le_bytes(*raw.first_chunk()?);
        let step = match (edge, word(8)?) {
            (Edge::Begin, 0) => SocketStep::Ended,
            (Edge::Begin, bytes) => SocketStep::Received(bytes),
            (Edge::End, SEND_BEGINS) => SocketStep::SendBegins,
            (Edge::End, SENT_NOTHING) => SocketStep::SentNothing,
            (Edge::End, bytes) => SocketStep::Sent(bytes),
        };
        Some(SocketData { connection, step, peer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(family: u16, port: [u8; 2], peer: &[u8]) -> Vec<u8> {
        let mut raw =
            [&7u64.to_le_bytes()[..], &5u32.to_le_bytes(), &family.to_le_bytes(), &port].concat();
        raw.extend(peer);
        raw.resize(36, 0);
        raw
    }

    #[test]
    fn socket_data_names_the_other_end() {
        let peer =
            |raw: &[u8]| SocketData::parse(Edge::Begin, raw).unwrap().peer.unwrap().to_string();
        assert_eq!(peer(&raw(AF_INET, [0x1f, 0x90], &[10, 0, 0, 1])), "10.0.0.1:8080");
        let mapped = [&[0; 10][..], &[0xff, 0xff, 10, 0, 0, 1]].concat();
        assert_eq!(peer(&raw(AF_INET6, [0x1f, 0x90], &mapped)), "10.0.0.1:8080");
        let local = [&[0; 15][..], &[1]].concat();
        assert_eq!(peer(&raw(AF_INET6, [0, 1], &local)), "[::1]:1");
        assert_eq!(peer(&raw(AF_UNIX, [0, 0], &77u32.to_le_bytes())), "process 77");
        assert_eq!(peer(&raw(AF_UNIX, [0, 0], &[])), "unknown process");
        let other = SocketData::parse(Edge::End, &raw(40, [0, 0], &[])).unwrap();
        assert_eq!(other, SocketData { connection: 7, step: SocketStep::Sent(5), peer: None });
        assert_eq!(SocketData::parse(Edge::Begin, &[0; 31]), None);
    }

    #[test]
    fn bytes_of_socket_data_say_what_a_call_does() {
        let step = |edge, bytes: u32| {
            let mut raw = raw(AF_INET, [0, 0], &[]);
            raw[8..12].copy_from_slice(&bytes.to_le_bytes());
            SocketData::parse(edge, &raw).unwrap().step
        };
        assert_eq!(step(Edge::Begin, 0), SocketStep::Ended);
        assert_eq!(step(Edge::Begin, u32::MAX), SocketStep::Received(u32::MAX));
        assert_eq!(step(Edge::End, 0), SocketStep::SendBegins);
        assert_eq!(step(Edge::End, u32::MAX), SocketStep::SentNothing);
        assert_eq!(step(Edge::End, 1), SocketStep::Sent(1));
    }

    #[test]
    fn names_of_events_name_the_request() {
        for edge in Edge::ALL {
            assert_eq!(request_of(&event_name("a:begin", edge)), Some(("a:begin", edge)));
        }
        for other in ["request:a", "a:begin", "request:a:middle", "cycles"] {
            assert_eq!(request_of(other), None);
        }
    }
}
