//! What a caller does with a mounted filesystem: walks through all names, reads, changes some of it, and scrubs.

use std::collections::{BTreeSet, VecDeque};

use levelhead_fs::{
    Allocation, Answer, Attributes, Changes, FileKind, Named, Removed, Renaming, ScrubParts,
    ScrubPlace, Setting, Sought, What,
};

use super::Told;
use super::input::Input;
use super::mounted::Mounted;

/// Directories that are listed.
const DIRECTORIES_MAX: usize = 12;

/// Parts of one directory that are listed.
const PARTS_MAX: usize = 40;

/// Inodes that are looked at.
const INODES_MAX: usize = 80;

/// Changes that are asked for.
const CHANGES_MAX: usize = 24;

/// Steps of a scrub: more than the disk has groups and inodes.
const SCRUB_STEPS: usize = 2_000;

/// See the module.
pub(crate) fn visit(mounted: &mut Mounted, input: &mut Input<'_>, told: &mut Told) {
    let mut visitor = Visitor { mounted, told, inodes: Vec::new(), directories: Vec::new() };
    visitor.walk();
    for at in 0..visitor.inodes.len().min(INODES_MAX) {
        visitor.read(visitor.inodes[at]);
    }
    visitor.ask(What::Room);
    for _ in 0..CHANGES_MAX {
        if input.is_over() {
            break;
        }
        visitor.change(input);
    }
    visitor.ask(What::Sync { inode: None });
    visitor.scrub();
}

struct Visitor<'a> {
    mounted: &'a mut Mounted,
    told: &'a mut Told,
    inodes: Vec<u64>,
    directories: Vec<u64>,
}

impl Visitor<'_> {
    fn ask(&mut self, what: What) -> Option<Answer> {
        match self.mounted.run(what) {
            Answer::Failed(_) => {
                self.told.failed += 1;
                None
            }
            answer => {
                self.told.answered += 1;
                Some(answer)
            }
        }
    }

    /// From the root on.
    fn walk(&mut self) {
        let mut found: VecDeque<u64> = [self.mounted.root()].into();
        let mut seen: BTreeSet<u64> = BTreeSet::new();
        while let Some(directory) = found.pop_front() {
            if self.directories.len() == DIRECTORIES_MAX || !seen.insert(directory) {
                continue;
            }
            self.directories.push(directory);
            let mut after = 0;
            for _ in 0..PARTS_MAX {
                let (inode, room, with_attributes) = (directory, 2_000, after % 2 == 0);
                let what = What::ReadDirectory { inode, after, room, with_attributes };
                let Some(Answer::Entries(entries)) = self.ask(what) else { break };
                let Some(last) = entries.last() else { break };
                assert!(last.cookie > after, "a directory is read in a circle");
                after = last.cookie;
                for entry in &entries {
                    if !matches!(&entry.name[..], b"." | b"..") {
                        self.inodes.push(entry.inode);
                        found.push_back(entry.inode);
                    }
                }
                let name = Named { parent: directory, name: last.name.clone() };
                self.ask(What::Lookup(name));
            }
        }
    }

    fn read(&mut self, inode: u64) {
        let size = match self.ask(What::GetAttributes(inode)) {
            Some(Answer::Attributes(Attributes { size, .. })) => size,
            _ => 0,
        };
        for (offset, count) in [(0, 60_000), (size / 2, 9_000), (size.saturating_sub(5_000), 8_192)]
        {
            self.ask(What::Read { inode, offset, count });
        }
        self.ask(What::ReadLink(inode));
        self.ask(What::Seek { inode, offset: 0, what: Sought::Hole });
        self.ask(What::Seek { inode, offset: size / 3, what: Sought::Data });
        if let Some(Answer::Bytes(names)) = self.ask(What::ListExtended(inode)) {
            for name in names.split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
                self.ask(What::GetExtended { inode, name: name.to_vec() });
            }
        }
    }

    fn change(&mut self, input: &mut Input<'_>) {
        let directories = self.directories.clone();
        let name = |input: &mut Input<'_>| {
            let parent = input.pick(&directories);
            let known: [&[u8]; 8] =
                [b"small", b"folder", b"inner", b"large", b"new", b"short", b"long", b"holes"];
            Named { parent, name: input.pick(&known).to_vec() }
        };
        let inode = match self.inodes.len() {
            0 => self.mounted.root(),
            count => self.inodes[input.below(count.min(1 << 16))],
        };
        let offset = match input.u8() % 4 {
            0 => 0,
            1 => input.u64() >> 6,
            _ => u64::from(input.u16()) * 7,
        };
        let count = u64::from(input.u16()) + 1;
        let what = match input.u8() % 16 {
            0 => What::Make { name: name(input), mode: 0o100_644, umask: 0, device: 0 },
            1 => What::Make { name: name(input), mode: 0o040_755, umask: 0, device: 0 },
            2 => What::MakeLink { name: name(input), target: vec![b'y'; count as usize % 4_200] },
            3 => What::Remove { name: name(input), what: Removed::File },
            4 => What::Remove { name: name(input), what: Removed::Directory },
            5 => {
                let modes = [Renaming::Replace, Renaming::Keep, Renaming::Exchange];
                What::Rename { from: name(input), to: name(input), mode: input.pick(&modes) }
            }
            6 => What::Link { inode, name: name(input) },
            7 => {
                let changes = Changes { size: Some(offset), ..Changes::default() };
                What::SetAttributes { inode, changes }
            }
            8 => {
                let kind = Some(input.pick(&FileKind::ALL));
                let changes = Changes { mode: Some(0o700), kind, ..Changes::default() };
                What::SetAttributes { inode, changes }
            }
            9 => {
                let hows = [
                    Allocation::Extend,
                    Allocation::Keep,
                    Allocation::Punch,
                    Allocation::Zero,
                    Allocation::ZeroKeep,
                ];
                What::Allocate { inode, offset, count, how: input.pick(&hows) }
            }
            10 => What::SetExtended {
                inode,
                name: format!("user.{}", input.u8() % 4).into_bytes(),
                value: vec![3; count as usize % 5_000],
                mode: Setting::Any,
            },
            11 => {
                let name = format!("user.{}", input.u8() % 4).into_bytes();
                What::RemoveExtended { inode, name }
            }
            12 => What::Sync { inode: Some(inode) },
            13 => What::Forget { inode, count: 1 },
            _ => {
                let bytes = vec![input.u8(); count as usize * 3];
                What::Write { inode, offset, bytes, appends: input.u8().is_multiple_of(4) }
            }
        };
        if let Some(Answer::Entry(made)) = self.ask(what) {
            self.inodes.push(made.inode);
        }
    }

    fn scrub(&mut self) {
        let mut next = Some(ScrubPlace::FIRST);
        for _ in 0..SCRUB_STEPS {
            let Some(place) = next else { return };
            next = match self.ask(What::Scrub { place, parts: ScrubParts::ALL }) {
                Some(Answer::Scrubbed(step)) => step.next,
                _ => None,
            };
        }
        panic!("a scrub never ends");
    }
}
