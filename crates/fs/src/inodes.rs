//! Inodes in their units.

use levelhead_units::Lba;

use crate::attempt::{Attempt, Stop, broken};
use crate::format::inode::{INODE, INODES, Inode, InodePlace};
use crate::format::unit::Kind;
use crate::request::Errno;

impl Attempt<'_> {
    /// An inode, whether it has names or not.
    pub(crate) fn get_inode(&mut self, number: u64) -> Result<Inode, Stop> {
        let InodePlace { lead, slot } = InodePlace::of(number);
        if !self.superblock.geometry.may_lead(lead) {
            return Err(Stop::Fail(Errno::NotFound));
        }
        let body = self.read(lead, Kind::Inodes, 0)?;
        broken(Inode::decode(&body[slot * INODE..][..INODE]))
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

    /// A free inode in the unit of another one, or in a new unit near to it; its generation is one more than the last one's.
    pub(crate) fn new_inode(&mut self, near: u64, inode: &Inode) -> Result<NewInode, Stop> {
        let lead = InodePlace::of(near).lead;
        if let Some(new) = self.free_slot(lead, inode)? {
            return Ok(new);
        }
        let unit = self.take_unit(lead, Kind::Inodes, |_| 0)?;
        broken(self.free_slot(unit, inode)?)
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
        let mut free = Inode::new(0, known.changed);
        free.generation = known.generation;
        self.put_inode(place, &free)?;
        Ok(())
    }
}

/// An inode that has just come to be.
#[derive(Debug)]
pub(crate) struct NewInode {
    pub(crate) number: u64,
    pub(crate) inode: Inode,
}
