//! Bars of characters, for a terminal.

/// The eighths of a character, from none to all but one.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// One line a row: its label, a bar as long as its value, and the value's text. The longest bar has
/// `width` characters; what is no number or not above zero has none.
///
/// ```
/// let rows = [("1".to_owned(), 80.0, "80".to_owned()), ("32".to_owned(), 200.0, "200".to_owned())];
/// assert_eq!(levelhead_report::bars(&rows, 10), " 1 ████ 80\n32 ██████████ 200\n");
/// ```
pub fn bars(rows: &[(String, f64, String)], width: usize) -> String {
    let label_width = rows.iter().map(|row| row.0.chars().count()).max().unwrap_or(0);
    let finite = rows.iter().map(|row| row.1).filter(|value| value.is_finite());
    let most = finite.fold(0.0, f64::max);
    let mut text = String::new();
    for (label, value, shown) in rows {
        let share = if most > 0.0 && *value > 0.0 { (value / most).min(1.0) } else { 0.0 };
        let eighths = (share * width as f64 * 8.0).round() as usize;
        let bar = "█".repeat(eighths / 8) + EIGHTHS[eighths % 8];
        let gap = if bar.is_empty() { "" } else { " " };
        text.push_str(&format!("{label:>label_width$} {bar}{gap}{shown}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_values_have_no_bar_and_break_nothing() {
        let row = |value: f64| ("a".to_owned(), value, format!("{value}"));
        assert_eq!(bars(&[], 10), "");
        assert_eq!(bars(&[row(0.0), row(-1.0)], 10), "a 0\na -1\n");
        let rows = [row(f64::NAN), row(f64::INFINITY), row(2.0), row(0.5)];
        assert_eq!(bars(&rows, 2), "a NaN\na ██ inf\na ██ 2\na ▌ 0.5\n");
    }
}
