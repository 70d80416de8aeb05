//! Sockets of servers, whose data says where requests begin and end: `bpf/sockets.h`.

use whit_types::ServerSocket;

/// Ports and paths that may be chosen in one recording.
pub const SOCKETS_MAX: usize = 16;
/// Events of each on each CPU.
pub(super) const EDGES: usize = 2;
/// `struct chosen_socket`.
const VALUE_BYTES: usize = 120;

/// Which way data goes. The number is that of the programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SocketEdge {
    /// The server has received some.
    Received = 0,
    /// The server has sent some.
    Sent = 1,
}

/// `struct chosen_socket`.
pub(super) fn value(socket: &ServerSocket) -> [u8; VALUE_BYTES] {
    let mut value = [0; VALUE_BYTES];
    let (port, path) = value.split_at_mut(8);
    match socket {
        ServerSocket::Tcp(number) => port.copy_from_slice(&u64::from(*number).to_ne_bytes()),
        ServerSocket::Unix(name) => {
            path.iter_mut().zip(name).for_each(|(to, byte)| *to = *byte);
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_have_the_layout_of_the_programs() {
        let tcp = value(&ServerSocket::Tcp(0x1234));
        assert_eq!(u64::from_ne_bytes(tcp[..8].try_into().unwrap()), 0x1234);
        assert!(tcp[8..].iter().all(|byte| *byte == 0));
        let unix = value(&ServerSocket::Unix(b"/run/s".to_vec()));
        assert_eq!(&unix[..16], b"\0\0\0\0\0\0\0\0/run/s\0\0");
    }
}
