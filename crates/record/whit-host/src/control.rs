//! `--control`: another program switches events on and off while the recording runs.
//!
//! Commands are lines; each known one is answered with `ack` when it has been carried out. The words
//! are perf's (`tools/perf/util/evlist.h`, `EVLIST_CTL_CMD_*`).

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};
use whit_sys::{Errno, descriptor};

/// The reply to a command that has been carried out.
const ACK: &[u8] = b"ack\n";
/// Longest line; a longer one is not a command.
const LINE_BYTES_MAX: usize = 4096;
/// Bytes taken at once.
const READ_BYTES: usize = 4096;

/// Where commands come from and answers go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlSpec {
    /// Descriptors that the recorder was started with.
    Descriptors {
        /// Commands.
        control: i32,
        /// Answers.
        ack: Option<i32>,
    },
    /// Named pipes.
    Fifos {
        /// Commands.
        control: PathBuf,
        /// Answers.
        ack: Option<PathBuf>,
    },
}

/// The text does not name a channel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' names no control channel: write fd:CTL[,ACK] or fifo:CTL[,ACK]")]
pub struct ControlSpecError(String);

impl std::str::FromStr for ControlSpec {
    type Err = ControlSpecError;

    fn from_str(text: &str) -> Result<Self, ControlSpecError> {
        let error = || ControlSpecError(text.to_owned());
        let (kind, names) = text.split_once(':').ok_or_else(error)?;
        let (control, ack) = match names.split_once(',') {
            Some((control, ack)) => (control, Some(ack).filter(|ack| !ack.is_empty())),
            None => (names, None),
        };
        let number = |text: &str| text.parse().ok().filter(|n| *n >= 0).ok_or_else(error);
        match kind {
            "fd" => Ok(ControlSpec::Descriptors {
                control: number(control)?,
                ack: ack.map(number).transpose()?,
            }),
            "fifo" if !control.is_empty() => {
                Ok(ControlSpec::Fifos { control: control.into(), ack: ack.map(PathBuf::from) })
            }
            _ => Err(error()),
        }
    }
}

/// How events are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// All fields.
    pub verbose: bool,
    /// Groups in braces.
    pub groups: bool,
    /// The rate alone.
    pub rate: bool,
}

/// Requests of the controlling program (`--control`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Switch this event on, or all.
    Enable(Option<String>),
    /// Switch this event off, or all.
    Disable(Option<String>),
    /// List the events.
    Evlist(Listing),
    /// The same action as SIGUSR2.
    Snapshot,
    /// Empty all rings into the output now, and mark the place in it with this number.
    Drain(u64),
    /// End the recording.
    Stop,
    /// Answer.
    Ping,
}

impl Command {
    /// Reads a line.
    fn parse(line: &str) -> Option<Command> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        let name = || Some(rest).filter(|name| !name.is_empty()).map(str::to_owned);
        Some(match word {
            "enable" => Command::Enable(name()),
            "disable" => Command::Disable(name()),
            "evlist" => Command::Evlist(listing(rest)?),
            "snapshot" => Command::Snapshot,
            "drain" if rest.is_empty() => Command::Drain(0),
            "drain" => Command::Drain(rest.parse().ok()?),
            "stop" => Command::Stop,
            "ping" => Command::Ping,
            _ => return None,
        })
    }
}

fn listing(options: &str) -> Option<Listing> {
    let mut listing = Listing::default();
    for option in options.split_ascii_whitespace() {
        match option {
            "-v" => listing.verbose = true,
            "-g" => listing.groups = true,
            "-F" => listing.rate = true,
            _ => return None,
        }
    }
    Some(listing)
}

/// A channel that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open control channel {channel} (make it before: mkfifo, or open the descriptor)")]
pub struct ControlOpenError {
    channel: String,
    source: Errno,
}

/// An open channel.
pub struct ControlChannel {
    control: OwnedFd,
    ack: Option<OwnedFd>,
    line: Vec<u8>,
}

impl fmt::Debug for ControlChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ControlChannel").field(&self.control).finish()
    }
}

/// The result of one read of the channel.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Commands in order.
    pub commands: Vec<Command>,
    /// Lines that are no commands.
    pub unknown: Vec<String>,
    /// Nobody will send any more.
    pub closed: bool,
}

impl ControlChannel {
    /// Opens the channel. Named pipes are opened for both directions, so that neither side has to
    /// wait for the other.
    pub fn open(spec: &ControlSpec) -> Result<ControlChannel, ControlOpenError> {
        let (control, ack) = match spec {
            ControlSpec::Descriptors { control, ack } => {
                (of_number(*control)?, ack.map(of_number).transpose()?)
            }
            ControlSpec::Fifos { control, ack } => {
                (of_path(control)?, ack.as_ref().map(of_path).transpose()?)
            }
        };
        Ok(ControlChannel { control, ack, line: Vec::new() })
    }

    /// Takes the commands that have arrived. Call it when the descriptor is readable; it may block
    /// otherwise.
    pub fn receive(&mut self) -> Result<Received, Errno> {
        let mut bytes = [0; READ_BYTES];
        let mut received = Received::default();
        let size = match rustix::io::read(&self.control, &mut bytes) {
            Ok(size) => size,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(received),
            Err(errno) => return Err(errno),
        };
        received.closed = size == 0;
        for &byte in &bytes[..size] {
            match byte {
                b'\n' | 0 => received.take(std::mem::take(&mut self.line)),
                // One byte too many marks the line as too long.
                _ if self.line.len() <= LINE_BYTES_MAX => self.line.push(byte),
                _ => {}
            }
        }
        Ok(received)
    }

    /// Says that a command has been carried out.
    pub fn acknowledge(&self) -> Result<(), Errno> {
        match &self.ack {
            Some(ack) => rustix::io::write(ack, ACK).map(drop),
            None => Ok(()),
        }
    }
}

impl Received {
    fn take(&mut self, line: Vec<u8>) {
        let too_long = line.len() > LINE_BYTES_MAX;
        let text = String::from_utf8_lossy(&line).trim().to_owned();
        match Command::parse(&text).filter(|_| !too_long) {
            Some(command) => self.commands.push(command),
            None if text.is_empty() => {}
            None => self.unknown.push(text.chars().take(80).collect()),
        }
    }
}

impl AsFd for ControlChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}

fn of_number(number: i32) -> Result<OwnedFd, ControlOpenError> {
    let error = |source| ControlOpenError { channel: format!("fd:{number}"), source };
    descriptor::duplicate(number).map_err(error)
}

fn of_path(path: &PathBuf) -> Result<OwnedFd, ControlOpenError> {
    let error = |source| ControlOpenError { channel: format!("fifo:{}", path.display()), source };
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(error)?;
    let kind = rustix::fs::fstat(&fd).map_err(error)?.st_mode;
    match rustix::fs::FileType::from_raw_mode(kind) {
        rustix::fs::FileType::Fifo => Ok(fd),
        _ => Err(error(Errno::INVAL)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn channels_are_written_as_perf_has_them() {
        let descriptors = |control, ack| Ok(ControlSpec::Descriptors { control, ack });
        assert_eq!("fd:3".parse(), descriptors(3, None));
        assert_eq!("fd:3,7".parse(), descriptors(3, Some(7)));
        assert_eq!("fd:3,".parse(), descriptors(3, None));
        let fifos = ControlSpec::Fifos { control: "/a".into(), ack: Some("b".into()) };
        assert_eq!("fifo:/a,b".parse(), Ok(fifos));
        for text in ["", "3", "fd:", "fd:x", "fd:-1", "fd:3,x", "fifo:", "file:/a"] {
            assert!(text.parse::<ControlSpec>().is_err(), "{text}");
        }
    }

    #[test]
    fn lines_become_commands_however_they_are_cut() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        let (answers, ack) = rustix::pipe::pipe().unwrap();
        let (control, ack) = (read.as_raw_fd(), Some(ack.as_raw_fd()));
        let mut channel = ControlChannel::open(&ControlSpec::Descriptors { control, ack }).unwrap();
        rustix::io::write(&write, b"enable\ndisable cycles:u\nevlist -v -g\nsnap").unwrap();
        let received = channel.receive().unwrap();
        let listing = Listing { verbose: true, groups: true, rate: false };
        assert_eq!(
            received.commands,
            [
                Command::Enable(None),
                Command::Disable(Some("cycles:u".into())),
                Command::Evlist(listing)
            ]
        );
        rustix::io::write(
            &write,
            b"shot\nstop\r\n\nping\0dance\nevlist -x\ndrain\ndrain 7\ndrain -1\n",
        )
        .unwrap();
        let received = channel.receive().unwrap();
        assert_eq!(
            received.commands,
            [Command::Snapshot, Command::Stop, Command::Ping, Command::Drain(0), Command::Drain(7)]
        );
        assert_eq!(received.unknown, ["dance", "evlist -x", "drain -1"]);
        channel.acknowledge().unwrap();
        let mut answer = [0; 8];
        assert_eq!(rustix::io::read(&answers, &mut answer).unwrap(), 4);
        assert_eq!(&answer[..4], b"ack\n");
        drop((write, read));
        assert!(channel.receive().unwrap().closed);
    }

    #[test]
    fn a_line_without_end_is_bounded_and_no_command() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        let spec = ControlSpec::Descriptors { control: read.as_raw_fd(), ack: None };
        let mut channel = ControlChannel::open(&spec).unwrap();
        rustix::io::write(&write, b"ping ").unwrap();
        for _ in 0..4 {
            rustix::io::write(&write, &[b'x'; READ_BYTES]).unwrap();
            assert_eq!(channel.receive().unwrap().commands, []);
        }
        assert!(channel.line.len() <= LINE_BYTES_MAX + 1);
        rustix::io::write(&write, b"\n").unwrap();
        while channel.receive().unwrap().unknown.is_empty() {}
    }

    #[test]
    fn a_control_path_that_is_no_pipe_is_refused_with_its_name() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let spec = ControlSpec::Fifos { control: file.path().into(), ack: None };
        let error = ControlChannel::open(&spec).unwrap_err();
        assert!(error.to_string().contains(&file.path().display().to_string()), "{error}");
        let closed = ControlSpec::Descriptors { control: 1 << 30, ack: None };
        assert!(ControlChannel::open(&closed).unwrap_err().to_string().contains("fd:"));
    }
}
