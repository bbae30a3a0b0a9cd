//! The demo's runs in virtual time, for `levelhead-lab demo`.

use std::sync::Arc;

use levelhead_app::AppError;
use levelhead_app_drive::demo::{Load, Ran, VirtualRun};
use levelhead_array::Content;
use levelhead_lab::{WorldSettings, timed};

/// Carries out one run.
///
/// # Errors
///
/// A drive cannot be modelled.
pub fn in_virtual_time(run: &VirtualRun<'_>) -> Result<Ran, AppError> {
    let bed = run.bed;
    let settings = WorldSettings {
        spec: bed.spec,
        policy: bed.policy,
        window: bed.window,
        order: bed.order,
        content: Content::Absent,
        profile: Arc::clone(&bed.models[0].profile),
        drives: bed.models.iter().map(|model| model.settings).collect(),
        area: Some(bed.area.clone()),
        journal: None,
        seed: bed.seed,
    };
    let load = match run.load {
        Load::Open(arrivals) => timed::Load::Open(arrivals),
        Load::Closed { extents, outstanding } => timed::Load::Closed { extents, outstanding },
    };
    let timed = timed::run(&settings, load, run.start, run.length).map_err(AppError::trouble)?;
    Ok(Ran { latencies: timed.latencies, unfinished: timed.unfinished })
}
