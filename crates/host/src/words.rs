//! Numbers and drives in sentences: nouns and verbs that fit the number. `drives 3 are missing` would read as three drives.

use std::fmt::Display;

use levelhead_units::DriveSet;

/// `1 sector`, `2 sectors`.
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// `is` of one, `are` of any other number.
pub fn is_or_are(count: impl TryInto<u64>) -> &'static str {
    if count.try_into().is_ok_and(|count| count == 1) { "is" } else { "are" }
}

/// `drive 3`, `drives 1,2`.
pub fn drives(drives: DriveSet) -> String {
    let all: Vec<String> = drives.iter().map(|drive| drive.to_string()).collect();
    numbered(&all)
}

/// The same of drives whose numbers have come as such.
pub fn numbered(drives: &[impl Display]) -> String {
    let all: Vec<String> = drives.iter().map(ToString::to_string).collect();
    format!("{} {}", if all.len() == 1 { "drive" } else { "drives" }, all.join(","))
}

/// `drive 3 is`, `drives 1,2 are`.
pub fn drives_are(set: DriveSet) -> String {
    format!("{} {}", drives(set), is_or_are(set.len()))
}

#[cfg(test)]
mod tests {
    use levelhead_units::DriveIdx;

    use super::*;

    #[test]
    fn nouns_and_verbs_fit_the_number() {
        assert_eq!(
            [0_u64, 1, 2].map(|n| counted(n, "sector")),
            ["0 sectors", "1 sector", "2 sectors"]
        );
        let three = DriveSet::EMPTY.with(DriveIdx::new(3));
        assert_eq!(drives_are(three), "drive 3 is");
        assert_eq!(drives_are(three.with(DriveIdx::new(1))), "drives 1,3 are");
        assert_eq!(numbered(&[7]), "drive 7");
    }
}
