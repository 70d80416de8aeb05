//! Requests over real sockets.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use whit_annotate::Code;
use whit_profile::model::DsoId;
use whit_profile::{CodeBytes, NoCode, SourceLine, SourceOf};
use whit_serve::{Binaries, Bounds, Library, Server, Site, Symbols, Token};
use whit_testing::wait::wait_until;
use whit_types::{InstructionSet, Svma};

const BASE: u64 = 0x40_0000;
/// `push rbp; mov rbp, rsp; ret`.
const CODE: [u8; 5] = [0x55, 0x48, 0x89, 0xe5, 0xc3];

/// A binary with one function, into which another one is inlined.
struct OneFunction {
    file: Arc<str>,
}

impl Code for OneFunction {
    fn function_at(&self, _: DsoId, address: Svma) -> Option<Range<Svma>> {
        let range = Svma(BASE + 0x10)..Svma(BASE + 0x15);
        range.contains(&address).then_some(range)
    }

    fn name_at(&self, dso: DsoId, address: Svma) -> Option<(Arc<str>, u64)> {
        let range = self.function_at(dso, address)?;
        Some(("outer".into(), address.0 - range.start.0))
    }

    fn bytes(&self, _: DsoId, range: Range<Svma>) -> Result<CodeBytes, NoCode> {
        let at = |address: Svma| address.0.checked_sub(BASE + 0x10).map(|at| at as usize);
        let part = at(range.start).zip(at(range.end)).and_then(|(from, to)| CODE.get(from..to));
        let bytes = part.ok_or(NoCode::NotInFile)?.to_vec();
        Ok(CodeBytes { bytes, instruction_set: InstructionSet::X86_64 })
    }

    fn source_of(&self, dso: DsoId, address: Svma) -> SourceOf {
        if self.function_at(dso, address).is_none() {
            return SourceOf::default();
        }
        let line = |line| Some(SourceLine { file: self.file.clone(), line });
        SourceOf { line: line(7), inlined: vec![("inner".into(), line(3))] }
    }
}

impl Binaries for OneFunction {
    fn base(&self, _: DsoId) -> Option<Svma> {
        Some(Svma(BASE))
    }

    fn release(&self, _: DsoId) {}
}

/// Runs `check` with a server's address and token.
fn with_server(bounds: Bounds, file: &str, check: impl FnOnce(SocketAddr, &str)) {
    let token = Token::random().unwrap();
    let server = Server::bind(([127, 0, 0, 1], 0).into(), token.clone(), bounds).unwrap();
    let file: Arc<str> = file.into();
    let library = Library { dso: DsoId(0), debug_name: "program".into(), debug_id: "AB0".into() };
    let load = move || Ok((vec![library.clone()], OneFunction { file: file.clone() }));
    let site = Site {
        page: b"<the page>".to_vec().into(),
        ranges: Box::new(|range| format!("{range:?}").into_bytes()),
        lanes: Box::new(|range, thread| format!("{range:?} of {thread}").into_bytes()),
        firefox: None,
        symbols: Symbols::new(Box::new(load)),
    };
    let (stop, end) = io::pipe().unwrap();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| server.run(&site, &stop).unwrap());
        // The server ends in any case, so that a failed check is seen.
        let end = end;
        check(server.address(), token.text());
        drop(end);
        running.join().unwrap();
    });
}

fn exchange(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // A server that refuses early may close before all was sent.
    let _ = stream.write_all(request);
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response);
    String::from_utf8_lossy(&response).into_owned()
}

fn get(address: SocketAddr, path: &str, headers: &str) -> String {
    exchange(address, format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n").as_bytes())
}

fn post(address: SocketAddr, path: &str, body: &str) -> serde_json::Value {
    let length = body.len();
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n\r\n");
    let response = exchange(address, format!("{head}{body}").as_bytes());
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    serde_json::from_str(response.split_once("\r\n\r\n").unwrap().1).unwrap()
}

fn status(response: &str) -> &str {
    response.split(' ').nth(1).unwrap_or_default()
}

#[test]
fn the_page_and_its_ranges_need_the_token() {
    with_server(Bounds::default(), "/x.c", |address, token| {
        let page = get(address, &format!("/{token}/"), "");
        assert_eq!(status(&page), "200");
        assert!(
            page.ends_with("<the page>") && page.contains("Referrer-Policy: no-referrer"),
            "{page}"
        );
        assert!(!page.contains("Access-Control"), "{page}");
        let range = get(address, &format!("/{token}/range?from=5&to=9"), "");
        assert!(range.ends_with("5..9"), "{range}");
        assert!(range.contains("\r\nServer-Timing: sums;dur="), "{range}");
        assert_eq!(status(&get(address, &format!("/{token}/range?from=9&to=5"), "")), "400");
        let lane = get(address, &format!("/{token}/lane?from=5&to=9&thread=2"), "");
        assert!(lane.ends_with("5..9 of 2"), "{lane}");
        assert_eq!(status(&get(address, &format!("/{token}/lane?from=5&to=9"), "")), "400");
        let moved = get(address, &format!("/{token}"), "");
        assert_eq!(status(&moved), "308");
        let wrong = token.replace(|_: char| true, "0");
        for path in
            ["/", "/favicon.ico", &format!("/{wrong}/"), &format!("/{}/", &token[1..]), "//", "*"]
        {
            let refused = get(address, path, "");
            assert_eq!(status(&refused), "404", "{path}");
            assert!(refused.ends_with("\r\n\r\n404 Not Found\n"), "{refused}");
        }
        let unknown = get(address, &format!("/{token}/../../etc/passwd"), "");
        assert_eq!(status(&unknown), "404");
    });
}

#[test]
fn hosts_by_name_and_other_origins_read_nothing() {
    with_server(Bounds::default(), "/x.c", |address, token| {
        let path = format!("/{token}/");
        for host in ["evil.example", "evil.example:80", "127.0.0.1:1", ""] {
            let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            assert_eq!(status(&exchange(address, request.as_bytes())), "403", "{host}");
        }
        let own = format!("Origin: http://{address}\r\n");
        assert_eq!(status(&get(address, &path, &own)), "200");
        for origin in ["null", "https://evil.example", "https://profiler.firefox.com"] {
            let refused = get(address, &path, &format!("Origin: {origin}\r\n"));
            assert_eq!(status(&refused), "403", "{origin}");
            assert!(!refused.contains("the page"), "{refused}");
        }
    });
}

#[test]
fn only_firefox_profiler_may_ask_for_symbols_from_elsewhere() {
    with_server(Bounds::default(), "/x.c", |address, token| {
        let ask = |origin: &str, path: &str| {
            let head =
                format!("OPTIONS /{path} HTTP/1.1\r\nHost: {address}\r\nOrigin: {origin}\r\n");
            let more = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Private-Network: true\r\n";
            exchange(address, format!("{head}{more}\r\n").as_bytes())
        };
        let firefox = "https://profiler.firefox.com";
        let allowed = ask(firefox, &format!("{token}/symbolicate/v5"));
        assert_eq!(status(&allowed), "204");
        assert!(
            allowed.contains(&format!("\r\nAccess-Control-Allow-Origin: {firefox}\r\n")),
            "{allowed}"
        );
        assert!(
            allowed.contains("\r\nAccess-Control-Allow-Private-Network: true\r\n"),
            "{allowed}"
        );
        for (origin, path) in [
            ("https://evil.example", format!("{token}/symbolicate/v5")),
            (firefox, format!("{token}/")),
            (firefox, format!("{token}/range")),
            (firefox, "wrong/symbolicate/v5".to_owned()),
        ] {
            let refused = ask(origin, &path);
            assert!(["403", "404"].contains(&status(&refused)), "{refused}");
            assert!(!refused.contains("Access-Control-Allow-Origin"), "{refused}");
        }
    });
}

#[test]
fn malformed_and_endless_requests_are_refused() {
    let bounds = Bounds { max_head_bytes: 1000, max_body_bytes: 1000, ..Bounds::default() };
    with_server(bounds, "/x.c", |address, token| {
        let endless = format!("GET /{} HTTP/1.1\r\nHost: {address}\r\n\r\n", "a".repeat(100_000));
        let large = format!(
            "POST /{token}/asm/v1 HTTP/1.1\r\nHost: {address}\r\nContent-Length: 1001\r\n\r\n"
        );
        for (request, wanted) in [
            (&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"[..], "400"),
            (b"GET / HTTP/9.9\r\nHost: a\r\n\r\n", "400"),
            (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", "400"),
            (endless.as_bytes(), "431"),
            (large.as_bytes(), "413"),
        ] {
            let response = exchange(address, request);
            assert_eq!(status(&response), wanted, "{}", String::from_utf8_lossy(request));
        }
        assert_eq!(status(&get(address, &format!("/{token}/asm/v1"), "")), "405");
        assert_eq!(status(&get(address, &format!("/{token}/"), "")), "200", "the server goes on");
    });
}

#[test]
fn slow_clients_end_and_do_not_hold_up_others() {
    let bounds = Bounds {
        max_connections: 2,
        request_time: Duration::from_millis(300),
        ..Bounds::default()
    };
    with_server(bounds, "/x.c", |address, token| {
        let mut slow = TcpStream::connect(address).unwrap();
        slow.write_all(b"GET / HT").unwrap();
        assert_eq!(status(&get(address, &format!("/{token}/"), "")), "200");
        let mut answer = String::new();
        slow.read_to_string(&mut answer).unwrap();
        assert_eq!(status(&answer), "408");
        // A byte now and then does not prolong it.
        let mut slower = TcpStream::connect(address).unwrap();
        wait_until("the connection ends", || slower.write_all(b"G").is_err());
    });
}

#[test]
fn connections_that_only_wait_make_room_for_others() {
    let bounds =
        Bounds { max_connections: 2, request_time: Duration::from_secs(600), ..Bounds::default() };
    with_server(bounds, "/x.c", |address, token| {
        // In parts: this process has the other ends, too.
        for _ in 0..20 {
            let idle: Vec<_> = (0..50).map(|_| TcpStream::connect(address).unwrap()).collect();
            assert_eq!(status(&get(address, &format!("/{token}/"), "")), "200");
            drop(idle);
        }
    });
}

/// Refused clients are listened to for a while, so that the reason reaches them.
#[test]
fn clients_that_are_refused_hold_no_place() {
    with_server(Bounds { max_connections: 2, ..Bounds::default() }, "/x.c", |address, token| {
        for request in ["nonsense\r\n\r\n", "GET /wrong/ HTTP/1.1\r\nHost: x\r\n\r\n"] {
            for _ in 0..10 {
                let refused: Vec<_> =
                    (0..8).map(|_| TcpStream::connect(address).unwrap()).collect();
                for mut client in &refused {
                    client.write_all(request.as_bytes()).unwrap();
                }
                assert_eq!(status(&get(address, &format!("/{token}/"), "")), "200", "{request}");
            }
        }
    });
}

#[test]
fn an_end_does_not_wait_for_open_connections() {
    let bounds = Bounds { request_time: Duration::from_secs(3600), ..Bounds::default() };
    let mut left = None;
    with_server(bounds, "/x.c", |address, token| {
        left = Some(TcpStream::connect(address).unwrap());
        assert_eq!(status(&get(address, &format!("/{token}/"), "")), "200");
    });
    let mut nothing = Vec::new();
    assert_eq!(left.unwrap().read_to_end(&mut nothing).unwrap_or(0), 0);
}

#[test]
fn addresses_become_functions_lines_and_inlined_functions() {
    with_server(Bounds::default(), "/src/x.c", |address, token| {
        let body = r#"{"jobs":[{"memoryMap":[["program","AB0"],["gone","CD0"]],"stacks":[[[0,17],[0,99],[1,5]]]}]}"#;
        let answer = post(address, &format!("/{token}/symbolicate/v5"), body);
        let wanted = serde_json::json!({ "results": [{
            "stacks": [[
                { "frame": 0, "module_offset": "0x11", "module": "program", "function": "outer", "function_offset": "0x1",
                  "function_size": "0x5", "file": "/src/x.c", "line": 3,
                  "inlines": [{ "function": "inner", "file": "/src/x.c", "line": 7 }] },
                { "frame": 1, "module_offset": "0x63", "module": "program" },
                { "frame": 2, "module_offset": "0x5", "module": "gone" },
            ]],
            "found_modules": { "program/AB0": true, "gone/CD0": false },
            "module_errors": { "gone/CD0": [{
                "name": "NotAtHand", "message": "the recording has no library gone with the id CD0" }] },
        }] });
        assert_eq!(answer, wanted);
        let one = r#"{"memoryMap":[["program","AB0"]],"stacks":[[[0,16]]]}"#;
        let answer = post(address, &format!("/{token}/symbolicate/v5"), one);
        assert_eq!(answer["results"][0]["stacks"][0][0]["function_offset"], "0x0");
        for wrong in [r#"{"memoryMap":[],"stacks":[[[0,16]]]}"#, "[]", "{", "\u{1b}"] {
            let answer = post(address, &format!("/{token}/symbolicate/v5"), wrong);
            assert!(answer["error"].is_string(), "{answer}");
        }
    });
}

#[test]
fn instructions_are_whole_and_in_both_syntaxes() {
    with_server(Bounds::default(), "/x.c", |address, token| {
        let path = format!("/{token}/asm/v1");
        let body = r#"{"debugName":"program","debugId":"AB0","startAddress":"0x10","size":"0x2"}"#;
        let answer = post(address, &path, body);
        assert_eq!(answer["size"], "0x4", "the last instruction begins inside");
        assert_eq!(
            answer["instructions"][1],
            serde_json::json!([1, "mov    rbp,rsp", "mov    %rsp,%rbp"])
        );
        let body = body.replace("\"0x2\"", "\"0x1\",\"continueUntilFunctionEnd\":true");
        let answer = post(address, &path, &body);
        assert_eq!((&answer["size"], &answer["instructions"][2][0]), (&"0x5".into(), &4.into()));
        for (from, to) in
            [("0x10", "0x99"), ("0x1\"", "0xffffffffffffffff\""), ("0x10", "16"), ("AB0", "AC0")]
        {
            let answer = post(address, &path, &body.replacen(from, to, 1));
            assert!(answer["error"].is_string(), "{answer}");
        }
    });
}

#[test]
fn sources_are_those_that_debug_information_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.c");
    let secret = folder.path().join("secret");
    std::fs::write(&path, "int main;\n").unwrap();
    std::fs::write(&secret, "secret\n").unwrap();
    let ask = |named: &Path, offset: &str, file: &str| {
        let mut answer = serde_json::Value::Null;
        with_server(Bounds::default(), named.to_str().unwrap(), |address, token| {
            let request = serde_json::json!({
                "debugName": "program", "debugId": "AB0", "moduleOffset": offset, "file": file });
            answer = post(address, &format!("/{token}/source/v1"), &request.to_string());
        });
        answer
    };
    let name = path.to_str().unwrap();
    let answer = ask(&path, "0x11", name);
    assert_eq!((&answer["source"], &answer["file"]), (&"int main;\n".into(), &name.into()));
    let around = format!("{name}/../secret");
    let double = name.replace("/x.c", "//x.c");
    for (offset, file) in [
        ("0x11", secret.to_str().unwrap()),
        ("0x11", &around),
        ("0x11", &double),
        ("0x11", "x.c"),
        ("0x11", ""),
        ("0x99", name),
        ("17", name),
        ("0x", name),
    ] {
        let answer = ask(&path, offset, file);
        assert!(answer["error"].is_string() && answer["source"].is_null(), "{file}: {answer}");
    }
    for named in
        [Path::new("x.c"), Path::new("/dev/zero"), folder.path(), Path::new("/no/such/file")]
    {
        let answer = ask(named, "0x11", named.to_str().unwrap());
        assert!(answer["error"].is_string(), "{answer}");
    }
}
