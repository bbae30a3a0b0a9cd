//! The state of a watch as bytes.
//!
//! ```text
//!   "LHWATCH" version   cohorts: name, members: key, slow seconds; windows: at, (latency, load)..   CRC-32C
//! ```
//!
//! Numbers are little-endian; a reading that is missing has a latency of 0. Bytes of another version, cut off or changed give an
//! error and never a part of a state.

use super::history::{History, WINDOWS_MAX, Window};
use crate::detect::WINDOW;

const MAGIC: &[u8; 8] = b"LHWATCH\x01";

/// Windows begin from 0 to this unix second: whatever is reckoned from them is a number.
const TIME_MAX: i64 = 1 << 36;

/// Cohorts that are kept at most.
pub const COHORTS_MAX: usize = 4096;
/// Members of one that are kept at most.
pub const MEMBERS_MAX: usize = 4096;

/// What a watch keeps over a restart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Saved {
    pub(super) cohorts: Vec<SavedCohort>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct SavedCohort {
    pub(super) name: String,
    pub(super) members: Vec<SavedMember>,
    pub(super) history: History,
}

impl SavedCohort {
    /// The beginning of its last window.
    pub(super) fn last_window(&self) -> Option<i64> {
        self.history.windows().next_back().map(|it| it.at)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct SavedMember {
    pub(super) key: String,
    pub(super) slow_seconds: u64,
}

impl Saved {
    /// When its last window ended, in unix seconds.
    pub fn last_window_end(&self) -> Option<i64> {
        self.cohorts.iter().filter_map(SavedCohort::last_window).max().map(|at| at + WINDOW)
    }

    /// The most windows that one of its cohorts has.
    pub fn windows_max(&self) -> usize {
        self.cohorts.iter().map(|it| it.history.windows().count()).max().unwrap_or(0)
    }

    /// As bytes; their number is bounded by what a host has and [`WINDOWS_MAX`].
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let count = |out: &mut Vec<u8>, count: usize| out.extend((count as u32).to_le_bytes());
        let text = |out: &mut Vec<u8>, text: &str| {
            let end = (0..=text.len().min(usize::from(u16::MAX)))
                .rev()
                .find(|&end| text.is_char_boundary(end));
            let text = &text[..end.unwrap_or(0)];
            out.extend((text.len() as u16).to_le_bytes());
            out.extend(text.as_bytes());
        };
        count(&mut out, self.cohorts.len());
        for cohort in &self.cohorts {
            text(&mut out, &cohort.name);
            count(&mut out, cohort.members.len());
            for member in &cohort.members {
                text(&mut out, &member.key);
                out.extend(member.slow_seconds.to_le_bytes());
            }
            count(&mut out, cohort.history.windows().count());
            for window in cohort.history.windows() {
                out.extend(window.at.to_le_bytes());
                for reading in &window.readings {
                    let (latency, load) = reading.unwrap_or((0.0, 0.0));
                    out.extend(latency.to_le_bytes());
                    out.extend(load.to_le_bytes());
                }
            }
        }
        out.extend(crc32c::crc32c(&out).to_le_bytes());
        out
    }

    /// What [`Self::encode`] wrote.
    ///
    /// # Errors
    ///
    /// One sentence: the bytes are of something else or another version, were cut off or changed.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let changed = || "the state was cut off or changed".to_owned();
        if !bytes.starts_with(MAGIC) {
            return Err(
                "this is not the state of a watch, or it is one of another version".to_owned()
            );
        }
        let (body, sum) = bytes.split_last_chunk::<4>().ok_or_else(changed)?;
        if body.len() < MAGIC.len() || crc32c::crc32c(body) != u32::from_le_bytes(*sum) {
            return Err(changed());
        }
        let mut reader = Reader(&body[MAGIC.len()..]);
        let saved = reader.saved().filter(|_| reader.0.is_empty());
        saved.ok_or_else(changed)
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn count(&mut self, max: usize) -> Option<usize> {
        let count = u32::from_le_bytes(self.take()?) as usize;
        (count <= max).then_some(count)
    }

    fn text(&mut self) -> Option<String> {
        let len = usize::from(u16::from_le_bytes(self.take()?));
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn saved(&mut self) -> Option<Saved> {
        let mut cohorts = Vec::new();
        for _ in 0..self.count(COHORTS_MAX)? {
            cohorts.push(self.cohort()?);
        }
        Some(Saved { cohorts })
    }

    fn cohort(&mut self) -> Option<SavedCohort> {
        let name = self.text()?;
        let mut members = Vec::new();
        for _ in 0..self.count(MEMBERS_MAX)? {
            let key = self.text()?;
            members.push(SavedMember { key, slow_seconds: u64::from_le_bytes(self.take()?) });
        }
        let mut history = History::default();
        let mut last = i64::MIN;
        for _ in 0..self.count(WINDOWS_MAX)? {
            let at = i64::from_le_bytes(self.take()?);
            if at <= last || !(0..=TIME_MAX).contains(&at) {
                return None;
            }
            last = at;
            let mut readings = Vec::new();
            for _ in &members {
                readings.push(self.reading()?);
            }
            history.push(Window { at, readings });
        }
        Some(SavedCohort { name, members, history })
    }

    /// `Some(None)` where the member had none.
    fn reading(&mut self) -> Option<Option<(f32, f32)>> {
        let latency = f32::from_le_bytes(self.take()?);
        let load = f32::from_le_bytes(self.take()?);
        let is_fine = latency.is_finite() && load.is_finite() && latency >= 0.0 && load >= 0.0;
        is_fine.then(|| (latency > 0.0).then_some((latency, load)))
    }
}
