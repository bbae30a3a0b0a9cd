//! `levelhead array ..`: arrays on this machine's drives.

mod client;
mod control;
mod create;
mod event_json;
mod events;
mod follow;
mod messages;
mod metrics;
mod process;
mod serve;
mod service;
mod snapshot;
mod socket_path;
mod verbs;
mod watch;

pub use client::ask;
pub use create::{Create, MadeArray, create};
pub use event_json::Priority;
pub use events::Tell;
pub use follow::{Events, Heard, events};
pub use serve::{Audience, Serve, Serving, serve};
pub use service::{Notice, Service, stop_bound};
pub use verbs::{Make, OFFERS, Offer, Verb};
pub use watch::{Watch, watch};

use levelhead_host::MemberSpec;

use crate::AppError;

/// Members as they were typed.
fn members(texts: &[String]) -> Result<Vec<MemberSpec>, AppError> {
    texts.iter().map(|text| text.parse().map_err(AppError::usage)).collect()
}
