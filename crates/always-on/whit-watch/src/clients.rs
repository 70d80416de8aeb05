//! Clients of a socket: a bounded number, each within one deadline.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A client has so long for all that it sends and takes.
const CLIENT_TIME: Duration = Duration::from_secs(2);
/// Clients at a time. The oldest one makes room for the next: clients that only wait stop no other.
const CLIENTS_MAX: usize = 16;
/// Where no connection can be taken, mostly as there are too many open files.
const TRY_AGAIN: Duration = Duration::from_millis(50);

/// A stream socket of any family: the standard library has no type for it, and a client uses operations that all of them
/// have.
pub(crate) type Socket = UnixStream;

/// The open connections, by number.
type Open = Arc<Mutex<BTreeMap<u64, Socket>>>;

/// A connection with its deadline.
#[derive(Debug)]
pub(crate) struct Client {
    stream: Socket,
    deadline: Instant,
}

impl Client {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Client {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(bytes)
    }
}

impl Write for Client {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Serves connections, each in a thread, until the process ends.
pub(crate) fn serve<S>(mut accept: impl FnMut() -> io::Result<Socket> + Send + 'static, answer: S)
where
    S: Fn(Client) -> io::Result<()> + Clone + Send + 'static,
{
    std::thread::spawn(move || {
        let open = Open::default();
        for number in 0.. {
            match accept() {
                Ok(stream) => admit(&open, number, stream, answer.clone()),
                Err(_) => std::thread::sleep(TRY_AGAIN),
            }
        }
    });
}

fn admit<S>(open: &Open, number: u64, stream: Socket, answer: S)
where
    S: Fn(Client) -> io::Result<()> + Send + 'static,
{
    let Ok(other) = stream.try_clone() else { return };
    let mut all = lock(open);
    if all.len() >= CLIENTS_MAX
        && let Some((_, oldest)) = all.pop_first()
    {
        // Its thread ends by that.
        let _ = oldest.shutdown(Shutdown::Both);
    }
    all.insert(number, other);
    drop(all);
    let own = open.clone();
    let serve = move || {
        // A client that went away is no failure of the service.
        let _ = answer(Client { stream, deadline: Instant::now() + CLIENT_TIME });
        lock(&own).remove(&number);
    };
    if std::thread::Builder::new().spawn(serve).is_err() {
        lock(open).remove(&number);
    }
}

fn lock(open: &Open) -> MutexGuard<'_, BTreeMap<u64, UnixStream>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}
