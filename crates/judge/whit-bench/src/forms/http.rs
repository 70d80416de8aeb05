//! A client that asks for one resource at a time.

use std::io::{self, Read, Write};
use std::net::TcpStream;

/// Posts JSON over a connection of its own. Gives the body of the answer.
pub(super) fn post(address: &str, path: &str, json: &str) -> Result<Vec<u8>, String> {
    let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    let request = format!("{head}Content-Length: {}\r\n\r\n{json}", json.len());
    let mut response = ask(address, &request).map_err(|error| error.to_string())?;
    let body_bytes = body_bytes(&response)?;
    Ok(response.split_off(response.len() - body_bytes))
}

fn ask(address: &str, request: &str) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(request.as_bytes())?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response)?;
    Ok(response)
}

/// Bytes behind the head.
fn body_bytes(response: &[u8]) -> Result<usize, String> {
    let head_end = response.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let head_end = head_end.ok_or("its answer has no head")?;
    let head = String::from_utf8_lossy(&response[..head_end]);
    let mut lines = head.lines();
    let status = lines.next().unwrap_or_default();
    if !status.starts_with("HTTP/1.1 200 ") {
        return Err(format!("it answers {status:?}"));
    }
    let header = |wanted: &str| {
        let mut headers = head.lines().filter_map(|line| line.split_once(": "));
        headers.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value)
    };
    let body_bytes = response.len() - head_end - 4;
    let length = header("content-length").and_then(|value| value.parse::<usize>().ok());
    if length != Some(body_bytes) {
        return Err(format!("it announces {length:?} bytes, and sends {body_bytes}"));
    }
    Ok(body_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_its_length() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
        assert_eq!(body_bytes(answer), Ok(3));
    }

    #[test]
    fn a_body_is_posted_and_the_answers_body_comes_back() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"{\"a\":1}") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.extend(byte);
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
            String::from_utf8(request).unwrap()
        });
        assert_eq!(post(&address, "/path", "{\"a\":1}"), Ok(b"ok".to_vec()));
        let request = server.join().unwrap();
        assert!(request.starts_with("POST /path HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("Content-Length: 7\r\n"), "{request}");
        assert!(post(&address, "/path", "{}").is_err(), "nobody listens");
    }

    #[test]
    fn refusals_and_cut_answers_are_errors() {
        for bad in [
            &b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc",
            b"HTTP/1.1 200 OK\r\nContent-Le",
            b"",
        ] {
            assert!(body_bytes(bad).is_err(), "{}", String::from_utf8_lossy(bad));
        }
    }
}
