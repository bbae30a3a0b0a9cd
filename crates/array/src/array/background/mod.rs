//! What an array does without being asked by a client, one step at a time.

pub(crate) mod copying;
pub(crate) mod places;
pub(crate) mod rebuild;
pub(crate) mod resync;
mod runs;
pub(crate) mod scrub;
mod tempo;

use self::copying::Copies;
use self::rebuild::Rebuild;
use self::scrub::Scrub;
use crate::budget::Pacer;
use crate::event::ResyncTold;
use crate::meta::wishes::Wishes;
use crate::progress::Resync;
use crate::settings::Settings;

/// The array's own work.
#[derive(Clone, Debug)]
pub(super) struct Background {
    pub(super) resync: Resync,
    pub(super) scrub: Scrub,
    /// When the next step of it may begin.
    pub(super) pacer: Pacer,
    /// Which events of the resync were sent.
    pub(super) resync_told: ResyncTold,
    pub(super) rebuild: Rebuild,
    copies: Copies,
}

impl Background {
    pub(super) fn new(settings: &Settings, wishes: Wishes) -> Self {
        Self {
            resync: Resync::Idle,
            scrub: Scrub::new(settings.spec.drives(), wishes.scrub),
            pacer: Pacer::new(settings.background),
            resync_told: ResyncTold::default(),
            rebuild: Rebuild::new(settings.background, wishes.rebuild),
            copies: Copies::default(),
        }
    }
}

#[cfg(test)]
mod tests;
