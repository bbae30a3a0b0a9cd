//! How a drive misbehaves.
//!
//! | kind | depends on the drive and | module |
//! |---|---|---|
//! | soft failures of sectors, alone or in pairs | origin, sector, its zero tail | `retries`, `zero_tails` |
//! | bad stretches of the disk | stretch: sector; failure: origin, sector | `bursts` |
//! | revolutions a retry takes | origin, first failed sector | `rotations` |
//! | all of these by the drive's own code | origin, sector, its zero tail, how often it was written | `ecc` |
//! | hard failures of sectors | sector, its zero tail, what was written since | `latent`, `zero_tails` |
//! | slowness: constant, episodes, periods, the field's | time | `slowness` |
//! | stalls | time | `stalls` |
//! | lost and torn writes | origin, first sector | `writes` |
//! | misdirected writes, and where they land | origin, first sector | `misdirected` |
//! | flipped bits, as sectors are stored | origin, sector | `flips` |
//! | flipped bits at rest | sector, what was written since | `flips`, `latent` |
//! | lying flushes | origin | `flushes` |
//! | death | time | `misbehaviour` |
//!
//! Chance is a hash, not a stream: what happens depends on what the table says, and on nothing else
//! (the *origin* is the client request on whose behalf a command runs). Two policies that serve the
//! same client requests meet the same drive, however they split, order or repeat their commands. Every
//! kind has hashes of its own ([`Coin`]): switching one on changes no other's draws.
//!
//! # Adding a kind
//!
//! A file with its figures, the form of their text ([`Form`](text::Form)), what they cannot be, and what
//! they mean for a drive; an entry in the table below, from which names, texts, messages and the help of
//! command lines come; the place in `misbehaviour` where it acts; a row in `docs/drive.md`.
//!
//! # References
//!
//! - `[ERAID]` the pro-active use of redundancy against fail-slow drives, where one retry mends all
//!   failed sectors of a request.

mod bursts;
mod ecc;
mod error;
mod flips;
mod flushes;
mod latent;
mod misbehaviour;
mod misdirected;
mod parts;
mod points;
mod retries;
mod rotations;
mod slowness;
mod stalls;
mod text;
mod values;
mod writes;
mod zero_tails;

use levelhead_block::ZeroTail;
use levelhead_stats::{hash_of, unit_of};
use levelhead_units::{Instant, Ratio};

pub use bursts::Bursts;
pub use ecc::Ecc;
pub use error::FaultsError;
pub(crate) use misbehaviour::{Misbehaviour, Retry, Unread};
pub use parts::ParseFaultsError;
pub use rotations::{RotationList, Rotations};
pub use slowness::{Episodes, Field, Periodic};
pub use stalls::Stalls;
pub use zero_tails::{TailRates, rate_under};

pub use values::{Between, BurstLength, ROTATION_LIST_MAX};

use text::Value;

/// Makes [`Faults`], its kinds and the streams of chance from the table of kinds.
macro_rules! faults {
    ($(
        $(#[doc = $help:literal])+
        $field:ident: $type:ty = $good:expr,
        $key:literal = $form:literal, [$($example:literal),+],
        $check:path, [$($coin:ident = $number:literal),*];
    )+) => {
        /// How a drive misbehaves. Also a text: see `FromStr`.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct Faults {
            $($(#[doc = $help])+ pub $field: $type,)+
        }

        impl Faults {
            /// A drive in good order. (If it were not, retries would take three revolutions.)
            pub const NONE: Self = Self { $($field: $good),+ };

            /// Every kind of misbehaviour, in the order in which texts have them.
            pub const KINDS: &[FaultKind] = &[$(FaultKind {
                key: $key,
                form: $form,
                examples: &[$($example),+],
                help: concat!($($help),+),
                set: |faults, text| {
                    faults.$field = Value::read(text)?;
                    Ok(())
                },
                get: |faults| faults.$field.shown(&Self::NONE.$field),
                check: $check,
            }),+];

            /// The names of all kinds, for messages.
            pub const KEYS: &str = concat!($(", ", $key),+).split_at(", ".len()).1;
        }

        /// What a hash is for: the streams of chance, which have nothing to do with each other.
        #[derive(Clone, Copy, Debug)]
        enum Coin {
            $($($coin = $number,)*)+
        }
    };
}

// Field and type, what it is in a drive in good order; name in texts, form and examples of the value;
// what it cannot be; streams of chance. What stands above an entry is also the help of command lines.
faults! {
    /// Share of sectors whose first read fails and that a retry mends.
    retry_rate: Ratio = Ratio::ZERO,
        "retry-rate" = "SHARE", ["2%"], retries::check, [Base = 1, Link = 2];
    /// How many times as likely a sector fails next to a failed one, from 1, which is independence, to
    /// about half of one over the retry rate.
    adjacency: f64 = 1.0,
        "adjacency" = "FACTOR", ["2"], fine, [];
    /// Shares of sectors whose first read fails where the drive knows of 256 and of 512 bytes of zeroes at
    /// their ends, instead of what the retry rate makes them.
    zero_tails: Option<TailRates> = None,
        "zero-tails" = "SHARE/SHARE", ["0.1%/0.001%"], zero_tails::check, [];
    /// Stretches of the disk whose sectors often fail at the first read: the mean distance of their
    /// beginnings, their length, and the share of their sectors that fail.
    bursts: Option<Bursts> = None,
        "bursts" = "GAP/LENGTH/SHARE", ["10GiB/geometric:1MiB/50%"],
        bursts::check, [Burst = 4, InBurst = 5];
    /// Rotations that a retry takes; it mends all failed sectors of a request.
    rotations: Rotations = Rotations::Fixed(3),
        "rotations" = "ROTATIONS", ["3", "uniform:1-7", "geometric:3", "1:80%+30:20%"],
        rotations::check, [Rotations = 6];
    /// Share of sectors that no retry mends until they are written again.
    hard_rate: Ratio = Ratio::ZERO,
        "hard-rate" = "SHARE", ["0.1%"], fine, [Hard = 3];
    /// The table of a drive's own code, by which sectors fail and are mended by retries: one that comes with the program, or
    /// a file of `levelhead-lab ecc table`. It takes the place of all kinds above.
    ecc: Option<Ecc> = None,
        "ecc" = "TABLE", ["equal", "wander-2"], ecc::check, [Class = 24, Pass = 25];
    /// How many times as long every service takes, from 1 to 1000.
    slowdown: f64 = 1.0,
        "slowdown" = "FACTOR", ["10"], slowness::check_slowdown, [];
    /// Slow and well by turns: the mean times of both, and how many times as long a service takes.
    episodes: Option<Episodes> = None,
        "episodes" = "SLOW/WELL/FACTOR", ["20s/5min/5"],
        slowness::check_episodes, [Episode = 7, Slow = 8];
    /// Slow at regular times: from one beginning to the next, for how long, how many times as long a
    /// service takes, and when the first time begins.
    periodic: Option<Periodic> = None,
        "periodic" = "PERIOD/DURATION/FACTOR/OFFSET",
        ["2h/4min/5", "2h/4min/5/10min", "2h-3h/3min-6min/5"],
        slowness::check_periodic, [Period = 9, PeriodBegin = 16, PeriodLength = 17];
    /// As slow as drives in the field: how long a factor lasts, and the probability that the next one is
    /// the same.
    field: Option<Field> = None,
        "field" = "INTERVAL/PERSISTENCE", ["1h", "1h/0%"],
        slowness::check_field, [Persist = 10, Field = 11];
    /// Times in which the drive says nothing: the mean time between their beginnings, and their length.
    stalls: Option<Stalls> = None,
        "stalls" = "GAP/DURATION", ["10min/5s"], stalls::check, [Stall = 12];
    /// Share of writes that are answered as stored and leave the medium as it was.
    lost_rate: Ratio = Ratio::ZERO,
        "lost-writes" = "SHARE", ["0.1%"], fine, [Lost = 13];
    /// Share of the other writes, of two sectors or more, of which only the first part is stored.
    torn_rate: Ratio = Ratio::ZERO,
        "torn-writes" = "SHARE", ["0.1%"], fine, [Torn = 14, Tear = 15];
    /// Share of writes that are answered as stored and land at another place of the drive: the wanted one
    /// keeps what it had.
    misdirected_rate: Ratio = Ratio::ZERO,
        "misdirected-writes" = "SHARE", ["0.1%"], fine, [Misdirected = 18, Landing = 19];
    /// Share of sectors of which a bit changes as they are stored, or has changed at rest where nothing
    /// has been written yet.
    flip_rate: Ratio = Ratio::ZERO,
        "flips" = "SHARE", ["0.1%"], fine, [FlipStored = 20, FlipAtRest = 21, FlipBit = 22];
    /// Share of flushes that are answered at once and make nothing safe.
    lying_rate: Ratio = Ratio::ZERO,
        "lying-flush" = "SHARE", ["1%"], fine, [Lie = 23];
    /// When the drive dies, from the beginning on.
    death: Option<Instant> = None,
        "death" = "TIME", ["30s"], fine, [];
}

/// One kind of misbehaviour, as texts have it.
#[derive(Clone, Copy, Debug)]
pub struct FaultKind {
    /// Its name.
    pub key: &'static str,
    /// The form of its value, such as `GAP/DURATION`.
    pub form: &'static str,
    /// Values of it.
    pub examples: &'static [&'static str],
    help: &'static str,
    set: fn(&mut Faults, &str) -> Result<(), ParseFaultsError>,
    get: fn(&Faults) -> Option<String>,
    check: fn(&Faults) -> Result<(), FaultsError>,
}

impl FaultKind {
    /// What it is, in a sentence without a full stop.
    pub fn help(&self) -> &'static str {
        self.help.trim().trim_end_matches('.')
    }
}

impl Faults {
    /// Whether a drive can misbehave like that.
    pub fn check(&self) -> Result<(), FaultsError> {
        Self::KINDS.iter().try_for_each(|kind| (kind.check)(self))
    }

    /// The same where these kinds were stated: some exclude others, even as they are in a drive in good order. Names
    /// of no kind do not matter.
    pub fn check_stated(&self, stated: &[&str]) -> Result<(), FaultsError> {
        ecc::check_stated(self, stated.iter().copied())?;
        self.check()
    }

    /// The kind of this name.
    pub fn kind(key: &str) -> Option<&'static FaultKind> {
        Self::KINDS.iter().find(|kind| kind.key == key)
    }

    /// The probability that a sector's first pass fails and a retry mends it: independent chances of
    /// `retry_rate` and of the bursts; or what the table of the drive's code says.
    pub fn retry_rate_total(&self) -> f64 {
        if let Some(ecc) = self.ecc {
            return ecc.first_pass_rate(ZeroTail::None);
        }
        let bursts = self.bursts.map_or(0.0, |bursts| bursts.rate());
        1.0 - (1.0 - self.retry_rate.get()) * (1.0 - bursts)
    }
}

/// The check of a kind that can be anything its type can.
fn fine(_: &Faults) -> Result<(), FaultsError> {
    Ok(())
}

/// Where a drive's chance comes from.
#[derive(Clone, Copy, Debug)]
struct Key(u64);

impl Key {
    const fn new(key: u64) -> Self {
        Self(key)
    }

    /// A number from 0 up to but not including 1 that depends on all of these.
    fn coin(self, coin: Coin, origin: u64, place: u64) -> f64 {
        unit_of(hash_of(self.0, &[coin as u64, origin, place]))
    }

    /// A key of one stream.
    fn of(self, coin: Coin) -> u64 {
        hash_of(self.0, &[coin as u64])
    }

    /// The number from 0 up to but not including 1 that a hash names.
    fn unit(hash: u64) -> f64 {
        unit_of(hash)
    }
}

/// Every kind at a rate at which it is sure to show.
#[cfg(test)]
fn every_kind() -> Faults {
    "retry-rate=20%,adjacency=2,zero-tails=10%/2%,bursts=1MiB/geometric:256KiB/50%,rotations=uniform:1-9,\
     hard-rate=10%,slowdown=2,episodes=1s/1s/3,periodic=10s/3s/5,field=1s/40%,stalls=1s/100ms,\
     lost-writes=20%,torn-writes=20%,misdirected-writes=20%,flips=10%,lying-flush=20%,death=100s"
        .parse()
        .unwrap()
}

#[cfg(test)]
mod tests {
    use levelhead_units::{Nanos, Sectors};

    use super::*;

    #[test]
    fn impossible_faults_are_refused_with_the_limit() {
        assert!(Faults::NONE.check().is_ok());
        assert!(every_kind().check().is_ok());
        let (second, none) = (Nanos::from_secs(1), Faults::NONE);
        let stretch = |gap, length| {
            let (gap, length) = (Sectors::new(gap), BurstLength::Fixed(Sectors::new(length)));
            Faults { bursts: Some(Bursts { gap, length, failure: Ratio::ONE }), ..none }
        };
        let episodes = |slow, factor| Faults {
            episodes: Some(Episodes { slow, well: second, factor }),
            ..none
        };
        let periodic = |duration, offset| Faults {
            periodic: Some(Periodic { period: second.into(), duration, offset, factor: 2.0 }),
            ..none
        };
        let retry = |rotations| Faults { rotations, ..none };
        for (bad, expected) in [
            (retry(Rotations::Fixed(0)), "a retry takes 1 to 1000 revolutions, not 0"),
            (
                retry(Rotations::Uniform { first: 5, last: 4 }),
                "the most revolutions of a retry are at least 5, not 4",
            ),
            (
                retry(Rotations::Geometric { mean: f64::NAN }),
                "a retry takes 1 to 1000 revolutions on average, not NaN",
            ),
            (
                Faults { slowdown: 0.5, ..none },
                "a drive is slowed down 1 to 1000 times, not 0.5 times",
            ),
            (episodes(second, 0.0), "a drive is slowed down 1 to 1000 times, not 0 times"),
            (
                episodes(Nanos::ZERO, 2.0),
                "the mean time of being slow is 1us to 31622400s, not 0ns",
            ),
            (
                periodic((second * 2).into(), None),
                "slowness every 1s begins within that time and ends before the next, not after 2s",
            ),
            (
                stretch(100, 101),
                "bad stretches begin 64KiB to 1PiB apart and are no longer than that, not 404KiB every \
                 400KiB",
            ),
            (
                Faults { stalls: Some(Stalls { gap: second, duration: second * 2 }), ..none },
                "a stall every 1s lasts at most 1s, not 2s",
            ),
            (
                Faults { field: Some(Field { interval: second, persistence: Ratio::ONE }), ..none },
                "a slowdown of the field's stays with 0% to 99%, not 100%",
            ),
        ] {
            assert_eq!(bad.check().unwrap_err().to_string(), expected);
        }
        for (list, expected) in [
            (vec![], "a retry has 1 to 8 lengths, not 0"),
            (vec![(3, Ratio::of(1, 2))], "the shares of a retry's lengths add up to 100%, not 50%"),
            (vec![(0, Ratio::ONE)], "a retry takes 1 to 1000 revolutions, not 0"),
        ] {
            assert_eq!(RotationList::new(&list).unwrap_err().to_string(), expected);
        }
    }
}
