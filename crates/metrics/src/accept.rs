//! Which format a client would rather have, by its `Accept` header (RFC 9110, 12.5.1).

use crate::Format;

/// OpenMetrics, unless the older format is wanted more. What can be neither is answered with OpenMetrics: a
/// client that cannot read it can say nothing else.
pub(crate) fn format(accept: Option<&str>) -> Format {
    let Some(accept) = accept else { return Format::OpenMetrics };
    let ranges: Vec<Range<'_>> = accept.split(',').filter_map(Range::read).collect();
    let newer = quality(&ranges, ["application", "openmetrics-text"]);
    let older = quality(&ranges, ["text", "plain"]);
    if older > newer { Format::Prometheus } else { Format::OpenMetrics }
}

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
            (_, true, true) => Some(2),
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
    fn older_format_is_for_those_who_want_it_more() {
        // What Prometheus 2.5, 2.49 and 3.0 send, and curl.
        let old =
            "application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let usual = "application/openmetrics-text;version=1.0.0;q=0.5,\
                     application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        let new = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                   application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;\
                   escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for accept in [None, Some(old), Some(usual), Some(new), Some("*/*"), Some("")] {
            assert_eq!(format(accept), Format::OpenMetrics, "{accept:?}");
        }
        for accept in
            ["image/png", "text/plain;q=0", "text/*;q=0.4,*/*;q=0.4", "text/plain;q=2", "; q"]
        {
            assert_eq!(format(Some(accept)), Format::OpenMetrics, "{accept}");
        }
        for accept in [
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
