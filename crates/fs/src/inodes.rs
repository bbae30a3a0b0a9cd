//! Inodes in their units.

use levelhead_units::Lba;

use crate::attempt::{Attempt, Stop, broken};
use crate::format::inode::{INODE, INODES, Inode, InodePlace};
use crate::format::unit::Kind;
use crate::ops::attributes::SIZE_MAX;
use crate::request::Errno;
use crate::tree::Owned;

impl Attempt<'_> {
    /// An inode, whether it has names or not.
    pub(crate) fn get_inode(&mut self, number: u64) -> Result<Inode, Stop> {
        let InodePlace { lead, slot } = InodePlace::of(number);
        if !self.superblock.geometry.may_lead(lead) {
            return Err(Stop::Fail(Errno::NotFound));
        }
        let sectors = self.superblock.geometry.sectors;
        let body = self.read(lead, Kind::Inodes, 0)?;
        let mut inode = broken(Inode::decode(&body[slot * INODE..][..INODE]))?;
        // A file that says more than one can have is as large as one can be: it is read and removed like others.
        if inode.is_file() {
            inode.size = inode.size.min(SIZE_MAX);
        }
        inode.sectors = inode.sectors.min(sectors);
        Ok(inode)
    }

    /// An inode that is there.
    pub(crate) fn inode(&mut self, number: u64) -> Result<Inode, Stop> {
        let inode = self.get_inode(number)?;
        if inode.mode == 0 { Err(Stop::Fail(Errno::NotFound)) } else { Ok(inode) }
    }

    /// Puts an inode into its place.
    pub(crate) fn put_inode(&mut self, place: InodePlace, inode: &Inode) -> Result<(), Stop> {
        let body = self.change(place.lead, Kind::Inodes, 0)?;
        inode.encode(&mut body[place.slot * INODE..][..INODE]);
        Ok(())
    }

    /// The same by its number.
    pub(crate) fn set_inode(&mut self, number: u64, inode: &Inode) -> Result<(), Stop> {
        self.put_inode(InodePlace::of(number), inode)
    }

    /// A free inode in the unit of another one, or in the next unit that has one, or in a new unit near to it; its generation is one
    /// more than the last one's.
    pub(crate) fn new_inode(&mut self, near: u64, inode: &Inode) -> Result<NewInode, Stop> {
        let lead = InodePlace::of(near).lead;
        if let Some(new) = self.free_slot(lead, inode)? {
            return self.use_slot(lead, new);
        }
        if let Some(spare) = self.spare_unit(lead)?
            && let Some(new) = self.free_slot(spare, inode)?
        {
            return self.use_slot(spare, new);
        }
        let unit = self.take_unit(lead, Kind::Inodes, |_| 0)?;
        let units = self.superblock.units;
        self.list_unit(units, unit, true)?;
        self.list_unit(self.superblock.spare, unit, true)?;
        let new = broken(self.free_slot(unit, inode)?)?;
        self.use_slot(unit, new)
    }

    /// How many inodes there are that are not the filesystem's own.
    pub(crate) fn inodes_used(&mut self) -> Result<u64, Stop> {
        Ok(self.inode(self.superblock.units)?.size)
    }

    fn count_inode(&mut self, is_new: bool) -> Result<(), Stop> {
        let number = self.superblock.units;
        let mut list = self.inode(number)?;
        list.size = if is_new { list.size.saturating_add(1) } else { list.size.saturating_sub(1) };
        self.set_inode(number, &list)
    }

    /// A unit that has lost its last free slot is no spare one any more.
    fn use_slot(&mut self, lead: Lba, new: NewInode) -> Result<NewInode, Stop> {
        self.count_inode(true)?;
        if self.free_slots(lead)? == 0 {
            self.list_unit(self.superblock.spare, lead, false)?;
        }
        Ok(new)
    }

    /// Leads of units of inodes from one on, in ascending order; none where there is no more.
    pub(crate) fn inode_units(&mut self, from: Lba) -> Result<Vec<Lba>, Stop> {
        let list = self.inode(self.superblock.units)?;
        let pairs = self.tree_from(self.superblock.units, &list, from.get())?;
        Ok(pairs.into_iter().map(|pair| Lba::new(pair.key)).collect())
    }

    /// The next unit from a place on, or before it, that has free slots.
    fn spare_unit(&mut self, near: Lba) -> Result<Option<Lba>, Stop> {
        let spare = self.superblock.spare;
        let list = self.inode(spare)?;
        let behind = self.tree_next(spare, &list, near.get())?.map(|pair| pair.key);
        let found = match behind {
            Some(lead) => Some(lead),
            None => self.tree_floor(spare, &list, near.get())?.map(|pair| pair.key),
        };
        Ok(found.map(Lba::new))
    }

    /// Puts a unit on a list of units, or takes it off.
    pub(crate) fn list_unit(&mut self, number: u64, lead: Lba, is_on: bool) -> Result<(), Stop> {
        let mut list = self.inode(number)?;
        let mut of = Owned { number, inode: &mut list };
        match is_on {
            true => self.tree_insert(&mut of, lead.get(), Vec::new())?,
            false => self.tree_remove(&mut of, lead.get())?,
        }
        self.set_inode(number, &list)
    }

    fn free_slots(&mut self, lead: Lba) -> Result<usize, Stop> {
        let body = self.read(lead, Kind::Inodes, 0)?;
        let is_free = |bytes: &&[u8]| Inode::decode(bytes).is_some_and(|inode| inode.mode == 0);
        Ok(body.chunks_exact(INODE).filter(is_free).count())
    }

    fn free_slot(&mut self, lead: Lba, inode: &Inode) -> Result<Option<NewInode>, Stop> {
        for slot in 0..INODES {
            let body = self.read(lead, Kind::Inodes, 0)?;
            let known = broken(Inode::decode(&body[slot * INODE..][..INODE]))?;
            if known.mode == 0 {
                let place = InodePlace { lead, slot };
                let generation = known.generation.wrapping_add(1);
                let inode = Inode { generation, ..inode.clone() };
                self.put_inode(place, &inode)?;
                return Ok(Some(NewInode { number: place.number(), inode }));
            }
        }
        Ok(None)
    }

    /// An inode is there no more. Its unit stays for the next ones: an old handle must not find anything else there.
    pub(crate) fn free_inode(&mut self, number: u64) -> Result<(), Stop> {
        let place = InodePlace::of(number);
        let known = self.get_inode(number)?;
        self.note_damaged(number, false)?;
        let mut free = Inode::new(0, known.changed);
        free.generation = known.generation;
        if self.free_slots(place.lead)? == 0 {
            self.list_unit(self.superblock.spare, place.lead, true)?;
        }
        self.count_inode(false)?;
        self.put_inode(place, &free)
    }
}

/// An inode that has just come to be.
#[derive(Debug)]
pub(crate) struct NewInode {
    pub(crate) number: u64,
    pub(crate) inode: Inode,
}
