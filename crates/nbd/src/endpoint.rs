//! Where a server listens, as people write it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// Where a server listens.
///
/// Written as `unix:PATH` (or a path that ends in `.sock`) or `tcp:ADDRESS:PORT` (or `tcp:PORT` for
/// this machine alone).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A Unix socket.
    Unix(PathBuf),
    /// A TCP port.
    Tcp(SocketAddr),
}

impl Endpoint {
    /// The URI by which NBD clients reach `export` here.
    pub fn uri(&self, export: &str) -> String {
        self.uri_with("nbd", export)
    }

    /// The same at a server that encrypts. Clients have to be told besides whom to believe.
    pub fn tls_uri(&self, export: &str) -> String {
        self.uri_with("nbds", export)
    }

    fn uri_with(&self, scheme: &str, export: &str) -> String {
        let export = escape(export.as_bytes());
        match self {
            Self::Unix(path) => {
                let path = escape(path.as_os_str().as_encoded_bytes());
                format!("{scheme}+unix:///{export}?socket={path}")
            }
            Self::Tcp(addr) => format!("{scheme}://{addr}/{export}"),
        }
    }
}

/// `bytes` with everything escaped that could mean something in a URI.
fn escape(bytes: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    bytes.iter().fold(String::new(), |mut text, &byte| {
        if plain(byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
        text
    })
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(addr) => write!(f, "tcp:{addr}"),
        }
    }
}

/// A text that says nowhere to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseEndpointError(String);

impl fmt::Display for ParseEndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.0;
        write!(
            f,
            "'{text}' is not an endpoint: expected unix:PATH, a path that ends in .sock, tcp:PORT \
             or tcp:ADDRESS:PORT with a numeric address, as in tcp:127.0.0.1:10809"
        )
    }
}

impl std::error::Error for ParseEndpointError {}

impl FromStr for Endpoint {
    type Err = ParseEndpointError;

    fn from_str(text: &str) -> Result<Self, ParseEndpointError> {
        parse(text).ok_or_else(|| ParseEndpointError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Endpoint> {
    if let Some(path) = text.strip_prefix("unix:") {
        return (!path.is_empty()).then(|| Endpoint::Unix(PathBuf::from(path)));
    }
    if let Some(addr) = text.strip_prefix("tcp:") {
        let here = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let port = addr.parse().map(here).ok();
        return port.or_else(|| addr.parse().ok()).map(Endpoint::Tcp);
    }
    text.ends_with(".sock").then(|| Endpoint::Unix(PathBuf::from(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_reads_back() {
        for text in ["unix:a b/c", "tcp:127.0.0.1:10809", "tcp:[::1]:7"] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn bare_ports_mean_this_machine_and_bare_sockets_their_path() {
        let parse = |text: &str| text.parse::<Endpoint>().unwrap();
        assert_eq!(parse("tcp:10809"), parse("tcp:127.0.0.1:10809"));
        assert_eq!(parse("run/a.sock"), Endpoint::Unix("run/a.sock".into()));
    }

    #[test]
    fn nonsense_is_refused_with_the_forms() {
        for text in ["", "unix:", "tcp:", "tcp:localhost:1", "tcp:99999", "disk.img", "udp:1"] {
            let error = text.parse::<Endpoint>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{text}' is not an endpoint: expected")));
        }
    }

    #[test]
    fn uris_escape_what_would_mean_something() {
        let unix = Endpoint::Unix("/run/a b?.sock".into());
        assert_eq!(unix.uri("x&y"), "nbd+unix:///x%26y?socket=/run/a%20b%3F.sock");
        let tcp = Endpoint::Tcp("[::1]:10809".parse().unwrap());
        assert_eq!(tcp.uri(""), "nbd://[::1]:10809/");
        assert_eq!(tcp.tls_uri("x"), "nbds://[::1]:10809/x");
    }
}
