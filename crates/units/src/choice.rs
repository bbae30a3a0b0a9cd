//! Values out of a few: what is said of one that is not among them.

/// `; did you mean 'level'?` for a text that is nearly one of these names, and nothing for any other.
///
/// Nearly: one letter in three at most is wrong, missing, too many or changed with its neighbour.
pub fn meant<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let near = names
        .into_iter()
        .map(|name| (distance(text, name), name))
        .filter(|(distance, name)| distance * 3 <= name.chars().count().max(3))
        .min_by_key(|(distance, _)| *distance);
    near.map(|(_, name)| format!("; did you mean '{name}'?")).unwrap_or_default()
}

/// Letters to change, to add, to leave out or to exchange with their neighbour (each letter once) until one text is the other.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    // Of a text that is so much longer, no letter need be compared.
    if one.len() > 2 * other.len() {
        return one.len() - other.len();
    }
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, wanted) in other.iter().enumerate() {
            let mut least = (above[j] + usize::from(letter != wanted)).min(above[j + 1] + 1);
            least = least.min(row[j] + 1);
            if i > 0 && j > 0 && *letter == other[j - 1] && one[i - 1] == *wanted {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = ["level", "normal", "on-failure", "raid5", "raid6"];

    #[test]
    fn a_slip_is_seen() {
        for (text, name) in [
            ("levle", "level"),
            ("lvel", "level"),
            ("Level", "level"),
            ("nromal", "normal"),
            ("on_failure", "on-failure"),
            ("onfailures", "on-failure"),
            ("raid66", "raid6"),
        ] {
            assert_eq!(meant(text, NAMES), format!("; did you mean '{name}'?"), "{text}");
        }
    }

    #[test]
    fn another_word_is_none() {
        for text in ["", "turbo", "l", "level:extra", "raid-dp", &"level".repeat(1_000_000)] {
            assert_eq!(meant(text, NAMES), "", "{}", text.len());
        }
    }

    #[test]
    fn distances() {
        for (one, other, expected) in
            [("", "abc", 3), ("abc", "abc", 0), ("abc", "acb", 1), ("abc", "bcd", 2), ("ab", "", 2)]
        {
            assert_eq!(distance(one, other), expected, "{one} {other}");
        }
    }
}
