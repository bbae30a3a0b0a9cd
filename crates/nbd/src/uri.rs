//! Where an export is, as NBD clients write it.
//!
//! ```text
//!   nbd://HOST[:PORT]/EXPORT                 nbds://HOST[:PORT]/EXPORT?tls-certificates=DIR
//!   nbd+unix:///EXPORT?socket=PATH           nbds+unix:///EXPORT?socket=PATH&tls-certificates=DIR
//! ```
//!
//! | key | meaning | when it is left out |
//! |---|---|---|
//! | `socket` | the path of a Unix socket | not with `+unix` |
//! | `tls-certificates` | the folder of certificates, with the names that nbdkit and QEMU have for them | not with `nbds` |
//! | `tls-hostname` | the name that the server's certificate is for | HOST; `localhost` for a Unix socket |
//!
//! # References
//!
//! - The NBD URI specification, `doc/uri.md` of the reference implementation.
//!
//! # Leaves out
//!
//! vsock, keys that were agreed on beforehand (`tls-psk-file`), certificates that are not looked at.

use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::str::FromStr;

/// The port of NBD servers.
const PORT: u16 = 10_809;

/// An export, by its URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    text: String,
    pub(crate) place: Place,
    pub(crate) export: String,
    pub(crate) tls: Option<TlsPart>,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Unix(PathBuf),
    Host { name: String, port: u16 },
}

/// What a URI says about TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsPart {
    /// The folder of certificates.
    pub(crate) certificates: PathBuf,
    /// Whom the server's certificate is for.
    pub(crate) hostname: String,
}

impl Uri {
    /// Whether a text begins as a URI of this kind does.
    pub fn is_one(text: &str) -> bool {
        scheme(text).is_some()
    }

    /// The same server and export, whatever else is said: what tells two URIs of one export.
    pub fn is_same_export(&self, other: &Self) -> bool {
        self.place == other.place && self.export == other.export
    }
}

/// A text that is no URI of an export, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseUriError {
    text: String,
    problem: String,
}

impl fmt::Display for ParseUriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, problem } = self;
        write!(f, "'{text}' is not an NBD export: {problem}")
    }
}

impl std::error::Error for ParseUriError {}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Uri {
    type Err = ParseUriError;

    fn from_str(text: &str) -> Result<Self, ParseUriError> {
        parse(text).map_err(|problem| ParseUriError { text: text.to_owned(), problem })
    }
}

/// What kind of URI it is: whether it is encrypted, whether it is a Unix socket's, and the rest.
fn scheme(text: &str) -> Option<(Scheme, &str)> {
    Scheme::ALL.iter().find_map(|(name, scheme)| {
        let rest = text.strip_prefix(name)?.strip_prefix("://")?;
        Some((*scheme, rest))
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Tcp,
    TcpTls,
    Unix,
    UnixTls,
}

impl Scheme {
    const ALL: [(&str, Self); 4] = [
        ("nbd", Self::Tcp),
        ("nbds", Self::TcpTls),
        ("nbd+unix", Self::Unix),
        ("nbds+unix", Self::UnixTls),
    ];
}

/// The options behind a URI.
#[derive(Default)]
struct Query {
    socket: Option<PathBuf>,
    certificates: Option<PathBuf>,
    hostname: Option<String>,
}

fn parse(text: &str) -> Result<Uri, String> {
    let forms =
        "expected nbd://HOST:PORT/EXPORT, nbd+unix:///EXPORT?socket=PATH, or these with nbds";
    let (scheme, rest) = scheme(text).ok_or(forms)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, export) = rest.split_once('/').unwrap_or((rest, ""));
    let export = text_of(export)?;
    let Query { socket, certificates, hostname } = parse_query(query)?;
    let place = match (scheme, socket) {
        (Scheme::Unix | Scheme::UnixTls, _) if !authority.is_empty() => {
            return Err(format!("a Unix socket has no host, got '{authority}'"));
        }
        (Scheme::Unix | Scheme::UnixTls, Some(path)) => Place::Unix(path),
        (Scheme::Unix | Scheme::UnixTls, None) => return Err("socket=PATH is missing".to_owned()),
        (Scheme::Tcp | Scheme::TcpTls, None) => parse_authority(authority)?,
        (Scheme::Tcp | Scheme::TcpTls, Some(_)) => {
            return Err("socket=PATH goes with nbd+unix or nbds+unix".to_owned());
        }
    };
    let tls = match (scheme, certificates, hostname) {
        (Scheme::Tcp | Scheme::Unix, None, None) => None,
        (Scheme::Tcp | Scheme::Unix, ..) => {
            return Err("what is not encrypted (nbds) has no certificates".to_owned());
        }
        (Scheme::TcpTls | Scheme::UnixTls, None, _) => {
            return Err("tls-certificates=DIR is missing, the folder with ca-cert.pem".to_owned());
        }
        (Scheme::TcpTls | Scheme::UnixTls, Some(certificates), hostname) => {
            let usual = match &place {
                Place::Host { name, .. } => name.clone(),
                Place::Unix(_) => "localhost".to_owned(),
            };
            Some(TlsPart { certificates, hostname: hostname.unwrap_or(usual) })
        }
    };
    Ok(Uri { text: text.to_owned(), place, export, tls })
}

fn parse_query(query: &str) -> Result<Query, String> {
    let mut found = Query::default();
    for option in query.split('&').filter(|option| !option.is_empty()) {
        let (key, value) = option
            .split_once('=')
            .filter(|(_, value)| !value.is_empty())
            .ok_or_else(|| format!("'{option}' has no value"))?;
        match key {
            "socket" => found.socket = Some(path_of(value)?),
            "tls-certificates" => found.certificates = Some(path_of(value)?),
            "tls-hostname" => found.hostname = Some(text_of(value)?),
            _ => {
                let known = "socket, tls-certificates and tls-hostname";
                return Err(format!("'{key}' is not known, only {known}"));
            }
        }
    }
    Ok(found)
}

/// `HOST`, `HOST:PORT`, `[V6]` or `[V6]:PORT`.
fn parse_authority(authority: &str) -> Result<Place, String> {
    let (name, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (name, rest) = rest.split_once(']').ok_or("'[' is not closed")?;
            let is_port = rest.is_empty() || rest.starts_with(':');
            if !is_port || name.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(format!("'{authority}' is not a host"));
            }
            (name, rest.strip_prefix(':'))
        }
        None => match authority.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (authority, None),
        },
    };
    if name.is_empty() {
        return Err("a host is missing".to_owned());
    }
    if name.contains('@') {
        return Err("NBD has no users: nothing may stand in front of the host".to_owned());
    }
    let port = match port {
        None | Some("") => PORT,
        Some(port) => port
            .parse()
            .ok()
            .filter(|&port| port > 0)
            .ok_or_else(|| format!("'{port}' is not a port"))?,
    };
    Ok(Place::Host { name: name.to_owned(), port })
}

fn path_of(text: &str) -> Result<PathBuf, String> {
    let bytes = unescape(text)?;
    if bytes.contains(&0) {
        return Err(format!("'{text}' is not a path"));
    }
    Ok(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

fn text_of(text: &str) -> Result<String, String> {
    String::from_utf8(unescape(text)?).map_err(|_| format!("'{text}' is not UTF-8"))
}

/// The bytes that a text with `%` means.
fn unescape(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes().iter();
    while let Some(&byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
        let (Some(high), Some(low)) = (digit(rest.next()), digit(rest.next())) else {
            return Err(format!("'{text}' has a % without two hexadecimal digits behind it"));
        };
        bytes.push((high * 16 + low) as u8);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Endpoint;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    fn host(name: &str, port: u16) -> Place {
        Place::Host { name: name.to_owned(), port }
    }

    #[test]
    fn every_form_is_read() {
        for (text, place, export) in [
            ("nbd://example.org", host("example.org", 10_809), ""),
            ("nbd://example.org/", host("example.org", 10_809), ""),
            ("nbd://192.0.2.1:7/a%20b", host("192.0.2.1", 7), "a b"),
            ("nbd://[::1]:7//a", host("::1", 7), "/a"),
            ("nbd+unix:///?socket=/run/a.sock", Place::Unix("/run/a.sock".into()), ""),
            ("nbd+unix:///x?socket=a%3Fb", Place::Unix("a?b".into()), "x"),
        ] {
            let uri = uri(text);
            assert_eq!((&uri.place, uri.export.as_str(), &uri.tls), (&place, export, &None));
            assert_eq!(uri.to_string(), text);
        }
    }

    #[test]
    fn encrypted_forms_say_whom_to_believe() {
        for (text, hostname) in [
            ("nbds://example.org/x?tls-certificates=/pki", "example.org"),
            ("nbds://192.0.2.1/x?tls-certificates=/pki&tls-hostname=other", "other"),
            ("nbds+unix:///x?socket=s&tls-certificates=/pki", "localhost"),
        ] {
            let TlsPart { certificates, hostname: found } = uri(text).tls.unwrap();
            assert_eq!((certificates, found.as_str()), ("/pki".into(), hostname));
        }
    }

    #[test]
    fn what_an_endpoint_prints_reads_back() {
        for endpoint in ["unix:/run/a b?.sock", "tcp:[::1]:7", "tcp:127.0.0.1:7"] {
            let endpoint: Endpoint = endpoint.parse().unwrap();
            let read = uri(&endpoint.uri("x&y/z"));
            assert_eq!(read.export, "x&y/z");
            match (endpoint, read.place) {
                (Endpoint::Unix(path), Place::Unix(read)) => assert_eq!(path, read),
                (Endpoint::Tcp(addr), Place::Host { name, port }) => {
                    assert_eq!((addr.ip().to_string(), addr.port()), (name, port));
                }
                (endpoint, place) => panic!("{endpoint} was read as {place:?}"),
            }
        }
    }

    #[test]
    fn nonsense_is_refused_with_what_is_wrong() {
        for (text, problem) in [
            ("http://example.org", "expected nbd://HOST:PORT/EXPORT"),
            ("nbd://", "a host is missing"),
            ("nbd://a:70000/", "'70000' is not a port"),
            ("nbd://a:0/", "'0' is not a port"),
            ("nbd://[::1/", "'[' is not closed"),
            ("nbd://[x]/", "'[x]' is not a host"),
            ("nbd://me@example.org/", "NBD has no users"),
            ("nbd://a/%4", "has a % without two"),
            ("nbd://a/%ff", "'%ff' is not UTF-8"),
            ("nbd://a/?socket=x", "goes with nbd+unix"),
            ("nbd://a/?colour=red", "'colour' is not known, only socket"),
            ("nbd://a/?tls-certificates=x", "is not encrypted"),
            ("nbd+unix://a/?socket=x", "has no host, got 'a'"),
            ("nbd+unix:///x", "socket=PATH is missing"),
            ("nbd+unix:///x?socket=", "'socket=' has no value"),
            ("nbd+unix:///x?socket=a%00", "is not a path"),
            ("nbds://a/", "tls-certificates=DIR is missing"),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{text}' is not an NBD export: ")), "{error}");
            assert!(error.contains(problem), "{error}");
            assert_eq!(Uri::is_one(text), !text.starts_with("http"));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(
            scheme in "nbds?(\\+unix)?://",
            rest in "(\\[[0-9a-f:%]*\\]?)?[a-z0-9:%/?=&@ä-]{0,40}",
            any in ".{0,20}",
        ) {
            let _either = any.parse::<Uri>();
            let text = format!("{scheme}{rest}{any}");
            if let Ok(uri) = text.parse::<Uri>() {
                proptest::prop_assert_eq!(uri.to_string(), text);
            }
        }
    }

    #[test]
    fn uris_of_one_export_are_told_by_place_and_name() {
        let same = |left: &str, right: &str| uri(left).is_same_export(&uri(right));
        assert!(same("nbd://a/x", "nbd://a:10809/x"));
        assert!(same("nbd://a/x", "nbds://a/x?tls-certificates=c"));
        assert!(!same("nbd://a/x", "nbd://a/y"));
        assert!(!same("nbd://a/x", "nbd://b/x"));
    }
}
