//! How this process computes redundancy: measured once, before anything waits for it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use levelhead_erasure::{Kernel, Measured, Measurement, Place, measure};

/// How long the measurement takes. With a run in which the processor is taken away, which no clock can
/// foresee, it shall still be done within 20 ms.
pub const MEASURING_MAX: Duration = Duration::from_millis(16);

/// Of so many kernels, the fastest by their instructions, one is chosen.
const KERNEL_COUNT: usize = 2;

/// What was measured, and for which kernels.
static MEASURED: Mutex<Option<(Vec<Kernel>, Measured)>> = Mutex::new(None);

/// The fastest ways of the kernel that was asked for, or of the fastest ones that this processor has. The
/// first call measures, for at most [`MEASURING_MAX`]; others with the same kernel give what it found.
pub fn arithmetic(asked: Option<Kernel>) -> Measured {
    let kernels: Vec<Kernel> = match asked {
        Some(kernel) => vec![kernel],
        None => Kernel::available().rev().take(KERNEL_COUNT).collect(),
    };
    let mut kept = MEASURED.lock().unwrap_or_else(PoisonError::into_inner);
    match &*kept {
        Some((of, measured)) if *of == kernels => measured.clone(),
        Some(_) | None => {
            let start = Instant::now();
            let measured = measure(Measurement {
                kernels: &kernels,
                // What is computed came from a drive or a client a moment ago, past the caches for the
                // most part.
                place: Place::Memory,
                time_max: MEASURING_MAX,
                clock: &mut || start.elapsed(),
            });
            *kept = Some((kernels, measured.clone()));
            measured
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_measures_once_and_the_kernel_asked_for_is_the_one_taken() {
        let first = arithmetic(Some(Kernel::best()));
        let again = arithmetic(Some(Kernel::best()));
        assert_eq!(first.took, again.took);
        assert!(first.classes.iter().all(|class| class.choice.kernel == Kernel::best()));
        let portable = arithmetic(Some(Kernel::Portable));
        assert_eq!(portable.choices, Kernel::Portable.into());
    }
}
