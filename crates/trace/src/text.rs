//! Figures for people: three digits and a unit.

use levelhead_units::{Nanos, Ratio, Sectors, short};

/// The size of `count` sectors, as text.
pub(crate) fn sectors(count: Sectors) -> String {
    count.bytes().short()
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
        let times = [17, 1_500, 2_420_000, 60_053_000_000, 7_200_000_000_000];
        assert_eq!(
            times.map(|nanos| time(Nanos::new(nanos))),
            ["17ns", "1.5us", "2.42ms", "60.1s", "2h"]
        );
        assert_eq!(share(Ratio::of(1, 3)), "33.3%");
    }
}
