//! What the journal keeps of what is written, and what the rest of the array sees of it.
//!
//! - `record`: the format of a record's header;
//! - `rules`: the rules that a journal keeps, by name;
//! - `contents`: what an operation gives to the journal;
//! - `unplaced`, `at_risk`, `live`: what is committed and not in its place, written and not flushed, or on the rings still.

pub(crate) mod at_risk;
pub(crate) mod contents;
pub(crate) mod live;
pub mod record;
pub mod rules;
pub(crate) mod unplaced;

use std::collections::VecDeque;

use levelhead_units::DriveSet;

use self::at_risk::AtRisk;
use self::contents::{Contents, InPlace};
use self::live::Live;
use self::rules::Rule;
use self::unplaced::Unplaced;
use crate::policy::Policy;
use crate::settings::Settings;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    /// Whether what is to be written goes to the journal first.
    pub(crate) is_journaled: bool,
    /// What is committed and not in its place.
    pub(crate) unplaced: Unplaced,
    /// Which of its records a crash may still find.
    pub(crate) live: Live,
    /// Whether writes go round drives that lag.
    pub(crate) goes_round_lagging: bool,
    /// Drives that no write of a journal should wait for.
    pub(crate) hindering: DriveSet,
    /// The name of the journal's next transaction, once all others are over.
    pub(crate) next: Option<u64>,
    /// How often as much as all of a ring was written to it.
    pub(crate) ring_wraps: u64,
    /// What operations want to be written, on its way to the journal.
    pub(crate) to_journal: VecDeque<Contents>,
    /// Operations that have written in place what the journal has only announced.
    pub(crate) in_place: VecDeque<InPlace>,
    /// What they have written so and no flush has made safe.
    pub(crate) at_risk: AtRisk,
}

impl Log {
    pub(crate) fn new(settings: &Settings) -> Self {
        let keeps_live =
            settings.journal.as_ref().is_some_and(|known| known.rules.keep(Rule::Live));
        Self {
            is_journaled: settings.journal.is_some(),
            unplaced: Unplaced::new(settings.spec.members()),
            live: Live::new(keeps_live),
            goes_round_lagging: matches!(settings.policy, Policy::Level(_)),
            hindering: DriveSet::EMPTY,
            next: None,
            ring_wraps: 0,
            to_journal: VecDeque::new(),
            in_place: VecDeque::new(),
            at_risk: AtRisk::default(),
        }
    }
}
