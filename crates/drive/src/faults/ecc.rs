//! Sectors that fail, and are mended by retries, as the drive's own code makes them: by a table ([`RetryTable`]).
//!
//! ```text
//!   class of a sector    hash of the sector and of how often it was written     the offset it was written with
//!   pass i over it       hash of the request's origin, the sector and i         one number for all levels of zeroes
//!   step j fails         number of its pass < table(class, zeroes, j)           a read goes on until a step does not
//! ```
//!
//! A read retries until its worst sector is mended, so that what it costs is the revolutions of the steps up to that one. A sector that no
//! step mends is damaged for this read; another request may find it readable.
//!
//! # Invariants
//!
//! - EC1. A sector's class and numbers are the same whatever command asks, however a request is cut.
//! - EC2. A sector with more zeroes fails no step at which it would not fail with fewer.
//! - EC3. A sector keeps its class until it is written again.
//!
//! # What is left out
//!
//! A write that was lost with the drive's memory counts as one: the sector has another class afterwards, as if the old bytes had been
//! written anew. Writes count only while the drive has a table with classes: those before it was given one, or while it had another fault
//! instead, leave classes as they are. What is kept of them are runs of sectors that were written as often: as many, at most, as
//! there are sectors that were written at random.

use std::sync::LazyLock;

use levelhead_block::ZeroTail;
use levelhead_ldpc::{RetryModel, RetryTable, ZeroForcing};
use levelhead_stats::{hash_of, unit_of};
use levelhead_units::{Extent, Lba};

use super::parts::{ParseFaultsError, Parsed};
use super::text::Form;
use super::{Coin, Faults, FaultsError, Key};
use crate::runs::Runs;
use crate::tails::Tails;

/// The table by which a drive's sectors fail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ecc(&'static RetryTable);

static SHIPPED: LazyLock<Vec<RetryTable>> = LazyLock::new(|| {
    let table = |(name, model): (&'static str, RetryModel)| {
        model.table(name).expect("the models that come with the program are possible")
    };
    RetryModel::shipped().into_iter().map(table).collect()
});

/// The kinds that a table takes the place of.
const REPLACED: [&str; 6] =
    ["retry-rate", "adjacency", "zero-tails", "bursts", "rotations", "hard-rate"];

impl Ecc {
    /// By this table.
    pub const fn of(table: &'static RetryTable) -> Self {
        Self(table)
    }

    /// By the table that comes with the program under this name.
    pub fn shipped(name: &str) -> Option<Self> {
        SHIPPED.iter().find(|table| table.name() == name).map(Self)
    }

    /// The names of the tables that come with the program, for messages.
    pub fn names() -> String {
        RetryModel::shipped().map(|(name, _)| name).join(", ")
    }

    /// The table.
    pub const fn table(self) -> &'static RetryTable {
        self.0
    }

    /// The probability that the first pass over a sector with this tail fails: with it, the steps after it that cost no
    /// revolution.
    pub fn first_pass_rate(self, tail: ZeroTail) -> f64 {
        self.0.all_fail(level(tail), self.0.first_pass_end())
    }
}

/// What a drive makes of the zeroes it knows of.
fn level(tail: ZeroTail) -> ZeroForcing {
    match tail {
        ZeroTail::None => ZeroForcing::None,
        ZeroTail::B256 => ZeroForcing::B256,
        ZeroTail::B512 => ZeroForcing::B512,
    }
}

pub(super) fn check(faults: &Faults) -> Result<(), FaultsError> {
    let is_stated = |key: &&str| {
        let kind = Faults::kind(key).expect("a kind");
        (kind.get)(faults).is_some()
    };
    check_stated(faults, REPLACED.into_iter().filter(is_stated))
}

/// The same where these kinds were stated, be it as they are in a drive in good order.
pub(super) fn check_stated<'a>(
    faults: &Faults,
    mut stated: impl Iterator<Item = &'a str>,
) -> Result<(), FaultsError> {
    let Some(ecc) = faults.ecc else { return Ok(()) };
    match stated.find_map(|key| REPLACED.into_iter().find(|replaced| *replaced == key)) {
        Some(key) => Err(FaultsError::Ecc { table: ecc.0.name(), key }),
        None => Ok(()),
    }
}

/// A shipped table's name. Files are read by those who see files.
impl Form for Ecc {
    fn read(text: &str) -> Parsed<Self> {
        let names = Self::names();
        let unknown = || format!("'{text}' is not a retry table: expected one of {names}");
        Self::shipped(text).ok_or_else(|| ParseFaultsError::new(unknown()))
    }

    fn show(&self) -> String {
        self.0.name().to_owned()
    }
}

impl Faults {
    /// Faults as texts have them, with retry tables by names of the caller's, files perhaps, besides those that come with the
    /// program.
    pub fn parse_with(
        text: &str,
        table: &dyn Fn(&str) -> Result<Ecc, String>,
    ) -> Result<Self, ParseFaultsError> {
        Self::parse_by(text, &|faults, key, value| {
            if key != "ecc" {
                return faults.set(key, value);
            }
            faults.ecc = Some(table(value).map_err(ParseFaultsError::new)?);
            Ok(())
        })
    }
}

/// How often sectors have been written, where that matters.
#[derive(Clone, Debug, Default)]
pub(super) struct Written(Runs<u32>);

impl Written {
    /// These sectors are written again.
    pub(super) fn write(&mut self, extent: Extent) {
        let range = extent.lba.get()..extent.end().get();
        for (range, times) in self.0.pieces(range) {
            self.0.set(range, Some(times.unwrap_or(0).wrapping_add(1)));
        }
    }

    fn times(&self, lba: Lba) -> u32 {
        self.0.get(lba.get()).unwrap_or(0)
    }
}

/// The failures of one drive by its table.
#[derive(Clone, Copy, Debug)]
pub(super) struct CodeFailures {
    key: Key,
    table: &'static RetryTable,
    /// The last step that costs no revolution.
    first: usize,
}

impl CodeFailures {
    pub(super) fn new(ecc: Ecc, key: Key) -> Self {
        Self { key, table: ecc.0, first: ecc.0.first_pass_end() }
    }

    /// Whether a sector can be of more than one class.
    pub(super) fn has_classes(&self) -> bool {
        self.table.class_count() > 1
    }

    /// The sectors of `extent` that the first pass leaves unread on behalf of `origin`, in their order.
    pub(super) fn failures(
        &self,
        written: &Written,
        tails: &Tails,
        extent: Extent,
        origin: u64,
    ) -> impl Iterator<Item = Lba> {
        // Where all sectors are alike, nearly all are read whatever their zeroes.
        let most = self.table.first_fails_max(ZeroForcing::None);
        let can_fail = extent.iter().filter(move |&lba| self.pass(lba, origin, 0) < most);
        can_fail.filter(move |&lba| {
            let class = self.class(written, lba);
            self.fails(class, lba, level(tails.of(lba)), origin, self.first)
        })
    }

    /// The revolutions after which a sector is read whose first pass failed; nothing if no step mends it.
    pub(super) fn mended_after(
        &self,
        written: &Written,
        lba: Lba,
        tail: ZeroTail,
        origin: u64,
    ) -> Option<u32> {
        let class = self.class(written, lba);
        let mut revolutions = 0;
        for step in self.first + 1..self.table.step_count() {
            revolutions += self.table.revolutions(step);
            if !self.fails(class, lba, level(tail), origin, step) {
                return Some(revolutions);
            }
        }
        None
    }

    /// Whether all steps fit into so many revolutions.
    pub(super) fn ends_within(&self, budget: u64) -> bool {
        let all = (0..self.table.step_count()).map(|step| u64::from(self.table.revolutions(step)));
        all.sum::<u64>() <= budget
    }

    /// The most revolutions, up to `budget`, after which a step is over.
    pub(super) fn spent(&self, budget: u64) -> u32 {
        let ends = (0..self.table.step_count()).scan(0, |end, step| {
            *end += self.table.revolutions(step);
            Some(*end)
        });
        ends.take_while(|&end| u64::from(end) <= budget).last().unwrap_or(0)
    }

    fn class(&self, written: &Written, lba: Lba) -> usize {
        if !self.has_classes() {
            return 0;
        }
        let times = written.times(lba);
        self.table.class(self.key.coin(Coin::Class, times.into(), lba.get()))
    }

    fn fails(&self, class: usize, lba: Lba, level: ZeroForcing, origin: u64, step: usize) -> bool {
        self.pass(lba, origin, self.table.pass(step)) < self.table.fails(class, level, step)
    }

    /// The number of a pass over a sector.
    fn pass(&self, lba: Lba, origin: u64, pass: usize) -> f64 {
        unit_of(hash_of(self.key.0, &[Coin::Pass as u64, origin, lba.get(), pass as u64]))
    }
}

#[cfg(test)]
mod tests {
    use levelhead_block::Silent;
    use levelhead_units::Sectors;

    use super::*;

    fn failures(name: &str) -> CodeFailures {
        CodeFailures::new(Ecc::shipped(name).unwrap(), Key::new(5))
    }

    fn all(sectors: u64) -> Extent {
        Extent::new(Lba::ZERO, Sectors::new(sectors))
    }

    /// EC1, EC3.
    #[test]
    fn a_sector_keeps_its_class_until_it_is_written() {
        let code = failures("wander-4");
        let classes = |written: &Written| -> Vec<usize> {
            all(2_000).iter().map(|lba| code.class(written, lba)).collect()
        };
        let mut written = Written::default();
        let before = classes(&written);
        written.write(Extent::new(Lba::new(500), Sectors::new(700)));
        let once = classes(&written);
        let changed: Vec<usize> = (0..2_000).filter(|&at| before[at] != once[at]).collect();
        assert!(changed.iter().all(|at| (500..1_200).contains(at)) && changed.len() > 600);
        // However its writes are cut.
        let mut cut = Written::default();
        cut.write(Extent::new(Lba::new(900), Sectors::new(300)));
        cut.write(Extent::new(Lba::new(500), Sectors::new(400)));
        assert_eq!(classes(&cut), once);
        cut.write(Extent::new(Lba::new(900), Sectors::new(1)));
        assert_ne!(classes(&cut)[900], once[900]);
    }

    /// EC2.
    #[test]
    fn what_fails_with_more_zeroes_is_part_of_what_fails_with_fewer() {
        let (code, written) = (failures("wander-4"), Written::default());
        let mut counts = [0; 3];
        for origin in 0..40 {
            let failed = |tail| -> Vec<Lba> {
                let mut tails = Tails::default();
                tails.write(all(2_000), tail, &Silent::Nothing);
                code.failures(&written, &tails, all(2_000), origin).collect()
            };
            let [none, b256, b512] = [ZeroTail::None, ZeroTail::B256, ZeroTail::B512].map(failed);
            assert!(b512.iter().all(|lba| b256.contains(lba)));
            assert!(b256.iter().all(|lba| none.contains(lba)));
            for (count, failed) in counts.iter_mut().zip([&none, &b256, &b512]) {
                *count += failed.len();
            }
            for lba in b512 {
                let after =
                    |tail| code.mended_after(&written, lba, tail, origin).unwrap_or(u32::MAX);
                assert!(after(ZeroTail::B512) <= after(ZeroTail::B256));
                assert!(after(ZeroTail::B256) <= after(ZeroTail::None));
            }
        }
        assert!(counts[2] > 50 && counts.is_sorted_by(|more, fewer| more > fewer), "{counts:?}");
    }
}
