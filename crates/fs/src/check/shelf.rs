//! A filesystem that was used and unmounted, for tests that change what is on its disk.

use levelhead_block::Memory;
use levelhead_units::{Extent, Lba, Sectors};

use super::mend::attempt_over;
use crate::attempt::{Attempt, Stop};
use crate::bed::{Bed, newest};
use crate::format::entry::Entry;
use crate::format::extent::Window;
use crate::format::inode::{INODES, Inode, InodePlace, Moment, mode};
use crate::format::superblock::Superblock;
use crate::format::unit::{HEAD, Head, Sector};
use crate::request::{Answer, Named, Setting, What};
use crate::tree::Owned;

pub(crate) const FILE: u32 = mode::FILE | 0o644;
pub(crate) const DIRECTORY: u32 = mode::DIRECTORY | 0o755;
pub(crate) const NOW: Moment = Moment { seconds: 5, nanos: 0 };

/// A filesystem that was used and unmounted, and what is in it.
pub(crate) struct Shelf {
    pub(crate) disk: Memory,
    pub(crate) superblock: Superblock,
    pub(crate) file: u64,
    pub(crate) small: u64,
    pub(crate) folder: u64,
    pub(crate) inner: u64,
    pub(crate) below: u64,
}

impl Shelf {
    pub(crate) fn new() -> Self {
        let mut bed = Bed::new(20_000, 1);
        let mut bytes = vec![0; 300_000];
        bed.rng().fill(&mut bytes);
        let name = bed.root("file");
        let file = bed.make(&name, FILE).inode;
        bed.write(file, 0, &bytes);
        let name = bed.root("small");
        let small = bed.make(&name, FILE).inode;
        bed.write(small, 0, &bytes[..5_000]);
        let name = bed.root("folder");
        let folder = bed.make(&name, DIRECTORY).inode;
        let inner = bed.make(&Named { parent: folder, name: b"inner".to_vec() }, FILE).inode;
        bed.write(inner, 0, &bytes[..50_000]);
        let below = bed.make(&Named { parent: folder, name: b"below".to_vec() }, DIRECTORY).inode;
        // A tree with nodes of its own.
        for at in 0..60 {
            let name = format!("a name that takes some room, {at:040}").into_bytes();
            bed.make(&Named { parent: below, name }, FILE);
        }
        let name = b"user.a".to_vec();
        let what = What::SetExtended { inode: small, name, value: vec![1; 99], mode: Setting::Any };
        assert_eq!(bed.run(what), Answer::Done);
        bed.sync(None);
        let disk = bed.unmount();
        let superblock = newest(&disk).unwrap();
        Self { disk, superblock, file, small, folder, inner, below }
    }

    /// An operation of which everything comes to its place.
    pub(crate) fn plant<T>(
        &mut self,
        operation: impl Fn(&mut Attempt<'_>) -> Result<T, Stop>,
    ) -> T {
        attempt_over(&mut self.disk, &self.superblock, operation).expect("it can be done")
    }

    pub(crate) fn edit(&mut self, number: u64, change: impl Fn(&mut Inode)) {
        self.plant(|attempt| {
            let mut inode = attempt.get_inode(number)?;
            change(&mut inode);
            attempt.set_inode(number, &inode)
        });
    }

    pub(crate) fn sector(&mut self, lba: Lba) -> &mut [u8] {
        self.disk.bytes_mut(Extent::new(lba, Sectors::new(1)))
    }

    pub(crate) fn spoil(&mut self, lba: Lba) {
        self.sector(lba).iter_mut().for_each(|byte| *byte ^= 0x5A);
    }

    /// All copies of a unit.
    pub(crate) fn spoil_unit(&mut self, lead: Lba) {
        let copies = self.superblock.geometry.copies_of(lead);
        copies.into_iter().for_each(|copy| self.spoil(copy));
    }

    /// The body of a unit, whatever it is.
    pub(crate) fn edit_unit(&mut self, lead: Lba, change: impl Fn(&mut [u8])) {
        let mut bytes: Sector = (&*self.sector(lead)).try_into().unwrap();
        let head = Head::open(&bytes).unwrap();
        change(&mut bytes[HEAD..]);
        head.seal(&mut bytes);
        for copy in self.superblock.geometry.copies_of(lead) {
            self.sector(copy).copy_from_slice(&bytes);
        }
    }

    /// The first window of a file.
    pub(crate) fn window(&mut self, number: u64) -> Window {
        let size = self.superblock.geometry.sectors;
        let pair = self.plant(|attempt| {
            let inode = attempt.inode(number)?;
            attempt.tree_next(number, &inode, 0)
        });
        Window::decode(&pair.unwrap().value, size).unwrap()
    }

    /// The first node below the root of an inode's tree.
    pub(crate) fn node(&mut self, number: u64) -> Lba {
        self.plant(|attempt| {
            let inode = attempt.inode(number)?;
            Ok(attempt.tree_units(number, &inode)?[0])
        })
    }

    /// The last unit of inodes.
    pub(crate) fn last_unit(&mut self) -> Lba {
        let units = self.superblock.units;
        let last = self.plant(|attempt| {
            let list = attempt.inode(units)?;
            attempt.tree_floor(units, &list, u64::MAX)
        });
        Lba::new(last.unwrap().key)
    }

    /// An inode that is free.
    pub(crate) fn free_number(&mut self) -> u64 {
        let spare = self.superblock.spare;
        self.plant(|attempt| {
            let list = attempt.inode(spare)?;
            let lead = Lba::new(attempt.tree_next(spare, &list, 0)?.expect("one has some").key);
            for slot in 0..INODES {
                let number = InodePlace { lead, slot }.number();
                if attempt.get_inode(number)?.mode == 0 {
                    return Ok(number);
                }
            }
            panic!("none of {lead:?} is free");
        })
    }

    pub(crate) fn name(&mut self, directory: u64, name: &[u8], number: u64, kind: u32) {
        let entry = Entry { inode: number, kind: (kind >> 12) as u8, name: name.to_vec() };
        self.plant(|attempt| {
            let mut inode = attempt.directory(directory)?;
            attempt.enter(directory, &mut inode, &entry, NOW)
        });
    }

    pub(crate) fn unname(&mut self, directory: u64, name: &[u8]) {
        self.plant(|attempt| {
            let mut inode = attempt.directory(directory)?;
            let found = attempt.entry(directory, &inode, name)?;
            attempt.leave(directory, &mut inode, found.key, NOW)
        });
    }

    /// A pair comes into a tree, or another one goes.
    pub(crate) fn put(&mut self, number: u64, key: u64, value: &[u8]) {
        self.plant(|attempt| {
            let mut inode = attempt.inode(number)?;
            attempt.tree_insert(&mut Owned { number, inode: &mut inode }, key, value.to_vec())?;
            attempt.set_inode(number, &inode)
        });
    }
}
