//! Every call of the life cycle in every phase: an unmount that is wished for is carried out, a request is answered once, and how it has
//! ended is what the disk says.

use std::collections::BTreeSet;

use levelhead_block::{Memory, RequestId};

use super::{Ended, Filesystem, Phase};
use crate::Settings;
use crate::bed::{Bed, copy, newest};
use crate::format::inode::mode;
use crate::made::wishes;
use crate::request::{Answer, Errno, What};
use crate::settings::MountMode;

const PAGE: usize = 4_096;

/// Commands and waits that no life has.
const TICKS_MAX: u32 = 5_000;

/// What comes from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Unmount,
    UnmountTwice,
    Timeout,
    Lookup,
    Write,
    Sync,
}

const CALLS: [Call; 6] =
    [Call::Unmount, Call::UnmountTwice, Call::Timeout, Call::Lookup, Call::Write, Call::Sync];

/// How a mount begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// On a disk that was left clean.
    Clean,
    /// After a power cut, with records in the journal.
    Cut,
    /// The same to be read.
    ReadOnly,
}

fn phase_of(fs: &Filesystem) -> &'static str {
    match fs.phase {
        Phase::Mounting(_) => "mounting",
        Phase::Mounted => "mounted",
        Phase::Unmounting => "unmounting",
        Phase::Closing(_) => "closing",
        Phase::Unmounted => "unmounted",
        Phase::Broken(_) => "broken",
    }
}

/// Disks as mounts find them, and the inode of a file there.
struct Disks {
    clean: Memory,
    cut: Memory,
    inode: u64,
}

fn disks() -> Disks {
    let mut bed = Bed::made(&wishes(4_096, 3), 1);
    let name = bed.root("a file");
    let inode = bed.make(&name, mode::FILE | 0o644).inode;
    bed.write(inode, 0, &vec![1; 3 * PAGE]);
    let clean = bed.unmount();
    let mut bed = Bed::mount(copy(&clean), 2);
    bed.write(inode, PAGE as u64, &[2; PAGE]);
    bed.sync(None);
    Disks { clean, cut: bed.cut(), inode }
}

/// One life: mounted, written to, unmounted. Something is called when it is so many ticks old, and from then on writes may fail.
struct Life<'a> {
    disks: &'a Disks,
    start: Start,
    at: u32,
    call: Call,
    fails: bool,
}

impl Life<'_> {
    /// Lives it; returns the phase in which the call came, or nothing if it was over before.
    fn run(&self) -> Option<&'static str> {
        let what =
            format!("{:?} at {} of {:?}, failing {}", self.call, self.at, self.start, self.fails);
        let (disk, mount_mode) = match self.start {
            Start::Clean => (&self.disks.clean, MountMode::ReadWrite),
            Start::Cut => (&self.disks.cut, MountMode::ReadWrite),
            Start::ReadOnly => (&self.disks.cut, MountMode::ReadOnly),
        };
        let settings =
            Settings { mode: mount_mode, ..Settings::new(levelhead_erasure::Kernel::best()) };
        let mut bed = Bed::mount_with(copy(disk), 3, settings);
        let write = |byte: u8| What::Write {
            inode: self.disks.inode,
            offset: 0,
            bytes: vec![byte; 9],
            appends: false,
        };
        let mut asked: Vec<RequestId> = vec![bed.ask(write(5))];
        let (mut has_left, mut phase, mut tick, mut is_over) = (false, None, 0, false);
        loop {
            assert!(tick < TICKS_MAX, "{what}: it goes on and on, {}", bed.fs.left());
            if tick == self.at {
                phase = Some(phase_of(&bed.fs));
                bed.fails_writes = self.fails;
                match self.call {
                    Call::Unmount => bed.begin_unmount(),
                    Call::UnmountTwice => {
                        bed.begin_unmount();
                        bed.begin_unmount();
                    }
                    Call::Timeout => bed.wait_until(bed.now),
                    Call::Lookup => {
                        let name = bed.root("a file");
                        asked.push(bed.ask(What::Lookup(name)));
                    }
                    Call::Write => asked.push(bed.ask(write(6))),
                    Call::Sync => asked.push(bed.ask(What::Sync { inode: None })),
                }
            }
            tick += 1;
            if bed.step() {
                continue;
            }
            if is_over {
                break;
            }
            // One tick more, at which it is over.
            if has_left {
                is_over = true;
            } else {
                bed.begin_unmount();
                has_left = true;
            }
        }
        let ended =
            bed.fs.ended().unwrap_or_else(|| panic!("{what}: it has not ended, {}", bed.fs.left()));
        for id in asked {
            let answer = bed.answer(id).unwrap_or_else(|| panic!("{what}: {id:?} has no answer"));
            let comes_too_late = matches!(phase, Some("closing" | "unmounted"));
            let may_fail = match answer {
                Answer::Failed(Errno::ReadOnly) => self.fails || mount_mode == MountMode::ReadOnly,
                Answer::Failed(Errno::Io) => self.fails || comes_too_late,
                Answer::Failed(_) => false,
                _ => true,
            };
            assert!(may_fail, "{what}: {id:?} {answer:?}");
        }
        let is_clean = newest(&bed.disk).expect("one is left").is_clean;
        match mount_mode {
            // What fails before the first superblock was written leaves it as it was, and behind the first of the end it is clean.
            MountMode::ReadWrite => assert!(is_clean || ended == Ended::NotStored, "{what}"),
            MountMode::ReadOnly => assert_eq!(ended, Ended::Clean, "{what}"),
        }
        assert!(self.fails || ended == Ended::Clean, "{what}");
        phase
    }
}

#[test]
fn every_call_in_every_phase_is_carried_out() {
    let disks = disks();
    let mut seen = BTreeSet::new();
    for start in [Start::Clean, Start::Cut, Start::ReadOnly] {
        for (call, fails) in CALLS.into_iter().flat_map(|call| [(call, false), (call, true)]) {
            for at in 0..TICKS_MAX {
                let life = Life { disks: &disks, start, at, call, fails };
                let Some(phase) = life.run() else { break };
                seen.insert(phase);
            }
        }
    }
    let all = ["closing", "mounted", "mounting", "unmounted", "unmounting"];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), all, "broken: each that fails");
}
