//! A server that behaves as a test says, and runs of the program.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use whit_companion::{Answer, Cache, End, News};
use whit_testing::wait::wait_until;
use whit_types::BuildId;

/// An answer to a request.
#[derive(Clone)]
pub(crate) enum Behaviour {
    /// A whole answer.
    Bytes(Vec<u8>),
    /// No contents.
    Status(u16),
    /// Another address.
    Redirect(String),
    /// No byte.
    Silent,
    /// A byte now and then.
    Dripping,
    /// Zeros without an end, without a size.
    Endless,
    /// A size, and nothing of it.
    Promise(u64),
    /// Less than the size.
    Cut,
}

pub(crate) fn refuse_all(_: &str) -> Behaviour {
    Behaviour::Status(404)
}

/// Ends with this value.
pub(crate) struct Server {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

impl Server {
    /// `answer` gets paths.
    pub(crate) fn start(answer: impl Fn(&str) -> Behaviour + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        let address = listener.local_addr().expect("an address");
        let (asked, is_over) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (counter, over, answer) = (asked.clone(), is_over.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let (counter, over, answer) = (counter.clone(), over.clone(), answer.clone());
                // A client that has gone is no failure.
                std::thread::spawn(move || _ = serve(&stream, &counter, &over, &*answer));
            }
        });
        Server { address, asked, is_over }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Requests so far.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // The thread waits for somebody.
        let _ = TcpStream::connect(self.address);
    }
}

/// One connection, and all requests that come over it.
fn serve(
    stream: &TcpStream,
    asked: &AtomicUsize,
    is_over: &AtomicBool,
    answer: &dyn Fn(&str) -> Behaviour,
) -> std::io::Result<()> {
    let (mut lines, mut out) = (BufReader::new(stream).lines(), stream);
    while let Some(first) = lines.next().transpose()? {
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
        asked.fetch_add(1, Ordering::Relaxed);
        let mut head =
            |status: &str, more: &str| write!(out, "HTTP/1.1 {status}\r\n{more}\r\n\r\n");
        match answer(&path) {
            Behaviour::Bytes(bytes) => {
                head("200 OK", &format!("Content-Length: {}", bytes.len()))?;
                out.write_all(&bytes)?;
            }
            Behaviour::Status(status) => head(&format!("{status} No"), "Content-Length: 0")?,
            Behaviour::Redirect(to) => {
                head("302 Found", &format!("Location: {to}\r\nContent-Length: 0"))?;
            }
            Behaviour::Silent => wait_until("the server ends", || is_over.load(Ordering::Relaxed)),
            Behaviour::Dripping => {
                head("200 OK", "Content-Length: 1000000")?;
                stream.set_read_timeout(Some(Duration::from_millis(20)))?;
                while !is_over.load(Ordering::Relaxed) && is_open(stream) {
                    out.write_all(&[0])?;
                }
            }
            Behaviour::Endless => {
                head("200 OK", "Connection: close")?;
                stream.set_read_timeout(Some(Duration::from_millis(1)))?;
                while !is_over.load(Ordering::Relaxed) && is_open(stream) {
                    out.write_all(&[0; 4096])?;
                }
            }
            Behaviour::Promise(size) => {
                head("200 OK", &format!("Content-Length: {size}"))?;
                wait_until("the server ends", || is_over.load(Ordering::Relaxed));
            }
            Behaviour::Cut => {
                head("200 OK", "Content-Length: 1000")?;
                out.write_all(&[0; 100])?;
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Whether the client has not gone by the end of the read timeout.
fn is_open(mut stream: &TcpStream) -> bool {
    !matches!(stream.read(&mut [0; 64]), Ok(0))
}

/// Runs of the program with a cache of their own.
pub(crate) struct Run {
    pub(crate) cache: Cache,
    variables: Vec<(&'static str, String)>,
    _place: tempfile::TempDir,
}

impl Run {
    pub(crate) fn new(urls: &str) -> Run {
        let place = tempfile::tempdir().expect("make a directory");
        let cache = Cache::at(place.path().join("cache"));
        let path = cache.root().display().to_string();
        let variables = vec![("DEBUGINFOD_URLS", urls.to_owned()), ("DEBUGINFOD_CACHE_PATH", path)];
        Run { cache, variables, _place: place }
    }

    pub(crate) fn set(&mut self, name: &'static str, value: &str) {
        self.variables.push((name, value.to_owned()));
    }

    fn start(&self, requests: &[(BuildId, &str)]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whit-debuginfod"));
        command.env_clear().envs(self.variables.iter().cloned());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("start the program");
        let lines: String = requests.iter().map(|(id, parts)| format!("{id} {parts}\n")).collect();
        let stdin = child.stdin.as_mut().expect("a pipe");
        stdin.write_all(format!("{lines}end\n").as_bytes()).expect("write requests");
        child
    }

    fn ends(child: &mut Child) -> Vec<(BuildId, End)> {
        let mut text = String::new();
        let mut stdout = child.stdout.take().expect("a pipe");
        stdout.read_to_string(&mut text).expect("read answers");
        let answers = text.lines().map(|line| Answer::parse(line).expect("an answer"));
        answers
            .filter_map(|answer| match answer.news {
                News::End(end) => Some((answer.id, end)),
                News::Progress { .. } => None,
            })
            .collect()
    }

    /// Makes requests; gives their ends.
    pub(crate) fn all(&self, requests: &[(BuildId, &str)]) -> Vec<(BuildId, End)> {
        let mut child = self.start(requests);
        let ends = Run::ends(&mut child);
        assert!(child.wait().expect("wait").success());
        ends
    }

    pub(crate) fn one(&self, id: BuildId, parts: &str) -> End {
        self.all(&[(id, parts)]).remove(0).1
    }

    /// Calls `stop` as soon as the server was asked; gives the ends and the exit code.
    pub(crate) fn stopped_after(
        &self,
        requests: &[(BuildId, &str)],
        server: &Server,
        stop: impl FnOnce(&mut Child),
    ) -> (Vec<(BuildId, End)>, Option<i32>) {
        let before = server.asked();
        let mut child = self.start(requests);
        wait_until("the server is asked", || server.asked() > before);
        stop(&mut child);
        let ends = Run::ends(&mut child);
        (ends, child.wait().expect("wait").code())
    }
}
