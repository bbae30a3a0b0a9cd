//! The load of a replay.

use levelhead_stats::Streams;
use levelhead_trace::{Arrival, Mapping, onto_array, read};
use levelhead_units::Sectors;

use super::{Load, Replay};
use levelhead_app::{AppError, Progress, files};

/// The load, ready for the array.
pub(super) struct Input {
    /// What it is called in results.
    pub(super) name: String,
    /// What became of it on its way onto the array.
    pub(super) account: String,
    pub(super) arrivals: Vec<Arrival>,
}

pub(super) fn load(
    ask: &Replay,
    size: Sectors,
    progress: &dyn Progress,
) -> Result<Input, AppError> {
    match &ask.load {
        Load::Synthetic(workload) => {
            let arrivals =
                workload.generate(size, Streams::new(ask.seed)).map_err(AppError::usage)?;
            let account = workload.account().to_owned();
            Ok(Input { name: workload.to_string(), account, arrivals })
        }
        Load::Trace { path, format, placement, rate } => {
            let file = files::open(path)?;
            let length = file.metadata().map_or(0, |metadata| metadata.len());
            let name = path.display().to_string();
            let task = progress.begin("reading", length);
            let trace = read(file, &name, *format, &mut |done| task.reach(done))
                .map_err(AppError::usage)?;
            drop(task);
            let recorded = Mapping::as_recorded(&trace, size);
            let placement = placement.unwrap_or(recorded.placement);
            let mapping = Mapping { placement, rate: *rate, ..recorded };
            let (arrivals, report) = onto_array(&trace, mapping)
                .map_err(|error| AppError::usage(format!("{name}: {error}")))?;
            Ok(Input { name, account: report.to_string(), arrivals })
        }
    }
}
