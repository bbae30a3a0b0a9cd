//! What extended attributes mean: lists of who may do what and the bits of the mode go along with each other, and [`KIND`] is the
//! inode's kind itself.

use crate::attempt::{Attempt, Stop};
use crate::format::inode::{FileKind, Moment};
use crate::format::superblock::ZERO_FORCING;
use crate::ops::access::{ACCESS, DEFAULT, check_list, mode_with};
use crate::ops::extended::Extended;
use crate::ops::names::Asked;
use crate::request::{Errno, Setting};

/// The longest name.
const NAME_MAX: usize = 255;

/// How a file is laid out from now on, or the new files of a directory: the name of a [`FileKind`].
pub(crate) const KIND: &[u8] = b"user.levelhead.kind";

impl Attempt<'_> {
    /// The names of all of them, each with a zero byte behind it.
    pub(crate) fn list_extended(&mut self, number: u64) -> Result<Vec<u8>, Stop> {
        let mut names: Vec<Vec<u8>> =
            self.extended(number)?.into_iter().map(|extended| extended.name).collect();
        if self.inode(number)?.kind != FileKind::Auto {
            names.push(KIND.to_vec());
        }
        Ok(names.into_iter().flat_map(|name| [name, vec![0]].concat()).collect())
    }

    /// The value of one.
    pub(crate) fn get_extended(&mut self, number: u64, name: &[u8]) -> Result<Vec<u8>, Stop> {
        if name == KIND {
            let inode = self.inode(number)?;
            return match inode.is_file() || inode.is_directory() {
                true => Ok(inode.kind.name().as_bytes().to_vec()),
                false => Err(Stop::Fail(Errno::NoData)),
            };
        }
        let found = self.extended(number)?.into_iter().find(|extended| extended.name == name);
        found.map(|extended| extended.value).ok_or(Stop::Fail(Errno::NoData))
    }

    /// Gives one a value.
    pub(crate) fn set_extended(
        &mut self,
        number: u64,
        new: Extended,
        setting: Setting,
        asked: Asked,
    ) -> Result<(), Stop> {
        if new.name.is_empty() || new.name.len() > NAME_MAX {
            return Err(Stop::Fail(Errno::Invalid));
        }
        if new.name == KIND {
            return self.set_kind(number, &new.value, asked.now);
        }
        let mut all = self.extended(number)?;
        let at = all.binary_search_by(|known| known.name.cmp(&new.name));
        match (setting, at) {
            (Setting::Create, Ok(_)) => return Err(Stop::Fail(Errno::Exists)),
            (Setting::Replace, Err(_)) => return Err(Stop::Fail(Errno::NoData)),
            (_, Ok(_) | Err(_)) => {}
        }
        let mut is_kept = true;
        if new.name == ACCESS || new.name == DEFAULT {
            let mut inode = self.inode(number)?;
            let list = check_list(&inode, &new.name, &new.value)?;
            if new.name == ACCESS {
                is_kept = !list.is_mode();
                inode.mode = mode_with(&inode, &list, asked.caller);
                self.set_inode(number, &inode)?;
            }
        }
        match (at, is_kept) {
            (Ok(at), true) => all[at] = new,
            (Ok(at), false) => drop(all.remove(at)),
            (Err(at), true) => all.insert(at, new),
            (Err(_), false) => {}
        }
        self.put_extended(number, &all, asked.now)
    }

    /// Where forced zeroes are of no use, no file may be of a kind that has them.
    fn set_kind(&mut self, number: u64, name: &[u8], now: Moment) -> Result<(), Stop> {
        let kind = FileKind::ALL.into_iter().find(|kind| kind.name().as_bytes() == name);
        let kind = kind.ok_or(Stop::Fail(Errno::Invalid))?;
        let mut inode = self.inode(number)?;
        let may_be = match kind {
            FileKind::Auto | FileKind::A => true,
            FileKind::B | FileKind::Mutable => self.superblock.incompatible & ZERO_FORCING != 0,
        };
        if !may_be || !(inode.is_file() || inode.is_directory()) {
            return Err(Stop::Fail(Errno::NotSupported));
        }
        (inode.kind, inode.changed) = (kind, now);
        self.set_inode(number, &inode)
    }

    /// Takes one away.
    pub(crate) fn remove_extended(
        &mut self,
        number: u64,
        name: &[u8],
        now: Moment,
    ) -> Result<(), Stop> {
        if name == KIND {
            return match self.inode(number)?.kind {
                FileKind::Auto => Err(Stop::Fail(Errno::NoData)),
                FileKind::A | FileKind::B | FileKind::Mutable => {
                    self.set_kind(number, FileKind::Auto.name().as_bytes(), now)
                }
            };
        }
        let mut all = self.extended(number)?;
        let at = all.iter().position(|extended| extended.name == name);
        all.remove(at.ok_or(Stop::Fail(Errno::NoData))?);
        self.put_extended(number, &all, now)
    }
}
