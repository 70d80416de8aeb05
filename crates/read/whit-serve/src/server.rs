//! Connections: accepted up to a bound, each with one request.

use crate::bounds::Bounds;
use crate::guard::is_own_host;
use crate::request::{self, Request, Until};
use crate::response::{Response, Status};
use crate::site::Site;
use crate::symbols::Binaries;
use crate::token::Token;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use whit_sys::Poller;

/// The listening socket in the poller, and the descriptor that ends the server.
const CONNECTION: u64 = 0;
const STOP: u64 = 1;

/// A client that is refused before its request was read may go on sending: the reason reaches it all the same.
const LINGER_BYTES: u64 = 1 << 20;
const LINGER_TIME: Duration = Duration::from_millis(500);

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    token: Token,
    bounds: Bounds,
}

/// The connections that are open, so that the end of the server is theirs.
#[derive(Default)]
struct Open(Mutex<BTreeMap<u64, Connection>>);

struct Connection {
    stream: TcpStream,
    /// Its request has come, with the token.
    is_asked: bool,
}

impl Open {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Connection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the oldest connection without a request that may be made. `false` where all have one.
    fn close_idle(&self) -> bool {
        let mut all = self.all();
        let idle =
            all.iter().find(|(_, connection)| !connection.is_asked).map(|(number, _)| *number);
        let closed = idle.and_then(|number| all.remove(&number));
        // Its thread ends by that.
        closed.map(|connection| connection.stream.shutdown(Shutdown::Both)).is_some()
    }

    fn note_request(&self, number: u64) {
        if let Some(connection) = self.all().get_mut(&number) {
            connection.is_asked = true;
        }
    }
}

impl Server {
    /// Listens; port 0 takes a free one.
    ///
    /// # Errors
    /// The address is taken, or is none of this machine.
    pub fn bind(address: SocketAddr, token: Token, bounds: Bounds) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Server { listener, address, token, bounds })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the page, without the slash at its end.
    pub fn url(&self) -> String {
        // Nobody can open the address that stands for all.
        let mut reachable = self.address;
        if self.address.ip().is_unspecified() {
            reachable.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        format!("http://{reachable}/{}", self.token.text())
    }

    /// Answers until `stop` can be read.
    ///
    /// # Errors
    /// The socket failed.
    pub fn run<C: Binaries + Send>(&self, site: &Site<'_, C>, stop: impl AsFd) -> io::Result<()> {
        let mut poller = Poller::new()?;
        poller.add(&self.listener, CONNECTION)?;
        poller.add(stop, STOP)?;
        let open = Open::default();
        std::thread::scope(|scope| {
            let mut number = 0;
            loop {
                let ready = poller.wait(None)?;
                if ready.iter().any(|ready| ready.token == STOP) {
                    open.all().values().for_each(|connection| {
                        // It may be closed already.
                        let _ = connection.stream.shutdown(Shutdown::Both);
                    });
                    return Ok(());
                }
                let Some(stream) = self.accept()? else { continue };
                let Some(other) = self.admit(&stream, &open) else { continue };
                number += 1;
                open.all().insert(number, Connection { stream: other, is_asked: false });
                let (own, open) = (number, &open);
                let started = std::thread::Builder::new().spawn_scoped(scope, move || {
                    // A client that went away is no failure of the server.
                    let _ = self.serve(&stream, site, || open.note_request(own));
                    open.all().remove(&own);
                });
                if started.is_err() {
                    open.all().remove(&own);
                }
            }
        })
    }

    /// The next connection; `None` where it went away, or where there are too many open files for now.
    fn accept(&self) -> io::Result<Option<TcpStream>> {
        match self.listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                Ok(Some(stream))
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::ConnectionAborted | ErrorKind::Interrupted => {
                    Ok(None)
                }
                // Those that are open will end within their time.
                _ if error.raw_os_error().is_some_and(is_shortage) => {
                    std::thread::sleep(Duration::from_millis(50));
                    Ok(None)
                }
                _ => Err(error),
            },
        }
    }

    /// A second handle of the connection; `None` where there are too many.
    fn admit(&self, stream: &TcpStream, open: &Open) -> Option<TcpStream> {
        if open.all().len() >= self.bounds.max_connections && !open.close_idle() {
            let bounds = Bounds { response_time: Duration::from_millis(100), ..self.bounds };
            let _ = Response::status(Status::Busy).send(stream, &bounds, true);
            return None;
        }
        stream.try_clone().ok()
    }

    fn serve<C: Binaries>(
        &self,
        stream: &TcpStream,
        site: &Site<'_, C>,
        note_request: impl FnOnce(),
    ) -> io::Result<()> {
        let read = request::read(stream, &self.bounds);
        let (response, with_body) = match &read {
            Ok(request) => (self.answer(request, site, note_request), request.method != "HEAD"),
            Err(Some(status)) => (Response::status(*status), true),
            Err(None) => return Ok(()),
        };
        response.send(stream, &self.bounds, with_body)?;
        if read.is_err() {
            linger(stream)?;
        }
        Ok(())
    }

    /// Calls `note_request` where the client may ask: others, of any user here, hold no place.
    fn answer<C: Binaries>(
        &self,
        request: &Request,
        site: &Site<'_, C>,
        note_request: impl FnOnce(),
    ) -> Response {
        let host = request.header("host").unwrap_or_default();
        if !is_own_host(host, self.address) {
            return Response::status(Status::Forbidden);
        }
        let path = request.target.strip_prefix('/').unwrap_or_default();
        let (token, rest) = match path.split_once('/') {
            Some((token, rest)) => (token, Some(rest)),
            None => (path, None),
        };
        if !self.token.is(token) {
            return Response::status(Status::NotFound);
        }
        note_request();
        match rest {
            Some(rest) => site.answer(request, rest, host),
            None => {
                let mut moved = Response::status(Status::Moved);
                moved.headers.push(("Location", format!("/{token}/")));
                moved
            }
        }
    }
}

/// `ENFILE`, `EMFILE`, `ENOBUFS` and `ENOMEM`.
fn is_shortage(code: i32) -> bool {
    use whit_sys::Errno;
    [Errno::NFILE, Errno::MFILE, Errno::NOBUFS, Errno::NOMEM]
        .iter()
        .any(|errno| errno.raw_os_error() == code)
}

/// Takes what a refused client still sends: closing a socket with unread bytes would take the response back.
fn linger(stream: &TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    let rest = Until { stream, deadline: Instant::now() + LINGER_TIME };
    io::copy(&mut rest.take(LINGER_BYTES), &mut io::sink())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_connections_without_a_request_make_room_the_oldest_first() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let open = Open::default();
        let insert = |number, is_asked| {
            open.all().insert(number, Connection { stream: connect(), is_asked });
        };
        [(1, true), (2, false), (3, false)].into_iter().for_each(|(number, it)| insert(number, it));
        open.note_request(3);
        assert!(open.close_idle());
        assert_eq!(open.all().keys().copied().collect::<Vec<_>>(), [1, 3]);
        assert!(!open.close_idle());
    }
}
