//! Figures for people: three digits and a unit.

use levelhead_units::{Bytes, Nanos, Ratio, Sectors};

/// `value` with three digits, or all digits of a larger whole part.
pub(crate) fn short(value: f64) -> String {
    let digits = if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        return format!("{value:.0}");
    };
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A size, such as `15.1KiB`.
pub(crate) fn size(bytes: Bytes) -> String {
    let (mut value, mut unit) = (bytes.get() as f64, "B");
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    format!("{}{unit}", short(value))
}

/// The size of so many sectors.
pub(crate) fn sectors(count: Sectors) -> String {
    size(count.bytes())
}

/// A length of time, such as `2.42ms`.
pub(crate) fn time(length: Nanos) -> String {
    let units = [("h", 3.6e12), ("s", 1e9), ("ms", 1e6), ("us", 1e3)];
    let nanos = length.get() as f64;
    match units.iter().find(|(_, factor)| nanos >= *factor) {
        Some((unit, factor)) => format!("{}{unit}", short(nanos / factor)),
        None => format!("{nanos}ns"),
    }
}

/// A share, such as `41.3%`.
pub(crate) fn share(share: Ratio) -> String {
    format!("{:.1}%", share.get() * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        let sizes = [0, 512, 8192, 15_418, 1 << 40, 1 << 50, (1 << 30) * 36];
        let texts = ["0B", "512B", "8KiB", "15.1KiB", "1TiB", "1PiB", "36GiB"];
        assert_eq!(sizes.map(|bytes| size(Bytes::new(bytes))), texts);
        let times = [17, 1_500, 2_420_000, 60_053_000_000, 7_200_000_000_000];
        assert_eq!(
            times.map(|nanos| time(Nanos::new(nanos))),
            ["17ns", "1.5us", "2.42ms", "60.1s", "2h"]
        );
        assert_eq!(share(Ratio::of(1, 3)), "33.3%");
        assert_eq!([9.999, 99.99, 1234.5].map(short), ["10", "100", "1234"]);
    }
}
