//! The object of a wait: the file, the socket, the pipe or the like that a system call names.
//!
//! The BPF engine describes an object once per CPU and stream, in words. In packed switches the description is a chain
//! behind [`MARKER`], in an ordinary sample of a switch it follows the state in the raw data. `docs/format.md` has the
//! layout.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use syscalls::x86_64::Sysno;

use crate::bytes::u64_at;
use crate::tracing_data::TraceEvent;

/// The words in front of a description, in a chain: that of a chain, and, in the place of the address of a futex, none.
pub const MARKER: [u64; 2] = [0, 0];
/// The same in bytes.
pub(crate) const MARKER_BYTES: usize = 2 * WORD_BYTES;
/// Bytes of the state in front of a description, in the raw data of a sample.
const STATE_BYTES: usize = 4;
/// Bytes of the size in front of raw data, which ends on a whole word with it.
const RAW_HEAD_BYTES: usize = 4;
const WORD_BYTES: usize = 8;

/// Kinds: `bpf/wait_object.h` in `whit-bpf`.
const UNKNOWN: u8 = 1;
const FILE: u8 = 2;
const PIPE: u8 = 3;
const ANONYMOUS: u8 = 4;
const INET: u8 = 5;
const UNIX: u8 = 6;
const SOCKET: u8 = 7;
const FILES: u8 = 8;
const SLEEP: u8 = 9;
const CHILD: u8 = 10;
const SIGNAL: u8 = 11;
const IPC: u8 = 12;
const NO_FILE: u8 = 13;

/// Address families and protocols (`include/linux/socket.h`, `include/uapi/linux/in.h`).
const AF_INET6: u16 = 10;
const IPPROTO_TCP: u16 = 6;
const IPPROTO_UDP: u16 = 17;

/// Where the raw data of a wake-up has the socket of the waker's call: behind the fields of the tracepoint.
pub fn at_wake_up(event: &TraceEvent) -> usize {
    let fields = event.common_fields.iter().chain(&event.fields);
    let end = fields.map(|field| field.offset + field.size_bytes).max().unwrap_or(0);
    (RAW_HEAD_BYTES + end).next_multiple_of(WORD_BYTES) - RAW_HEAD_BYTES
}

/// The chain of a futex: a marker, and its address.
pub fn futex_chain(address: u64) -> [u8; 16] {
    let mut chain = [0; 16];
    chain[WORD_BYTES..].copy_from_slice(&address.to_le_bytes());
    chain
}

/// Why the object of a wait is not known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum UnknownObject {
    /// No 64-bit system call was recognized: a page fault or another exception, or a 32-bit program.
    NoCall,
    /// The system call of this number has no file descriptor.
    NoFile(u32),
    /// Its file descriptor was not open, or memory was not readable.
    NotReadable(u32),
    /// Threads of the kernel make no system calls.
    KernelThread,
    /// The thread ends, and has given its memory back.
    Exit,
    /// The system call names several files.
    Several(u32),
    /// A description that this version does not know.
    Undecodable,
    /// There are more objects than are distinguished.
    TooMany,
}

/// Which end of a connection a socket is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SocketRole {
    /// Neither is known, or there is none.
    Unknown,
    /// It takes connections.
    Listens,
    /// The peer has opened the connection.
    Accepted,
    /// This end has opened it.
    Connected,
}

impl SocketRole {
    /// From the flags of a description (`bpf/wait_object.h` in `whit-bpf`).
    fn of(flags: u8) -> SocketRole {
        match flags {
            1 => SocketRole::Listens,
            2 => SocketRole::Connected,
            4 => SocketRole::Accepted,
            _ => SocketRole::Unknown,
        }
    }

    fn brings(self) -> Brings {
        match self {
            SocketRole::Listens | SocketRole::Accepted => Brings::Work,
            SocketRole::Connected => Brings::Answers,
            SocketRole::Unknown => Brings::Unknown,
        }
    }
}

/// The kind of news that comes by a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Brings {
    /// That is not known.
    #[default]
    Unknown,
    /// Clients: they connect, or say something on connections that they have opened.
    Work,
    /// A peer, to which the program has opened the connection.
    Answers,
}

/// The ends of a connection.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InetSocket {
    /// The protocol's number: 6 for TCP, 17 for UDP.
    pub protocol: u16,
    /// Own address and port.
    pub own: SocketAddr,
    /// Those of the peer; the port is 0 for none.
    pub peer: SocketAddr,
    /// Which end it is.
    pub role: SocketRole,
    /// Inode, which distinguishes sockets of the same addresses.
    pub inode: u64,
}

/// One end of a UNIX connection, or a socket that takes them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UnixSocket {
    /// The path of the socket or of its peer; one that is abstract begins with `@`. Empty for none.
    pub path: String,
    /// The process that made the other end; 0 where none is known.
    pub peer_process: u32,
    /// Distinguishes sockets without a path.
    pub inode: u64,
    /// Inode of the peer; 0 where none is known.
    pub peer_inode: u64,
    /// Which end it is.
    pub role: SocketRole,
}

/// The file, time, process or the like that a thread waits for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum WaitObject {
    /// A file, directory, terminal or other device that has a path.
    File {
        /// The path in the mount namespace of the thread, as it was at the first wait.
        path: String,
        /// The file system's device, as the kernel numbers it.
        device: u64,
        /// Number of the file on the device.
        inode: u64,
    },
    /// Both ends of a pipe without a path.
    Pipe {
        /// Inode: both ends have the same.
        inode: u64,
    },
    /// A file without an inode of its own, such as `[eventpoll]` or `[timerfd]`.
    Anonymous {
        /// The name without number: `[eventpoll]`.
        name: String,
        /// The file descriptor.
        descriptor: u32,
    },
    /// A socket of the internet.
    Inet(InetSocket),
    /// A UNIX socket.
    Unix(UnixSocket),
    /// Another socket.
    Socket {
        /// Address family.
        family: u16,
        /// The number that `socket(2)` took.
        protocol: u16,
        /// Distinguishes sockets of one kind.
        inode: u64,
    },
    /// Several files that one call waits for.
    Files(u32),
    /// A time: how long, in nanoseconds; 0 for one that is a point in time.
    Sleep(u64),
    /// A child process; -1 is any.
    Child(i32),
    /// The thread waits until one arrives.
    Signal,
    /// A message queue of System V, by its number.
    MessageQueue(u32),
    /// A set of semaphores of System V, by its number.
    Semaphores(u32),
    /// No file of several was ready when the wait ended: by a timeout or a signal, or since another thread took the ready one.
    NoFile,
    /// The recording does not tell.
    Unknown(UnknownObject),
}

impl InetSocket {
    /// Whether the packets of another socket arrive here: its peer is this one, and this one has no other peer. A socket
    /// without an address of its own takes packets to any address.
    pub fn takes_from(&self, sender: &InetSocket) -> bool {
        let is_own = self.own.ip() == sender.peer.ip() || self.own.ip().is_unspecified();
        let is_peer = self.peer == sender.own || self.peer.port() == 0;
        let ports = (self.own.port(), sender.peer.port());
        self.protocol == sender.protocol && ports.0 == ports.1 && ports.0 != 0 && is_own && is_peer
    }
}

impl WaitObject {
    /// The bytes of a description in the raw data of a switch's sample; `None` where it has none.
    pub fn bytes_in_raw(raw: &[u8]) -> Option<&[u8]> {
        let description = raw.get(STATE_BYTES + WORD_BYTES..)?;
        let has_futex = raw[STATE_BYTES..][..WORD_BYTES].iter().any(|byte| *byte != 0);
        (!has_futex && !description.is_empty()).then_some(description)
    }

    /// The kind of news that comes by it.
    pub fn brings(&self) -> Brings {
        match self {
            WaitObject::Inet(socket) => socket.role.brings(),
            WaitObject::Unix(socket) => socket.role.brings(),
            _ => Brings::Unknown,
        }
    }

    /// Its kind, as outputs name it.
    pub fn kind(&self) -> &'static str {
        match self {
            WaitObject::File { .. } => "file",
            WaitObject::Pipe { .. } => "pipe",
            WaitObject::Anonymous { .. } => "anonymous-file",
            WaitObject::Inet(_) => "inet-socket",
            WaitObject::Unix(_) => "unix-socket",
            WaitObject::Socket { .. } => "socket",
            WaitObject::Files(_) => "files",
            WaitObject::Sleep(_) => "time",
            WaitObject::Child(_) => "child",
            WaitObject::Signal => "signal",
            WaitObject::MessageQueue(_) | WaitObject::Semaphores(_) => "ipc",
            WaitObject::NoFile => "no-file",
            WaitObject::Unknown(_) => "unknown",
        }
    }

    /// From the words of a description.
    pub fn parse(bytes: &[u8]) -> WaitObject {
        WaitObject::known(bytes).unwrap_or(WaitObject::Unknown(UnknownObject::Undecodable))
    }

    fn known(bytes: &[u8]) -> Option<WaitObject> {
        let word = |at: usize| u64_at(bytes, at * WORD_BYTES);
        let head = word(0)?;
        let (flags, number) = ((head >> 8) as u8, (head >> 32) as u32);
        let (family, protocol) = (number as u16, (number >> 16) as u16);
        Some(match head as u8 {
            FILE => {
                let is_cut = flags & 1 != 0;
                let path = path(bytes.get(3 * WORD_BYTES..)?, is_cut);
                WaitObject::File { path, device: word(1)?, inode: word(2)? }
            }
            PIPE => WaitObject::Pipe { inode: word(1)? },
            ANONYMOUS => {
                WaitObject::Anonymous { name: text(bytes.get(WORD_BYTES..)?), descriptor: number }
            }
            INET => {
                let end = |at: usize, port: u64| {
                    let words = [word(at)?, word(at + 1)?];
                    Some(SocketAddr::new(address(family, words), port as u16))
                };
                let ports = word(2)?;
                WaitObject::Inet(InetSocket {
                    protocol,
                    own: end(3, ports)?,
                    peer: end(5, ports >> 16)?,
                    role: SocketRole::of(flags),
                    inode: word(1)?,
                })
            }
            UNIX => WaitObject::Unix(UnixSocket {
                path: unix_path(bytes.get(3 * WORD_BYTES..).unwrap_or_default()),
                peer_process: number,
                inode: word(1)?,
                peer_inode: word(2)?,
                role: SocketRole::of(flags),
            }),
            SOCKET => WaitObject::Socket { family, protocol, inode: word(1)? },
            FILES => WaitObject::Files(number),
            SLEEP => WaitObject::Sleep(word(1)?),
            CHILD => WaitObject::Child(number as i32),
            SIGNAL => WaitObject::Signal,
            IPC if flags & 1 != 0 => WaitObject::Semaphores(number),
            IPC => WaitObject::MessageQueue(number),
            NO_FILE => WaitObject::NoFile,
            UNKNOWN => WaitObject::Unknown(match flags {
                1 => UnknownObject::NoCall,
                2 => UnknownObject::NoFile(number),
                3 => UnknownObject::NotReadable(number),
                4 => UnknownObject::KernelThread,
                5 => UnknownObject::Several(number),
                6 => UnknownObject::Exit,
                _ => return None,
            }),
            _ => return None,
        })
    }
}

/// From words in the order of the network.
fn address(family: u16, words: [u64; 2]) -> IpAddr {
    if family != AF_INET6 {
        let [a, b, c, d, ..] = words[0].to_le_bytes();
        return Ipv4Addr::new(a, b, c, d).into();
    }
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&words[0].to_le_bytes());
    bytes[8..].copy_from_slice(&words[1].to_le_bytes());
    Ipv6Addr::from(bytes).to_canonical()
}

/// The text in front of the first byte of zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// The path of names, the last one first. One that is cut lacks the names in front.
fn path(bytes: &[u8], is_cut: bool) -> String {
    let names: Vec<_> =
        bytes.split(|byte| *byte == 0).take_while(|name| !name.is_empty()).collect();
    let mut path = String::from(if is_cut { "..." } else { "" });
    for name in names.iter().rev() {
        path.push('/');
        path.push_str(&String::from_utf8_lossy(name));
    }
    if path.is_empty() {
        path.push('/');
    }
    path
}

fn unix_path(bytes: &[u8]) -> String {
    match bytes {
        // An abstract name has any bytes; those behind it are zeros.
        [0, name @ ..] => {
            let end = name.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let name = String::from_utf8_lossy(&name[..end]).replace('\0', "@");
            if name.is_empty() { name } else { format!("@{name}") }
        }
        _ => text(bytes),
    }
}

/// The name of a system call. Only recordings of x86-64 have objects.
fn call_name(number: u32) -> Cow<'static, str> {
    let known = Sysno::new(number as usize).map(|call| call.name().into());
    known.unwrap_or_else(|| format!("system call {number}").into())
}

impl fmt::Display for UnknownObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnknownObject::NoCall => f.write_str("no 64-bit system call was recognized"),
            UnknownObject::NoFile(call) => write!(f, "{} names no open file", call_name(*call)),
            UnknownObject::NotReadable(call) => {
                write!(f, "the file of {} was not readable", call_name(*call))
            }
            UnknownObject::KernelThread => f.write_str("thread of the kernel"),
            UnknownObject::Exit => f.write_str("the thread ends"),
            UnknownObject::Several(call) => write!(f, "{} names several files", call_name(*call)),
            UnknownObject::Undecodable => f.write_str("the description was not understood"),
            UnknownObject::TooMany => f.write_str("too many objects"),
        }
    }
}

impl fmt::Display for InetSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.protocol {
            IPPROTO_TCP => f.write_str("tcp ")?,
            IPPROTO_UDP => f.write_str("udp ")?,
            protocol => write!(f, "ip-{protocol} ")?,
        }
        if self.role == SocketRole::Listens {
            return write!(f, "{} (listens)", self.own);
        }
        match self.peer.port() {
            0 => write!(f, "{}", self.own),
            _ => write!(f, "{} to {}", self.own, self.peer),
        }
    }
}

impl fmt::Display for UnixSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => write!(f, "unix socket:[{}]", self.inode)?,
            path => write!(f, "unix {path}")?,
        }
        match self.peer_process {
            0 => Ok(()),
            process => write!(f, " (peer {process})"),
        }
    }
}

/// As `/proc/PID/fd` has it, as far as it has it.
impl fmt::Display for WaitObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaitObject::File { path, .. } => f.write_str(path),
            WaitObject::Pipe { inode } => write!(f, "pipe:[{inode}]"),
            WaitObject::Anonymous { name, descriptor } => {
                write!(f, "anon_inode:{name} (fd {descriptor})")
            }
            WaitObject::Inet(socket) => socket.fmt(f),
            WaitObject::Unix(socket) => socket.fmt(f),
            WaitObject::Socket { family, inode, .. } => {
                write!(f, "socket:[{inode}] (family {family})")
            }
            WaitObject::Files(count) => write!(f, "{count} files"),
            WaitObject::Sleep(0) => f.write_str("a point in time"),
            WaitObject::Sleep(ns) => write!(f, "{:?}", std::time::Duration::from_nanos(*ns)),
            WaitObject::Child(pid @ 1..) => write!(f, "child {pid}"),
            WaitObject::Child(_) => f.write_str("any child"),
            WaitObject::Signal => f.write_str("a signal"),
            WaitObject::MessageQueue(number) => write!(f, "message queue {number}"),
            WaitObject::Semaphores(number) => write!(f, "semaphores {number}"),
            WaitObject::NoFile => f.write_str("no ready file"),
            WaitObject::Unknown(reason) => write!(f, "unknown ({reason})"),
        }
    }
}

#[cfg(test)]
mod tests;
