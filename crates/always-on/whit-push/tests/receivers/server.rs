//! A receiver that does what a test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use whit_testing::wait::wait_until;

/// A request that came whole.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) at: Instant,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, text)| text.as_str())
    }
}

/// An answer to a request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// A status, further header lines, a body.
    Status(u16, &'static str, Vec<u8>),
    /// No byte, ever.
    Silent,
    /// The connection is cut in the middle of the request.
    Reset,
}

pub(crate) const TAKEN: Answer = Answer::Status(200, "", Vec::new());

/// The answer by the number of the request, from 0 on, and the request.
type Behaviour = dyn Fn(usize, &Request) -> Answer + Send + Sync;

/// Ends with this value.
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    requests: Mutex<Vec<Request>>,
    connections: AtomicUsize,
    open: Mutex<Vec<TcpStream>>,
    is_over: AtomicBool,
    answer: Box<Behaviour>,
}

impl Server {
    /// `answer` gets the number of the request, from 0 on, and the request.
    pub(crate) fn start(
        answer: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static,
    ) -> Server {
        Server::start_at("127.0.0.1:0".parse().expect("an address"), answer)
    }

    pub(crate) fn start_at(
        address: SocketAddr,
        answer: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind(address).expect("listen");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            requests: Mutex::default(),
            connections: AtomicUsize::new(0),
            open: Mutex::default(),
            is_over: AtomicBool::new(false),
            answer: Box::new(answer),
        });
        let of_thread = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if of_thread.is_over.load(Ordering::Relaxed) {
                    return;
                }
                of_thread.connections.fetch_add(1, Ordering::Relaxed);
                let copy = stream.try_clone().expect("copy a socket");
                of_thread.open.lock().unwrap().push(copy);
                let shared = of_thread.clone();
                // A client that has gone is no failure.
                std::thread::spawn(move || _ = serve(&stream, &shared));
            }
        });
        Server { address, shared }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    pub(crate) fn wait_for(&self, requests: usize) -> Vec<Request> {
        wait_until("the requests come", || self.requests().len() >= requests);
        self.requests()
    }

    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        for stream in self.shared.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        // The thread waits for somebody.
        let _ = TcpStream::connect(self.address);
        // As with a process that has ended: the address is free for the next one.
        let is_free = || TcpStream::connect(self.address).is_err();
        wait_until("the listener is gone", is_free);
    }
}

/// One connection, and all requests that come over it.
fn serve(stream: &TcpStream, shared: &Shared) -> std::io::Result<()> {
    let (mut input, mut out) = (BufReader::new(stream), stream);
    loop {
        let Some(mut request) = head(&mut input)? else { return Ok(()) };
        let size: usize =
            request.header("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
        let number = shared.requests.lock().unwrap().len();
        // The answer may depend on the body, and a reset comes before its end.
        if matches!((shared.answer)(number, &request), Answer::Reset) {
            let mut half = vec![0; size / 2];
            input.read_exact(&mut half)?;
            shared.requests.lock().unwrap().push(request);
            // With bytes that nobody has read, the end of a socket is a reset.
            return stream.shutdown(Shutdown::Both);
        }
        request.body = vec![0; size];
        input.read_exact(&mut request.body)?;
        let answer = (shared.answer)(number, &request);
        shared.requests.lock().unwrap().push(request);
        let Answer::Status(status, further, body) = answer else {
            wait_until("the server ends", || shared.is_over.load(Ordering::Relaxed));
            return Ok(());
        };
        let size = body.len();
        write!(out, "HTTP/1.1 {status} So\r\n{further}Content-Length: {size}\r\n\r\n")?;
        out.write_all(&body)?;
    }
}

fn head(input: &mut impl BufRead) -> std::io::Result<Option<Request>> {
    let mut first = String::new();
    if input.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut request = Request { path, headers: Vec::new(), body: Vec::new(), at: Instant::now() };
    loop {
        let mut line = String::new();
        input.read_line(&mut line)?;
        match line.trim_end().split_once(": ") {
            Some((name, text)) => request.headers.push((name.to_owned(), text.to_owned())),
            None => return Ok(Some(request)),
        }
    }
}
