//! Which choice is the fastest, by a clock that the caller lends.
//!
//! A process that has a clock measures once, before it has anything else to do, and gives what it found
//! to all computations. One that is to come out the same each time does not measure: it takes
//! [`Choices::of`], whose bytes are the same and whose time does not matter.
//!
//! For each class a small computation of its kind is done again and again, by each choice of a short
//! list in turn, with its buffers out of the caches before. The median of a choice's runs counts, and the
//! first of the list, which is what is taken unmeasured, is left only for one that is faster by
//! [`GAIN_MIN`]. Each class has the same share of the time, and no run begins that would not end in it if it took
//! twice as long as the same choice's last one; for a choice's first run, as the longest of the others:
//! on a machine too slow for that, all stays as it was. What takes the processor away in the middle of a
//! run can make it longer, and so can a kernel that is far slower than one before it.
//!
//! Only kernels with vectors are compared: the others have one way to go about it, and are far slower.

use std::time::Duration;

use crate::choice::{Choice, Choices, Class, Place};
use crate::code::Code;
use crate::fields::Field;
use crate::kernel;
use crate::kernel::engine::{Finish, Job};
use crate::kernel::evict::evict;
use crate::kernels::Kernel;
use crate::operations::OneWay;

/// By what part another choice has to be faster to be taken.
const GAIN_MIN: f64 = 0.03;

/// Runs of each choice that are wanted; fewer if there is no time for them.
const RUNS: usize = 9;

/// The least number of runs of each choice on which anything is decided.
const RUNS_MIN: usize = 3;

/// Bytes of a symbol.
const SYMBOL_SIZE: usize = 4096;

/// What to measure, and how.
pub struct Measurement<'a> {
    /// The kernels to choose from, at least one; the first is taken where nothing is measured. If that is
    /// one without vectors, nothing is, and of the others those without vectors are left out.
    pub kernels: &'a [Kernel],
    /// Where the data is.
    pub place: Place,
    /// What is computed: the other classes keep what is taken unmeasured.
    pub classes: &'a [Class],
    /// How long all of it may take.
    pub time_max: Duration,
    /// The time since any moment in the past.
    pub clock: &'a mut dyn FnMut() -> Duration,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The fastest choice for each class that was to be measured; for the others what is taken unmeasured.
    pub choices: Choices,
    /// What it rests on, for each class that was to be measured.
    pub classes: Vec<MeasuredClass>,
    /// How long it took.
    pub took: Duration,
}

impl Measured {
    /// Nothing was measured, and the kernel is this one.
    pub fn none(kernel: Kernel, classes: &[Class]) -> Self {
        let of_class = |&class: &Class| MeasuredClass {
            class,
            choice: Choice::of(kernel, class),
            bytes_per_second: None,
            unmeasured_bytes_per_second: None,
            choice_count: 1,
            run_count: 0,
        };
        let classes = classes.iter().map(of_class).collect();
        Self { choices: kernel.into(), classes, took: Duration::ZERO }
    }
}

/// What was found for one class.
#[derive(Clone, Debug)]
pub struct MeasuredClass {
    /// Which.
    pub class: Class,
    /// The choice that was the fastest.
    pub choice: Choice,
    /// Source bytes a second with it: the median; none where there was no time to measure.
    pub bytes_per_second: Option<f64>,
    /// The same with what is taken unmeasured.
    pub unmeasured_bytes_per_second: Option<f64>,
    /// How many choices were compared; 1 where there was no time to measure.
    pub choice_count: usize,
    /// How often each was run at least.
    pub run_count: usize,
}

/// Measures.
///
/// # Panics
///
/// If there is no kernel to choose from.
pub fn measure(measurement: Measurement<'_>) -> Measured {
    let Measurement { kernels, place, classes: wanted, time_max, clock } = measurement;
    let start = clock();
    let first = *kernels.first().expect("a kernel to choose from");
    if !first.has_vectors() {
        return Measured::none(first, wanted);
    }
    let mut choices = Choices::of(first);
    let mut classes = Vec::new();
    let mut pool = Vec::new();
    for (n, &class) in (1u32..).zip(wanted) {
        // What one class leaves of its time the others may have.
        let end = start + time_max * n / wanted.len() as u32;
        let mut list: Vec<Choice> = Vec::new();
        for &kernel in kernels.iter().filter(|kernel| kernel.has_vectors()) {
            list.extend(Choice::shortlist(kernel, class, place));
        }
        let measured = of_class(class, place, &list, &mut pool, end, clock);
        choices.set(class, measured.choice);
        classes.push(measured);
    }
    Measured { choices, classes, took: clock().saturating_sub(start) }
}

/// The shape of a class's computation: sources, results and how many of them lie one after the other.
struct Trial {
    code: Code,
    sources: usize,
    repeats: usize,
    by_transform: bool,
}

impl Trial {
    fn of(class: Class) -> Self {
        let (code, sources, repeats) = match class {
            Class::One => (Code::new(8, 1), 8, 8),
            // More sources than a first-level cache has places for one address, so that their order matters.
            Class::Few => (Code::new(14, 3), 14, 4),
            Class::Many => (Code::new(64, 3), 64, 1),
            Class::ManyByMany => (Code::new(64, 9), 64, 1),
            Class::Tower => (Code::new(512, 3), 64, 1),
            // Over GF(2^8): five cosets.
            Class::Transform => (Code::new(80, 9), 80, 1),
        };
        let code = code.expect("the shape is that of a code");
        Self { code, sources, repeats, by_transform: class == Class::Transform }
    }

    /// Bytes of one codeword.
    fn size(&self) -> usize {
        (self.sources + self.code.redundant()) * SYMBOL_SIZE
    }

    fn run(&self, choice: Choice, pool: &mut [u8]) {
        let choices = Choices::from(choice);
        let columns = OneWay { code: &self.code, by_transform: self.by_transform };
        for codeword in pool.chunks_exact_mut(self.size()) {
            let (sources, into) = codeword.split_at_mut(self.sources * SYMBOL_SIZE);
            let sources: Vec<&[u8]> = sources.chunks_exact(SYMBOL_SIZE).collect();
            let mut into: Vec<&mut [u8]> = into.chunks_exact_mut(SYMBOL_SIZE).collect();
            let job = Job { field: self.code.field(), columns: &columns, sources: &sources };
            kernel::accumulate(&choices, job, &mut into, Finish::Store);
        }
    }
}

/// This many bytes of the pool, from the first on whose address is a multiple of [`SYMBOL_SIZE`]: results
/// elsewhere could not be stored past the cache.
fn aligned(pool: &mut Vec<u8>, size: usize) -> &mut [u8] {
    // Written here, so that no page has to be made during a run.
    pool.resize(pool.len().max(size + SYMBOL_SIZE), 0x5a);
    let first = pool.as_ptr().align_offset(SYMBOL_SIZE);
    &mut pool[first..first + size]
}

fn of_class(
    class: Class,
    place: Place,
    list: &[Choice],
    pool: &mut Vec<u8>,
    end: Duration,
    clock: &mut dyn FnMut() -> Duration,
) -> MeasuredClass {
    let trial = Trial::of(class);
    debug_assert!((class == Class::Tower) == (trial.code.field() == Field::Tower));
    debug_assert!(!trial.by_transform || trial.code.largest_transform().is_some());
    let size = trial.size() * trial.repeats;
    let pool = aligned(pool, size);
    let mut times = vec![Vec::with_capacity(RUNS); list.len()];
    // What each took the last time, with all that it takes to have it start alike.
    let (mut last, mut now) = (vec![None::<Duration>; list.len()], clock());
    // The first round is no more than a rehearsal.
    'rounds: for round in 0..=RUNS {
        for place_in_round in 0..list.len() {
            let n = (round + place_in_round) % list.len();
            let longest = last.iter().flatten().max().copied().unwrap_or_default();
            if list.len() < 2 || now + 2 * last[n].unwrap_or(longest) > end {
                break 'rounds;
            }
            match place {
                Place::Memory => evict(pool),
                Place::Cache => trial.run(list[n], pool),
            }
            let start = clock();
            trial.run(list[n], pool);
            let after = clock();
            if round > 0 {
                times[n].push(after.saturating_sub(start));
            }
            last[n] = Some(after.saturating_sub(now));
            now = after;
        }
    }
    let run_count = times.iter().map(Vec::len).min().unwrap_or(0);
    let mut measured = MeasuredClass {
        class,
        choice: list[0],
        bytes_per_second: None,
        unmeasured_bytes_per_second: None,
        choice_count: 1,
        run_count,
    };
    if run_count < RUNS_MIN {
        return measured;
    }
    measured.choice_count = list.len();
    let medians = times.into_iter().map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64()
    });
    let medians: Vec<f64> = medians.collect();
    let mut best = 0;
    for (n, &median) in medians.iter().enumerate() {
        if median < medians[best] {
            best = n;
        }
    }
    if medians[best] > medians[0] * (1.0 - GAIN_MIN) {
        best = 0;
    }
    let bytes = (trial.sources * trial.repeats * SYMBOL_SIZE) as f64;
    let rate = |median: f64| (median > 0.0).then(|| bytes / median);
    measured.choice = list[best];
    measured.bytes_per_second = rate(medians[best]);
    measured.unmeasured_bytes_per_second = rate(medians[0]);
    measured
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that goes on by a microsecond each time it is read.
    fn ticking() -> impl FnMut() -> Duration {
        let mut now = Duration::from_secs(7);
        move || {
            now += Duration::from_micros(1);
            now
        }
    }

    fn measured(time_max: Duration) -> Measured {
        let kernels: Vec<Kernel> = Kernel::available().rev().take(2).collect();
        let (place, mut clock) = (Place::Memory, ticking());
        measure(Measurement {
            kernels: &kernels,
            place,
            classes: &Class::ALL,
            time_max,
            clock: &mut clock,
        })
    }

    #[test]
    fn every_symbol_of_a_trial_lies_where_it_can_be_stored_past_the_cache() {
        let mut pool = Vec::new();
        for class in Class::ALL {
            let trial = Trial::of(class);
            let size = trial.size() * trial.repeats;
            let bytes = aligned(&mut pool, size);
            assert_eq!(bytes.len(), size);
            for symbol in bytes.chunks_exact(SYMBOL_SIZE) {
                assert_eq!(symbol.as_ptr().addr() % SYMBOL_SIZE, 0);
            }
        }
    }

    #[test]
    fn with_no_time_nothing_is_run_and_the_unmeasured_choices_stay() {
        let Measured { choices, classes, .. } = measured(Duration::ZERO);
        assert_eq!(choices, Choices::of(Kernel::best()));
        assert!(classes.iter().all(|class| class.run_count == 0 && class.choice_count == 1));
        assert!(classes.iter().all(|class| class.bytes_per_second.is_none()));
    }

    #[test]
    fn choices_that_take_the_same_time_stay_as_they_were() {
        let Measured { choices, classes, .. } = measured(Duration::from_secs(1));
        assert_eq!(choices, Choices::of(Kernel::best()));
        if Kernel::best().has_vectors() {
            assert!(classes.iter().all(|class| class.run_count == RUNS && class.choice_count > 1));
            assert!(classes.iter().all(|class| class.bytes_per_second.is_some()));
        }
    }

    #[test]
    fn kernels_without_vectors_are_not_compared() {
        let measured = |kernels: &[Kernel]| {
            let (place, mut clock) = (Place::Cache, ticking());
            let time_max = Duration::from_secs(1);
            measure(Measurement {
                kernels,
                place,
                classes: &Class::ALL,
                time_max,
                clock: &mut clock,
            })
        };
        let portable = measured(&[Kernel::Portable, Kernel::Naive]);
        assert_eq!(portable.choices, Kernel::Portable.into());
        assert!(portable.classes.iter().all(|class| class.run_count == 0));
        let (all, best) = (measured(&[Kernel::best(), Kernel::Naive]), measured(&[Kernel::best()]));
        for (all, best) in all.classes.iter().zip(best.classes) {
            assert_eq!(all.choice_count, best.choice_count);
        }
    }

    #[test]
    fn no_run_begins_that_would_not_end_in_time_if_it_took_twice_as_long_as_its_last_one() {
        if !Kernel::best().has_vectors() {
            return;
        }
        // Runs take 10 microseconds, but every run of the last choice of the list 1000.
        let list = Choice::shortlist(Kernel::best(), Class::Few, Place::Memory);
        let slow = list.len() - 1;
        for end in (0..=20_000).step_by(250).map(Duration::from_micros) {
            let (mut now, mut reads) = (Duration::ZERO, 0usize);
            let mut clock = || {
                if reads > 0 && reads % 2 == 0 {
                    let run = reads / 2 - 1;
                    let (round, place) = (run / list.len(), run % list.len());
                    let is_slow = (round + place) % list.len() == slow;
                    now += Duration::from_micros(if is_slow { 1000 } else { 10 });
                }
                reads += 1;
                now
            };
            of_class(Class::Few, Place::Memory, &list, &mut Vec::new(), end, &mut clock);
            // Nothing is known of the first run of all choices.
            let rehearsal = Duration::from_micros(1000 + 10 * slow as u64);
            assert!(now <= end.max(rehearsal), "{end:?}, {now:?}");
        }
    }

    #[test]
    fn the_choice_whose_runs_are_the_shortest_is_taken() {
        if !Kernel::best().has_vectors() {
            return;
        }
        // Runs take 10 microseconds, but every run of the third choice of the list 5.
        let list = Choice::shortlist(Kernel::best(), Class::Few, Place::Memory);
        let (mut now, mut reads) = (Duration::ZERO, 0usize);
        let mut clock = || {
            // The first reading comes before the rounds, then there are two for each run.
            if reads > 0 && reads % 2 == 0 {
                let run = reads / 2 - 1;
                let (round, place) = (run / list.len(), run % list.len());
                let is_third = (round + place) % list.len() == 2;
                now += Duration::from_micros(if is_third { 5 } else { 10 });
            }
            reads += 1;
            now
        };
        let end = Duration::from_secs(1);
        let found = of_class(Class::Few, Place::Memory, &list, &mut Vec::new(), end, &mut clock);
        assert_eq!(found.choice, list[2]);
        assert_eq!(
            found.bytes_per_second.map(f64::round),
            found.unmeasured_bytes_per_second.map(|rate| (2.0 * rate).round())
        );
    }
}
