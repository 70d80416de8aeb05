//! The socket on which applications report latencies and ask for dumps.

use crate::parse::time_text;
use crate::rule::{NAME_BYTES_MAX, Rule, is_name};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longer messages are not understood.
const MESSAGE_BYTES_MAX: usize = 256;
/// Bytes of the reason that a program gives for a dump.
const REASON_BYTES_MAX: usize = 128;
/// Messages that are taken before other sources are looked at.
const MESSAGES_AT_ONCE: usize = 1024;
/// The longest latency that means something: a day.
const LATENCY_MS_MAX: f64 = 86_400_000.0;

/// A socket that belongs to this program while it runs.
#[derive(Debug)]
pub(crate) struct Socket {
    socket: UnixDatagram,
    path: PathBuf,
}

/// A message of an application.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Message {
    /// `latency NAME MILLISECONDS`
    Latency(String, Duration),
    /// `dump` and why.
    Dump(String),
}

impl Message {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Message> {
        let text = std::str::from_utf8(bytes).ok()?.trim_end_matches(['\n', '\0', ' ']);
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        match word {
            "latency" => {
                let (name, ms) = rest.trim().rsplit_once(' ')?;
                let ms: f64 = ms.parse().ok().filter(|ms| (0.0..=LATENCY_MS_MAX).contains(ms))?;
                let latency = Duration::try_from_secs_f64(ms / 1000.0).ok()?;
                is_name(name).then(|| Message::Latency(name.to_owned(), latency))
            }
            "dump" if rest.len() <= REASON_BYTES_MAX => Some(Message::Dump(rest.trim().to_owned())),
            _ => None,
        }
    }

    /// The measured value where the message is an event of the rule.
    pub(crate) fn is_event_of(&self, rule: &Rule) -> Option<String> {
        match (self, rule) {
            (Message::Latency(name, took), Rule::Latency { name: of, longest })
                if name == of && took > longest =>
            {
                Some(format!("took {}", time_text(Duration::from_micros(took.as_micros() as u64))))
            }
            _ => None,
        }
    }
}

impl Socket {
    /// Takes the path, and gives its socket these permissions.
    pub(crate) fn bind(path: &Path, mode: u32) -> io::Result<Socket> {
        make_room(path)?;
        let socket = UnixDatagram::bind(path)?;
        let socket = Socket { socket, path: path.to_owned() };
        std::fs::set_permissions(path, Permissions::from_mode(mode))?;
        socket.socket.set_nonblocking(true)?;
        Ok(socket)
    }

    /// Takes the messages that have come, some at most. `None` stands for one that cannot be read.
    pub(crate) fn take(&self) -> Vec<Option<Message>> {
        let mut messages = Vec::new();
        // One byte more shows that a message was longer.
        let mut bytes = [0; MESSAGE_BYTES_MAX + 1];
        while messages.len() < MESSAGES_AT_ONCE {
            match self.socket.recv(&mut bytes) {
                Ok(size) => messages
                    .push(Message::parse(&bytes[..size]).filter(|_| size <= MESSAGE_BYTES_MAX)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        messages
    }
}

/// A socket that nobody listens to is one that a killed program left.
fn make_room(path: &Path) -> io::Result<()> {
    let kind = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    let is_left = kind.is_socket() && UnixDatagram::unbound()?.connect(path).is_err_and(refused);
    if is_left { std::fs::remove_file(path) } else { Err(in_use()) }
}

fn in_use() -> io::Error {
    io::Error::new(io::ErrorKind::AddrInUse, "another program uses this path")
}

impl std::os::fd::AsFd for Socket {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // The next program of this path takes one that stays.
        let _ = std::fs::remove_file(&self.path);
    }
}

const _: () = assert!(NAME_BYTES_MAX + REASON_BYTES_MAX < MESSAGE_BYTES_MAX);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_are_latencies_and_requests() {
        let latency = |name: &str, ms: u64| {
            Some(Message::Latency(name.to_owned(), Duration::from_millis(ms)))
        };
        assert_eq!(Message::parse(b"latency checkout 250"), latency("checkout", 250));
        assert_eq!(Message::parse(b"latency checkout 250.0\n"), latency("checkout", 250));
        assert_eq!(Message::parse(b"dump"), Some(Message::Dump(String::new())));
        assert_eq!(Message::parse(b"dump queue full\0"), Some(Message::Dump("queue full".into())));
        for bad in [
            "",
            "latency",
            "latency x",
            "latency 5",
            "latency x -1",
            "latency x NaN",
            "latency x 1e300",
            "latency a b 5",
            "reset",
            "\u{0}",
        ] {
            assert_eq!(Message::parse(bad.as_bytes()), None, "{bad:?}");
        }
        assert_eq!(Message::parse(format!("dump {}", "x".repeat(129)).as_bytes()), None);
        assert_eq!(Message::parse(b"dump \xff"), None);
    }

    #[test]
    fn only_longer_latencies_of_the_name_are_events() {
        let rule: Rule = "latency:checkout:250ms".parse().unwrap();
        let event = |text: &str| Message::parse(text.as_bytes()).unwrap().is_event_of(&rule);
        assert_eq!(event("latency checkout 250"), None);
        assert_eq!(event("latency checkout 250.5"), Some("took 250500us".to_owned()));
        assert_eq!(event("latency search 999"), None);
        assert_eq!(event("dump"), None);
    }

    #[test]
    fn a_socket_of_a_killed_program_is_taken_and_others_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let first = Socket::bind(&path, 0o600).unwrap();
        assert_eq!(Socket::bind(&path, 0o600).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        let client = UnixDatagram::unbound().unwrap();
        client.send_to(b"dump now", &path).unwrap();
        client.send_to(&[b'x'; 300], &path).unwrap();
        assert_eq!(first.take(), [Some(Message::Dump("now".into())), None]);
        drop(first);
        assert!(!path.exists());
        drop(UnixDatagram::bind(&path).unwrap());
        assert!(path.exists(), "nobody removed it");
        drop(Socket::bind(&path, 0o600).unwrap());
        std::fs::write(&path, "precious").unwrap();
        assert!(Socket::bind(&path, 0o600).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }

    proptest! {
        #[test]
        fn no_message_is_too_bad(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Message::parse(&bytes);
            let _ = Message::parse(&[b"latency ", &bytes[..]].concat());
        }
    }
}
