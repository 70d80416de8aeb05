//! Requests, read within bounds.

use crate::bounds::{Bounds, MAX_HEADERS};
use crate::response::Status;
use std::io::{self, Read};
use std::net::TcpStream;
use std::time::Instant;

/// Bytes that are taken from the socket at a time.
const READ_BYTES: usize = 4 << 10;

/// One request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| &value[..])
    }
}

/// The request line and headers of a request, and the length of its body.
#[derive(Debug)]
struct Head {
    request: Request,
    size_bytes: usize,
    body_bytes: usize,
}

/// Reads from a socket until a moment.
pub(crate) struct Until<'a> {
    pub(crate) stream: &'a TcpStream,
    pub(crate) deadline: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(bytes)
    }
}

/// Why there is no request: a status for the client, or nobody to tell.
pub(crate) type Refused = Option<Status>;

/// Reads the only request of a connection.
pub(crate) fn read(stream: &TcpStream, bounds: &Bounds) -> Result<Request, Refused> {
    let deadline = Instant::now() + bounds.request_time;
    read_from(&mut Until { stream, deadline }, bounds)
}

fn read_from(from: &mut impl Read, bounds: &Bounds) -> Result<Request, Refused> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(head) = parse(&bytes).map_err(Some)? {
            break head;
        }
        if bytes.len() > bounds.max_head_bytes {
            return Err(Some(Status::HeadTooLarge));
        }
        more(from, &mut bytes, READ_BYTES)?;
    };
    if head.size_bytes > bounds.max_head_bytes {
        return Err(Some(Status::HeadTooLarge));
    }
    if head.body_bytes > bounds.max_body_bytes {
        return Err(Some(Status::BodyTooLarge));
    }
    let mut body = bytes.split_off(head.size_bytes);
    if body.len() > head.body_bytes {
        // A second request behind the first: a connection has one.
        return Err(Some(Status::Malformed));
    }
    while body.len() < head.body_bytes {
        let missing = head.body_bytes - body.len();
        more(from, &mut body, missing.min(READ_BYTES))?;
    }
    Ok(Request { body, ..head.request })
}

fn more(from: &mut impl Read, bytes: &mut Vec<u8>, wanted: usize) -> Result<(), Refused> {
    let before = bytes.len();
    bytes.resize(before + wanted, 0);
    let read = loop {
        match from.read(&mut bytes[before..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other,
        }
    };
    let count = read.map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Some(Status::TimedOut),
        _ => None,
    })?;
    bytes.truncate(before + count);
    match count {
        // A connection that ends without any byte is no mistake.
        0 if before == 0 => Err(None),
        0 => Err(Some(Status::Malformed)),
        _ => Ok(()),
    }
}

/// The head at the beginning of these bytes; `None` where it is not whole yet.
fn parse(bytes: &[u8]) -> Result<Option<Head>, Status> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let size_bytes = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(size)) => size,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Status::HeadTooLarge),
        Err(_) => return Err(Status::Malformed),
    };
    let headers = parsed.headers.iter().map(|header| {
        let value = std::str::from_utf8(header.value).map_err(|_| Status::Malformed)?;
        Ok((header.name.to_ascii_lowercase(), value.to_owned()))
    });
    let request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        target: parsed.path.unwrap_or_default().to_owned(),
        headers: headers.collect::<Result<_, Status>>()?,
        body: Vec::new(),
    };
    let body_bytes = body_length(&request)?;
    Ok(Some(Head { request, size_bytes, body_bytes }))
}

/// Headers that two readers could read in two ways are refused.
fn body_length(request: &Request) -> Result<usize, Status> {
    let count = |name| request.headers.iter().filter(|(known, _)| known == name).count();
    if count("transfer-encoding") > 0 {
        return Err(Status::LengthRequired);
    }
    let is_doubled = ["content-length", "host", "origin"].into_iter().any(|name| count(name) > 1);
    if is_doubled || count("host") == 0 {
        return Err(Status::Malformed);
    }
    match request.header("content-length") {
        None => Ok(0),
        Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().map_err(|_| Status::Malformed)
        }
        Some(_) => Err(Status::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn given(bytes: &[u8]) -> Result<Request, Refused> {
        let bounds = Bounds { max_head_bytes: 200, max_body_bytes: 10, ..Bounds::default() };
        read_from(&mut &bytes[..], &bounds)
    }

    #[test]
    fn a_request_has_its_body() {
        let request =
            given(b"POST /a HTTP/1.1\r\nHOST: x\r\nContent-Length: 3\r\n\r\nabc").unwrap();
        assert_eq!((&request.method[..], &request.target[..]), ("POST", "/a"));
        assert_eq!((request.header("host"), &request.body[..]), (Some("x"), &b"abc"[..]));
    }

    #[test]
    fn ambiguous_and_cut_requests_are_refused() {
        for bytes in [
            &b"GET\r\n\r\n"[..],
            b"GET / HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nOrigin: a\r\nOrigin: b\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc",
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nab",
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n",
            b"GET / HTTP/1.1\r\nHost: \xff\r\n\r\n",
            b"GET / HT",
        ] {
            let shown = String::from_utf8_lossy(bytes);
            assert_eq!(given(bytes), Err(Some(Status::Malformed)), "{shown}");
        }
        let chunked = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(given(chunked), Err(Some(Status::LengthRequired)));
        assert_eq!(given(b""), Err(None));
    }

    #[test]
    fn sizes_are_bounded() {
        let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(300));
        assert_eq!(given(long.as_bytes()), Err(Some(Status::HeadTooLarge)));
        let endless = "a".repeat(1 << 20);
        assert_eq!(given(endless.as_bytes()), Err(Some(Status::HeadTooLarge)));
        let body = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n";
        assert_eq!(given(body), Err(Some(Status::BodyTooLarge)));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a:b\r\n".repeat(MAX_HEADERS + 1));
        let bounds = Bounds::default();
        let refused = read_from(&mut many.as_bytes(), &bounds);
        assert_eq!(refused, Err(Some(Status::HeadTooLarge)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, head in "(GET|POST) /[ -~]{0,40} HTTP/1.1\r\n([A-Za-z-]{1,9}: ?[ -~]{0,9}\r\n){0,5}\r\n") {
            let _ = given(&bytes);
            let _ = given(&[head.as_bytes(), &bytes[..]].concat());
        }
    }
}
