//! HTTPS: the receiver's certificate, and whit's own.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use whit_push::{Kind, Settings, State};

use crate::support::{Run, hasty};

/// An authority, with the files that it has signed.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("an authority");
        let folder = tempfile::tempdir().expect("make a directory");
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).expect("write");
        Authority { issuer, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn signed(&self) -> (rcgen::Certificate, KeyPair) {
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a name");
        let key = KeyPair::generate().expect("a key");
        (params.signed_by(&key, &self.issuer).expect("sign"), key)
    }
}

/// A receiver that takes one connection after the other; each request's first line goes to the channel.
fn serve(authority: &Authority, asks_for_a_name: bool) -> (String, Receiver<String>) {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone());
    let builder = builder.with_safe_default_protocol_versions().expect("versions");
    let mut roots = RootCertStore::empty();
    roots.add(authority.issuer.der().clone()).expect("a root");
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let verifier = verifier.build().expect("a judge of clients");
    let builder = match asks_for_a_name {
        true => builder.with_client_cert_verifier(verifier),
        false => builder.with_no_client_auth(),
    };
    let (certificate, key) = authority.signed();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = builder.with_single_cert(vec![certificate.der().clone()], key).expect("a server");
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let url = format!("https://{}", listener.local_addr().expect("an address"));
    let (send, lines) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::new(config.clone())).expect("a connection");
            let mut stream = StreamOwned::new(connection, stream);
            // A client that does not trust the server says so and goes.
            if let Ok(line) = answer(&mut stream)
                && send.send(line).is_err()
            {
                return;
            }
        }
    });
    (url, lines)
}

fn answer(stream: &mut (impl Read + Write)) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let size = stream.read(&mut chunk)?;
        if size == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&chunk[..size]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some(head) = bytes.windows(4).position(|it| it == b"\r\n\r\n") else { continue };
        let length = text.to_lowercase();
        let length = length.split("content-length: ").nth(1).and_then(|it| it.lines().next());
        let length: usize = length.and_then(|it| it.trim().parse().ok()).unwrap_or(0);
        if bytes.len() >= head + 4 + length {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
            stream.flush()?;
            return Ok(text.lines().next().unwrap_or_default().to_owned());
        }
    }
}

fn settings(url: &str, ca_file: Option<&Path>) -> Settings {
    let mut settings = hasty(Kind::Otlp, url);
    settings.tls.ca_file = ca_file.map(Path::to_owned);
    settings
}

#[test]
fn a_receiver_by_https_is_judged_by_the_authority_that_is_named() {
    let authority = Authority::new();
    let (url, lines) = serve(&authority, false);
    let run = Run::start(&[("one", settings(&url, Some(&authority.path("ca.pem"))))]);
    run.push([1]);
    run.wait("one", "it is sent", |it| it.sent.windows == 1);
    assert_eq!(lines.recv().unwrap(), "POST /v1development/profiles HTTP/1.1");
}

#[test]
fn a_receiver_with_an_unknown_authority_gets_nothing() {
    let (url, lines) = serve(&Authority::new(), false);
    let mut run = Run::start(&[("one", settings(&url, Some(&Authority::new().path("ca.pem"))))]);
    run.push([1]);
    let now = run.wait("one", "it is reported", |it| it.state == State::Misconfigured);
    assert!(now.last_error.is_some_and(|it| it.contains("certificate")));
    assert!(lines.try_recv().is_err());
    let ended = run.stop(Duration::from_secs(5));
    assert_eq!((ended[0].waiting.windows, ended[0].dropped.windows()), (1, 0));
}

#[test]
fn whit_names_itself_to_a_receiver_that_asks() {
    let authority = Authority::new();
    let (certificate, key) = authority.signed();
    std::fs::write(authority.path("whit.pem"), certificate.pem()).unwrap();
    std::fs::write(authority.path("whit.key"), key.serialize_pem()).unwrap();
    let (url, _lines) = serve(&authority, true);
    let mut with_name = settings(&url, Some(&authority.path("ca.pem")));
    let without = with_name.clone();
    with_name.tls.certificate_file = Some(authority.path("whit.pem"));
    with_name.tls.key_file = Some(authority.path("whit.key"));
    let run = Run::start(&[("with", with_name), ("without", without)]);
    run.push([1]);
    run.wait("with", "it is sent", |it| it.sent.windows == 1);
    let refused = run.wait("without", "it is reported", |it| it.retries > 0);
    assert_eq!(refused.sent.windows, 0);
}

#[test]
fn files_that_are_wrong_are_named_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let said = |path: &Path| {
        let settings = settings("https://127.0.0.1:1", Some(path));
        let all = [("one".to_owned(), settings)].into_iter().collect();
        let started = whit_push::Pusher::start(&all, folder.path());
        started.expect_err("it cannot start").to_string()
    };
    let missing = folder.path().join("missing.pem");
    let text = said(&missing);
    assert!(
        text.starts_with("push.one: cannot read tls.ca-file") && text.contains("missing.pem"),
        "{text}"
    );
    std::fs::write(&missing, "no certificate").unwrap();
    assert!(said(&missing).contains("it has no certificate"));
}
