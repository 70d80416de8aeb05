//! Answers about the state: a socket for `whit watch status`, and metrics over HTTP.

use crate::clients::{self, Socket};
use crate::log::Log;
use crate::shared::Shared;
use crate::status::Status;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A service answers at once, unless the machine is overloaded.
const ANSWERS_WITHIN: Duration = Duration::from_secs(4);
/// Largest request for metrics.
const REQUEST_BYTES_MAX: u64 = 8 << 10;
/// Largest answer that `whit watch status` reads.
const ANSWER_BYTES_MAX: u64 = 4 << 20;

/// Where metrics are served.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// On loopback.
    Tcp(SocketAddr),
    /// On a socket of the file system.
    Socket(PathBuf),
}

impl std::str::FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        if text.contains('/') {
            return Ok(Address::Socket(text.into()));
        }
        match text.parse::<SocketAddr>() {
            Ok(address) if address.ip().is_loopback() => Ok(Address::Tcp(address)),
            Ok(address) => Err(format!(
                "{address} is no address of loopback: everyone in the network would read these metrics"
            )),
            Err(_) => Err(format!(
                "'{text}' is neither an address with a port, such as 127.0.0.1:9150, nor the path of a socket"
            )),
        }
    }
}

/// The socket without `socket`: in the folder that systemd made, or where programs of root have theirs.
pub fn default_socket() -> PathBuf {
    let folder = std::env::var_os("RUNTIME_DIRECTORY");
    folder.map_or_else(|| PathBuf::from("/run/whit"), PathBuf::from).join("watch.sock")
}

/// Answers in threads of their own, until the process ends.
///
/// # Errors
/// A place cannot be listened on: the text names the way out.
pub fn serve(
    socket: &Path,
    metrics: Option<&Address>,
    shared: &Arc<Shared>,
    log: &Log,
) -> Result<(), String> {
    let listener = bind(socket).map_err(|error| {
        format!("cannot listen on {}: {error} (--socket names another place)", socket.display())
    })?;
    let own = shared.clone();
    let answer = move || serde_json::to_vec(&Status::of(&own)).unwrap_or_default();
    let accept = move || listener.accept().map(|(stream, _)| stream);
    clients::serve(accept, move |mut client| client.write_all(&answer()));
    let own = shared.clone();
    let page = move || Status::of(&own).metrics();
    let answer = move |client| answer_http(client, &page);
    match metrics {
        None => {}
        Some(Address::Tcp(address)) => {
            let listener = TcpListener::bind(address)
                .map_err(|error| format!("cannot serve metrics on {address}: {error}"))?;
            if let Ok(address) = listener.local_addr() {
                log.say_always(format_args!("metrics: http://{address}/metrics"));
            }
            let accept = move || Ok(Socket::from(OwnedFd::from(listener.accept()?.0)));
            clients::serve(accept, answer);
        }
        Some(Address::Socket(path)) => {
            let listener = bind(path)
                .map_err(|error| format!("cannot serve metrics on {}: {error}", path.display()))?;
            let accept = move || listener.accept().map(|(stream, _)| stream);
            clients::serve(accept, answer);
        }
    }
    Ok(())
}

/// A socket that a killed service left behind is replaced; one that answers is not.
fn bind(path: &Path) -> io::Result<UnixListener> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let is_socket = fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
    if is_socket {
        if UnixStream::connect(path).is_ok() {
            return Err(io::Error::other("another whit watch answers there"));
        }
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    // Names of programs and containers are in it.
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

fn answer_http(mut client: impl Read + Write, page: &dyn Fn() -> String) -> io::Result<()> {
    let request = request_line(&mut client)?;
    let mut words = request.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, body) = match (method, path.split('?').next()) {
        ("GET", Some("/metrics" | "/")) => ("200 OK", page()),
        ("GET", _) => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "only GET\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    client.write_all(head.as_bytes())?;
    client.write_all(body.as_bytes())
}

/// The first line; the rest of the request is read and let go.
fn request_line(client: &mut impl Read) -> io::Result<String> {
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    let mut client = client.take(REQUEST_BYTES_MAX);
    while !request.windows(4).any(|it| it == b"\r\n\r\n") {
        match client.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => request.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    Ok(String::from_utf8_lossy(line).into_owned())
}

/// Asks a service for its state.
///
/// # Errors
/// None answers there: the text names the way out.
pub fn ask(socket: &Path) -> Result<Status, String> {
    let asked = || -> io::Result<Vec<u8>> {
        let client = UnixStream::connect(socket)?;
        client.set_read_timeout(Some(ANSWERS_WITHIN))?;
        let mut answer = Vec::new();
        client.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
        Ok(answer)
    };
    let answer = asked().map_err(|error| {
        let path = socket.display();
        let advice = match error.kind() {
            io::ErrorKind::PermissionDenied => "ask as the user that it runs as",
            _ => "is it running? --socket names its socket",
        };
        format!("no whit watch answers on {path}: {error} ({advice})")
    })?;
    serde_json::from_slice(&answer)
        .map_err(|error| format!("the answer from {} is none: {error}", socket.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Client {
        request: io::Cursor<Vec<u8>>,
        answer: Vec<u8>,
    }

    impl Read for &mut Client {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.request.read(out)
        }
    }

    impl Write for &mut Client {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.answer.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn answered(request: &str) -> String {
        let request = io::Cursor::new(request.as_bytes().to_vec());
        let mut client = Client { request, answer: Vec::new() };
        answer_http(&mut client, &|| "whit_watch_x 1\n".to_owned()).unwrap();
        String::from_utf8(client.answer).unwrap()
    }

    #[test]
    fn metrics_are_served_to_get_alone() {
        let text = answered("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(
            text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\nwhit_watch_x 1\n")
        );
        assert!(text.contains("Content-Length: 15\r\n"), "{text}");
        assert!(answered("GET /x HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(answered("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        assert!(answered(&"x".repeat(100_000)).starts_with("HTTP/1.1 405"));
    }

    #[test]
    fn metrics_stay_on_the_machine() {
        assert!(matches!("127.0.0.1:9150".parse(), Ok(Address::Tcp(_))));
        assert!(matches!("[::1]:9150".parse(), Ok(Address::Tcp(_))));
        assert_eq!("/run/x".parse(), Ok(Address::Socket("/run/x".into())));
        for (text, wanted) in
            [("0.0.0.0:1", "everyone in the network"), ("9150", "such as 127.0.0.1")]
        {
            assert!(text.parse::<Address>().is_err_and(|error| error.contains(wanted)), "{text}");
        }
    }

    /// A machine may allow a process a thousand open files: those of clients that only wait are closed.
    #[test]
    fn clients_that_only_wait_or_drip_stop_no_other() {
        use std::net::TcpStream;
        use whit_testing::wait::wait_until;
        let folder = tempfile::tempdir().unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let log = Log::new(Box::new(io::sink()));
        let shared = Arc::<Shared>::default();
        serve(&folder.path().join("s"), Some(&Address::Tcp(free)), &shared, &log).unwrap();
        let ask = || {
            let mut client = TcpStream::connect(free).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).unwrap();
            answer
        };
        // In parts: this process has the other ends, too.
        for _ in 0..100 {
            let idle: Vec<_> = (0..100).map(|_| TcpStream::connect(free).unwrap()).collect();
            assert!(ask().starts_with("HTTP/1.1 200 OK"));
            drop(idle);
        }
        // It sends a byte now and then, and is not waited for longer than the others.
        let mut last = TcpStream::connect(free).unwrap();
        wait_until("it is cut", || last.write_all(b"x").is_err());
        assert!(ask().starts_with("HTTP/1.1 200 OK"));
    }

    #[test]
    fn a_service_answers_and_its_socket_is_replaced_when_it_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/watch.sock");
        assert!(ask(&path).unwrap_err().contains("is it running?"));
        let log = Log::new(Box::new(io::sink()));
        let shared = Arc::<Shared>::default();
        shared.counters.gap_ms.add(7);
        serve(&path, None, &shared, &log).unwrap();
        assert_eq!(ask(&path).unwrap().counted.gap_ms, 7);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let error = serve(&path, None, &shared, &log).unwrap_err();
        assert!(error.contains("another whit watch answers there"), "{error}");
        // Left behind by a killed one.
        let other = folder.path().join("left.sock");
        drop(UnixListener::bind(&other).unwrap());
        serve(&other, None, &shared, &log).unwrap();
        ask(&other).unwrap();
    }
}
