//! Workloads made up from a seed: Poisson arrivals at uniformly random addresses.
//!
//! Arrivals, addresses, kinds and sizes are drawn from a stream each, one draw a request, so that
//! two workloads that differ in one of them share the other three. (A request's address is the same
//! share of the places where it fits; those depend on its size and on the alignment.)

use std::fmt;
use std::str::FromStr;

use levelhead_stats::Streams;
use levelhead_units::{Bytes, Extent, Instant, Lba, Nanos, Ratio, Sectors};

use crate::{Arrival, Kind, LENGTH_MAX, RECORDS_MAX, text};

/// A workload, short enough to be written on a command line:
/// `size=40KiB,interval=8ms,count=20000,reads=100%`, which are also the defaults of missing keys.
/// `sizes=8KiB/24KiB/40KiB` mixes sizes evenly, `align=64KiB` aligns addresses.
///
/// ```
/// use levelhead_stats::Streams;
/// use levelhead_trace::Synthetic;
/// use levelhead_units::Sectors;
///
/// let workload: Synthetic = "size=8KiB,count=100,reads=41%".parse()?;
/// let arrivals = workload.generate(Sectors::new(1 << 20), Streams::new(7))?;
/// assert_eq!(arrivals.len(), 100);
/// # Ok::<(), levelhead_trace::SyntheticError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Synthetic {
    /// The sizes of requests, each as likely as any other.
    pub sizes: Vec<Sectors>,
    /// The mean time between arrivals, which is exponentially distributed.
    pub interval: Nanos,
    /// How many requests.
    pub count: u64,
    /// The share of reads; the rest are writes.
    pub reads: Ratio,
    /// Addresses are multiples of this.
    pub align: Sectors,
}

/// A workload that cannot be had: the key at fault and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntheticError {
    key: String,
    problem: String,
}

impl fmt::Display for SyntheticError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "workload, {}: {}", self.key, self.problem)
    }
}

impl std::error::Error for SyntheticError {}

pub(crate) fn wrong(key: &str, problem: impl fmt::Display) -> SyntheticError {
    SyntheticError { key: key.to_owned(), problem: problem.to_string() }
}

/// The most sizes in a mix.
const SIZES_MAX: usize = 64;

/// The longest that a workload may be expected to last.
const SPAN_MAX: Nanos = Nanos::from_secs(2 * 365 * 86_400);

// The smallest draw of 53 bits makes a gap 37 times the mean, and all of them may be of that size.
const _: () = assert!(SPAN_MAX.get().checked_mul(37).is_some());

impl Default for Synthetic {
    fn default() -> Self {
        Self {
            sizes: vec![Bytes::new(40 << 10).sectors_floor()],
            interval: Nanos::from_millis(8),
            count: 20_000,
            reads: Ratio::ONE,
            align: Sectors::new(1),
        }
    }
}

impl Synthetic {
    /// The workload's requests to an array of `array_sectors`, ordered by time: the same for the
    /// same seed.
    ///
    /// # Errors
    ///
    /// A size, count, interval or alignment beyond its limit; a size beyond the array's.
    pub fn generate(
        &self,
        array_sectors: Sectors,
        streams: Streams,
    ) -> Result<Vec<Arrival>, SyntheticError> {
        self.check()?;
        if let Some(size) = self.sizes.iter().find(|size| **size > array_sectors) {
            let (size, array) = (text::sectors(*size), text::sectors(array_sectors));
            return Err(wrong("size", format!("{size} is more than the array has: {array}")));
        }
        let mut arrivals = streams.stream("workload/arrivals");
        let mut addresses = streams.stream("workload/addresses");
        let mut kinds = streams.stream("workload/kinds");
        let mut sizes = streams.stream("workload/sizes");
        let mut at = Instant::ZERO;
        let next = |_| {
            at = at + arrivals.exponential(self.interval);
            let kind = if kinds.chance(self.reads) { Kind::Read } else { Kind::Write };
            let size = self.sizes[share_of(sizes.bits(), self.sizes.len() as u64) as usize];
            let places = (array_sectors - size).get() / self.align.get() + 1;
            let lba = Lba::ZERO + self.align * share_of(addresses.bits(), places);
            Arrival { at, kind, extent: Extent::new(lba, size) }
        };
        Ok((0..self.count).map(next).collect())
    }

    /// Checks the limits, which do not depend on the array.
    fn check(&self) -> Result<(), SyntheticError> {
        if self.sizes.is_empty() || self.sizes.len() > SIZES_MAX {
            let count = self.sizes.len();
            return Err(wrong("sizes", format!("expected 1 to {SIZES_MAX} sizes, got {count}")));
        }
        let in_range =
            |size: &Sectors| (1..=LENGTH_MAX.sectors_floor().get()).contains(&size.get());
        if let Some(size) = self.sizes.iter().find(|size| !in_range(size)) {
            let size = size.get();
            let problem = format!("expected 4KiB to {LENGTH_MAX}, got {size} sectors of 4KiB");
            return Err(wrong("size", problem));
        }
        if !(1..=RECORDS_MAX as u64).contains(&self.count) {
            let problem = format!("expected 1 to {RECORDS_MAX}, got {}", self.count);
            return Err(wrong("count", problem));
        }
        if u128::from(self.interval.get()) * u128::from(self.count) > u128::from(SPAN_MAX.get()) {
            let Self { count, interval, .. } = self;
            let problem = format!("{count} requests, one every {interval}, last more than 2 years");
            return Err(wrong("interval", problem));
        }
        if self.align == Sectors::ZERO {
            return Err(wrong("align", "expected at least one sector of 4KiB, got none"));
        }
        Ok(())
    }
}

/// The number below `bound` that is the same share of it as `bits` are of 2^64. One draw always,
/// unlike rejection; the bias is below `bound` / 2^64.
fn share_of(bits: u64, bound: u64) -> u64 {
    ((u128::from(bits) * u128::from(bound)) >> 64) as u64
}

impl FromStr for Synthetic {
    type Err = SyntheticError;
    fn from_str(text: &str) -> Result<Self, SyntheticError> {
        const KEYS: &str = "size, sizes, interval, count, reads or align";
        let mut workload = Self::default();
        let mut seen: Vec<&str> = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let Some((key, value)) = part.split_once('=') else {
                return Err(wrong(part, format!("expected key=value, the key being {KEYS}")));
            };
            let (key, value) = (key.trim(), value.trim());
            let given = if key == "sizes" { "size" } else { key };
            if seen.contains(&given) {
                return Err(wrong(key, "given twice"));
            }
            seen.push(given);
            match key {
                "size" => workload.sizes = vec![whole_sectors(key, value)?],
                "sizes" => {
                    let sizes = value.split('/').take(SIZES_MAX + 1);
                    let sizes: Result<_, _> = sizes.map(|size| whole_sectors(key, size)).collect();
                    workload.sizes = sizes?;
                }
                "interval" => workload.interval = parsed(key, value)?,
                "count" => {
                    let count = value.parse();
                    workload.count = count
                        .map_err(|_| wrong(key, format!("'{value}' is not a whole number")))?;
                }
                "reads" => workload.reads = parsed(key, value)?,
                "align" => workload.align = whole_sectors(key, value)?,
                _ => return Err(wrong(key, format!("no such key: expected {KEYS}"))),
            }
        }
        workload.check()?;
        Ok(workload)
    }
}

fn parsed<T: FromStr<Err: fmt::Display>>(key: &str, value: &str) -> Result<T, SyntheticError> {
    value.parse().map_err(|error| wrong(key, error))
}

fn whole_sectors(key: &str, value: &str) -> Result<Sectors, SyntheticError> {
    let bytes: Bytes = parsed(key, value)?;
    bytes
        .sectors_exact()
        .ok_or_else(|| wrong(key, format!("{bytes} is not a whole number of sectors of 4KiB")))
}

/// The form that [`Synthetic::from_str`] reads.
impl fmt::Display for Synthetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.sizes.iter().map(|size| size.bytes().to_string()).collect();
        let key = if sizes.len() == 1 { "size" } else { "sizes" };
        let Self { interval, count, reads, .. } = self;
        write!(f, "{key}={},interval={interval},count={count},reads={reads}", sizes.join("/"))?;
        if self.align > Sectors::new(1) {
            write!(f, ",align={}", self.align.bytes())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARRAY: Sectors = Sectors::new(1_000_000);

    fn workload(text: &str) -> Synthetic {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    fn generate(text: &str, seed: u64) -> Vec<Arrival> {
        workload(text).generate(ARRAY, Streams::new(seed)).unwrap()
    }

    fn column<T>(arrivals: &[Arrival], part: impl FnMut(&Arrival) -> T) -> Vec<T> {
        arrivals.iter().map(part).collect()
    }

    #[test]
    fn what_is_written_is_what_is_meant() {
        assert_eq!(workload(""), Synthetic::default());
        assert_eq!(workload("size=40KiB,interval=8ms,count=20000,reads=100%"), workload(""));
        let mixed =
            workload(" sizes=8KiB/24KiB/40KiB, align=64KiB , reads=41%,count=5,interval=1s");
        let sectors = |counts: &[u64]| counts.iter().copied().map(Sectors::new).collect::<Vec<_>>();
        assert_eq!(mixed.sizes, sectors(&[2, 6, 10]));
        assert_eq!(mixed.align, Sectors::new(16));
        assert_eq!(mixed.interval, Nanos::from_secs(1));
        assert_eq!((mixed.count, mixed.reads), (5, Ratio::new(0.41).unwrap()));
        for workload in [mixed, Synthetic::default()] {
            assert_eq!(workload.to_string().parse(), Ok(workload));
        }
    }

    #[test]
    fn errors_name_the_key() {
        let refusals = [
            (
                "siez=4KiB",
                "siez: no such key: expected size, sizes, interval, count, reads or align",
            ),
            (
                "fast",
                "fast: expected key=value, the key being size, sizes, interval, count, reads or \
                 align",
            ),
            ("size=4KiB,sizes=8KiB/4KiB", "sizes: given twice"),
            ("count=1,count=2", "count: given twice"),
            ("count=1e3", "count: '1e3' is not a whole number"),
            ("count=0", "count: expected 1 to 16777216, got 0"),
            ("size=5000B", "size: 5000B is not a whole number of sectors of 4KiB"),
            ("size=0B", "size: expected 4KiB to 64MiB, got 0 sectors of 4KiB"),
            ("sizes=4KiB/65MiB", "size: expected 4KiB to 64MiB, got 16640 sectors of 4KiB"),
            ("align=0B", "align: expected at least one sector of 4KiB, got none"),
            (
                "interval=1h,count=20000",
                "interval: 20000 requests, one every 3600s, last more than 2 years",
            ),
            (
                "reads=41",
                "reads: '41' is not a percentage from 0% to 100%: expected a number and %, as in 2%",
            ),
            (
                "interval=8",
                "interval: '8' is not a time: expected a number and ns, us, ms, s, m (or min) or h, as in 20ms",
            ),
            (
                "sizes=4KiB/",
                "sizes: '' is not a size: expected a number and B, KiB, MiB, GiB, TiB, kB, MB, GB \
                 or TB, as in 8KiB",
            ),
        ];
        for (text, message) in refusals {
            let error = text.parse::<Synthetic>().unwrap_err();
            assert_eq!(error.to_string(), format!("workload, {message}"));
        }
        let many = format!("sizes={}4KiB", "4KiB/".repeat(64));
        let error = many.parse::<Synthetic>().unwrap_err();
        assert_eq!(error.to_string(), "workload, sizes: expected 1 to 64 sizes, got 65");
        let error = workload("size=8KiB").generate(Sectors::new(1), Streams::new(1)).unwrap_err();
        assert_eq!(error.to_string(), "workload, size: 8KiB is more than the array has: 4KiB");
    }

    #[test]
    fn requests_have_the_moments_of_their_description() {
        let arrivals = generate("interval=8ms,count=100000,reads=41%,sizes=8KiB/24KiB/40KiB", 7);
        let count = arrivals.len() as f64;
        assert!(arrivals.is_sorted_by_key(|arrival| arrival.at));
        assert!(arrivals.iter().all(|arrival| arrival.extent.fits(ARRAY)));
        // Four standard errors of each mean.
        let span = (arrivals.last().unwrap().at - Instant::ZERO).as_millis_f64();
        assert!((span / count - 8.0).abs() < 4.0 * 8.0 / count.sqrt(), "{span}");
        let reads = arrivals.iter().filter(|arrival| arrival.kind == Kind::Read).count() as f64;
        assert!((reads / count - 0.41).abs() < 4.0 * (0.41 * 0.59 / count).sqrt(), "{reads}");
        for size in [2, 6, 10] {
            let share = arrivals.iter().filter(|a| a.extent.sectors.get() == size).count() as f64;
            let error = (share / count - 1.0 / 3.0).abs();
            assert!(error < 4.0 * (2.0 / 9.0 / count).sqrt(), "{size}: {share}");
        }
        // Twenty equal parts of the array; chi-square with 19 degrees exceeds 50 once in 7000.
        let mut counts = [0_u32; 20];
        for arrival in &arrivals {
            counts[(arrival.extent.lba.get() / 50_000) as usize] += 1;
        }
        let chi: f64 = counts.iter().map(|&c| (f64::from(c) - 5e3).powi(2) / 5e3).sum();
        assert!(chi < 50.0, "{counts:?}");
    }

    #[test]
    fn gaps_are_exponential() {
        let arrivals = generate("interval=10ms,count=50000", 3);
        let mut before = Instant::ZERO;
        let mut longer = [0_u32; 4];
        for arrival in &arrivals {
            let gap = (arrival.at - before).as_millis_f64();
            for (times, count) in longer.iter_mut().enumerate() {
                *count += u32::from(gap > 10.0 * times as f64);
            }
            before = arrival.at;
        }
        for (times, count) in longer.into_iter().enumerate() {
            let p = (-(times as f64)).exp();
            let error = (f64::from(count) / 5e4 - p).abs();
            assert!(error <= 4.0 * (p * (1.0 - p) / 5e4).sqrt() + 1e-4, "{times}: {count}");
        }
    }

    #[test]
    fn changing_one_thing_leaves_the_others() {
        let base = generate("count=1000,reads=50%", 5);
        let at = |arrivals: &[Arrival]| column(arrivals, |arrival| arrival.at);
        let kinds = |arrivals: &[Arrival]| column(arrivals, |arrival| arrival.kind);
        let extents = |arrivals: &[Arrival]| column(arrivals, |arrival| arrival.extent);

        let slower = generate("count=1000,reads=50%,interval=9ms", 5);
        assert_ne!(at(&slower), at(&base));
        assert_eq!((kinds(&slower), extents(&slower)), (kinds(&base), extents(&base)));

        let written = generate("count=1000,reads=10%", 5);
        assert_ne!(kinds(&written), kinds(&base));
        assert_eq!((at(&written), extents(&written)), (at(&base), extents(&base)));

        let mixed = generate("count=1000,reads=50%,sizes=4KiB/40KiB", 5);
        assert_eq!((at(&mixed), kinds(&mixed)), (at(&base), kinds(&base)));
        for (mixed, base) in mixed.iter().zip(&base) {
            // 9 sectors of room more make at most 9 sectors of difference.
            assert!(mixed.extent.lba.get().abs_diff(base.extent.lba.get()) <= 9);
        }

        assert_eq!(generate("count=1000,reads=50%", 5), base);
        assert_eq!(generate("count=500,reads=50%", 5), base[..500]);
        assert_ne!(generate("count=1000,reads=50%", 6), base);
    }

    #[test]
    fn addresses_are_aligned_and_reach_both_ends() {
        let small = workload("size=8KiB,align=16KiB,count=2000");
        let arrivals = small.generate(Sectors::new(14), Streams::new(1)).unwrap();
        let mut lbas = column(&arrivals, |arrival| arrival.extent.lba.get());
        lbas.sort_unstable();
        lbas.dedup();
        assert_eq!(lbas, [0, 4, 8, 12]);
        let only = workload("size=8KiB,align=1GiB,count=10");
        let arrivals = only.generate(Sectors::new(2), Streams::new(1)).unwrap();
        assert!(arrivals.iter().all(|arrival| arrival.extent.lba == Lba::ZERO));
    }

    #[test]
    fn no_interval_is_a_burst() {
        let arrivals = generate("interval=0ns,count=100", 1);
        assert!(arrivals.iter().all(|arrival| arrival.at == Instant::ZERO));
    }
}
