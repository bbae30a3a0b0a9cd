//! Emulated drives that lose and tear writes, in real time, and arrays that read back what they write.

use levelhead_array::{Promise, ScrubState, VerifySettings, VerifyStatus};
use levelhead_block::{BlockDevice, Buf, Durability, Effort, Request};
use levelhead_host::{ArrayHandle, ServeOptions};
use levelhead_stats::Streams;
use levelhead_testkit::wait_until;
use levelhead_units::{DriveIdx, Extent, Lba, SECTOR_SIZE, Sectors};

use crate::support::{CLEAN, Client, Shelf, gather, make, options};

const SPEC: &str = "raid6:6+2,chunk=16KiB";

/// Writes in place of the run. `VERIFY_WRITES=100000` for a long one.
fn writes() -> u64 {
    std::env::var("VERIFY_WRITES").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000)
}

fn status(array: &ArrayHandle) -> VerifyStatus {
    array.status().unwrap().verify.expect("writes are read back")
}

/// Random writes and reads until enough has been written. How many reads were wrong.
fn work(client: &mut Client, array: &ArrayHandle, model: &mut [u8]) -> u64 {
    let mut rng = Streams::new(5).stream("verifying");
    let size = (model.len() / SECTOR_SIZE) as u64;
    let mut wrong = 0;
    while status(array).writes < writes() {
        // Those of a batch are apart from each other.
        let mut batch = Vec::new();
        let mut reads = Vec::new();
        for at in 0..16 {
            let sectors = 1 + rng.below(4);
            let lba = size / 16 * at + rng.below(size / 16 - sectors);
            let extent = Extent::new(Lba::new(lba), Sectors::new(sectors));
            let bytes = lba as usize * SECTOR_SIZE..(lba + sectors) as usize * SECTOR_SIZE;
            if rng.below(3) == 0 {
                reads.push((batch.len(), bytes));
                batch.push(Request::read(extent, Effort::Full));
            } else {
                rng.fill(&mut model[bytes.clone()]);
                let buf = Buf::copy_of(&model[bytes]);
                batch.push(Request::write(extent, Durability::Cached, buf));
            }
        }
        let replies = client.device().run(batch);
        assert!(replies.iter().all(|reply| reply.outcome.is_good()));
        for (at, bytes) in reads {
            wrong += u64::from(!replies[at].data.holds(&model[bytes]));
        }
    }
    wrong
}

#[test]
fn emulated_drives_that_lose_and_tear_writes_are_mended_while_clients_work() {
    let shelf = Shelf::new();
    let members = shelf.emulated(8, 2_048, "lost-writes=0%");
    make(SPEC, &members, CLEAN);
    let verify = Some(VerifySettings::IDLE);
    let array = gather(&members).unwrap().serve(ServeOptions { verify, ..options("level") });
    let array = array.unwrap();
    for drive in 0..8 {
        // Some in a short run, and in a long one fewer than a drive is given up for.
        let rate = if writes() > 10_000 { "0.1%" } else { "1%" };
        let faults = format!("lost-writes={rate},torn-writes={rate}").parse().unwrap();
        let drive = DriveIdx::new(drive);
        array.command(move |engine| engine.set_faults(drive, faults)).unwrap();
    }
    let mut client = Client::new(&array);
    let size = client.device().size();
    let mut model = vec![0; size.bytes().get() as usize];
    let all = Extent::new(Lba::ZERO, size);
    let filled = Request::write(all, Durability::Cached, Buf::copy_of(&model));
    assert!(client.run(filled).outcome.is_good());
    let wrong = work(&mut client, &array, &mut model);
    wait_until("verified", || status(&array).waiting == 0);
    let seen = status(&array);
    println!("{seen:?}");
    assert_eq!((wrong, seen.guarantee), (0, Promise::Medium));
    // Some are overwritten before they are mended.
    assert!(seen.mended > 0 && seen.mended <= seen.found, "{seen:?}");
    assert_eq!((seen.unverified, seen.memory_bytes), (0, 0), "{seen:?}");
    array.command(levelhead_host::Engine::start_scrub).unwrap();
    let scrub = || array.status().unwrap().scrub.progress;
    wait_until("scrubbed", || scrub().state == ScrubState::Done);
    let found = scrub().found;
    assert_eq!((found.wrong, found.unrepaired, found.unlocated), (0, 0, 0));
    let reply = client.read(0, size.get());
    assert!(reply.data.holds(&model));
    array.stop().unwrap();
}

#[test]
fn files_promise_that_they_give_back_what_they_took() {
    let shelf = Shelf::new();
    let members = shelf.files(3, 64);
    make("raid5:2+1,chunk=4KiB", &members, CLEAN);
    let verify = Some(VerifySettings::IDLE);
    let array = gather(&members).unwrap().serve(ServeOptions { verify, ..options("normal") });
    let array = array.unwrap();
    let mut client = Client::new(&array);
    assert!(client.write(3, Buf::copy_of(&[7; 5 * SECTOR_SIZE])).is_good());
    wait_until("verified", || status(&array).waiting == 0);
    let seen = status(&array);
    assert_eq!((seen.guarantee, seen.found), (Promise::Interface, 0));
    assert!(seen.verified > 0 && seen.writes == seen.verified + seen.superseded, "{seen:?}");
    array.stop().unwrap();
}
