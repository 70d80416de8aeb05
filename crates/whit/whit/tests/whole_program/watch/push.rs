//! Windows that go to a receiver over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use whit_testing::wait::is_soon;

use super::Service;
use crate::support::check;

/// Takes each request for profiles; gives their number.
fn receive(address: SocketAddr) -> Arc<AtomicU64> {
    let listener = TcpListener::bind(address).unwrap();
    let taken = Arc::new(AtomicU64::new(0));
    let counter = taken.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that has gone is no failure.
            let _ = serve(&stream, &counter);
        }
    });
    taken
}

fn serve(stream: &TcpStream, taken: &AtomicU64) -> std::io::Result<()> {
    let (mut input, mut out) = (BufReader::new(stream), stream);
    let mut line = String::new();
    while input.read_line(&mut line)? > 0 {
        let is_for_profiles = line.starts_with("POST /v1development/profiles ");
        let mut size = 0;
        while line.trim_end() != "" {
            line.clear();
            input.read_line(&mut line)?;
            let length = line.to_lowercase();
            if let Some(length) = length.strip_prefix("content-length:") {
                size = length.trim().parse().unwrap_or(0);
            }
        }
        input.read_exact(&mut vec![0; size])?;
        taken.fetch_add(u64::from(is_for_profiles && size > 0), Ordering::Relaxed);
        out.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
        line.clear();
    }
    Ok(())
}

/// The sink's own status.
fn of_sink(service: &Service) -> Value {
    let status = service.status();
    let sinks = status["sinks"].as_array().cloned().unwrap_or_default();
    let push = sinks.iter().find(|sink| sink["name"] == "push.main");
    push.map_or(Value::Null, |push| push["detail"].clone())
}

#[test]
fn windows_reach_a_receiver_that_comes_after_the_service_was_killed() {
    check("windows_reach_a_receiver_that_comes_after_the_service_was_killed", || {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let config = format!(
            "window = \"1s\"\n[push.main]\nkind = \"otlp\"\nurl = \"http://{address}\"\nretry-longest = \"1s\"\n"
        );
        let mut service = Service::start(&config)?;
        let number = |key: &str, service: &Service| of_sink(service)[key].as_u64().unwrap_or(0);
        let waits = is_soon(|| number("waiting_windows", &service) >= 2);
        assert!(waits, "{} {}", of_sink(&service), service.log());
        assert!(of_sink(&service)["last_error"].is_string(), "{}", of_sink(&service));
        service.child.kill().unwrap();
        service.child.wait().unwrap();
        let taken = receive(address);
        service.launch(&[]);
        let is_sent = || {
            let found = number("found_windows", &service);
            found >= 2 && number("sent_windows", &service) > found
        };
        assert!(is_soon(is_sent), "{} {}", of_sink(&service), service.log());
        let status = of_sink(&service);
        let dropped =
            status.as_object().unwrap().iter().filter(|(key, _)| key.starts_with("dropped_"));
        assert!(dropped.map(|(_, value)| value).all(|value| value == 0), "{status}");
        assert!(taken.load(Ordering::Relaxed) >= status["sent_windows"].as_u64().unwrap());
        Ok(())
    });
}
