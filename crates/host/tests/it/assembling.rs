//! Arrays found again in their drives, and those that are better left alone.

use std::sync::Arc;

use levelhead_array::Resync;
use levelhead_array::metadata::{Forced, State};
use levelhead_block::adapter::{OneByOne, Waiting};
use levelhead_block::{
    BlockDevice, BlockService, Buf, Done, Durability, Memory, Outcome, Reply, Request,
};
use levelhead_host::{AssembleOptions, Defect, DriveState, MemberSpec, assemble};
use levelhead_testkit::extent;
use levelhead_units::{DriveIdx, Ratio, Sectors};

use crate::support::{
    CLEAN, Client, Shelf, UNKNOWN, check_content, fill, gather, make, noise, options, record, serve,
};

const SPEC: &str = "raid5:2+1,chunk=8KiB";

fn path(member: &MemberSpec) -> String {
    member.path().display().to_string()
}

fn check_refused(members: &[MemberSpec], expected: &str) {
    assert_eq!(gather(members).unwrap_err().to_string(), expected);
}

/// An array of three files that was served, filled and stopped.
fn stopped(shelf: &Shelf) -> (Vec<MemberSpec>, Buf) {
    let members = shelf.files(3, 32);
    make(SPEC, &members, CLEAN);
    let array = serve(&members, "normal");
    let content = fill(&array, 1);
    array.stop().unwrap();
    (members, content)
}

#[test]
fn order_of_the_drives_does_not_matter() {
    let shelf = Shelf::new();
    let (mut members, content) = stopped(&shelf);
    for _ in 0..3 {
        members.rotate_left(1);
        let array = serve(&members, "normal");
        check_content(&array, &content);
        array.stop().unwrap();
    }
    // Paths do not matter either.
    let moved = shelf.path("moved.img");
    std::fs::rename(members[0].path(), moved).unwrap();
    members[0] = shelf.named("moved.img");
    check_content(&serve(&members, "normal"), &content);
}

#[test]
fn array_without_a_drive_goes_on_and_does_not_take_it_back() {
    let shelf = Shelf::new();
    let (members, _) = stopped(&shelf);
    let assembled = gather(&members[..2]).unwrap();
    assert_eq!(assembled.lost().to_string(), "2");
    assert_eq!(assembled.drives(), [Some(&members[0]), Some(&members[1]), None]);
    let array = assembled.serve(options("normal")).unwrap();
    let content = fill(&array, 2);
    check_content(&array, &content);
    array.stop().unwrap();
    check_refused(
        &members,
        &format!(
            "{} holds old data: the array did not have it as drive 2 and must go on without it",
            path(&members[2])
        ),
    );
    check_content(&serve(&members[..2], "normal"), &content);
}

#[test]
fn too_few_drives_are_refused() {
    let shelf = Shelf::new();
    let (members, _) = stopped(&shelf);
    check_refused(
        &members[1..2],
        "raid5:2+1,chunk=8KiB survives the loss of 1 drive, 2 are missing: drives 0,2",
    );
    check_refused(&[], "an array is assembled from its drives, got none");
}

#[test]
fn drives_that_do_not_belong_together_are_refused() {
    let shelf = Shelf::new();
    let (members, _) = stopped(&shelf);
    let stranger = shelf.file("stranger.img", 32);
    let with = |other: &MemberSpec| [&members[0], &members[1], other].map(Clone::clone);
    let expected = format!("{} is not a drive of an array", path(&stranger));
    check_refused(&with(&stranger), &expected);
    let others: Vec<MemberSpec> =
        (0..3).map(|at| shelf.file(&format!("other{at}.img"), 32)).collect();
    let other = make(SPEC, &others, CLEAN).uuid;
    assert_eq!(gather(&others).unwrap().uuid(), other);
    let error = gather(&with(&others[2])).unwrap_err().to_string();
    let start =
        format!("{} and {} belong to different arrays, ", path(&members[0]), path(&others[2]));
    assert!(error.starts_with(&start) && error.ends_with(&other.to_string()), "{error}");
    let copy = shelf.snapshot(&members[1..2], "copy");
    let expected =
        format!("{} and {} both say that they are drive 1", path(&members[1]), path(&copy[0]));
    check_refused(&with(&copy[0]), &expected);
}

#[test]
fn drive_put_back_from_an_older_copy_is_refused() {
    let shelf = Shelf::new();
    let (members, _) = stopped(&shelf);
    let old = shelf.snapshot(&members[2..], "old");
    // Served once more, and then stopped or not.
    let array = serve(&members, "normal");
    fill(&array, 3);
    let crashed = shelf.snapshot(&members, "crashed");
    array.stop().unwrap();
    for (members, generation) in [(&members, 39), (&crashed, 37)] {
        let mixed = [&members[0], &members[1], &old[0]].map(Clone::clone);
        check_refused(
            &mixed,
            &format!(
                "{} holds old data: it is at generation 20, {} at {generation}",
                path(&old[0]),
                path(&members[0])
            ),
        );
    }
}

#[test]
fn halves_that_went_different_ways_are_refused() {
    let shelf = Shelf::new();
    let members = shelf.files(4, 32);
    make("raid6:2+2,chunk=8KiB", &members, CLEAN);
    for half in [&members[..2], &members[2..]] {
        let array = serve(half, "normal");
        fill(&array, 1);
        array.stop().unwrap();
    }
    let error = gather(&members).unwrap_err().to_string();
    assert!(error.ends_with("have gone different ways since they were one array"), "{error}");
}

#[test]
fn one_good_copy_of_the_superblock_is_enough() {
    let shelf = Shelf::new();
    let (members, content) = stopped(&shelf);
    let last = std::fs::metadata(members[0].path()).unwrap().len() / 4096 - 1;
    let copies = [0, 255, last];
    for (member, good) in members.iter().zip(copies) {
        for copy in copies.into_iter().filter(|&copy| copy != good) {
            shelf.scribble(member, copy, 1, if copy == 0 { 0xFF } else { 0 });
        }
    }
    let array = serve(&members, "normal");
    check_content(&array, &content);
    fill(&array, 1);
    array.stop().unwrap();
    assert!(gather(&members).is_ok());
}

#[test]
fn drive_that_has_shrunk_is_refused() {
    let shelf = Shelf::new();
    let (members, _) = stopped(&shelf);
    let file = std::fs::File::options().write(true).open(members[1].path()).unwrap();
    file.set_len(1 << 20).unwrap();
    let expected = format!(
        "{} has shrunk to 1MiB, it had 2176KiB when it joined its array",
        path(&members[1])
    );
    check_refused(&members, &expected);
    // Handed in, it would be asked for what is past its end.
    let short = OneByOne::new(Memory::new(Sectors::new(100)));
    let bytes = std::fs::read(members[1].path()).unwrap();
    let first =
        Request::write(extent(0, 100), Durability::Cached, Buf::copy_of(&bytes[..100 << 12]));
    let short = Arc::new(short);
    Waiting::new(Arc::clone(&short)).run(vec![first]);
    let handed_in = [members[0].clone(), MemberSpec::handed_in("short", short), members[2].clone()];
    check_refused(
        &handed_in,
        "short has shrunk to 400KiB, it had 2176KiB when it joined its array",
    );
    file.set_len(0).unwrap();
    check_refused(&members, &format!("{} is empty", path(&members[1])));
}

/// Its last copy is where its last sector was, which only the others' sizes tell.
#[test]
fn drive_that_has_grown_is_found_although_its_other_copies_are_damaged() {
    let shelf = Shelf::new();
    let (members, content) = stopped(&shelf);
    let file = std::fs::File::options().write(true).open(members[1].path()).unwrap();
    file.set_len(8 << 20).unwrap();
    for copy in [0, 255] {
        std::os::unix::fs::FileExt::write_all_at(&file, &[0xA5; 4096], copy * 4096).unwrap();
    }
    drop(file);
    let array = serve(&members, "normal");
    assert!(array.status().unwrap().drives.iter().all(|drive| drive.state == DriveState::Present));
    check_content(&array, &content);
}

/// A crash leaves redundancy that does not match; nothing relies on it before the resync is through.
#[test]
fn array_that_was_not_stopped_is_resynced() {
    let shelf = Shelf::new();
    let members = shelf.files(3, 400);
    make(SPEC, &members, CLEAN);
    let array = serve(&members, "normal");
    let content = fill(&array, 4);
    let crashed = shelf.snapshot(&members, "crashed");
    drop(array);
    // Stripe 1 has its parity on drive 1: chunks rotate to the left.
    shelf.scribble(&crashed[1], 256 + 2, 2, 0xAA);
    let assembled = gather(&crashed).unwrap();
    assert_eq!(assembled.state(), State::Dirty);
    assert_eq!(assembled.synced(), (0, 200));
    let array = assembled.serve(options("assisted")).unwrap();
    check_content(&array, &content);
    loop {
        let status = array.status().unwrap();
        assert_ne!(status.resync, Resync::Stuck);
        if status.synced == Ratio::ONE {
            break;
        }
        // Clients and the resync take turns.
        check_content(&array, &content);
    }
    array.lose(DriveIdx::new(0)).unwrap();
    check_content(&array, &content);
    array.stop().unwrap();
    assert_eq!(gather(&crashed[1..]).unwrap().synced(), (200, 200));
}

#[test]
fn array_that_lost_its_power_and_a_drive_is_refused_unless_forced() {
    let shelf = Shelf::new();
    let members = shelf.files(3, 32);
    make(SPEC, &members, CLEAN);
    let array = serve(&members, "normal");
    let content = fill(&array, 4);
    let crashed = shelf.snapshot(&members, "crashed");
    drop(array);
    check_refused(
        &crashed[1..],
        "the array was not stopped cleanly and drive 0 is missing: its data may be wrong, only --force starts it",
    );
    let forced = assemble(&crashed[1..], AssembleOptions { force: true, degraded: true }).unwrap();
    assert_eq!(forced.synced(), (16, 16));
    check_content(&forced.serve(options("normal")).unwrap(), &content);
}

/// E2: what is answered after the loss of a drive is never undone by that drive.
#[test]
fn drive_lost_before_a_crash_does_not_come_back() {
    let shelf = Shelf::new();
    let members = shelf.emulated(3, 32, "");
    make(SPEC, &members, CLEAN);
    let array = serve(&members, "normal");
    fill(&array, 4);
    array.command(move |engine| engine.kill(DriveIdx::new(1))).unwrap();
    let content = fill(&array, 5);
    let crashed = shelf.snapshot(&members, "crashed");
    drop(array);
    check_refused(
        &crashed,
        &format!(
            "{} holds old data: the array failed it as drive 1 and must go on without it",
            path(&crashed[1])
        ),
    );
    let others = [&crashed[0], &crashed[2]].map(Clone::clone);
    let forced = assemble(&others, AssembleOptions { force: true, degraded: true }).unwrap();
    check_content(&forced.serve(options("normal")).unwrap(), &content);
}

/// An operator who was told that an array does without a drive can rely on it, also if the power fails right then.
#[test]
fn loss_by_hand_is_recorded_before_its_operator_is_told() {
    let shelf = Shelf::new();
    let members = shelf.files(3, 32);
    make(SPEC, &members, CLEAN);
    let array = serve(&members, "normal");
    array.lose(DriveIdx::new(1)).unwrap();
    let crashed = shelf.snapshot(&members, "crashed");
    drop(array);
    check_refused(
        &crashed,
        &format!(
            "{} holds old data: the array had drive 1 failed by an operator and must go on without it",
            path(&crashed[1])
        ),
    );
}

/// Until a start has given it to all of them, the loss of a drive may take the array back to what was before it.
#[test]
fn metadata_that_is_on_too_few_drives_is_told() {
    let shelf = Shelf::new();
    let (members, _) = stopped(&shelf);
    assert!(gather(&members).unwrap().is_recorded());
    for (at, is_recorded) in [(0, false), (1, true), (2, true)] {
        record(&members[at], |_| {});
        assert_eq!(gather(&members).unwrap().is_recorded(), is_recorded, "{} drives", at + 1);
    }
}

#[test]
fn array_that_was_never_in_sync_is_refused_without_a_drive() {
    let shelf = Shelf::new();
    let members = shelf.files(3, 32);
    make(SPEC, &members, UNKNOWN);
    check_refused(
        &members[1..],
        "drive 0 is missing and the redundancy of 16 of 16 stripes is not known to be valid: its data may be \
         wrong or missing, only --force starts it",
    );
    let forced = assemble(&members[1..], AssembleOptions { force: true, degraded: true }).unwrap();
    let array = forced.serve(options("normal")).unwrap();
    let reply = Client::new(&array).read(0, array.size().get());
    let Outcome::Done { damaged, .. } = reply.outcome else { panic!("{:?}", reply.outcome) };
    assert_eq!(damaged.len(), 22, "11 of its 16 chunks were data, of two sectors each");
}

/// A crash while metadata is being written leaves drives one generation apart.
#[test]
fn crash_in_the_middle_of_a_change_of_state_costs_no_drive() {
    let shelf = Shelf::new();
    let (members, content) = stopped(&shelf);
    let before = shelf.snapshot(&members, "before");
    let later = |member: &MemberSpec| {
        record(member, |metadata| {
            (metadata.state, metadata.synced) = (State::Dirty, 0);
        });
    };
    for written in 1..3 {
        let mixed = shelf.snapshot(&before, &format!("mixed{written}"));
        mixed[..written].iter().for_each(later);
        let assembled = gather(&mixed).unwrap();
        assert_eq!(assembled.state(), State::Dirty);
        check_content(&assembled.serve(options("normal")).unwrap(), &content);
    }
}

#[test]
fn writes_survive_every_stop() {
    let shelf = Shelf::new();
    let members = shelf.emulated(6, 32, "seed=5");
    make("eraid:4+2,e=2,chunk=8KiB", &members, UNKNOWN);
    for round in 0..4 {
        let array = serve(&members, "pro-active");
        let mut client = Client::new(&array);
        for earlier in 0..round {
            let reply = client.read(earlier * 13, 5);
            assert!(reply.outcome.is_good());
            assert!(reply.data.holds(noise(earlier, 5).as_slice()), "round {round}");
        }
        assert!(client.write(round * 13, noise(round, 5)).is_good());
        array.stop().unwrap();
    }
}

/// A copy that was made while the array was served lacks what was written later, whatever its metadata says.
#[test]
fn member_copied_while_it_was_served_is_refused_after_a_clean_stop() {
    let shelf = Shelf::new();
    let (members, _) = stopped(&shelf);
    let array = serve(&members, "normal");
    fill(&array, 5);
    let copied = shelf.snapshot(&members[1..2], "copied");
    let content = fill(&array, 6);
    array.stop().unwrap();
    let mixed = [&members[0], &copied[0], &members[2]].map(Clone::clone);
    let error = gather(&mixed).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{} holds old data", path(&copied[0]))), "{error}");
    check_content(&serve(&members, "normal"), &content);
}

/// A copy of a member at every generation that it ever had: only those at which nothing can be missing are taken.
#[test]
fn copies_of_every_generation_are_taken_or_refused_by_what_they_can_lack() {
    let shelf = Shelf::new();
    let (members, _) = stopped(&shelf);
    let mut copies = vec![shelf.snapshot(&members[2..], "0")];
    for round in 1..4 {
        let array = serve(&members, "normal");
        fill(&array, round);
        copies.push(shelf.snapshot(&members[2..], &format!("{round}-open")));
        array.stop().unwrap();
        copies.push(shelf.snapshot(&members[2..], &format!("{round}-stopped")));
    }
    let last = copies.pop().unwrap();
    for copy in &copies {
        let mixed = [&members[0], &members[1], &copy[0]].map(Clone::clone);
        let error = gather(&mixed).unwrap_err().to_string();
        assert!(error.contains("holds old data"), "{error}");
    }
    let mixed = [&members[0], &members[1], &last[0]].map(Clone::clone);
    assert!(gather(&mixed).is_ok(), "it is what the member is");
}

#[test]
fn start_without_a_drive_to_which_nothing_is_written_evicts_nothing() {
    let shelf = Shelf::new();
    let (members, content) = stopped(&shelf);
    for missing in 0..3 {
        let mut left = members.clone();
        left.remove(missing);
        let array = serve(&left, "normal");
        check_content(&array, &content);
        array.stop().unwrap();
        assert!(gather(&members).unwrap().lost().is_empty(), "drive {missing} was evicted");
    }
}

#[test]
fn array_that_was_made_to_go_on_says_so_after_every_stop() {
    let shelf = Shelf::new();
    let (members, _) = stopped(&shelf);
    let array = serve(&members, "normal");
    fill(&array, 4);
    let crashed = shelf.snapshot(&members, "crashed");
    drop(array);
    assert_eq!(gather(&members).unwrap().forced(), Forced::No);
    let left = &crashed[1..];
    let array = assemble(left, AssembleOptions { force: true, degraded: true }).unwrap();
    let array = array.serve(options("normal")).unwrap();
    fill(&array, 5);
    array.stop().unwrap();
    for _ in 0..2 {
        assert_eq!(gather(left).unwrap().forced(), Forced::Yes);
        let array = serve(left, "normal");
        fill(&array, 6);
        array.stop().unwrap();
    }
}

/// A drive that is there and does nothing any more.
struct Dead(Sectors);

impl BlockService for Dead {
    fn size(&self) -> Sectors {
        self.0
    }

    fn submit(&self, _: Request, done: Done) {
        done(Reply::gone("it is dead"));
    }
}

#[test]
fn drive_that_gives_no_superblock_is_missing_where_one_may_be() {
    let shelf = Shelf::new();
    let (mut members, content) = stopped(&shelf);
    let dead = Arc::new(Dead(Sectors::new(100)));
    members[1] = MemberSpec::handed_in("dead", dead);
    let refused = assemble(&members, AssembleOptions::default()).unwrap_err().to_string();
    let sentence = "cannot read dead: no copy of its superblock can be read";
    assert_eq!(refused, sentence);
    let array = gather(&members).unwrap();
    assert_eq!(array.newly_missing().to_string(), "1");
    let left_out = &array.left_out()[0];
    assert_eq!((left_out.defect, left_out.sentence.as_str()), (Defect::Unreadable, sentence));
    check_content(&array.serve(options("normal")).unwrap(), &content);
    // Two of them are too many, and both are named.
    let dead = Arc::new(Dead(Sectors::new(100)));
    members[0] = MemberSpec::handed_in("other", dead);
    let refused = gather(&members).unwrap_err().to_string();
    let both = ["cannot read dead: ", "cannot read other: ", "2 are missing: drives 0,1"];
    assert!(both.iter().all(|part| refused.contains(part)), "{refused}");
}
