//! What is refused, and what is lost: one table, each with its sentence, and nothing changed on any drive.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use levelhead_block::Durability;
use levelhead_units::Bytes;

use crate::DRIVE;
use crate::support::{Shelf, connect, levelhead, refs};

const SPEC: &str = "raid5:2+1,chunk=8KiB";

/// An array of three drives that was written to and stopped, twice, and what its drives held between.
struct Array {
    shelf: Shelf,
    drives: Vec<String>,
    earlier: Vec<Vec<u8>>,
}

impl Array {
    fn new(options: &[&str]) -> Self {
        let shelf = Shelf::new();
        let drives = shelf.drives(3, DRIVE);
        let create = ["array", "create", SPEC, "--assume-clean"];
        levelhead(&[&create[..], options, &refs(&drives)].concat()).good();
        let mut array = Self { shelf, drives, earlier: Vec::new() };
        array.write(&array.drives.clone(), 1);
        array.earlier = array.drives.iter().map(|drive| fs::read(drive).unwrap()).collect();
        array.write(&array.drives.clone(), 2);
        array
    }

    fn write(&self, drives: &[String], byte: u8) {
        let serving = self.shelf.serve_degraded(drives);
        let client = connect(&self.shelf.path("nbd.sock"));
        client.write_at(Bytes::new(0), &[byte; 65536], Durability::Durable).unwrap();
        drop(client);
        serving.stop();
    }

    /// The server is killed after a write.
    fn cut_off(&self) {
        let serving = self.shelf.serve(&self.drives);
        let client = connect(&self.shelf.path("nbd.sock"));
        client.write_at(Bytes::new(0), &[3; 65536], Durability::Durable).unwrap();
        drop(client);
        serving.signal(rustix::process::Signal::KILL);
        drop(serving.end());
    }

    fn patch(&self, drive: usize, bytes: &[u8], at: u64) {
        let file = File::options().write(true).open(&self.drives[drive]).unwrap();
        file.write_all_at(bytes, at).unwrap();
    }

    fn serve<'a>(&'a self, members: &[&'a str]) -> Vec<&'a str> {
        [&["array", "serve", "--nbd", "tcp:0"][..], members].concat()
    }

    /// Refused with this sentence, by `serve`, and by `assemble`; and no drive has changed.
    #[track_caller]
    fn check_serve(&self, members: &[&str], sentence: &[&str]) {
        self.check(&self.serve(members), sentence);
        self.check(&[&["array", "assemble"][..], members].concat(), sentence);
    }

    #[track_caller]
    fn check(&self, args: &[&str], sentence: &[&str]) {
        let before = self.shelf.content();
        let ended = levelhead(args);
        // Too few drives are no wrong call for those who only ask.
        let refusal = if ended.code == Some(3) { ended.failure() } else { ended.refusal() };
        for part in sentence {
            assert!(refusal.contains(part), "{args:?}: no '{part}' in: {refusal}");
        }
        assert_eq!(ended.err.trim_end().lines().count(), 1, "one sentence: {}", ended.err);
        assert!(before == self.shelf.content(), "{args:?} has changed something");
    }

    fn all(&self) -> Vec<&str> {
        refs(&self.drives)
    }
}

/// What an array is served without, or not at all: each case changes the drives of an array of its own.
#[test]
fn drives_that_are_no_array_are_refused_and_left_as_they_are() {
    type Change = fn(&Array);
    let cases: [(&str, Change, &[&str]); 12] = [
        (
            "F5: a copy of a member made earlier",
            |array| {
                fs::write(&array.drives[1], &array.earlier[1]).unwrap();
            },
            &["d1.img holds old data: it is at generation 20", "d0.img at 39"],
        ),
        (
            "F6: a member that is shorter by 1 MiB",
            |array| {
                File::options()
                    .write(true)
                    .open(&array.drives[2])
                    .unwrap()
                    .set_len(DRIVE - (1 << 20))
                    .unwrap();
            },
            &["d2.img has shrunk to 7MiB, it had 8MiB when it joined its array"],
        ),
        (
            "F6: by a single sector",
            |array| {
                File::options()
                    .write(true)
                    .open(&array.drives[0])
                    .unwrap()
                    .set_len(DRIVE - 4096)
                    .unwrap();
            },
            &["d0.img has shrunk to 8188KiB, it had 8MiB"],
        ),
        (
            "F6: by less than a sector",
            |array| {
                File::options()
                    .write(true)
                    .open(&array.drives[0])
                    .unwrap()
                    .set_len(DRIVE - 512)
                    .unwrap();
            },
            &["d0.img has shrunk to 8188KiB, it had 8MiB"],
        ),
        (
            "F20: an empty member",
            |array| {
                File::options().write(true).open(&array.drives[0]).unwrap().set_len(0).unwrap();
            },
            &["d0.img is empty"],
        ),
        (
            "F22: two copies of superblocks of different arrays",
            |array| {
                let other = Array::new(&[]);
                let last = DRIVE - 4096;
                let bytes = fs::read(&other.drives[1]).unwrap();
                array.patch(1, &bytes[last as usize..], last);
            },
            &["d1.img has two superblocks that do not belong together, of the arrays"],
        ),
        (
            "a member of another array",
            |array| {
                let other = Array::new(&[]);
                fs::copy(&other.drives[2], &array.drives[2]).unwrap();
            },
            &["d0.img", "d2.img belong to different arrays"],
        ),
        (
            "a member twice",
            |array| {
                fs::copy(&array.drives[0], &array.drives[1]).unwrap();
            },
            &["d0.img and", "d1.img both say that they are drive 0"],
        ),
        (
            "a member without superblocks",
            |array| {
                for copy in [0, 255 * 4096, DRIVE - 4096] {
                    array.patch(1, &[0; 4096], copy);
                }
            },
            &["d1.img is not a drive of an array"],
        ),
        (
            "a member with damaged superblocks",
            |array| {
                for copy in [0, 255 * 4096, DRIVE - 4096] {
                    array.patch(1, &[0xFF], copy + 100);
                }
            },
            &["d1.img cannot be used: the superblock is damaged: its checksum is"],
        ),
        (
            "members without metadata",
            |array| {
                for (drive, slot) in (0..3).flat_map(|drive| [(drive, 1), (drive, 128)]) {
                    array.patch(drive, &[0; 4096], slot * 4096);
                }
            },
            &["the drives of the array have no metadata: create was interrupted"],
        ),
        (
            "halves that went different ways",
            |array| {
                let both: Vec<Vec<u8>> =
                    array.drives.iter().map(|drive| fs::read(drive).unwrap()).collect();
                array.write(&array.drives[..2], 7);
                let first = fs::read(&array.drives[0]).unwrap();
                fs::write(&array.drives[0], &both[0]).unwrap();
                fs::write(&array.drives[1], &both[1]).unwrap();
                array.write(&array.drives[1..], 8);
                fs::write(&array.drives[0], first).unwrap();
            },
            &["have gone different ways since they were one array"],
        ),
    ];
    for (case, change, sentence) in cases {
        let array = Array::new(&[]);
        change(&array);
        eprintln!("{case}");
        array.check_serve(&array.all(), sentence);
    }
}

/// What a start asks an operator for, or refuses whatever an operator says.
#[test]
fn drives_that_are_too_few_or_in_doubt_are_refused_and_left_as_they_are() {
    let array = Array::new(&[]);
    let too_few = "survives the loss of 1 drive, 2 are missing: drives 1,2";
    array.check_serve(&array.all()[..1], &[SPEC, too_few]);
    array.check_serve(&[array.all()[0], "--force"], &[too_few]);
    let check = levelhead(&["array", "check", &array.drives[0]]);
    assert!(check.failure().contains(too_few), "{check:?}");
    // F9: the write hole of an array without a journal, open, and a drive that is gone.
    let array = Array::new(&["--journal", "none"]);
    array.cut_off();
    let doubt = "was not stopped cleanly and drive 2 is missing: its data may be wrong";
    array.check_serve(&array.all()[..2], &[doubt, "only --force starts it"]);
    // Told to, it goes on; with a journal there is nothing to ask.
    let told = [&["array", "assemble", "--force", "--degraded"][..], &array.all()[..2]].concat();
    assert!(levelhead(&told).degraded().contains("forced to go on"));
    let array = Array::new(&[]);
    array.cut_off();
    let would = [&["array", "assemble", "--degraded"][..], &array.all()[..2]].concat();
    assert!(levelhead(&would).degraded().contains("the journal is written back first"));
}

/// F7: a start without a drive to which nothing is written takes nothing away; F11: what was forced stays marked.
#[test]
fn start_without_a_drive_evicts_nothing_and_what_was_forced_is_told() {
    let array = Array::new(&[]);
    array.shelf.serve_degraded(&array.drives[..2]).stop();
    let would = levelhead(&[&["array", "assemble", "--json"][..], &array.all()].concat()).json();
    assert_eq!((&would["state"], &would["forced"]), (&"whole".into(), &false.into()));
    let array = Array::new(&["--journal", "none"]);
    array.cut_off();
    let left: Vec<String> = array.drives[..2].to_vec();
    let socket = array.shelf.path("nbd.sock");
    let serving = array.shelf.serve_with(&left, &["--nbd", &socket, "--force", "--degraded"]);
    connect(&socket).write_at(Bytes::new(0), &[1; 4096], Durability::Durable).unwrap();
    serving.stop();
    let would = levelhead(&[&["array", "assemble", "--json"][..], &array.all()[..2]].concat())
        .degraded_json();
    assert_eq!((&would["forced"], &would["recovery"]), (&true.into(), &"none".into()));
}

/// F10 and F16's kin: what holds something is not written over, and the sentence says what it is.
#[test]
fn create_names_what_a_drive_holds_and_leaves_it() {
    let tail = DRIVE - (64 << 10);
    for (bytes, at, what) in [
        (&[0x53, 0xEF][..], 0x438, "an ext2, ext3 or ext4 file system"),
        (b"XFSB", 0, "an XFS file system"),
        (b"_BHRfS_M", 0x1_0040, "a btrfs file system"),
        (b"LABELONE", 512, "an LVM physical volume"),
        (&[0xFC, 0x4E, 0x2B, 0xA9], tail, "a member of a Linux MD array"),
        (&[0xFC, 0x4E, 0x2B, 0xA9], 4096, "a member of a Linux MD array"),
        (b"EFI PART", DRIVE - 512, "a GPT partition table"),
        (&[0x55, 0xAA], 510, "a partition table or a boot sector"),
        (&[0x0C, 0xB1, 0xBA, 0, 0, 0, 0, 0], 128 << 10, "a member of a ZFS pool"),
        (b"LUKS\xBA\xBE", 0, "a LUKS volume"),
        (b"SWAPSPACE2", 4086, "swap space"),
        (&[9], 5 * 4096 + 1, "data: sector 5 is not zero"),
        (&[9; 1 << 20], 3 << 20, "data: sector 7"),
    ] {
        let shelf = Shelf::new();
        let drives = shelf.drives(3, DRIVE);
        let file = File::options().write(true).open(&drives[1]).unwrap();
        file.write_all_at(bytes, at).unwrap();
        let before = shelf.content();
        let create = [&["array", "create", SPEC][..], &refs(&drives)].concat();
        let refused = levelhead(&create);
        let expected = format!("{} holds {what}", drives[1]);
        assert!(refused.refusal().starts_with(&expected), "{}: {expected}", refused.refusal());
        assert!(refused.refusal().ends_with("only --force takes it"), "{}", refused.refusal());
        assert!(before == shelf.content(), "{what}: something has changed");
        levelhead(&[&create[..], &["--force"]].concat()).good();
    }
    // A drive of an array is told by that, also of one that cannot be served any more.
    let array = Array::new(&[]);
    array.patch(1, &[0; 4096], 0);
    let create = [&["array", "create", "raid1:2", "--dry-run"][..], &array.all()[1..]].concat();
    array.check(&create, &["d1.img is drive 1 of the array", "only --force takes it"]);
}
