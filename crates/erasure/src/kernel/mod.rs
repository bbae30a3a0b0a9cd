//! The arithmetic on buffers: sums of products, by one of several kernels.
//!
//! [`driver`] says in which order the bytes are visited; a kernel, as an [`engine`], multiplies a few
//! sources for all rows, or takes them through a transform ([`by_transform`]). Which kernel is chosen never shows in
//! the bytes: [`naive`] defines them, the others are tested to be equal to it.
//!
//! `unsafe` is in this module and nowhere else, for two reasons: instructions that not every processor
//! has, and vectors loaded from and stored to addresses. Each engine checks the lengths once for each
//! block and argues from there; and an engine is reached only through [`Kernel`], which asks the
//! processor first.

mod by_transform;
mod driver;
pub(crate) mod engine;
pub(crate) mod evict;
mod groups;
pub(crate) mod naive;
mod portable;
mod scratch;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod cosets;
#[cfg(target_arch = "x86_64")]
mod fetch;
#[cfg(target_arch = "x86_64")]
mod few;
#[cfg(target_arch = "x86_64")]
mod lanes;
#[cfg(target_arch = "x86_64")]
pub(crate) mod matrix;
#[cfg(target_arch = "x86_64")]
mod sources;
#[cfg(target_arch = "x86_64")]
mod table;
#[cfg(target_arch = "x86_64")]
mod tiles;
#[cfg(target_arch = "x86_64")]
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::ops::Range;

use self::engine::{Columns, Finish, Job, ROWS_MAX, Solve};
use crate::choice::{Choice, Choices, Class, FEW};
use crate::error::{Role, UseError};
use crate::fields::Field;
use crate::kernels::Kernel;
use crate::rows::Rows;

/// Runs something with the engine of a kernel. Bytes past the last whole step of the engine are left
/// to the portable one.
macro_rules! with_engine {
    ($kernel:expr, $size:expr, |$engine:ident, $bytes:ident| $run:expr) => {{
        let size: usize = $size;
        macro_rules! run {
            ($of:ty, $range:expr) => {{
                type $engine = $of;
                let $bytes: Range<usize> = $range;
                $run
            }};
        }
        macro_rules! run_steps {
            ($of:ty) => {{
                let whole = size - size % <$of as engine::Engine>::STEP;
                if whole > 0 {
                    run!($of, 0..whole);
                }
                if whole < size {
                    run!(portable::Portable, whole..size);
                }
            }};
        }
        match $kernel.or_portable() {
            Kernel::Naive => run!(naive::Naive, 0..size),
            Kernel::Portable => run!(portable::Portable, 0..size),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => run_steps!(avx2::Avx2),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2Gfni => run_steps!(avx2::Avx2Gfni),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512Gfni => run_steps!(avx512::Avx512Gfni),
            #[cfg(not(target_arch = "x86_64"))]
            Kernel::Avx2 | Kernel::Avx2Gfni | Kernel::Avx512Gfni => {
                unreachable!("not available")
            }
        }
    }};
}

/// Computes the symbols that `rows` describes. `sources[n]` are the bytes of symbol
/// `rows.sources()[n]`, and `into[n]` becomes symbol `rows.wanted()[n]`, whatever it held before.
///
/// # Errors
///
/// If there is not one buffer for each source and each wanted symbol, or they differ in length.
pub fn combine(
    choices: impl Into<Choices>,
    rows: &Rows,
    sources: &[&[u8]],
    into: &mut [&mut [u8]],
) -> Result<(), UseError> {
    check_count(Role::Source, rows.sources().len(), sources.len())?;
    check_count(Role::Wanted, rows.wanted().len(), into.len())?;
    check_sizes(Role::Source, sources, Role::Wanted, into)?;
    let job = Job { field: Field::Bytes, columns: rows, sources };
    accumulate(&choices.into(), job, into, Finish::Store);
    Ok(())
}

/// `into = sum of coefficients[n] * sources[n]`, into the cache: each byte of a source is read once, and each
/// byte of the sum is written once. The sum of no sources is zero.
///
/// # Panics
///
/// If there is not one coefficient for each source, or the buffers differ in length.
pub fn sum(choices: impl Into<Choices>, coefficients: &[u8], sources: &[&[u8]], into: &mut [u8]) {
    sum_into(choices.into(), coefficients, sources, into, Finish::Store);
}

/// `into ^= sum of coefficients[n] * sources[n]`.
///
/// # Panics
///
/// As [`sum`].
pub fn add_sum(
    choices: impl Into<Choices>,
    coefficients: &[u8],
    sources: &[&[u8]],
    into: &mut [u8],
) {
    sum_into(choices.into(), coefficients, sources, into, Finish::Xor);
}

fn sum_into(
    choices: Choices,
    coefficients: &[u8],
    sources: &[&[u8]],
    into: &mut [u8],
    finish: Finish,
) {
    assert_eq!(coefficients.len(), sources.len(), "each source has a coefficient");
    for source in sources {
        assert_eq!(source.len(), into.len(), "symbols are of one length");
    }
    // What one asks for by itself is most often sent or added to at once.
    let choices = choices.cached();
    let job = Job { field: Field::Bytes, columns: &OneRow(coefficients), sources };
    accumulate(&choices, job, &mut [into], finish);
}

/// A matrix of a single row.
struct OneRow<'a>(&'a [u8]);

impl Columns for OneRow<'_> {
    fn columns<'a>(
        &'a self,
        sources: Range<usize>,
        _: Range<usize>,
        scratch: &'a mut [u16],
    ) -> &'a [u16] {
        for (element, &coefficient) in scratch.iter_mut().zip(&self.0[sources]) {
            *element = coefficient.into();
        }
        scratch
    }

    fn row_0_is_xor(&self) -> bool {
        self.0.iter().all(|&coefficient| coefficient == 1)
    }
}

/// `into[row] = sum of column(source)[row] * sources[source]`, or `^=` that, for every row. The buffers
/// are of one length.
pub(crate) fn accumulate(choices: &Choices, job: Job<'_>, into: &mut [&mut [u8]], finish: Finish) {
    let Some(size) = into.first().map(|into| into.len()) else {
        return;
    };
    if job.sources.is_empty() {
        if finish == Finish::Store {
            into.iter_mut().for_each(|into| into.fill(0));
        }
        return;
    }
    let choice = choice_for(choices, job, into.len());
    with_engine!(choice.kernel, size, |E, bytes| {
        driver::accumulate::<E>(choice, job, bytes, into, finish);
    });
}

/// The choice for a job by the count of its rows: that for transforms if the first pass over them is one, by the kernel of
/// that choice and by the one that would do without.
pub(crate) fn choice_for(choices: &Choices, job: Job<'_>, row_count: usize) -> Choice {
    let source_count = job.sources.len();
    let choice = choices.get(Class::of(job.field, source_count, row_count));
    let pays = |kernel| {
        let first_pass = 0..row_count.min(ROWS_MAX);
        job.columns.transform(kernel, first_pass, source_count).is_some()
    };
    // Looking for a transform takes longer than some updates.
    let is_few = source_count <= FEW;
    let is_transform = !is_few && pays(choices.transform.kernel) && pays(choice.kernel);
    if is_transform { choices.transform } else { choice }
}

/// `into[computed[n]] = own sum + weights * (checks + their sums)`, block by block.
pub(crate) fn solve(
    choices: &Choices,
    job: Job<'_>,
    solve: &Solve<'_>,
    size: usize,
    into: &mut [&mut [u8]],
) {
    let choice = choice_for(choices, job, solve.row_count);
    with_engine!(choice.kernel, size, |E, bytes| {
        driver::solve::<E>(choice, job, solve, bytes, into);
    });
}

/// That there are as many buffers as it takes.
pub(crate) fn check_count(role: Role, expected: usize, got: usize) -> Result<(), UseError> {
    if expected == got { Ok(()) } else { Err(UseError::Count { role, expected, got }) }
}

/// That all buffers have the same length, which is given.
pub(crate) fn check_sizes(
    from_role: Role,
    from: &[&[u8]],
    into_role: Role,
    into: &[&mut [u8]],
) -> Result<usize, UseError> {
    let from_sizes = from.iter().map(|from| from.len()).enumerate();
    let into_sizes = into.iter().map(|into| into.len()).enumerate();
    let mut sizes = from_sizes
        .map(|(index, size)| (from_role, index, size))
        .chain(into_sizes.map(|(index, size)| (into_role, index, size)));
    let Some((_, _, expected)) = sizes.next() else {
        return Ok(0);
    };
    match sizes.find(|&(_, _, size)| size != expected) {
        Some((role, index, got)) => Err(UseError::Size { role, index, expected, got }),
        None => Ok(expected),
    }
}
