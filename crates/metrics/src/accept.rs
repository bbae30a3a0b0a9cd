//! Which format a client would rather have, by its `Accept` header (RFC 9110, 12.5.1).

use crate::Format;

/// The text format, which every tool reads, unless OpenMetrics is named and wanted as much.
pub(crate) fn format(accept: Option<&str>) -> Format {
    let ranges = accept.unwrap_or_default().split(',').filter_map(Range::read);
    let ranges: Vec<Range<'_>> = ranges.collect();
    let kind = ["application", "openmetrics-text"];
    let named = ranges.iter().filter(|range| range.names(kind) == Some(BY_NAME));
    let newer = named.map(|range| range.quality).fold(0.0, f64::max);
    let is_newer = newer > 0.0 && newer >= quality(&ranges, ["text", "plain"]);
    if is_newer { Format::OpenMetrics } else { Format::Prometheus }
}

/// What [`Range::names`] says of an entry that names a type in full.
const BY_NAME: u32 = 2;

/// One entry of the header.
struct Range<'a> {
    kind: [&'a str; 2],
    /// From 0, not at all, to 1.
    quality: f64,
}

impl<'a> Range<'a> {
    fn read(entry: &'a str) -> Option<Self> {
        let mut parts = entry.split(';').map(str::trim);
        let (first, second) = parts.next()?.split_once('/')?;
        let mut range = Self { kind: [first.trim(), second.trim()], quality: 1.0 };
        for parameter in parts {
            let (name, value) = parameter.split_once('=')?;
            match name.trim().to_ascii_lowercase().as_str() {
                "q" => {
                    let quality = value.trim().parse().ok();
                    range.quality = quality.filter(|q| (0.0..=1.0).contains(q))?;
                }
                // A version that is not ours.
                "version" if !matches!(value.trim(), "1.0.0" | "0.0.1" | "0.0.4") => return None,
                _ => {}
            }
        }
        Some(range)
    }

    /// How exactly it names this type: 2 for by name, 1 for its first half, 0 for anything.
    fn names(&self, kind: [&str; 2]) -> Option<u32> {
        let is = |at: usize| self.kind[at].eq_ignore_ascii_case(kind[at]);
        match (self.kind, is(0), is(1)) {
            (_, true, true) => Some(BY_NAME),
            ([_, "*"], true, _) => Some(1),
            (["*", "*"], _, _) => Some(0),
            _ => None,
        }
    }
}

/// What the entry that names a type most exactly says of it; of several, the best.
fn quality(ranges: &[Range<'_>], kind: [&str; 2]) -> f64 {
    let named = ranges.iter().filter_map(|range| Some((range.names(kind)?, range.quality)));
    let best = |left: (u32, f64), right: (u32, f64)| {
        if (right.0, right.1) > (left.0, left.1) { right } else { left }
    };
    named.reduce(best).map_or(0.0, |(_, quality)| quality)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_format_is_for_those_who_name_it() {
        // What Prometheus 2.5, 2.49 and 3.0 send, and curl.
        let old =
            "application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let usual = "application/openmetrics-text;version=1.0.0;q=0.5,\
                     application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        let new = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                   application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;\
                   escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for accept in [old, usual, new, "text/plain, application/openmetrics-text"] {
            assert_eq!(format(Some(accept)), Format::OpenMetrics, "{accept}");
        }
        assert_eq!(format(None), Format::Prometheus);
        for accept in [
            "*/*",
            "",
            "application/*",
            "image/png",
            "text/plain;q=0",
            "text/*;q=0.4,*/*;q=0.4",
            "text/plain;q=2",
            "; q",
            "text/plain",
            "TEXT/Plain; Version=0.0.4; Q=0.9, application/openmetrics-text;q=0.8",
            "text/*",
            "text/plain,*/*;q=0.5",
            "application/openmetrics-text;version=2.0.0,text/plain;q=0.1",
            "application/openmetrics-text;q=0,*/*",
        ] {
            assert_eq!(format(Some(accept)), Format::Prometheus, "{accept}");
        }
    }
}
