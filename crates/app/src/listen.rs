//! Where a device is served over NBD: under which names, to whom, and how many of them.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use levelhead_block::BlockService;
use levelhead_nbd::{Access, Bounds, Endpoint, Export, Server, TlsServer};
use levelhead_units::Nanos;
use serde::Serialize;

use crate::AppError;
use crate::files::absolute;

/// The most exports of one server.
pub const EXPORTS_MAX: usize = 64;

/// Where clients find a device, and what they may do there.
#[derive(Clone, Debug)]
pub struct Listen {
    /// Where it listens.
    pub endpoint: Endpoint,
    /// Its exports; the first is the one for clients that name none.
    pub exports: Vec<ExportName>,
    /// What clients may do with all of them, whatever the exports say.
    pub access: Access,
    /// The mode of a Unix socket's file.
    pub socket_mode: u32,
    /// The most connections at the same time.
    pub connections_max: usize,
    /// The most time for a client's handshake.
    pub handshake_max: Nanos,
    /// What it encrypts with. Then it serves nothing that is not encrypted.
    pub tls: Option<TlsFiles>,
}

/// Certificates and keys, all PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, and those that lead to its issuer.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Those who issue certificates to clients; without them every client is let in.
    pub client_ca: Option<PathBuf>,
}

/// An export as it is written: `NAME` or `NAME,ro`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportName {
    /// What clients ask for. May be empty.
    pub name: String,
    /// What they may do with it.
    pub access: Access,
}

/// An export that clients can reach.
#[derive(Clone, Debug, Serialize)]
pub struct Exported {
    /// Its name.
    pub name: String,
    /// How clients reach it.
    pub uri: String,
    /// Whether nothing can be written through it.
    pub read_only: bool,
}

impl FromStr for ExportName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, access) = match text.rsplit_once(',') {
            None => (text, Access::ReadWrite),
            Some((name, "ro")) => (name, Access::ReadOnly),
            Some(_) => {
                return Err(format!("'{text}' is not an export: expected NAME or NAME,ro"));
            }
        };
        Ok(Self { name: name.to_owned(), access })
    }
}

impl fmt::Display for Exported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let note = if self.read_only { " (read-only)" } else { "" };
        write!(f, "nbd: {}{note}", self.uri)
    }
}

impl Listen {
    /// A server that listens and does not answer yet. It serves `device`, described like that.
    pub fn bind(
        &self,
        device: &Arc<dyn BlockService>,
        description: &str,
    ) -> Result<Server, AppError> {
        let count = self.exports.len();
        if count > EXPORTS_MAX {
            return Err(AppError::usage(format!(
                "a server has at most {EXPORTS_MAX} exports, got {count}"
            )));
        }
        let exports = self.exports.iter().map(|export| Export {
            name: export.name.clone(),
            description: description.to_owned(),
            service: Arc::clone(device),
            access: self.access_of(export),
        });
        let exports = exports.collect();
        let tls = self.tls.as_ref().map(|TlsFiles { cert, key, client_ca }| {
            TlsServer::load(cert, key, client_ca.as_deref()).map_err(AppError::usage)
        });
        let tls = tls.transpose()?;
        let server = Server::bind_with_mode(&self.endpoint, exports, self.socket_mode);
        let bounds = Bounds {
            connections_max: self.connections_max,
            handshake_max: Duration::from(self.handshake_max),
            ..Bounds::default()
        };
        let server = server.map_err(AppError::usage)?.with_bounds(bounds);
        Ok(match tls {
            Some(tls) => server.with_tls(tls),
            None => server,
        })
    }

    /// Its exports, as clients reach them at `endpoint`.
    pub fn exported(&self, endpoint: &Endpoint) -> Vec<Exported> {
        // Wherever clients are started.
        let endpoint = match endpoint {
            Endpoint::Unix(path) => Endpoint::Unix(absolute(path)),
            Endpoint::Tcp(_) => endpoint.clone(),
        };
        let exported = |export: &ExportName| Exported {
            name: export.name.clone(),
            uri: match &self.tls {
                None => endpoint.uri(&export.name),
                Some(_) => endpoint.tls_uri(&export.name),
            },
            read_only: self.access_of(export) == Access::ReadOnly,
        };
        self.exports.iter().map(exported).collect()
    }

    /// A sentence about a device that strangers can reach, if they can.
    pub fn warning(&self) -> Option<String> {
        let Endpoint::Tcp(addr) = &self.endpoint else { return None };
        if addr.ip().to_canonical().is_loopback() {
            return None;
        }
        let reads = self.exports.iter().all(|export| self.access_of(export) == Access::ReadOnly);
        let verb = if reads { "read" } else { "read and change" };
        let who = format!("everyone who reaches {} can {verb} all data", self.endpoint);
        match &self.tls {
            Some(TlsFiles { client_ca: Some(_), .. }) => None,
            Some(TlsFiles { client_ca: None, .. }) => Some(format!(
                "{who}: with --tls-client-ca only clients with a certificate are let in"
            )),
            None => Some(format!(
                "{who}, and everyone on the way can listen, because nothing there is encrypted: use \
                 --tls-cert, --tls-key and --tls-client-ca, or a Unix socket, or tcp:PORT for this machine \
                 alone"
            )),
        }
    }

    fn access_of(&self, export: &ExportName) -> Access {
        match self.access {
            Access::ReadWrite => export.access,
            Access::ReadOnly => Access::ReadOnly,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_are_names_that_may_say_read_only() {
        let parse = |text: &str| text.parse::<ExportName>();
        let export = |name: &str, access| Ok(ExportName { name: name.to_owned(), access });
        assert_eq!(parse(""), export("", Access::ReadWrite));
        assert_eq!(parse("a b"), export("a b", Access::ReadWrite));
        assert_eq!(parse("a,ro"), export("a", Access::ReadOnly));
        assert_eq!(parse(",ro"), export("", Access::ReadOnly));
        for text in ["a,b", "a,", "a,rw", "a,ro,x"] {
            let expected = format!("'{text}' is not an export: expected NAME or NAME,ro");
            assert_eq!(parse(text), Err(expected));
        }
    }

    #[test]
    fn only_addresses_that_others_reach_are_warned_about() {
        let listen = |endpoint: &str| Listen {
            endpoint: endpoint.parse().unwrap(),
            exports: vec!["a".parse().unwrap(), "b,ro".parse().unwrap()],
            access: Access::ReadWrite,
            socket_mode: 0o600,
            connections_max: 1,
            handshake_max: Nanos::from_secs(1),
            tls: None,
        };
        for endpoint in ["unix:a", "tcp:1", "tcp:127.3.2.1:1", "tcp:[::1]:1"] {
            assert_eq!(listen(endpoint).warning(), None, "{endpoint}");
        }
        for endpoint in ["tcp:0.0.0.0:1", "tcp:[::]:1", "tcp:192.0.2.1:1"] {
            let warning = listen(endpoint).warning().unwrap();
            let begin = format!("everyone who reaches {endpoint} can read and change all data");
            assert!(warning.starts_with(&begin), "{warning}");
        }
        let read_only = Listen { access: Access::ReadOnly, ..listen("tcp:[::]:1") };
        assert!(read_only.warning().unwrap().contains(" can read all data"));
        let files = |client_ca| TlsFiles { cert: "c".into(), key: "k".into(), client_ca };
        let encrypted = |ca| Listen { tls: Some(files(ca)), ..listen("tcp:0.0.0.0:1") };
        let open = encrypted(None).warning().unwrap();
        assert!(open.contains("--tls-client-ca") && !open.contains("listen"), "{open}");
        assert_eq!(encrypted(Some("ca".into())).warning(), None);
    }
}
