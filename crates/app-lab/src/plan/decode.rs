//! How fast this machine rebuilds lost sectors.

use std::hint::black_box;
use std::time::Instant;

use levelhead_erasure::Kernel;
use levelhead_planner::Code;
use levelhead_planner::decode::DecodeTime;
use levelhead_units::{Nanos, SECTOR_SIZE};

use levelhead_app::AppError;

/// Repetitions of each measurement; the fastest counts, since others may have been disturbed.
const REPEATS: u32 = 5;

/// Times the rebuilding of 1, 2, 4 and so on up to all redundant symbols of `code`: planning and
/// arithmetic, in sectors, on one core, with the best kernel.
pub(super) fn measure(code: Code) -> Result<DecodeTime, AppError> {
    let refuse = |error: &dyn std::fmt::Display| AppError::usage(format!("code {code}: {error}"));
    let (data, redundant) = (code.data as usize, code.redundant as usize);
    let erasure = levelhead_erasure::Code::new(data, redundant).map_err(|error| refuse(&error))?;
    let kernel = Kernel::best();
    let symbols: Vec<Vec<u8>> = (0..data + redundant)
        .map(|symbol| (0..SECTOR_SIZE).map(|at| (symbol * 31 + at * 7) as u8).collect())
        .collect();
    let mut counts: Vec<usize> = std::iter::successors(Some(1), |count| Some(count * 2))
        .take_while(|&c| c < redundant)
        .collect();
    if redundant > 0 {
        counts.push(redundant);
    }
    let mut table = Vec::new();
    for erased_count in counts {
        let erased: Vec<usize> = (0..erased_count.min(data)).collect();
        let mut into = vec![vec![0; SECTOR_SIZE]; erased.len()];
        let mut fastest = f64::INFINITY;
        for _ in 0..REPEATS {
            let begin = Instant::now();
            let plan = erasure.plan(&erased, &erased).map_err(|error| refuse(&error))?;
            let sources: Vec<&[u8]> =
                plan.sources().iter().map(|&symbol| symbols[symbol].as_slice()).collect();
            let mut buffers: Vec<&mut [u8]> = into.iter_mut().map(Vec::as_mut_slice).collect();
            plan.run(kernel, &sources, &mut buffers).map_err(|error| refuse(&error))?;
            fastest = fastest.min(begin.elapsed().as_secs_f64());
            black_box(&into);
        }
        table.push((erased_count as u64, Nanos::from_secs_f64_round(fastest)));
    }
    Ok(DecodeTime::Table(table))
}
