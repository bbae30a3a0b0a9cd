//! Where collectors find the metrics.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// A TCP port of this machine, at one address or at all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub(crate) SocketAddr);

impl Address {
    /// The same with another port.
    pub(crate) fn with_port(self, port: u16) -> Self {
        Self(SocketAddr::new(self.0.ip(), port))
    }
}

/// `PORT` alone is that port of this machine only; `ADDRESS:PORT` and `[ADDRESS]:PORT` are others' way in as well. Port 0
/// is any that is free.
impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(port) = text.parse() {
            return Ok(Self(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)));
        }
        text.parse().map(Self).map_err(|_| {
            format!(
                "'{text}' is not an address: expected PORT, ADDRESS:PORT or [ADDRESS]:PORT, as in 9469"
            )
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}/metrics", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_alone_is_for_this_machine() {
        for (text, shown) in [
            ("9469", "http://127.0.0.1:9469/metrics"),
            ("0.0.0.0:80", "http://0.0.0.0:80/metrics"),
            ("[::1]:0", "http://[::1]:0/metrics"),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), shown);
        }
        for text in ["", "x", "65536", "localhost:1", "1.2.3.4", ":80", "-1"] {
            let refused = text.parse::<Address>().unwrap_err();
            assert!(refused.starts_with(&format!("'{text}' is not an address: ")), "{refused}");
        }
    }
}
