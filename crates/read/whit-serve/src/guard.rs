//! Which hosts and origins are answered.
//!
//! A page of others can send requests to loopback, and can have its own name resolved to it (DNS rebinding). Such a
//! request has that name in `Host`, so only addresses and `localhost` are answered. Firefox Profiler's origin may
//! read four resources, the others none.

use std::net::{IpAddr, SocketAddr};

/// The origin of Firefox Profiler.
pub const FIREFOX_PROFILER: &str = "https://profiler.firefox.com";

/// The side that sent a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asker {
    /// The page itself, or a program that is no browser.
    Own,
    FirefoxProfiler,
    Other,
}

/// True for a host that no name server can turn into this one. Where the server listens on loopback alone, other
/// addresses are wrong, too.
pub(crate) fn is_own_host(host: &str, listens_on: SocketAddr) -> bool {
    let is_own = |address: IpAddr| address.is_loopback() || !listens_on.ip().is_loopback();
    if let Ok(address) = host.parse::<SocketAddr>() {
        return address.port() == listens_on.port() && is_own(address.ip());
    }
    host.strip_prefix("localhost:").is_some_and(|port| port == listens_on.port().to_string())
}

/// The asker, by the `Origin` of a request to a host that was checked.
pub(crate) fn asker(origin: Option<&str>, host: &str) -> Asker {
    match origin {
        None => Asker::Own,
        Some(FIREFOX_PROFILER) => Asker::FirefoxProfiler,
        Some(origin) if origin.strip_prefix("http://") == Some(host) => Asker::Own,
        Some(_) => Asker::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_foreign_addresses_are_no_own_host() {
        let own: SocketAddr = "127.0.0.1:80".parse().unwrap();
        for host in ["127.0.0.1:80", "localhost:80", "[::1]:80"] {
            assert!(is_own_host(host, own), "{host}");
        }
        for host in [
            "",
            "evil.example:80",
            "127.0.0.1",
            "127.0.0.1:81",
            "10.0.0.1:80",
            "localhost.evil.example:80",
        ] {
            assert!(!is_own_host(host, own), "{host}");
        }
        let all: SocketAddr = "0.0.0.0:80".parse().unwrap();
        assert!(is_own_host("10.0.0.1:80", all) && !is_own_host("evil.example:80", all));
    }

    #[test]
    fn origins_are_distinguished() {
        let host = "127.0.0.1:80";
        assert_eq!(asker(None, host), Asker::Own);
        assert_eq!(asker(Some("http://127.0.0.1:80"), host), Asker::Own);
        assert_eq!(asker(Some("https://profiler.firefox.com"), host), Asker::FirefoxProfiler);
        for other in [
            "null",
            "https://127.0.0.1:80",
            "http://127.0.0.1:81",
            "https://profiler.firefox.com.evil.example",
        ] {
            assert_eq!(asker(Some(other), host), Asker::Other, "{other}");
        }
    }
}
