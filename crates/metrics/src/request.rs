//! The head of an HTTP request: which of the few things that are answered it asks for.
//!
//! Everything else is refused with the status that says why. A body is not read: no request that is
//! answered has any.

use crate::{Format, accept};

/// The longest head, with the empty line at its end.
pub(crate) const HEAD_MAX: usize = 8 * 1024;

/// What is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) page: Page,
    /// Whether the head of the answer is all that is wanted.
    pub(crate) is_head: bool,
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
            Self::Malformed => "That is no request of HTTP/1.1.",
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
    let Headers { has_host, accept } = headers(lines)?;
    if version == "HTTP/1.1" && !has_host {
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
    Ok(Asked { page, is_head })
}

/// What matters of the header fields.
struct Headers {
    has_host: bool,
    /// All fields of the name together.
    accept: Option<String>,
}

fn headers<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Headers, Refusal> {
    let mut headers = Headers { has_host: false, accept: None };
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or(Refusal::Malformed)?;
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(Refusal::Malformed);
        }
        if name.eq_ignore_ascii_case("host") {
            headers.has_host = true;
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

    const METRICS: Page = Page::Metrics(Format::OpenMetrics);

    #[test]
    fn few_things_are_answered() {
        for (head, page, is_head) in [
            ("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", METRICS, false),
            ("GET /metrics?name[]=x HTTP/1.0\r\n\r\n", METRICS, false),
            ("HEAD http://example.org:1/metrics HTTP/1.1\nhost:a\n\n", METRICS, true),
            ("GET http://example.org HTTP/1.1\r\nHost: a\r\n\r\n", Page::Index, false),
            (
                "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: text/html;q=0.1\r\naccept:text/plain\r\n\r\n",
                Page::Metrics(Format::Prometheus),
                false,
            ),
        ] {
            assert_eq!(asked(head), Ok(Asked { page, is_head }), "{head}");
        }
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
