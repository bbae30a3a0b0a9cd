//! What an array is made of, and how people write it: `eraid:5+1,e=2,chunk=8KiB`, `raid10:4,chunk=64KiB`.

use std::fmt;
use std::str::FromStr;

use levelhead_units::{Bytes, DriveIdx, DriveSet, Sectors, meant};

use super::area::Groups;

/// The most symbols of one codeword over GF(2^8).
const CODEWORD_MAX: u32 = 256;

/// The largest chunk of any array.
const CHUNK_MAX: Sectors = Sectors::new(1 << 14);

/// The largest stripe, 256 MiB: what has to be in memory at a time to make a stripe redundant.
const STRIPE_MAX: Sectors = Sectors::new(1 << 16);

/// A family of arrays. The family fixes how many drives are redundant and whether parity moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Striping, no redundancy.
    Raid0,
    /// Every drive is a copy of every other one.
    Raid1,
    /// Two copies of every chunk, on neighbouring drives.
    Raid10,
    /// One parity drive.
    Raid4,
    /// One drive's worth of parity, rotating.
    Raid5,
    /// Two drives' worth of redundancy, rotating.
    Raid6,
    /// Any number of each, with codewords that take several sectors of every drive `[ERAID]`.
    Eraid,
}

/// Where the redundant chunks of a stripe lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parity {
    /// Always on the last drives.
    Fixed,
    /// One drive further to the left with each stripe (left-symmetric).
    Rotating,
}

/// The shape of an array. Only valid shapes exist: they come from [`Spec::new`] or a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    family: Family,
    drives: u8,
    data: u8,
    redundant: u8,
    expansion: u32,
    chunk: Sectors,
    parity: Parity,
    /// Drives with nothing but a ring of the journal.
    journals: u8,
    checksums: bool,
}

/// How many drives an array has, and how many of them hold what of one stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveCounts {
    /// All drives. Where that is more than the next two together, a stripe lies on some of them.
    pub drives: u32,
    /// Data chunks in a stripe.
    pub data: u32,
    /// Redundant chunks in a stripe.
    pub redundant: u32,
}

impl DriveCounts {
    /// Of an array whose stripes lie on all its drives.
    const fn whole(data: u32, redundant: u32) -> Self {
        Self { drives: data.saturating_add(redundant), data, redundant }
    }
}

/// A shape that cannot be, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError(String);

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SpecError {}

fn fail<T>(sentence: String) -> Result<T, SpecError> {
    Err(SpecError(sentence))
}

impl Family {
    const ALL: [Self; 7] = [
        Self::Raid0,
        Self::Raid1,
        Self::Raid10,
        Self::Raid4,
        Self::Raid5,
        Self::Raid6,
        Self::Eraid,
    ];

    /// The family's name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raid0 => "raid0",
            Self::Raid1 => "raid1",
            Self::Raid10 => "raid10",
            Self::Raid4 => "raid4",
            Self::Raid5 => "raid5",
            Self::Raid6 => "raid6",
            Self::Eraid => "eraid",
        }
    }

    /// How many redundant drives it has, where the family decides that.
    const fn redundant(self) -> Option<u8> {
        match self {
            Self::Raid0 => Some(0),
            Self::Raid4 | Self::Raid5 | Self::Raid10 => Some(1),
            Self::Raid6 => Some(2),
            Self::Eraid | Self::Raid1 => None,
        }
    }

    /// The fewest drives of an array with this number of redundant ones.
    const fn drives_min(self, redundant: u32) -> u32 {
        match self {
            Self::Raid1 => 2,
            // Of two drives there is one pair: a mirror.
            Self::Raid10 => 3,
            Self::Eraid => redundant.saturating_add(1),
            Self::Raid0 | Self::Raid4 | Self::Raid5 | Self::Raid6 => redundant.saturating_add(2),
        }
    }

    /// Whether what is redundant is a copy of the data.
    const fn is_mirror(self) -> bool {
        match self {
            Self::Raid1 | Self::Raid10 => true,
            Self::Raid0 | Self::Raid4 | Self::Raid5 | Self::Raid6 | Self::Eraid => false,
        }
    }

    const fn parity(self) -> Parity {
        match self {
            Self::Raid0 | Self::Raid1 | Self::Raid10 | Self::Raid4 => Parity::Fixed,
            Self::Raid5 | Self::Raid6 | Self::Eraid => Parity::Rotating,
        }
    }
}

impl Spec {
    /// The shape with these drives, codewords of `expansion` sectors a drive, and chunks of `chunk`
    /// sectors; or the sentence that says what is wrong with it.
    pub fn new(
        family: Family,
        counts: DriveCounts,
        expansion: u32,
        chunk: Sectors,
        parity: Parity,
    ) -> Result<Self, SpecError> {
        check_drives(family, counts)?;
        let name = family.name();
        if family.is_mirror() && parity != family.parity() {
            return fail(format!("{name} has copies and no parity that could rotate"));
        }
        if expansion == 0 || (expansion != 1 && family != Family::Eraid) {
            return fail(format!(
                "{name} cannot have e={expansion}: only eraid has an expansion, of at least 1"
            ));
        }
        let DriveCounts { drives, data, redundant } = counts;
        let width = u64::from(data) + u64::from(redundant);
        let symbols = width * u64::from(expansion);
        if symbols > u64::from(CODEWORD_MAX) {
            return fail(format!(
                "a codeword has at most {CODEWORD_MAX} sectors, {name}:{data}+{redundant} with e={expansion} has {symbols}"
            ));
        }
        if chunk == Sectors::ZERO || chunk > CHUNK_MAX {
            let (chunk, most) = (chunk.bytes(), CHUNK_MAX.bytes());
            return fail(format!("a chunk is from 4KiB to {most}, got {chunk}"));
        }
        if !chunk.get().is_multiple_of(u64::from(expansion)) {
            let (count, size) = (chunk.get(), chunk.bytes());
            return fail(format!(
                "a chunk of {size} is {count} sectors, which e={expansion} sectors do not divide"
            ));
        }
        let stripe = chunk * width;
        if stripe > STRIPE_MAX {
            let (stripe, most) = (stripe.bytes(), STRIPE_MAX.bytes());
            return fail(format!("a stripe has at most {most}, {width} chunks have {stripe}"));
        }
        let (drives, data, redundant) = (drives as u8, data as u8, redundant as u8);
        let (journals, checksums) = (0, false);
        Ok(Self { family, drives, data, redundant, expansion, chunk, parity, journals, checksums })
    }

    /// The same shape with its journal on this number of drives that have nothing else; or the sentence that says what
    /// is wrong with it. Each of them has the whole journal.
    pub fn with_journals(self, journals: u32) -> Result<Self, SpecError> {
        let name = self.family.name();
        if journals > 0 && self.redundant == 0 {
            return fail(format!("{name} has no redundancy, and so no journal"));
        }
        let least = u32::from(self.redundant) + 1;
        if journals > 0 && journals < least {
            return fail(format!(
                "the journal needs at least {least} drives of its own, one more than {name} can lose whichever they are, got {journals}"
            ));
        }
        let (all, limit) = (u64::from(self.drives) + u64::from(journals), DriveIdx::MAX);
        if all > u64::from(limit) {
            return fail(format!(
                "an array has at most {limit} drives, those for the journal included, got {all}"
            ));
        }
        Ok(Self { journals: journals as u8, ..self })
    }

    /// The same shape with a checksum for every sector of its drives; or the sentence that says what is wrong with it.
    pub fn with_checksums(self) -> Result<Self, SpecError> {
        if self.redundant == 0 {
            let name = self.family.name();
            return fail(format!(
                "{name} has no redundancy, and so no journal, which checksums need"
            ));
        }
        Ok(Self { checksums: true, ..self })
    }

    /// The family.
    pub const fn family(&self) -> Family {
        self.family
    }

    /// Data chunks in a stripe.
    pub const fn data(&self) -> usize {
        self.data as usize
    }

    /// Redundant chunks in a stripe, and so the number of drives that may be lost, whichever they are. What
    /// [`Spec::survives`] may be more.
    pub const fn redundant(&self) -> usize {
        self.redundant as usize
    }

    /// Chunks in a stripe.
    pub const fn width(&self) -> usize {
        self.data() + self.redundant()
    }

    /// Drives with data and redundancy. A stripe lies on [`Spec::width`] of them, which is all, but for `raid10`.
    pub const fn drives(&self) -> usize {
        self.drives as usize
    }

    /// Drives with nothing but a ring of the journal: they come behind the others.
    pub const fn journals(&self) -> usize {
        self.journals as usize
    }

    /// Whether every sector of its drives has a checksum.
    pub const fn has_checksums(&self) -> bool {
        self.checksums
    }

    /// How its data is cut into groups with tag sectors, if it is.
    pub fn tag_groups(&self) -> Option<Groups> {
        self.checksums.then(|| Groups::of_chunk(self.chunk))
    }

    /// All its drives.
    pub const fn members(&self) -> usize {
        self.drives() + self.journals()
    }

    /// The drives with data and redundancy.
    pub fn data_drives(&self) -> DriveSet {
        DriveSet::first(self.drives)
    }

    /// The drives with nothing but a ring of the journal.
    pub fn journal_drives(&self) -> DriveSet {
        DriveSet::first(self.drives + self.journals).without(self.data_drives())
    }

    /// The drives that may have a ring of the journal.
    pub fn ring_drives(&self) -> DriveSet {
        if self.journals == 0 { self.data_drives() } else { self.journal_drives() }
    }

    /// Whether what is redundant is a copy of the data, and any copy will do.
    pub const fn is_mirror(&self) -> bool {
        self.family.is_mirror()
    }

    /// Whether all data can be had without these drives: that of the journal is on every drive that is for it.
    pub fn survives(&self, lost: DriveSet) -> bool {
        if self.journals > 0 {
            let without = Self { journals: 0, ..*self };
            let has_journal = !self.journal_drives().without(lost).is_empty();
            return has_journal && without.survives(lost.and(self.data_drives()));
        }
        let is_survived = |group: DriveSet| group.and(lost).len() as usize <= self.redundant();
        lost.len() as usize <= self.redundant() || self.groups().all(is_survived)
    }

    /// Whether one of these drives is left after every loss that the layout survives: what all of them have is had by every
    /// start. Drives that do not count are to be among them, as the lost ones.
    pub fn is_enough(&self, drives: DriveSet) -> bool {
        !self.survives(drives)
    }

    /// The drives that share a stripe with this one.
    pub fn fellows(&self, drive: DriveIdx) -> DriveSet {
        let shares = self.groups().filter(|group| group.contains(drive));
        shares.fold(DriveSet::EMPTY, DriveSet::or).without(DriveSet::EMPTY.with(drive))
    }

    /// The sets of drives that a stripe lies on.
    pub fn groups(&self) -> impl Iterator<Item = DriveSet> {
        let (drives, width) = (self.drives(), self.width());
        // Stripes follow each other without a gap, so the next one begins where this one ends: at every drive
        // in turn, unless the width divides the drives.
        let step = if drives.is_multiple_of(width) { width } else { 1 };
        let on = move |first: usize| {
            (first..first + width).map(|at| DriveIdx::from_usize(at % drives)).collect()
        };
        (0..drives).step_by(step).map(on)
    }

    /// Sectors that one codeword takes of every drive.
    pub const fn expansion(&self) -> usize {
        self.expansion as usize
    }

    /// Sectors in a chunk.
    pub const fn chunk(&self) -> Sectors {
        self.chunk
    }

    /// Where redundancy lies.
    pub const fn parity(&self) -> Parity {
        self.parity
    }

    /// The array that `text` names, which may leave the number of drives to `drives`: `raid6,chunk=64KiB`.
    ///
    /// # Errors
    ///
    /// As from text alone.
    pub fn of_drives(text: &str, drives: usize) -> Result<Self, SpecError> {
        if text.contains(':') {
            return text.parse();
        }
        let (family, options) = text.split_at(text.find(',').unwrap_or(text.len()));
        format!("{family}:{drives}{options}").parse()
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (family, data, redundant) = (self.family.name(), self.data, self.redundant);
        match self.is_mirror() {
            true => write!(f, "{family}:{}", self.drives)?,
            false => write!(f, "{family}:{data}+{redundant}")?,
        }
        if self.family == Family::Eraid {
            write!(f, ",e={}", self.expansion)?;
        }
        write!(f, ",chunk={}", self.chunk.bytes())?;
        if self.parity != self.family.parity() {
            let parity = if self.parity == Parity::Fixed { "fixed" } else { "rotating" };
            write!(f, ",parity={parity}")?;
        }
        if self.journals > 0 {
            write!(f, ",journals={}", self.journals)?;
        }
        if self.checksums {
            f.write_str(",checksums")?;
        }
        Ok(())
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let Some(family) = Family::ALL.into_iter().find(|family| family.name() == name) else {
            // Never a type with another number: raid0 is not what raid7 means.
            let digits = |name: &str| name.chars().filter(char::is_ascii_digit).collect::<String>();
            let names = Family::ALL.map(Family::name).into_iter();
            let alike = names.filter(|known| digits(known) == digits(name));
            return fail(format!(
                "'{name}' is not an array type: expected one of raid0, raid1, raid10, raid4, raid5, raid6 or \
                 eraid, as in eraid:5+1,e=2,chunk=8KiB{}",
                meant(name, alike)
            ));
        };
        let mut parts = rest.split(',');
        let drives = drive_counts(family, parts.next().unwrap_or_default())?;
        let (mut expansion, mut chunk, mut parity) = (None, None, family.parity());
        let (mut journals, mut checksums) = (0, false);
        for part in parts {
            if part == "checksums" {
                checksums = true;
                continue;
            }
            match part.split_once('=') {
                Some(("e", value)) => expansion = Some(number(part, value)?),
                Some(("chunk", value)) => chunk = Some(chunk_size(value)?),
                Some(("journals", value)) => journals = number(part, value)?,
                Some(("parity", _)) if family.is_mirror() => {
                    return fail(format!("'{part}' in '{text}': {name} has copies and no parity"));
                }
                Some(("parity", "fixed")) => parity = Parity::Fixed,
                Some(("parity", "rotating")) => parity = Parity::Rotating,
                Some(_) | None => {
                    return fail(format!(
                        "'{part}' in '{text}': expected e=NUMBER, chunk=SIZE, parity=fixed|rotating, journals=NUMBER or checksums"
                    ));
                }
            }
        }
        // A codeword of two sectors a drive is the paper's own choice; a chunk of 64 KiB is what
        // most arrays on disks use.
        let expansion = expansion.unwrap_or(if family == Family::Eraid { 2 } else { 1 });
        let chunk = chunk.unwrap_or(Sectors::new(16));
        let spec = Self::new(family, drives, expansion, chunk, parity)?.with_journals(journals)?;
        if checksums { spec.with_checksums() } else { Ok(spec) }
    }
}

/// Whether an array of this family can have these drives.
fn check_drives(family: Family, counts: DriveCounts) -> Result<(), SpecError> {
    let DriveCounts { drives, data, redundant } = counts;
    let (name, width) = (family.name(), u64::from(data) + u64::from(redundant));
    if let Some(fixed) = family.redundant()
        && redundant != u32::from(fixed)
    {
        let drives = if fixed == 1 { "drive" } else { "drives" };
        return fail(format!("{name} has {fixed} redundant {drives}, got {redundant}"));
    }
    if family.is_mirror() && data != 1 {
        return fail(format!("a stripe of {name} has one data chunk, got {data}"));
    }
    let least = family.drives_min(redundant);
    if drives < least {
        return fail(format!("{name} needs at least {least} drives, got {drives}"));
    }
    if drives > u32::from(DriveIdx::MAX) {
        let limit = DriveIdx::MAX;
        let what = match family.is_mirror() {
            true => format!("{name}:{drives}"),
            false => format!("{name}:{data}+{redundant}"),
        };
        return fail(format!("an array has at most {limit} drives, {what} has {drives}"));
    }
    if family != Family::Raid10 && u64::from(drives) != width {
        return fail(format!("a stripe of {name} lies on all drives, got {width} of {drives}"));
    }
    Ok(())
}

/// `5+1`, or just `6` for families that know how many of their drives are redundant.
fn drive_counts(family: Family, text: &str) -> Result<DriveCounts, SpecError> {
    let name = family.name();
    if family.is_mirror() {
        let Ok(drives) = text.parse::<u32>() else {
            return fail(format!(
                "'{text}' is not a number of drives: expected one, as in {name}:4"
            ));
        };
        let redundant = family.redundant().map_or(drives.saturating_sub(1), u32::from);
        return Ok(DriveCounts { drives, data: 1, redundant });
    }
    if let Some((data, redundant)) = text.split_once('+') {
        let (data, redundant) = (number(text, data)?, number(text, redundant)?);
        return Ok(DriveCounts::whole(data, redundant));
    }
    match family.redundant() {
        Some(redundant) => {
            let drives = number(text, text)?;
            let redundant = u32::from(redundant);
            match drives.checked_sub(redundant) {
                Some(data) => Ok(DriveCounts::whole(data, redundant)),
                None => fail(format!(
                    "{name} needs at least {} drives, got {drives}",
                    family.drives_min(redundant)
                )),
            }
        }
        None => fail(format!(
            "'{text}' is not an array shape: expected DATA+REDUNDANT drives, as in eraid:5+1"
        )),
    }
}

fn number(part: &str, text: &str) -> Result<u32, SpecError> {
    text.parse().or_else(|_| {
        fail(format!("expected a number of drives or sectors, got '{text}' in '{part}'"))
    })
}

fn chunk_size(text: &str) -> Result<Sectors, SpecError> {
    let size: Bytes = text.parse().map_err(|error| SpecError(format!("chunk={text}: {error}")))?;
    match size.sectors_exact() {
        Some(sectors) => Ok(sectors),
        None => fail(format!("a chunk is a whole number of 4KiB sectors, got {size}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_reads_back() {
        for text in [
            "eraid:5+1,e=2,chunk=8KiB",
            "raid0:4+0,chunk=64KiB",
            "raid4:3+1,chunk=4KiB",
            "raid5:5+1,chunk=512KiB",
            "raid6:6+2,chunk=4KiB,parity=fixed",
            "eraid:10+4,e=3,chunk=12KiB,parity=fixed",
            "raid6:6+2,chunk=4KiB,parity=fixed,journals=3",
        ] {
            let spec: Spec = text.parse().unwrap();
            assert_eq!(spec.to_string(), text);
        }
        for text in [
            "raid1:2,chunk=64KiB",
            "raid1:5,chunk=4KiB",
            "raid10:4,chunk=64KiB",
            "raid10:3,chunk=8KiB",
        ] {
            let spec: Spec = text.parse().unwrap();
            assert_eq!(spec.to_string(), text);
        }
        let short: Spec = "raid6:8".parse().unwrap();
        assert_eq!(short.to_string(), "raid6:6+2,chunk=64KiB");
    }

    #[test]
    fn impossible_shapes_are_refused_with_the_limit() {
        for (text, sentence) in [
            ("raid7:4", "as in eraid:5+1,e=2,chunk=8KiB"),
            ("riad5:4", "; did you mean 'raid5'?"),
            ("raid6:3", "raid6 needs at least 4 drives, got 3"),
            ("raid6:1", "raid6 needs at least 4 drives, got 1"),
            ("raid5:3+2", "raid5 has 1 redundant drive, got 2"),
            ("raid5:5+1,e=2", "raid5 cannot have e=2"),
            ("eraid:5+1,e=0", "eraid cannot have e=0"),
            (
                "eraid:5+1,e=2,chunk=12KiB",
                "a chunk of 12KiB is 3 sectors, which e=2 sectors do not divide",
            ),
            ("eraid:5+1,chunk=6KiB", "a chunk is a whole number of 4KiB sectors, got 6KiB"),
            ("eraid:60+8", "an array has at most 64 drives"),
            ("eraid:40+20,e=5,chunk=20KiB", "a codeword has at most 256 sectors"),
            ("eraid:6", "expected DATA+REDUNDANT drives"),
            ("eraid:5+1,size=3", "'size=3' in 'eraid:5+1,size=3'"),
            ("eraid:5+1,chunk=0KiB", "a chunk is from 4KiB to 64MiB, got 0B"),
            ("eraid:5+x", "expected a number of drives or sectors, got 'x' in '5+x'"),
            ("raid1:1", "raid1 needs at least 2 drives, got 1"),
            ("raid1:0", "raid1 needs at least 2 drives, got 0"),
            ("raid1:1+1", "'1+1' is not a number of drives: expected one, as in raid1:4"),
            ("raid1:65", "an array has at most 64 drives, raid1:65 has 65"),
            ("raid1:4294967295", "an array has at most 64 drives, raid1:4294967295"),
            ("raid1:2,e=2", "raid1 cannot have e=2"),
            ("raid1:2,parity=fixed", "'parity=fixed' in 'raid1:2,parity=fixed': raid1 has copies"),
            ("raid1:64,chunk=8MiB", "a stripe has at most 256MiB, 64 chunks have 512MiB"),
            ("raid10:2", "raid10 needs at least 3 drives, got 2"),
            ("raid10:", "'' is not a number of drives"),
            ("raid10:70", "an array has at most 64 drives"),
            ("raid5:1+1", "raid5 needs at least 3 drives, got 2"),
            ("raid0:4,journals=2", "raid0 has no redundancy, and so no journal"),
            ("raid6:6,journals=2", "the journal needs at least 3 drives of its own"),
            ("raid5:60,journals=5", "at most 64 drives, those for the journal included, got 65"),
            (
                "raid5:5,journals=-1",
                "expected a number of drives or sectors, got '-1' in 'journals=-1'",
            ),
        ] {
            let error = text.parse::<Spec>().unwrap_err().to_string();
            assert!(error.contains(sentence), "{text}: {error}");
        }
    }

    #[test]
    fn number_of_drives_may_be_left_to_those_that_are_named() {
        for (text, drives, whole) in [
            ("raid6", 6, "raid6:4+2"),
            ("raid1", 2, "raid1:2"),
            ("raid5,chunk=8KiB", 3, "raid5:2+1,chunk=8KiB"),
            ("raid6:6+2", 3, "raid6:6+2"),
        ] {
            assert_eq!(Spec::of_drives(text, drives), whole.parse(), "{text}");
        }
        for (text, sentence) in [
            ("raid6", "raid6 needs at least 4 drives, got 3"),
            ("eraid", "expected DATA+REDUNDANT drives"),
            ("raid7", "'raid7' is not an array"),
        ] {
            let error = Spec::of_drives(text, 3).unwrap_err().to_string();
            assert!(error.contains(sentence), "{text}: {error}");
        }
    }

    /// Every set of the drives of an array with this number of them.
    fn sets(drives: usize) -> impl Iterator<Item = DriveSet> {
        (0..1_u64 << drives).map(DriveSet::from_bits)
    }

    fn set(drives: &[u8]) -> DriveSet {
        drives.iter().copied().map(DriveIdx::new).collect()
    }

    #[test]
    fn layouts_whose_stripes_lie_on_all_drives_survive_a_number_of_losses() {
        for text in ["raid0:3", "raid1:2", "raid1:4", "raid5:5", "raid6:6", "eraid:2+3"] {
            let spec: Spec = text.parse().unwrap();
            for lost in sets(spec.drives()) {
                let survives = lost.len() as usize <= spec.redundant();
                assert_eq!(spec.survives(lost), survives, "{text}: {lost}");
            }
            let fellows = spec.fellows(DriveIdx::new(1));
            assert_eq!(fellows.with(DriveIdx::new(1)), DriveSet::first(spec.drives() as u8));
        }
    }

    #[test]
    fn one_drive_with_the_journal_must_be_left() {
        let spec: Spec = "raid6:4+2,journals=3".parse().unwrap();
        assert_eq!((spec.drives(), spec.journals(), spec.members()), (6, 3, 9));
        assert_eq!(spec.journal_drives(), set(&[6, 7, 8]));
        assert_eq!(spec.ring_drives(), spec.journal_drives());
        assert!(spec.survives(set(&[0, 5, 6, 8])) && !spec.survives(set(&[0, 1, 2])));
        assert!(!spec.survives(set(&[6, 7, 8])), "no journal is left");
        assert_eq!(spec.with_journals(0), "raid6:4+2".parse());
        assert!(spec.groups().all(|group| group == spec.data_drives()));
    }

    #[test]
    fn pairs_survive_the_loss_of_one_drive_each() {
        let pairs: Spec = "raid10:6".parse().unwrap();
        assert!(pairs.survives(set(&[0, 3, 4])) && pairs.survives(set(&[1, 2])));
        assert!(!pairs.survives(set(&[0, 1])) && !pairs.survives(set(&[1, 4, 5])));
        assert_eq!(pairs.fellows(DriveIdx::new(3)), set(&[2]));
        assert_eq!(pairs.groups().collect::<Vec<_>>(), [set(&[0, 1]), set(&[2, 3]), set(&[4, 5])]);
        let survived = sets(6).filter(|&lost| pairs.survives(lost)).count();
        assert_eq!(survived, 27, "each of three pairs has both, the first or the second");
    }

    #[test]
    fn of_an_odd_number_of_drives_neighbours_in_the_ring_share_stripes() {
        let ring: Spec = "raid10:5".parse().unwrap();
        assert!(ring.survives(set(&[0, 2])) && ring.survives(set(&[1, 4])));
        assert!(!ring.survives(set(&[0, 4])) && !ring.survives(set(&[2, 3])));
        assert_eq!(ring.fellows(DriveIdx::new(0)), set(&[1, 4]));
        let three: Spec = "raid10:3".parse().unwrap();
        assert!(sets(3).all(|lost| three.survives(lost) == (lost.len() <= 1)));
    }
}
