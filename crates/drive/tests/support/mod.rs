//! What the tests of drives share: commands, and a drive that carries out one of them.

use levelhead_block::{Command, Durability, Effort, ZeroTail};
use levelhead_drive::{Completion, Drive, Profile};
use levelhead_testkit::extent;
use levelhead_testkit::profiles::Tiny;
use levelhead_units::{Instant, Nanos};

pub(crate) fn profile(tiny: Tiny) -> Profile {
    Profile::parse(&tiny.text()).expect("the lines of a test are good")
}

pub(crate) fn at(micros: u64) -> Instant {
    Instant::ZERO + Nanos::from_micros(micros)
}

pub(crate) fn read(lba: u64, sectors: u64) -> Command {
    read_with(lba, sectors, Effort::Full)
}

pub(crate) fn read_with(lba: u64, sectors: u64, effort: Effort) -> Command {
    Command::Read { extent: extent(lba, sectors), effort }
}

pub(crate) fn write(lba: u64, sectors: u64) -> Command {
    let (durability, zero_tail) = (Durability::Cached, ZeroTail::None);
    Command::Write { extent: extent(lba, sectors), durability, zero_tail }
}

/// Runs one command that comes when the drive holds no other.
pub(crate) fn run(drive: &mut Drive, now: Instant, id: u64, command: Command) -> Completion {
    drive.handle_submit(now, id, command, id);
    loop {
        if let Some(done) = drive.poll() {
            return done;
        }
        drive.handle_timeout(drive.deadline().unwrap());
    }
}
