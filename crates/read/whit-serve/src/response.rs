//! Responses, written within bounds.

use crate::bounds::Bounds;
use std::fs::File;
use std::io::{self, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Instant;

/// Bytes that are read from a file at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// The statuses that whit answers with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    Ok,
    NoContent,
    Moved,
    Malformed,
    Forbidden,
    NotFound,
    WrongMethod,
    TimedOut,
    LengthRequired,
    BodyTooLarge,
    HeadTooLarge,
    Busy,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Status::Ok => "200 OK",
            Status::NoContent => "204 No Content",
            Status::Moved => "308 Permanent Redirect",
            Status::Malformed => "400 Bad Request",
            Status::Forbidden => "403 Forbidden",
            Status::NotFound => "404 Not Found",
            Status::WrongMethod => "405 Method Not Allowed",
            Status::TimedOut => "408 Request Timeout",
            Status::LengthRequired => "411 Length Required",
            Status::BodyTooLarge => "413 Content Too Large",
            Status::HeadTooLarge => "431 Request Header Fields Too Large",
            Status::Busy => "503 Service Unavailable",
        }
    }
}

/// The bytes behind the head.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Bytes(Arc<[u8]>),
    /// So many bytes from the beginning.
    File(Arc<File>, u64),
}

/// Status, headers and body, as they go to the client.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: Status,
    kind: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    body: Body,
}

/// Other pages may neither show, read nor keep these responses, and no link tells them the token.
const FIXED: &str = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
                     X-Frame-Options: DENY\r\nConnection: close\r\n";

impl Response {
    pub(crate) fn new(kind: &'static str, body: Body) -> Response {
        Response { status: Status::Ok, kind, headers: Vec::new(), body }
    }

    pub(crate) fn json(text: String) -> Response {
        Response::new("application/json", Body::Bytes(text.into_bytes().into()))
    }

    /// A status without a detail.
    pub(crate) fn status(status: Status) -> Response {
        let text = if status == Status::NoContent {
            String::new()
        } else {
            format!("{}\n", status.line())
        };
        let body = Body::Bytes(text.into_bytes().into());
        Response { status, ..Response::new("text/plain; charset=utf-8", body) }
    }

    fn head(&self) -> String {
        let length = match &self.body {
            Body::Bytes(bytes) => bytes.len() as u64,
            Body::File(_, length) => *length,
        };
        let (line, kind) = (self.status.line(), self.kind);
        let mut head = format!(
            "HTTP/1.1 {line}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{FIXED}"
        );
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        head
    }

    /// Writes it; a client that reads too slowly gets a part.
    pub(crate) fn send(
        &self,
        stream: &TcpStream,
        bounds: &Bounds,
        with_body: bool,
    ) -> io::Result<()> {
        let mut out = Until { stream, deadline: Instant::now() + bounds.response_time };
        out.write_all(self.head().as_bytes())?;
        match &self.body {
            _ if !with_body => Ok(()),
            Body::Bytes(bytes) => out.write_all(bytes),
            Body::File(file, length) => copy(file, *length, &mut out),
        }
    }
}

fn copy(file: &File, length: u64, out: &mut impl Write) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut at = 0;
    while at < length {
        let wanted = chunk.len().min((length - at) as usize);
        file.read_exact_at(&mut chunk[..wanted], at)?;
        out.write_all(&chunk[..wanted])?;
        at += wanted as u64;
    }
    Ok(())
}

/// Writes to a socket until a moment.
struct Until<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl Write for Until<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_write_timeout(Some(left))?;
        self.stream.write(&bytes[..bytes.len().min(CHUNK_BYTES)])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
