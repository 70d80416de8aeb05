//! One file over HTTP, with bounds on time and size.
//!
//! A thread of its own reads each answer and hands the bytes on, so that a server that says nothing stops nobody:
//! the thread is left behind.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use rustls::crypto::ring;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::settings::Settings;
use crate::stop::Stop;

/// Bytes that are handed on at once.
const CHUNK_BYTES: usize = 64 << 10;
/// Chunks that wait for being written.
const MAX_WAITING: usize = 8;
/// Between two looks at the wish to end.
const LOOK: Duration = Duration::from_millis(50);
/// A server has to send so much in each time-out, as elfutils asks.
const MIN_PROGRESS_BYTES: u64 = 100 << 10;
/// Redirections that are followed.
const MAX_REDIRECTS: u32 = 5;

/// Why a server gave nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GetError {
    #[error("has no such file")]
    NotFound,
    #[error("serves no sections")]
    NoSections,
    #[error("{0}")]
    Unreachable(String),
    #[error("{0}")]
    Refused(String),
    #[error("stopped")]
    Stopped,
    #[error("cannot be kept: {0}")]
    Kept(#[source] std::io::Error),
}

enum Event {
    /// Status and, where the server says it, the size.
    Head(u16, Option<u64>),
    Chunk(Vec<u8>),
    End,
    Error(String),
}

/// Asks servers.
pub(crate) struct Client {
    agent: Agent,
    headers: Vec<(String, String)>,
    timeout: Option<Duration>,
    max_time: Duration,
    max_size_bytes: u64,
    stop: Stop,
}

impl Client {
    pub(crate) fn new(settings: &Settings, stop: Stop) -> Client {
        // Those of the system, as other programs on it use them. Without any, servers by HTTPS are refused.
        let found = rustls_native_certs::load_native_certs().certs;
        let certificates = found.iter().map(|it| Certificate::from_der(it).to_owned());
        let roots = RootCerts::Specific(Arc::new(certificates.collect()));
        let tls = TlsConfig::builder()
            .root_certs(roots)
            .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .timeout_connect(Some(settings.connect_timeout))
            .max_redirects(MAX_REDIRECTS)
            .max_redirects_will_error(true)
            .http_status_as_error(false)
            .user_agent(concat!("whit/", env!("CARGO_PKG_VERSION")))
            .build();
        Client {
            agent: config.into(),
            headers: settings.headers.clone(),
            timeout: settings.timeout,
            max_time: settings.max_time,
            max_size_bytes: settings.max_size_bytes,
            stop,
        }
    }

    /// Writes the file at `url` to `out`; gives its size. `progress` gets bytes done and bytes in total.
    pub(crate) fn get(
        &self,
        url: &str,
        out: &mut dyn Write,
        progress: &dyn Fn(u64, u64),
    ) -> Result<u64, GetError> {
        let (send, events) = sync_channel(MAX_WAITING);
        let mut request = self.agent.get(url);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        std::thread::spawn(move || answer(request, &send));
        self.take(&events, out, progress)
    }

    fn take(
        &self,
        events: &Receiver<Event>,
        out: &mut dyn Write,
        progress: &dyn Fn(u64, u64),
    ) -> Result<u64, GetError> {
        let (begin, mut window) = (Instant::now(), (Instant::now(), 0u64));
        let (mut done_bytes, mut total_bytes) = (0u64, None);
        loop {
            if self.stop.is_stopped() {
                return Err(GetError::Stopped);
            }
            if begin.elapsed() >= self.max_time {
                let seconds = self.max_time.as_secs();
                return Err(GetError::Unreachable(format!(
                    "was not done after {seconds} s (DEBUGINFOD_MAXTIME allows more)"
                )));
            }
            if let Some(timeout) = self.timeout
                && window.0.elapsed() >= timeout
            {
                if done_bytes - window.1 < MIN_PROGRESS_BYTES {
                    return Err(GetError::Unreachable(
                        self.too_slow(done_bytes - window.1, timeout),
                    ));
                }
                window = (Instant::now(), done_bytes);
            }
            match events.recv_timeout(LOOK) {
                Ok(Event::Head(status, size_bytes)) => {
                    check_status(status)?;
                    self.check_size(size_bytes.unwrap_or(0))?;
                    total_bytes = size_bytes;
                }
                Ok(Event::Chunk(bytes)) => {
                    done_bytes += bytes.len() as u64;
                    self.check_size(done_bytes)?;
                    out.write_all(&bytes).map_err(GetError::Kept)?;
                    progress(done_bytes, total_bytes.unwrap_or(0));
                }
                Ok(Event::End) if total_bytes.is_some_and(|total| total != done_bytes) => {
                    return Err(GetError::Refused(format!(
                        "ended after {done_bytes} of {} bytes",
                        total_bytes.unwrap_or(0)
                    )));
                }
                Ok(Event::End) => return Ok(done_bytes),
                Ok(Event::Error(text)) => return Err(GetError::Unreachable(text)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(GetError::Unreachable("gave no answer".to_owned()));
                }
            }
        }
    }

    fn too_slow(&self, bytes: u64, timeout: Duration) -> String {
        let seconds = timeout.as_secs();
        format!("sent {bytes} bytes in {seconds} s (DEBUGINFOD_TIMEOUT allows more time)")
    }

    fn check_size(&self, size_bytes: u64) -> Result<(), GetError> {
        let limit = self.max_size_bytes;
        if size_bytes <= limit {
            return Ok(());
        }
        Err(GetError::Refused(format!(
            "has a file of more than {limit} bytes (DEBUGINFOD_MAXSIZE allows more)"
        )))
    }
}

/// Statuses that debuginfod gives: 406 for `X-DEBUGINFOD-MAXSIZE`; 503 for requests that it does not know, among them
/// those for sections before 0.188.
fn check_status(status: u16) -> Result<(), GetError> {
    match status {
        200 => Ok(()),
        404 | 410 => Err(GetError::NotFound),
        400 | 405 | 501 | 503 => Err(GetError::NoSections),
        status => Err(GetError::Refused(format!("answered with status {status}"))),
    }
}

fn answer(request: ureq::RequestBuilder<ureq::typestate::WithoutBody>, send: &SyncSender<Event>) {
    let response = match request.call() {
        Ok(response) => response,
        Err(error) => {
            let _ = send.send(Event::Error(error.to_string()));
            return;
        }
    };
    let header = response.headers().get("content-length").and_then(|it| it.to_str().ok());
    let size_bytes = header.and_then(|text| text.parse().ok());
    let head = Event::Head(response.status().as_u16(), size_bytes);
    let mut body = response.into_body().into_reader();
    let mut event = head;
    // A receiver that has gone wants no more.
    while send.send(event).is_ok() {
        let mut chunk = vec![0; CHUNK_BYTES];
        event = match body.read(&mut chunk) {
            Ok(0) => Event::End,
            Ok(size) => {
                chunk.truncate(size);
                Event::Chunk(chunk)
            }
            Err(error) => Event::Error(error.to_string()),
        };
    }
}
