//! The array against plain memory, over drives whose order of finishing is the test's choice.

mod background;
mod checksums;
mod copying;
mod copying_troubles;
mod damaged;
mod delivery;
mod differential;
mod fence;
mod given_up;
mod interleaving;
mod journal;
mod late;
mod level;
mod mending;
mod metadata;
mod mirrors;
mod promises;
mod proving;
mod rebuild;
mod recorded;
mod runtime;
mod scrub;
mod trouble;
mod verify;
mod wishes;
