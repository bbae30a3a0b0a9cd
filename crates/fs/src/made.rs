//! A filesystem in memory, for tests of what lies below operations.

use std::collections::BTreeSet;

use levelhead_units::Sectors;

use crate::attempt::{Attempt, Ground, RoomLeft, Stop};
use crate::cache::Cache;
use crate::format::inode::Moment;
use crate::format::ladder::Ladder;
use crate::format::superblock::Superblock;
use crate::format::unit::Head;
use crate::make::{Wishes, make};
use crate::recent::Recent;

/// See the module: everything is in memory, and every attempt counts at once.
pub(crate) struct Made {
    superblock: Superblock,
    cache: Cache,
    recent: Recent,
    lost: BTreeSet<levelhead_units::Lba>,
}

/// Wishes for a small filesystem.
pub(crate) fn wishes(sectors: u64, copies: u8) -> Wishes {
    Wishes {
        size: Sectors::new(sectors),
        copies,
        ladder: Ladder::new(&[0, 4, 8, 16]).expect("there is such a code"),
        interleave: 1,
        forced: None,
        identity: [7; 16],
        label: String::new(),
        uid: 0,
        gid: 0,
        now: Moment::default(),
    }
}

impl Made {
    pub(crate) fn new(sectors: u64, copies: u8) -> Self {
        let new = make(&wishes(sectors, copies)).expect("it is large enough");
        let mut cache = Cache::new(1 << 20);
        for written in &new.first {
            let head = Head::open(&written.bytes).expect("it was sealed");
            cache.insert_read(head.lba, &head, *written.bytes);
        }
        let (recent, lost) = Default::default();
        Self { superblock: new.superblock, cache, recent, lost }
    }

    /// What an attempt brings; its changes count.
    pub(crate) fn attempt<T>(
        &mut self,
        operation: impl FnOnce(&mut Attempt<'_>) -> Result<T, Stop>,
    ) -> T {
        let Self { superblock, cache, recent, lost } = self;
        let mut attempt =
            Attempt::new(Ground { superblock, recent, room: RoomLeft::default(), cache, lost });
        let brought = operation(&mut attempt).expect("all of it is in memory");
        for (lead, unit) in attempt.finish().units {
            self.cache.insert_changed(lead, unit, 1);
        }
        brought
    }

    /// Free sectors.
    pub(crate) fn free(&mut self) -> u64 {
        self.attempt(|attempt: &mut Attempt<'_>| attempt.free_in_all())
    }
}
