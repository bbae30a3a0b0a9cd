//! The service manager that has started the program, if one waits to be told how it goes: sd_notify(3).
//!
//! Its datagram socket stands in the environment as `NOTIFY_SOCKET`, a path or, after an `@`, an abstract name;
//! `WATCHDOG_USEC` says how long the process `WATCHDOG_PID` may give no sign of life. What cannot be sent is left:
//! the manager decides itself what to make of a program that says nothing.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use levelhead_app_array::Notice;

/// How long a manager may leave its socket full.
const PATIENCE: Duration = Duration::from_secs(1);

/// See the module.
pub(crate) struct Manager {
    socket: UnixDatagram,
    address: SocketAddr,
    watchdog: Option<Duration>,
}

impl Manager {
    /// The one that the environment names, if it names any.
    pub(crate) fn of_environment(
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Option<Self>, String> {
        let Some(name) = variable("NOTIFY_SOCKET") else { return Ok(None) };
        let fail = |error: io::Error| {
            let name = name.display();
            format!("NOTIFY_SOCKET, '{name}', is not a socket of the service manager: {error}")
        };
        let address = address(&name).map_err(fail)?;
        let socket = UnixDatagram::unbound().map_err(fail)?;
        socket.set_write_timeout(Some(PATIENCE)).map_err(fail)?;
        let number = |name: &str| -> Option<u64> { variable(name)?.to_str()?.parse().ok() };
        let own = u64::from(std::process::id());
        let is_other = number("WATCHDOG_PID").is_some_and(|pid| pid != own);
        let watchdog = number("WATCHDOG_USEC").filter(|&micros| micros > 0 && !is_other);
        Ok(Some(Self { socket, address, watchdog: watchdog.map(Duration::from_micros) }))
    }

    /// How long the program may give no sign of life, if that is watched.
    pub(crate) fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Tells it something, if it takes that.
    pub(crate) fn tell(&self, notice: &Notice) {
        drop(self.socket.send_to_addr(message(notice).as_bytes(), &self.address));
    }
}

fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        [b'/', ..] => SocketAddr::from_pathname(name),
        _ => Err(io::Error::other("neither a path from the root on nor an abstract name")),
    }
}

/// What goes over the socket.
fn message(notice: &Notice) -> String {
    match notice {
        Notice::Ready => "READY=1\n".to_owned(),
        Notice::Status(text) => format!("STATUS={}\n", text.replace('\n', " ")),
        Notice::Alive => "WATCHDOG=1\n".to_owned(),
        Notice::Stopping => "STOPPING=1\n".to_owned(),
        Notice::MoreTime(time) => format!("EXTEND_TIMEOUT_USEC={}\n", time.as_micros()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manager(variables: &[(&str, &str)]) -> Result<Option<Manager>, String> {
        let variable = |name: &str| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into())
        };
        Manager::of_environment(&variable)
    }

    #[test]
    fn manager_is_the_one_of_the_environment() {
        assert!(manager(&[("WATCHDOG_USEC", "5")]).unwrap().is_none());
        for name in ["/run/x", "@x"] {
            assert_eq!(manager(&[("NOTIFY_SOCKET", name)]).unwrap().unwrap().watchdog(), None);
        }
        let long = format!("/{}", "x".repeat(200));
        for name in ["", "x", "vsock:2:1234", &long] {
            let Err(refused) = manager(&[("NOTIFY_SOCKET", name)]) else { panic!("{name}") };
            let begin = format!("NOTIFY_SOCKET, '{name}', is not a socket ");
            assert!(refused.starts_with(&begin), "{refused}");
        }
    }

    #[test]
    fn watchdog_is_for_the_process_that_is_named() {
        let own = std::process::id().to_string();
        let limit = |pid: &str, micros: &str| {
            let variables =
                [("NOTIFY_SOCKET", "/x"), ("WATCHDOG_PID", pid), ("WATCHDOG_USEC", micros)];
            manager(&variables).unwrap().unwrap().watchdog()
        };
        assert_eq!(limit(&own, "1500"), Some(Duration::from_micros(1500)));
        for (pid, micros) in [("1", "1500"), (&own, "0"), (&own, "soon"), (&own, "")] {
            assert_eq!(limit(pid, micros), None, "{pid} {micros}");
        }
        assert_eq!(limit("", "1500"), Some(Duration::from_micros(1500)));
    }

    #[test]
    fn notices_are_lines_of_sd_notify() {
        for (notice, expected) in [
            (Notice::Ready, "READY=1\n"),
            (Notice::Status("a\nb".into()), "STATUS=a b\n"),
            (Notice::Alive, "WATCHDOG=1\n"),
            (Notice::Stopping, "STOPPING=1\n"),
            (Notice::MoreTime(Duration::from_millis(15)), "EXTEND_TIMEOUT_USEC=15000\n"),
        ] {
            assert_eq!(message(&notice), expected);
        }
    }
}
