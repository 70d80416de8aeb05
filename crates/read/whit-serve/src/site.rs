//! The resources below the token.

use crate::guard::{Asker, FIREFOX_PROFILER, asker};
use crate::request::Request;
use crate::response::{Body, Response, Status};
use crate::symbols::{Binaries, Symbols};
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// Sums of a range of time, in the form that the page reads.
pub type Ranges<'a> = Box<dyn Fn(Range<u64>) -> Vec<u8> + Send + Sync + 'a>;

/// Samples of a thread of the page in a range of time, in the form that the page reads.
pub type Lanes<'a> = Box<dyn Fn(Range<u64>, u32) -> Vec<u8> + Send + Sync + 'a>;

/// All that is served.
pub struct Site<'a, C> {
    /// HTML, with its data.
    pub page: Arc<[u8]>,
    /// Sums of the samples within nanoseconds since the beginning of the page's time.
    pub ranges: Ranges<'a>,
    /// Single samples of a thread, for the page's stack chart.
    pub lanes: Lanes<'a>,
    /// The profile for Firefox Profiler, and its size in bytes.
    pub firefox: Option<(Arc<File>, u64)>,
    /// Names, sources and instructions.
    pub symbols: Symbols<'a, C>,
}

/// Methods by resource; those of Firefox Profiler's may be read from its origin.
struct Resource {
    methods: &'static str,
    is_for_firefox: bool,
}

fn resource(path: &str) -> Option<Resource> {
    match path {
        "" | "range" | "lane" => Some(Resource { methods: "GET, HEAD", is_for_firefox: false }),
        "profile.json" => Some(Resource { methods: "GET, HEAD", is_for_firefox: true }),
        "symbolicate/v5" | "source/v1" | "asm/v1" => {
            Some(Resource { methods: "POST", is_for_firefox: true })
        }
        _ => None,
    }
}

impl<C: Binaries> Site<'_, C> {
    /// The answer to a request with the right token; `path` follows it.
    pub(crate) fn answer(&self, request: &Request, path: &str, host: &str) -> Response {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let Some(resource) = resource(path) else { return Response::status(Status::NotFound) };
        let asker = asker(request.header("origin"), host);
        let may_read =
            asker == Asker::Own || (asker == Asker::FirefoxProfiler && resource.is_for_firefox);
        if !may_read {
            return Response::status(Status::Forbidden);
        }
        let mut response = match &request.method[..] {
            "OPTIONS" => preflight(request, &resource),
            method if !resource.methods.split(", ").any(|known| known == method) => {
                let mut refused = Response::status(Status::WrongMethod);
                refused.headers.push(("Allow", resource.methods.to_owned()));
                refused
            }
            _ => self.read(path, query, &request.body),
        };
        if asker == Asker::FirefoxProfiler {
            response.headers.push(("Access-Control-Allow-Origin", FIREFOX_PROFILER.to_owned()));
        } else {
            response.headers.push(("Cross-Origin-Resource-Policy", "same-origin".to_owned()));
        }
        response.headers.push(("Vary", "Origin".to_owned()));
        response
    }

    fn read(&self, path: &str, query: &str, body: &[u8]) -> Response {
        match path {
            "" => Response::new("text/html; charset=utf-8", Body::Bytes(self.page.clone())),
            "range" => match range(query) {
                Some(range) => self.sums(range),
                None => Response::status(Status::Malformed),
            },
            "lane" => match lane(query) {
                Some((range, thread)) => {
                    let samples = (self.lanes)(range, thread);
                    Response::new("application/octet-stream", Body::Bytes(samples.into()))
                }
                None => Response::status(Status::Malformed),
            },
            "profile.json" => match &self.firefox {
                Some((file, size_bytes)) => {
                    Response::new("application/json", Body::File(file.clone(), *size_bytes))
                }
                None => Response::status(Status::NotFound),
            },
            "symbolicate/v5" => Response::json(self.symbols.symbolicate(body)),
            "source/v1" => Response::json(self.symbols.source(body)),
            "asm/v1" => Response::json(self.symbols.instructions(body)),
            _ => Response::status(Status::NotFound),
        }
    }
}

impl<C> Site<'_, C> {
    /// The sums of a range, with the time that they took.
    fn sums(&self, range: Range<u64>) -> Response {
        let begin = Instant::now();
        let sums = (self.ranges)(range);
        let took_ms = begin.elapsed().as_secs_f64() * 1e3;
        let mut response = Response::new("application/octet-stream", Body::Bytes(sums.into()));
        response.headers.push(("Server-Timing", format!("sums;dur={took_ms:.3}")));
        response
    }
}

/// Browsers ask before they send JSON to another origin, and before a public page reaches a private address.
fn preflight(request: &Request, resource: &Resource) -> Response {
    let mut response = Response::status(Status::NoContent);
    response.headers.push(("Access-Control-Allow-Methods", resource.methods.to_owned()));
    response.headers.push(("Access-Control-Allow-Headers", "Content-Type".to_owned()));
    if request.header("access-control-request-private-network").is_some() {
        response.headers.push(("Access-Control-Allow-Private-Network", "true".to_owned()));
    }
    response
}

/// `NAME=NUMBER`.
fn number(text: &str, name: &str) -> Option<u64> {
    let digits = text.strip_prefix(name)?.strip_prefix('=')?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

/// `from=NS&to=NS`.
fn range(query: &str) -> Option<Range<u64>> {
    let (from, to) = query.split_once('&')?;
    let (from, to) = (number(from, "from")?, number(to, "to")?);
    (from <= to).then_some(from..to)
}

/// `from=NS&to=NS&thread=NUMBER`.
fn lane(query: &str) -> Option<(Range<u64>, u32)> {
    let (ends, thread) = query.rsplit_once('&')?;
    Some((range(ends)?, number(thread, "thread")?.try_into().ok()?))
}

/// The address at which Firefox Profiler opens the profile of a server at `url`, with its names and sources.
pub fn firefox_profiler_url(url: &str) -> String {
    let encoded = |text: &str| -> String {
        let letter = |byte: u8| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        };
        text.bytes().map(letter).collect()
    };
    let profile = encoded(&format!("{url}/profile.json"));
    format!("{FIREFOX_PROFILER}/from-url/{profile}/?symbolServer={}", encoded(url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_two_numbers_in_order() {
        assert_eq!(range("from=1&to=20"), Some(1..20));
        for query in [
            "",
            "from=1",
            "from=2&to=1",
            "from=-1&to=2",
            "from=+1&to=2",
            "to=1&from=0",
            "from=1&to=2&x=3",
            "from=1&to=99999999999999999999",
        ] {
            assert_eq!(range(query), None, "{query}");
        }
    }

    #[test]
    fn a_lane_is_a_range_and_a_thread() {
        assert_eq!(lane("from=1&to=20&thread=3"), Some((1..20, 3)));
        for query in [
            "",
            "from=1&to=20",
            "from=2&to=1&thread=3",
            "from=1&to=2&thread=4294967296",
            "thread=1",
        ] {
            assert_eq!(lane(query), None, "{query}");
        }
    }

    #[test]
    fn firefox_profiler_gets_encoded_addresses() {
        assert_eq!(
            firefox_profiler_url("http://127.0.0.1:9/ab"),
            "https://profiler.firefox.com/from-url/http%3A%2F%2F127.0.0.1%3A9%2Fab%2Fprofile.json/\
             ?symbolServer=http%3A%2F%2F127.0.0.1%3A9%2Fab"
        );
    }
}
