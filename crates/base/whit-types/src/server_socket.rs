//! Sockets of servers.

use std::fmt;
use std::str::FromStr;

/// Longest path of a UNIX socket, with the byte that ends it: `UNIX_PATH_MAX` of `include/uapi/linux/un.h`.
const PATH_BYTES: usize = 108;

/// All connections of a server: `tcp:PORT`, `unix:PATH`, `unix:@NAME`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ServerSocket {
    /// The connections of a local port of TCP, with any address. The port is not 0.
    Tcp(u16),
    /// The connections of a UNIX socket: the bytes of the path as the server gives it to `bind`, or a name behind a zero
    /// byte (an abstract one). 1 to 107 bytes.
    Unix(Vec<u8>),
}

/// Why a text is no socket of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseServerSocketError {
    /// It begins in another way.
    Form,
    /// No port from 1 to 65535.
    Port,
    /// Empty, longer than a path may be, or neither from the root on nor abstract.
    Path,
}

impl fmt::Display for ParseServerSocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ParseServerSocketError::Form => "a socket of a server is tcp:PORT, unix:/PATH or unix:@NAME",
            ParseServerSocketError::Port => "a port of TCP is a number from 1 to 65535",
            ParseServerSocketError::Path => {
                "a UNIX socket is /PATH as the server gives it to bind, or @NAME, of up to 107 bytes"
            }
        })
    }
}

impl std::error::Error for ParseServerSocketError {}

impl FromStr for ServerSocket {
    type Err = ParseServerSocketError;

    fn from_str(text: &str) -> Result<ServerSocket, ParseServerSocketError> {
        match text.split_once(':') {
            Some(("tcp", port)) => match port.parse() {
                Ok(port @ 1..) => Ok(ServerSocket::Tcp(port)),
                _ => Err(ParseServerSocketError::Port),
            },
            Some(("unix", path)) => {
                let mut bytes = path.as_bytes().to_vec();
                match bytes.first_mut() {
                    Some(b'/') => {}
                    Some(first @ b'@') if path.len() > 1 => *first = 0,
                    _ => return Err(ParseServerSocketError::Path),
                }
                let is_path = bytes.len() < PATH_BYTES && !bytes[1..].contains(&0);
                is_path.then_some(ServerSocket::Unix(bytes)).ok_or(ParseServerSocketError::Path)
            }
            _ => Err(ParseServerSocketError::Form),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_ports_paths_and_abstract_names() {
        let parse = |text: &str| text.parse::<ServerSocket>();
        assert_eq!(parse("tcp:5432"), Ok(ServerSocket::Tcp(5432)));
        assert_eq!(parse("unix:/run/s"), Ok(ServerSocket::Unix(b"/run/s".to_vec())));
        assert_eq!(parse("unix:@s:1"), Ok(ServerSocket::Unix(b"\0s:1".to_vec())));
        for wrong in ["tcp:", "tcp:0", "tcp:65536", "tcp:http", "tcp:-1"] {
            assert_eq!(parse(wrong), Err(ParseServerSocketError::Port), "{wrong}");
        }
        let (longest, longer) = ("a".repeat(106), "a".repeat(107));
        assert!(parse(&format!("unix:/{longest}")).is_ok());
        for wrong in ["unix:", "unix:@", "unix:s", "unix:/a\0b", &format!("unix:/{longer}")] {
            assert_eq!(parse(wrong), Err(ParseServerSocketError::Path), "{wrong}");
        }
        for wrong in ["", "tcp", "udp:53"] {
            assert_eq!(parse(wrong), Err(ParseServerSocketError::Form), "{wrong}");
        }
    }
}
