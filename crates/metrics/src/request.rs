//! The head of an HTTP request: which of the few things that are answered it asks for.
//!
//! Everything else is refused with the status that says why. A body is not read: no request that is
//! answered has any.

use std::net::IpAddr;

use crate::{Format, accept};

/// The longest head, with the empty line at its end.
pub(crate) const HEAD_MAX: usize = 8 * 1024;

/// What is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) page: Page,
    /// Whether the head of the answer is all that is wanted.
    pub(crate) is_head: bool,
    /// Whether the server is called by a name that this machine has for itself.
    pub(crate) host: Host,
}

/// Whom a request is for, by its field `Host`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// This machine, by `localhost` or a loopback address; or nobody, as old clients have it.
    Own,
    /// Another name: a page from elsewhere may have had its own lead here, and reads what it is answered.
    Other,
}

/// What there is to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// A text that says where the metrics are.
    Index,
    Metrics(Format),
}

/// Why a request is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Malformed,
    Misdirected,
    NotFound,
    Method,
    Slow,
    TooLong,
    TooMany,
    Version,
}

impl Refusal {
    /// Its status, with its name.
    pub(crate) const fn status(self) -> &'static str {
        match self {
            Self::Malformed => "400 Bad Request",
            Self::Misdirected => "421 Misdirected Request",
            Self::NotFound => "404 Not Found",
            Self::Method => "405 Method Not Allowed",
            Self::Slow => "408 Request Timeout",
            Self::TooLong => "431 Request Header Fields Too Large",
            Self::TooMany => "503 Service Unavailable",
            Self::Version => "505 HTTP Version Not Supported",
        }
    }

    /// What a person may want to know.
    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Self::Malformed => "That is not a request of HTTP/1.1.",
            Self::Misdirected => "This is asked for as localhost, or by a loopback address.",
            Self::NotFound => "There is /metrics, and nothing else.",
            Self::Method => "There is GET, and HEAD.",
            Self::Slow => "The request did not come in time.",
            Self::TooLong => "A request's head has at most 8192 bytes.",
            Self::TooMany => "Too many clients ask at a time.",
            Self::Version => "There is HTTP/1.0, and HTTP/1.1.",
        }
    }
}

/// Where the head in `bytes` ends, if all of it has come.
pub(crate) fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let crlf = bytes.windows(4).position(|end| end == b"\r\n\r\n").map(|at| at + 4);
    // Lines may end without a carriage return (RFC 9112, 2.2).
    let bare = bytes.windows(2).position(|end| end == b"\n\n").map(|at| at + 2);
    crlf.into_iter().chain(bare).min()
}

/// What a whole head asks for.
pub(crate) fn parse(head: &[u8]) -> Result<Asked, Refusal> {
    let head = std::str::from_utf8(head).map_err(|_| Refusal::Malformed)?;
    let mut lines = head.lines();
    let first = lines.next().unwrap_or_default();
    let [method, target, version]: [&str; 3] =
        first.split(' ').collect::<Vec<_>>().try_into().map_err(|_| Refusal::Malformed)?;
    if !version.starts_with("HTTP/") || !method.bytes().all(is_token) || method.is_empty() {
        return Err(Refusal::Malformed);
    }
    if !matches!(version, "HTTP/1.0" | "HTTP/1.1") {
        return Err(Refusal::Version);
    }
    let Headers { host, accept } = headers(lines)?;
    if version == "HTTP/1.1" && host.is_none() {
        return Err(Refusal::Malformed);
    }
    let is_head = match method {
        "GET" => false,
        "HEAD" => true,
        _ => return Err(Refusal::Method),
    };
    let page = match path(target)? {
        "/" => Page::Index,
        "/metrics" => Page::Metrics(accept::format(accept.as_deref())),
        _ => return Err(Refusal::NotFound),
    };
    Ok(Asked { page, is_head, host: host.unwrap_or(Host::Own) })
}

/// What matters of the header fields.
struct Headers {
    /// Of several fields of the name every one counts.
    host: Option<Host>,
    /// All fields of the name together.
    accept: Option<String>,
}

fn headers<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Headers, Refusal> {
    let mut headers = Headers { host: None, accept: None };
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or(Refusal::Malformed)?;
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(Refusal::Malformed);
        }
        if name.eq_ignore_ascii_case("host") {
            let is_other = headers.host == Some(Host::Other) || !is_own(value.trim());
            headers.host = Some(if is_other { Host::Other } else { Host::Own });
        } else if name.eq_ignore_ascii_case("accept") {
            let more = value.trim();
            headers.accept = Some(match headers.accept {
                Some(earlier) => format!("{earlier},{more}"),
                None => more.to_owned(),
            });
        }
    }
    Ok(headers)
}

/// Whether a name, with a port or without, is one that this machine has for itself.
fn is_own(host: &str) -> bool {
    let without_port = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    let address = without_port.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_loopback =
        |text: &str| text.parse::<IpAddr>().is_ok_and(|it| it.to_canonical().is_loopback());
    match address {
        Some(address) => is_loopback(address),
        None => {
            let name = without_port.trim_end_matches('.');
            name.eq_ignore_ascii_case("localhost") || is_loopback(name)
        }
    }
}

/// The path of a target, `/metrics?x=1` or `http://example.org/metrics`.
fn path(target: &str) -> Result<&str, Refusal> {
    let path = match target.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => target,
    };
    if !path.starts_with('/') {
        return Err(Refusal::Malformed);
    }
    Ok(path.split('?').next().unwrap_or_default())
}

/// The characters of a method's and a header field's name (RFC 9110, 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(head: &str) -> Result<Asked, Refusal> {
        parse(head.as_bytes())
    }

    const METRICS: Page = Page::Metrics(Format::Prometheus);

    #[test]
    fn few_things_are_answered() {
        for (head, page, is_head) in [
            ("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", METRICS, false),
            ("GET /metrics?name[]=x HTTP/1.0\r\n\r\n", METRICS, false),
            ("HEAD http://example.org:1/metrics HTTP/1.1\nhost:a\n\n", METRICS, true),
            ("GET http://example.org HTTP/1.1\r\nHost: a\r\n\r\n", Page::Index, false),
            (
                "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: text/html;q=0.1\r\naccept:application/openmetrics-text\r\n\r\n",
                Page::Metrics(Format::OpenMetrics),
                false,
            ),
        ] {
            let asked = asked(head).unwrap_or_else(|refusal| panic!("{refusal:?}: {head}"));
            assert_eq!((asked.page, asked.is_head), (page, is_head), "{head}");
        }
    }

    #[test]
    fn whom_a_request_is_for_is_known_by_every_field_of_the_name() {
        for (hosts, host) in [
            (&["localhost:9469"][..], Host::Own),
            (&["LocalHost."], Host::Own),
            (&["127.0.0.1:9469"], Host::Own),
            (&["127.9.9.9"], Host::Own),
            (&["[::1]:9469"], Host::Own),
            (&["[::ffff:127.0.0.1]"], Host::Own),
            (&["evil.example"], Host::Other),
            (&["localhost.evil.example:9469"], Host::Other),
            (&["127.0.0.1.evil.example"], Host::Other),
            (&["localhost@evil.example"], Host::Other),
            (&["10.0.0.1:9469"], Host::Other),
            (&[""], Host::Other),
            (&["localhost", "evil.example"], Host::Other),
            (&["evil.example", "localhost"], Host::Other),
        ] {
            let fields: String = hosts.iter().map(|host| format!("Host: {host}\r\n")).collect();
            let head = format!("GET /metrics HTTP/1.1\r\n{fields}\r\n");
            assert_eq!(asked(&head).map(|asked| asked.host), Ok(host), "{head}");
        }
        assert_eq!(asked("GET / HTTP/1.0\r\n\r\n").map(|asked| asked.host), Ok(Host::Own));
    }

    #[test]
    fn everything_else_is_refused_with_the_reason() {
        for (head, refusal) in [
            ("", Refusal::Malformed),
            ("GET /metrics\r\n\r\n", Refusal::Malformed),
            ("GET  /metrics HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Malformed),
            ("GET /metrics HTTP/1.1\r\n\r\n", Refusal::Malformed),
            ("GET /metrics HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n", Refusal::Malformed),
            ("GET /metrics HTTP/1.1\r\nHost: a\r\n folded: x\r\n\r\n", Refusal::Malformed),
            ("GET metrics HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Malformed),
            ("G(T / HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Malformed),
            ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", Refusal::Version),
            ("POST /metrics HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Method),
            ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Method),
            ("GET /metrics/ HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::NotFound),
            ("GET /../metrics HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::NotFound),
        ] {
            assert_eq!(asked(head), Err(refusal), "{head}");
        }
        assert_eq!(parse(b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n"), Err(Refusal::Malformed));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_are_more_than_a_request_or_a_refusal(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300),
            accept in "[a-z*/;,=.q0-9 \"-]{0,80}",
        ) {
            let is_one = parse(&bytes).is_ok();
            proptest::prop_assert!(!is_one || bytes.starts_with(b"GET ") || bytes.starts_with(b"HEAD "));
            let head = format!("GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n");
            proptest::prop_assert!(parse(head.as_bytes()).is_ok());
            let end = end_of_head(head.as_bytes());
            proptest::prop_assert_eq!(end, Some(head.len()));
        }
    }

    #[test]
    fn head_ends_with_an_empty_line() {
        assert_eq!(end_of_head(b"GET / HTTP/1.0\r\n\r\nrest"), Some(18));
        assert_eq!(end_of_head(b"GET / HTTP/1.0\n\nrest"), Some(16));
        assert_eq!(end_of_head(b"GET / HTTP/1.0\r\n\r"), None);
    }
}
