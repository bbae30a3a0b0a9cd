//! A summary as bytes, and back: one form for each summary, checked before it is believed.
//!
//! ```text
//!   "LHHS" version scope ios_min | 13 counts | histograms: pairs of (skipped, count), end | lengths: the same | models | groups
//! ```
//!
//! Whole numbers are LEB128 without needless bytes, signed ones as zigzag. Every byte: `docs/formats/hours-summary.md`.

use std::fmt;

use super::drive::{Drive, Group, GroupHour};
use super::histogram::{BUCKETS, Histogram};
use super::rules::{Rules, Scope};
use super::summary::{Model, Summary};

const MAGIC: [u8; 4] = *b"LHHS";
const VERSION: u8 = 1;
/// Most groups, and most drives of one, that are believed.
const MEMBERS_MAX: u64 = 1 << 24;
/// Most models, and most bytes of the name of one, that are believed.
const MODELS_MAX: u64 = 1 << 16;
const MODEL_NAME_MAX: u64 = 1 << 10;

/// Why bytes are no summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodecError {
    /// They begin otherwise.
    Foreign,
    /// They are of another version.
    Version(u8),
    /// They end too early, go on too long, or contradict themselves at this byte.
    Broken {
        /// How many bytes were right.
        at: usize,
    },
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => write!(f, "this is not a fleet summary"),
            Self::Version(version) => {
                write!(f, "the summary is of version {version}, known is {VERSION}")
            }
            Self::Broken { at } => write!(f, "the summary is broken after {at} bytes"),
        }
    }
}

impl std::error::Error for CodecError {}

impl Summary {
    /// The summary as bytes: equal summaries have equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer(MAGIC.to_vec());
        out.0.extend([VERSION, matches!(self.rules.scope, Scope::Everything).into()]);
        out.signed(self.rules.ios_min);
        let mut counts = self.counts;
        counts.fields_mut().into_iter().for_each(|count| out.whole(*count));
        for histogram in self.histograms() {
            out.histogram(histogram);
        }
        out.sparse(self.runs.counts());
        out.whole(self.models.len() as u64);
        for model in &self.models {
            out.whole(model.name.len() as u64);
            out.0.extend(model.name.as_bytes());
            out.histogram(&model.slowdowns);
        }
        out.whole(self.groups.len() as u64);
        for group in &self.groups {
            out.group(group);
        }
        out.0
    }

    /// The summary of these bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CodecError> {
        let rest = bytes.strip_prefix(&MAGIC).ok_or(CodecError::Foreign)?;
        let (&version, rest) = rest.split_first().ok_or(CodecError::Foreign)?;
        if version != VERSION {
            return Err(CodecError::Version(version));
        }
        let mut input = Reader { rest };
        input.summary().ok_or(CodecError::Broken { at: bytes.len() - input.rest.len() })
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn whole(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn signed(&mut self, value: i32) {
        let value = i64::from(value);
        self.whole(((value << 1) ^ (value >> 63)) as u64);
    }

    /// Counts that are not 0, each after how many zeroes were skipped, plus 1; then 0.
    fn sparse<'a>(&mut self, counts: impl Iterator<Item = &'a u64>) {
        let mut skipped = 1;
        for &count in counts {
            if count == 0 {
                skipped += 1;
            } else {
                self.whole(skipped);
                self.whole(count);
                skipped = 1;
            }
        }
        self.whole(0);
    }

    /// As [`Self::sparse`].
    fn histogram(&mut self, histogram: &Histogram) {
        let mut next = 0;
        for bucket in histogram.filled() {
            self.whole((bucket.number - next + 1) as u64);
            self.whole(bucket.count);
            next = bucket.number + 1;
        }
        self.whole(0);
    }

    fn group_hour(&mut self, hour: GroupHour) {
        self.signed(hour.hour);
        self.whole(hour.ios);
        self.whole(hour.is_tail.into());
    }

    fn group(&mut self, group: &Group) {
        self.signed(group.id);
        self.group_hour(group.first);
        self.group_hour(group.last);
        self.whole(group.drives.len() as u64);
        for drive in &group.drives {
            for value in
                [drive.id, drive.first_hour, drive.last_hour, drive.first_slow, drive.last_slow]
            {
                self.signed(value);
            }
            for value in
                [drive.head, drive.tail, drive.hours, drive.slow, drive.slowdown_max.to_bits()]
            {
                self.whole(value.into());
            }
        }
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    fn whole(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits || (byte == 0 && shift > 0) {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn short(&mut self) -> Option<u32> {
        self.whole()?.try_into().ok()
    }

    fn signed(&mut self) -> Option<i32> {
        let value = self.whole()?;
        (((value >> 1) as i64) ^ -((value & 1) as i64)).try_into().ok()
    }

    fn sparse<'a>(&mut self, counts: impl Iterator<Item = &'a mut u64>) -> Option<()> {
        let mut counts = counts;
        loop {
            let skipped = self.whole()?;
            if skipped == 0 {
                return Some(());
            }
            let count = counts.nth(usize::try_from(skipped - 1).ok()?)?;
            *count = self.whole().filter(|&count| count > 0)?;
        }
    }

    fn histogram(&mut self, histogram: &mut Histogram) -> Option<()> {
        let mut next = 0;
        loop {
            let skipped = usize::try_from(self.whole()?).ok()?;
            if skipped == 0 {
                return Some(());
            }
            let number = usize::checked_add(next, skipped - 1).filter(|&at| at < BUCKETS)?;
            histogram.add(number, self.whole().filter(|&count| count > 0)?);
            next = number + 1;
        }
    }

    fn model(&mut self) -> Option<Model> {
        let len = self.whole().filter(|&len| len <= MODEL_NAME_MAX)? as usize;
        let (name, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        let mut model =
            Model { name: std::str::from_utf8(name).ok()?.to_owned(), slowdowns: Histogram::new() };
        self.histogram(&mut model.slowdowns)?;
        (model.slowdowns.total() > 0).then_some(model)
    }

    fn summary(&mut self) -> Option<Summary> {
        let scope = match self.byte()? {
            0 => Scope::Slowdown,
            1 => Scope::Everything,
            _ => return None,
        };
        let mut summary = Summary::new(Rules { scope, ios_min: self.signed()? });
        for count in summary.counts.fields_mut() {
            *count = self.whole()?;
        }
        for histogram in summary.histograms_mut() {
            self.histogram(histogram)?;
        }
        self.sparse(summary.runs.counts_mut())?;
        for _ in 0..self.whole().filter(|&models| models <= MODELS_MAX)? {
            let model = self.model()?;
            if summary.models.last().is_some_and(|before| before.name >= model.name) {
                return None;
            }
            summary.models.push(model);
        }
        let groups = self.whole().filter(|&groups| groups <= MEMBERS_MAX)?;
        for _ in 0..groups {
            let group = self.group()?;
            if summary.groups.last().is_some_and(|before| before.id >= group.id) {
                return None;
            }
            summary.groups.push(group);
        }
        (self.rest.is_empty() && summary.agrees()).then_some(summary)
    }

    fn group_hour(&mut self) -> Option<GroupHour> {
        let (hour, ios) = (self.signed()?, self.whole()?);
        let is_tail = match self.whole()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        Some(GroupHour { hour, ios, is_tail })
    }

    fn group(&mut self) -> Option<Group> {
        let id = self.signed()?;
        let (first, last) = (self.group_hour()?, self.group_hour()?);
        let drives = self.whole().filter(|&drives| drives <= MEMBERS_MAX)?;
        let mut group = Group { id, first, last, drives: Vec::new() };
        for _ in 0..drives {
            let drive = self.drive()?;
            let is_inside = first.hour <= drive.first_hour && drive.last_hour <= last.hour;
            if !is_inside || group.drives.last().is_some_and(|before| before.id >= drive.id) {
                return None;
            }
            group.drives.push(drive);
        }
        (first.hour <= last.hour).then_some(group)
    }

    fn drive(&mut self) -> Option<Drive> {
        let drive = Drive {
            id: self.signed()?,
            first_hour: self.signed()?,
            last_hour: self.signed()?,
            first_slow: self.signed()?,
            last_slow: self.signed()?,
            head: self.short()?,
            tail: self.short()?,
            hours: self.short()?,
            slow: self.short()?,
            slowdown_max: f32::from_bits(self.short()?),
        };
        let span = i64::from(drive.last_hour) - i64::from(drive.first_hour) + 1;
        let slow_is_inside = if drive.slow == 0 {
            (drive.first_slow, drive.last_slow, drive.head, drive.tail) == (0, 0, 0, 0)
        } else {
            drive.first_hour <= drive.first_slow
                && drive.first_slow <= drive.last_slow
                && drive.last_slow <= drive.last_hour
        };
        let is_whole = span >= 1
            && slow_is_inside
            && (1..=span).contains(&i64::from(drive.hours))
            && drive.slow <= drive.hours
            && drive.head.max(drive.tail) <= drive.slow
            && drive.slowdown_max >= 0.0;
        is_whole.then_some(drive)
    }
}
