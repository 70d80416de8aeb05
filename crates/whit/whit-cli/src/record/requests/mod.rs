//! `--request`: the calls of a function, the time between two probes of a program, or the data of a server's socket up to
//! its answer, as requests.

mod argument;
mod go;
mod probed;
mod usdt;

use super::probes::Probes;
use crate::failure::bail_usage;
use anyhow::{Context, Result};
use probed::Probed;
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use whit_capture::event::EventSpec;
use whit_host::roots::Roots;
use whit_perfdata::request::{Edge, event_name};
use whit_types::ServerSocket;

/// Names of functions and probes that a message lists.
const SHOWN: usize = 5;

/// Sockets that the programs of a recording tell apart.
const SOCKETS_MAX: usize = 16;

const FORM: &str = "a request is NAME=BINARY:FUNCTION or NAME=BINARY:BEGIN..END, with ,key=FIELD behind it, or \
                    NAME=tcp:PORT or NAME=unix:PATH";

/// `NAME=BINARY:FUNCTION[,key=FIELD]`, or `NAME=BINARY:BEGIN..END[,key=FIELD]` with two probes of the program, or a
/// socket of a server: `NAME=tcp:PORT`, `NAME=unix:/PATH`, `NAME=unix:@NAME`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestSpec {
    name: String,
    source: Source,
}

/// Where requests begin and end.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Probed(Probed),
    Socket(ServerSocket),
}

impl FromStr for RequestSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<RequestSpec, String> {
        let (name, rest) = text.split_once('=').ok_or(FORM)?;
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if name.is_empty() || !name.chars().all(is_word) {
            return Err("the name of a request has letters, digits, '_', '-' and '.'".to_owned());
        }
        let source = match rest.split_once(':') {
            Some(("tcp" | "unix", socket)) if socket.contains(",key=") => {
                return Err(
                    "the key of a request by a socket is the other end: leave ,key= out".to_owned()
                );
            }
            Some(("tcp" | "unix", _)) => {
                Source::Socket(rest.parse().map_err(|error| format!("{error}"))?)
            }
            Some((_, port)) if port.parse::<u16>().is_ok() => {
                return Err(format!(
                    "{port} is no function; the requests of a server by its port are NAME=tcp:PORT: {name}=tcp:{port}"
                ));
            }
            _ => Source::Probed(rest.parse()?),
        };
        Ok(RequestSpec { name: name.to_owned(), source })
    }
}

/// Events of requests, and the programs that they are calls of.
#[derive(Debug, Default)]
pub(super) struct Requested {
    /// Two for each request.
    pub(super) events: Vec<EventSpec>,
    /// Programs whose goroutines make calls.
    pub(super) go_programs: BTreeSet<PathBuf>,
}

/// Makes the events of requests.
pub(super) fn events(
    requests: &[RequestSpec],
    roots: &Roots,
    probes: &mut Probes,
) -> Result<Requested> {
    let mut names = BTreeSet::new();
    if let Some(twice) = requests.iter().find(|request| !names.insert(&request.name)) {
        bail_usage!("--request: the name '{}' is given twice", twice.name);
    }
    let mut sockets = BTreeSet::new();
    let mut requested = Requested::default();
    for RequestSpec { name, source } in requests {
        let added = match source {
            Source::Probed(probed) => {
                let of_probes = probed.events(name, roots, probes);
                let (added, go_program) = of_probes.with_context(|| format!("--request {name}"))?;
                requested.go_programs.extend(go_program);
                added
            }
            Source::Socket(socket) => {
                if !sockets.insert(socket) {
                    bail_usage!("--request {name}: another request has the same socket");
                }
                [Edge::Begin, Edge::End]
                    .map(|edge| EventSpec::of_socket(&event_name(name, edge), socket.clone(), edge))
            }
        };
        requested.events.extend(added);
    }
    if sockets.len() > SOCKETS_MAX {
        bail_usage!("--request: at most {SOCKETS_MAX} sockets are recorded at a time");
    }
    Ok(requested)
}

/// The file itself, or the command of this name.
pub(super) fn found(binary: &Path) -> Result<PathBuf> {
    if binary.as_os_str().as_bytes().contains(&b'/') {
        return binary.canonicalize().with_context(|| format!("cannot open {}", binary.display()));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(binary));
    let found = places.find(|place| place.is_file());
    let found = found.with_context(|| {
        format!("there is no command {}: a file has a '/' in its path", binary.display())
    })?;
    Ok(found.canonicalize()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_name_and_what_it_is_recorded_by() {
        let spec: RequestSpec = "a-b.1=./srv:handle".parse().unwrap();
        assert_eq!(
            (&*spec.name, &spec.source),
            ("a-b.1", &Source::Probed("./srv:handle".parse().unwrap()))
        );
        let spec: RequestSpec = "web=tcp:8080".parse().unwrap();
        assert_eq!(spec.source, Source::Socket(ServerSocket::Tcp(8080)));
        let spec: RequestSpec = "db=unix:/run/s:1,a=b".parse().unwrap();
        assert_eq!(spec.source, Source::Socket(ServerSocket::Unix(b"/run/s:1,a=b".to_vec())));
        // A file of this name has a '/' in its path.
        assert!(matches!("a=./tcp:main".parse::<RequestSpec>().unwrap().source, Source::Probed(_)));
        let error = "web=localhost:8080".parse::<RequestSpec>().unwrap_err();
        assert!(error.ends_with(": web=tcp:8080"), "{error}");
        for wrong in ["a", "a=b", "=b:c", "a b=c:d", "a=tcp:http", "a=tcp:80,key=%di", "a=unix:s"] {
            assert!(wrong.parse::<RequestSpec>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn two_requests_share_neither_a_name_nor_a_socket() {
        let error = |specs: &[&str]| {
            let specs: Vec<RequestSpec> = specs.iter().map(|spec| spec.parse().unwrap()).collect();
            events(&specs, &Roots::default(), &mut Probes::default()).unwrap_err().to_string()
        };
        assert!(error(&["a=tcp:1", "a=tcp:2"]).contains("given twice"));
        assert!(error(&["a=tcp:1", "b=tcp:1"]).contains("same socket"));
        let many: Vec<String> = (1..=17).map(|port| format!("r{port}=tcp:{port}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(error(&many).contains("at most 16"));
        let specs = ["a=tcp:1".parse().unwrap()];
        let requested = events(&specs, &Roots::default(), &mut Probes::default()).unwrap();
        let names: Vec<_> = requested.events.iter().map(EventSpec::name).collect();
        assert_eq!(names, ["request:a:begin", "request:a:end"]);
    }
}
