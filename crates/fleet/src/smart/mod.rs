//! Pages of `smartctl -x`, read as far as error recovery needs them.
//!
//! A page is what a program printed about a drive that may have been dying: lines may be missing, cut off or of another
//! version. What a page does not say is *not read*, which is something else than *not there*.
//!
//! - SM1. Any text gives a page. What is claimed of the drive stands in the text; names come out of it clean.
//! - SM2. That something is missing in a drive follows only from a list that the page shows to its end.

use levelhead_units::foreign;

/// What a drive says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Its model, if the page says it.
    pub model: Option<String>,
    /// Its serial number, if the page says it and it was not struck out.
    pub serial: Option<String>,
    /// How long it tries to recover a sector.
    pub erc: Erc,
    /// Whether it acknowledges writes from a volatile cache.
    pub write_cache: Option<bool>,
    /// What speaks for shingled tracks.
    pub smr: Smr,
    /// What turns.
    pub rotation: Rotation,
}

/// What a drive answers about SCT Error Recovery Control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Erc {
    /// The page ends before it, or the drive did not answer.
    #[default]
    NotRead,
    /// The drive has no SCT commands.
    NoSct,
    /// The drive has SCT commands, and this is none of them.
    SctWithoutErc,
    /// The drive has it.
    Limits {
        /// Of a read.
        read: Limit,
        /// Of a write.
        write: Limit,
    },
}

/// One limit of error recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Switched off: the drive tries as long as it likes.
    Off,
    /// In tenths of a second, above 0.
    Tenths(u16),
}

/// Whether tracks overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Smr {
    /// Nothing on the page speaks for it.
    #[default]
    NoSign,
    /// A disk that turns and takes TRIM, as only shingled ones do.
    Likely,
    /// The page calls it a zoned device.
    Zoned,
}

/// What turns in a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rotation {
    /// The page does not say.
    #[default]
    Unknown,
    /// Nothing.
    SolidState,
    /// Turns a minute.
    PerMinute(u32),
}

impl Erc {
    /// In one word: `disabled`, `7 s`, `without ERC` ..
    pub fn name(self) -> String {
        match self {
            Self::NotRead => "not read".to_owned(),
            Self::NoSct => "without SCT".to_owned(),
            Self::SctWithoutErc => "without ERC".to_owned(),
            Self::Limits { read, write } if read == write => read.name(),
            Self::Limits { read, write } => format!("{}, writes {}", read.name(), write.name()),
        }
    }

    /// Its limit of a read in seconds; `None` unless it is set.
    pub fn read_seconds(self) -> Option<f64> {
        match self {
            Self::Limits { read: Limit::Tenths(tenths), .. } => Some(f64::from(tenths) / 10.0),
            Self::Limits { read: Limit::Off, .. }
            | Self::NotRead
            | Self::NoSct
            | Self::SctWithoutErc => None,
        }
    }
}

impl Limit {
    fn name(self) -> String {
        match self {
            Self::Off => "disabled".to_owned(),
            Self::Tenths(tenths) => format!("{} s", f64::from(tenths) / 10.0),
        }
    }
}

/// What a page says (SM1).
pub fn read_page(text: &str) -> Page {
    let mut page = Page::default();
    let mut sct = Sct::default();
    let mut takes_trim = false;
    for line in whole_lines(text) {
        sct.handle_line(line);
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match key.trim_end() {
            "Device Model" if page.model.is_none() => page.model = word(value),
            "Serial Number" if page.serial.is_none() => page.serial = word(value),
            "Write cache is" => page.write_cache = switch(value),
            "TRIM Command" => takes_trim = value.starts_with("Available"),
            "Zoned Device" => page.smr = Smr::Zoned,
            "Rotation Rate" => page.rotation = rotation(value),
            _ => {}
        }
    }
    if page.smr == Smr::NoSign && takes_trim && matches!(page.rotation, Rotation::PerMinute(_)) {
        page.smr = Smr::Likely;
    }
    page.erc = sct.erc();
    page
}

/// The lines that end in a line feed: one that was cut off may say the opposite of what it says.
fn whole_lines(text: &str) -> impl Iterator<Item = &str> {
    let end = text.rfind('\n').map_or(0, |at| at + 1);
    text[..end].lines()
}

fn word(value: &str) -> Option<String> {
    let is_struck = value.chars().all(|c| c == '-' || c == '.' || c == '*' || c == ' ');
    (!is_struck).then(|| foreign(value))
}

fn switch(value: &str) -> Option<bool> {
    match value.split_whitespace().next()? {
        "Enabled" => Some(true),
        "Disabled" => Some(false),
        _ => None,
    }
}

fn rotation(value: &str) -> Rotation {
    if value.starts_with("Solid State") {
        return Rotation::SolidState;
    }
    let turns = value.strip_suffix("rpm").and_then(|turns| turns.trim().parse().ok());
    turns.map_or(Rotation::Unknown, Rotation::PerMinute)
}

/// Where a page is in what concerns SCT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Elsewhere,
    /// In the list of what SCT can do.
    List,
    /// Below the head of the limits.
    Limits,
}

/// What a page has said of SCT so far.
#[derive(Clone, Copy, Debug, Default)]
struct Sct {
    place: Place,
    /// Whether the list has ended (SM2).
    list_ended: bool,
    has_erc: bool,
    /// The page is past where the list stands in every version.
    is_past_list: bool,
    says_no_sct: bool,
    says_no_erc: bool,
    read: Option<Limit>,
    write: Option<Limit>,
}

impl Sct {
    fn handle_line(&mut self, line: &str) {
        let trimmed = line.trim();
        if self.place == Place::List {
            if trimmed.starts_with("SCT ") && line.starts_with(char::is_whitespace) {
                self.has_erc |= trimmed == "SCT Error Recovery Control supported.";
                return;
            }
            self.place = Place::Elsewhere;
            self.list_ended = true;
        }
        if self.place == Place::Limits {
            match trimmed.split_once(':') {
                Some(("Read", value)) => self.read = limit(value),
                Some(("Write", value)) => self.write = limit(value),
                _ => self.place = Place::Elsewhere,
            }
        }
        if line.starts_with("SCT capabilities:") {
            self.place = Place::List;
            self.has_erc |= trimmed.ends_with("SCT Error Recovery Control supported.");
        } else if trimmed == "SCT Error Recovery Control:" {
            self.place = Place::Limits;
        }
        self.is_past_list |= line.starts_with("SMART Attributes Data Structure revision number:");
        self.says_no_sct |= trimmed == "SCT Commands not supported";
        self.says_no_erc |= trimmed == "SCT Error Recovery Control command not supported";
    }

    fn erc(self) -> Erc {
        if let (Some(read), Some(write)) = (self.read, self.write) {
            return Erc::Limits { read, write };
        }
        match () {
            () if self.has_erc => Erc::NotRead,
            () if self.list_ended || self.says_no_erc => Erc::SctWithoutErc,
            () if self.place == Place::List => Erc::NotRead,
            () if self.is_past_list || self.says_no_sct => Erc::NoSct,
            () => Erc::NotRead,
        }
    }
}

/// `70 (7.0 seconds)` or `Disabled`.
fn limit(value: &str) -> Option<Limit> {
    let first = value.split_whitespace().next()?;
    if first == "Disabled" {
        return Some(Limit::Off);
    }
    match first.parse::<u16>().ok()? {
        0 => Some(Limit::Off),
        tenths => Some(Limit::Tenths(tenths)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "Device Model:     X\nSerial Number:    --\nRotation Rate:    7200 rpm\nTRIM Command:     Available\n\
        Write cache is:   Disabled\nSCT capabilities: \t       (0x003d)\tSCT Status supported.\n\
        \t\t\t\t\tSCT Error Recovery Control supported.\n\t\t\t\t\tSCT Data Table supported.\n\n\
        SCT Error Recovery Control:\n           Read:     70 (7.0 seconds)\n          Write: Disabled\n";

    #[test]
    fn page_says_what_stands_on_it() {
        let page = read_page(PAGE);
        assert_eq!(page.model.as_deref(), Some("X"));
        assert_eq!(page.serial, None);
        assert_eq!(page.write_cache, Some(false));
        assert_eq!(page.smr, Smr::Likely);
        assert_eq!(page.erc, Erc::Limits { read: Limit::Tenths(70), write: Limit::Off });
        assert_eq!(page.erc.name(), "7 s, writes disabled");
    }

    #[test]
    fn page_cut_off_anywhere_claims_no_more_than_the_whole_one() {
        let whole = read_page(PAGE).erc;
        for end in 0..PAGE.len() {
            let erc = read_page(&PAGE[..end]).erc;
            assert!(erc == Erc::NotRead || erc == whole, "{end}: {erc:?}");
        }
    }
}
