//! Messages to systemd (`sd_notify(3)`): datagrams to the socket that `$NOTIFY_SOCKET` names.

use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Where messages go; without a socket, nowhere.
#[derive(Debug, Default)]
pub struct Notify {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// Half of the time after which systemd takes the service for hung.
    watchdog: Option<Duration>,
}

impl Notify {
    /// `variable` gives the environment.
    pub fn new(variable: &dyn Fn(&str) -> Option<OsString>) -> Notify {
        let Some(name) = variable("NOTIFY_SOCKET") else { return Notify::default() };
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
            path => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path)),
        };
        let socket = UnixDatagram::unbound().and_then(|socket| {
            socket.set_nonblocking(true)?;
            Ok((socket, address?))
        });
        let number = |name| variable(name)?.to_str()?.parse::<u64>().ok();
        let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|usec| is_ours && *usec > 0);
        let watchdog = watchdog.map(|usec| Duration::from_micros(usec) / 2);
        Notify { socket: socket.ok(), watchdog }
    }

    /// How often [`Notify::is_alive`] is wanted.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// The service records.
    pub fn is_ready(&self) {
        self.send("READY=1");
    }

    /// One line for `systemctl status`.
    pub fn status(&self, line: &str) {
        self.send(&format!("STATUS={}", line.replace('\n', " ")));
    }

    /// The service does not hang.
    pub fn is_alive(&self) {
        self.send("WATCHDOG=1");
    }

    /// The configuration is read again; [`Notify::is_ready`] ends it.
    pub fn is_reloading(&self, monotonic_us: u64) {
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={monotonic_us}"));
    }

    /// The service ends.
    pub fn is_stopping(&self) {
        self.send("STOPPING=1");
    }

    /// Where systemd takes none, there is nobody to tell.
    fn send(&self, message: &str) {
        if let Some((socket, address)) = &self.socket {
            let _ = socket.send_to_addr(message.as_bytes(), address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notify(name: &str, others: &[(&str, &str)]) -> Notify {
        Notify::new(&|wanted| {
            let socket = [("NOTIFY_SOCKET", name)];
            let found = socket.iter().chain(others).find(|(known, _)| *known == wanted);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    fn received(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 200];
        let size = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..size]).into_owned()
    }

    #[test]
    fn messages_reach_a_socket_by_path_and_by_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let by_path = UnixDatagram::bind(&path).unwrap();
        let service = notify(path.to_str().unwrap(), &[]);
        service.is_ready();
        service.status("a\nb");
        assert_eq!([received(&by_path), received(&by_path)], ["READY=1", "STATUS=a b"]);
        let name = format!("whit-watch-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let abstract_one = UnixDatagram::bind_addr(&address).unwrap();
        notify(&format!("@{name}"), &[]).is_reloading(7);
        assert_eq!(received(&abstract_one), "RELOADING=1\nMONOTONIC_USEC=7");
    }

    #[test]
    fn the_watchdog_is_fed_twice_as_often_as_it_is_wanted() {
        let own = std::process::id().to_string();
        let of = |others: &[(&str, &str)]| notify("/nowhere", others).watchdog();
        assert_eq!(of(&[("WATCHDOG_USEC", "30000000")]), Some(Duration::from_secs(15)));
        assert_eq!(
            of(&[("WATCHDOG_USEC", "2000"), ("WATCHDOG_PID", &own)]),
            Some(Duration::from_millis(1))
        );
        assert_eq!(of(&[("WATCHDOG_USEC", "2000"), ("WATCHDOG_PID", "1")]), None);
        assert_eq!(of(&[("WATCHDOG_USEC", "x")]), None);
        // A socket that is not there disturbs nobody.
        notify("/nowhere", &[]).is_alive();
        assert_eq!(Notify::new(&|_| None).watchdog(), None);
    }
}
