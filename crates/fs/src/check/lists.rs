//! Lists of the filesystem's own: they name what belongs on them, and count it.

use levelhead_units::Lba;

use super::report::List;
use super::walk::BROKEN;
use super::{Checker, Problem};
use crate::format::inode::InodePlace;

impl Checker<'_> {
    /// Lists of units of inodes, and of damaged files, against what was found.
    pub(super) fn check_lists(&mut self) {
        let listed = std::mem::take(&mut self.walk.listed);
        let mut units = std::mem::take(&mut self.walk.units);
        units.sort_unstable();
        let all: Vec<u64> = units.iter().map(|unit| unit.lead).collect();
        let spare: Vec<u64> =
            units.iter().filter(|unit| unit.free > 0).map(|unit| unit.lead).collect();
        self.compare_list(List::Units, &listed.units, &all);
        self.compare_list(List::Spare, &listed.spare, &spare);
        let own = self.superblock.own_inodes();
        let live = std::mem::take(&mut self.walk.live);
        let lost = &self.walk.lost;
        let may_be = |&inode: &u64| {
            live.binary_search_by_key(&inode, |one| one.inode).is_ok()
                || lost.contains(&InodePlace::of(inode).lead)
        };
        let files: Vec<u64> = listed.damaged.iter().copied().filter(may_be).collect();
        self.compare_list(List::Damaged, &listed.damaged, &files);
        if listed.files != files.len() as u64 {
            let (says, is) = (listed.files, files.len() as u64);
            self.note(Problem::Count { list: List::Damaged, says, is });
        }
        let inodes = live.iter().filter(|one| !own.contains(&one.inode)).count() as u64;
        let are_broken = live.iter().any(|one| one.kind == BROKEN);
        if listed.inodes != inodes && self.walk.lost.is_empty() && !are_broken {
            self.note(Problem::Count { list: List::Units, says: listed.inodes, is: inodes });
        }
        self.walk.live = live;
    }

    /// Both in ascending order.
    fn compare_list(&mut self, list: List, listed: &[u64], right: &[u64]) {
        for &key in right.iter().filter(|key| listed.binary_search(key).is_err()) {
            self.note(Problem::Unlisted { list, key });
        }
        for &key in listed.iter().filter(|key| right.binary_search(key).is_err()) {
            let is_lost = list != List::Damaged && self.walk.lost.contains(&Lba::new(key));
            if !is_lost {
                self.note(Problem::WronglyListed { list, key });
            }
        }
    }
}
