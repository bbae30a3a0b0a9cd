//! How this process computes redundancy: measured once, before anything waits for it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use levelhead_erasure::{Class, Kernel, Measured, Measurement, Place, measure};

/// How long the measurement takes. With a run in which the processor is taken away, which no clock can
/// foresee, it shall still be done within 20 ms.
pub const MEASURING_MAX: Duration = Duration::from_millis(16);

/// How many kernels are compared, the fastest by their instructions; only those with vectors count.
const KERNEL_COUNT: usize = 2;

/// What was measured, for which kernels and computations.
type Kept = Mutex<Option<(Vec<Kernel>, Vec<Class>, Measured)>>;

/// What this process has measured.
static MEASURED: Kept = Mutex::new(None);

/// The fastest ways in which the kernel that was asked for, or the fastest ones that this processor has, do these
/// computations. Measures for at most [`MEASURING_MAX`], unless the call before asked for the same: then it gives what
/// that one found.
pub fn arithmetic(asked: Option<Kernel>, classes: &[Class]) -> Measured {
    once(&MEASURED, asked, classes, |kernels| {
        let start = Instant::now();
        measure(Measurement {
            kernels,
            // What is computed came from a drive or a client a moment ago, past the caches for the
            // most part.
            place: Place::Memory,
            classes,
            time_max: MEASURING_MAX,
            clock: &mut || start.elapsed(),
        })
    })
}

/// Measures unless it is kept what was measured last for the same kernels and computations.
fn once(
    kept: &Kept,
    asked: Option<Kernel>,
    classes: &[Class],
    measure: impl FnOnce(&[Kernel]) -> Measured,
) -> Measured {
    let kernels: Vec<Kernel> = match asked {
        Some(kernel) => vec![kernel],
        None => Kernel::available().rev().take(KERNEL_COUNT).collect(),
    };
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    match &*kept {
        Some((of, by, measured)) if *of == kernels && by == classes => measured.clone(),
        Some(_) | None => {
            let measured = measure(&kernels);
            *kept = Some((kernels, classes.to_vec(), measured.clone()));
            measured
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_measures_once_for_each_kernel_that_is_asked_for() {
        let kept = Kept::new(None);
        let mut given: Vec<(Vec<Kernel>, usize)> = Vec::new();
        let best = Kernel::best();
        for asked in [None, None, Some(Kernel::Naive), Some(Kernel::Naive), None] {
            let measured = once(&kept, asked, &[Class::One], |kernels| {
                given.push((kernels.to_vec(), 1));
                Measured::none(kernels[0], &[Class::One])
            });
            assert_eq!(measured.choices, asked.unwrap_or(best).into());
        }
        let fastest: Vec<Kernel> = Kernel::available().rev().take(KERNEL_COUNT).collect();
        assert_eq!(fastest[0], best);
        // What was measured for one class says nothing of others.
        for _ in 0..2 {
            once(&kept, None, &Class::ALL, |kernels| {
                given.push((kernels.to_vec(), Class::ALL.len()));
                Measured::none(kernels[0], &Class::ALL)
            });
        }
        let naive = vec![Kernel::Naive];
        assert_eq!(
            given,
            [(fastest.clone(), 1), (naive, 1), (fastest.clone(), 1), (fastest, Class::ALL.len())]
        );
    }
}
