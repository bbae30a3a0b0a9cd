//! Numbers of a study as its table and its verdict have them.

use levelhead_lab::studies::Unit;

/// A number as the table has it.
pub(super) fn number(unit: Unit, value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let text = match unit {
        Unit::Probability => format!("{value:.3e}"),
        _ if value.abs() >= 1e9 => format!("{value:.3e}"),
        Unit::Percent
        | Unit::Millis
        | Unit::PerSecond
        | Unit::Megabytes
        | Unit::MegabytesPerSecond => format!("{value:.2}"),
        Unit::Times => format!("{value:.3}"),
        Unit::Count if value.fract().abs() > 0.0 => format!("{value:.3}"),
        Unit::Count => format!("{value}"),
    };
    // What is rounded to zero has no sign.
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| c == '0' || c == '.') => rest.to_owned(),
        Some(_) | None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_long_as_a_table_has_room_for() {
        for (unit, value, want) in [
            (Unit::Percent, -0.004, "0.00"),
            (Unit::Percent, -0.006, "-0.01"),
            (Unit::Percent, 2.5e38, "2.500e38"),
            (Unit::Millis, f64::INFINITY, "-"),
            (Unit::Count, 12.0, "12"),
            (Unit::Times, 1.0, "1.000"),
        ] {
            assert_eq!(number(unit, value), want);
        }
    }
}
