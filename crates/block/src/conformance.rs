//! What every block device must do, as a suite that each one's tests run.
//!
//! Seeded: the same seed gives the same requests. Compares with [`Memory`], byte by byte.

use std::sync::Arc;

use levelhead_stats::{Rng, Streams};
use levelhead_units::{Extent, Lba, Sectors};

use crate::adapter::Waiting;
use crate::{
    BlockDevice, BlockService, Buf, Command, Data, Durability, Effort, Memory, Payload, Piece,
    Request, ZeroTail,
};

/// How much to run.
#[derive(Clone, Copy, Debug)]
pub struct SuiteSettings {
    /// What the requests are drawn from.
    pub seed: u64,
    /// How many requests.
    pub requests: u32,
    /// The most sectors of one request.
    pub sectors_max: u64,
    /// The most requests of one batch.
    pub batch_max: u64,
}

/// Runs the suite on a device that may hold anything. Its first and last sectors are always among
/// those asked for. Panics at the first difference, naming the seed and the request.
pub fn check_device(device: &mut dyn BlockDevice, settings: SuiteSettings) {
    let size = device.size();
    assert!(
        size >= Sectors::new(settings.sectors_max),
        "a device of {size:?} is too small for {settings:?}"
    );
    let mut model = Memory::new(size);
    clear(device, settings.sectors_max);
    let mut rng = Streams::new(settings.seed).stream("conformance");
    let mut left = settings.requests;
    while left > 0 {
        let batch = draw_batch(&mut rng, size, &settings);
        left = left.saturating_sub(batch.len() as u32);
        check_batch(device, &mut model, &mut rng, &batch, settings.seed);
    }
    let everything: Vec<Command> = extents(size, settings.sectors_max).map(read).collect();
    check_batch(device, &mut model, &mut rng, &everything, settings.seed);
}

/// Runs the suite on a service, many requests in flight.
pub fn check_service<S: BlockService + ?Sized>(service: Arc<S>, settings: SuiteSettings) {
    check_device(&mut Waiting::new(service), settings);
}

fn clear(device: &mut dyn BlockDevice, sectors_max: u64) {
    let durability = Durability::Cached;
    for extent in extents(device.size(), sectors_max) {
        for command in [Command::Trim { extent }, Command::WriteZeroes { extent, durability }] {
            let replies = device.run(vec![Request::bare(command)]);
            assert!(replies[0].outcome.is_good(), "{command:?} ended as {:?}", replies[0].outcome);
        }
    }
}

fn extents(size: Sectors, step: u64) -> impl Iterator<Item = Extent> {
    (0..size.get())
        .step_by(step as usize)
        .map(move |lba| Extent::new(Lba::new(lba), Sectors::new(step.min(size.get() - lba))))
}

fn read(extent: Extent) -> Command {
    Command::Read { extent, effort: Effort::Full }
}

/// A batch whose requests do not overlap.
fn draw_batch(rng: &mut Rng, size: Sectors, settings: &SuiteSettings) -> Vec<Command> {
    let mut batch: Vec<Command> = Vec::new();
    for _ in 0..=rng.below(settings.batch_max) {
        let command = draw_command(rng, size, settings.sectors_max);
        let overlaps = |other: &Command| match (command.extent(), other.extent()) {
            (Some(left), Some(right)) => left.lba < right.end() && right.lba < left.end(),
            (None, _) | (_, None) => false,
        };
        if !batch.iter().any(overlaps) {
            batch.push(command);
        }
    }
    batch
}

fn draw_command(rng: &mut Rng, size: Sectors, sectors_max: u64) -> Command {
    let sectors = 1 + rng.below(sectors_max);
    let last = size.get() - sectors;
    let lba = match rng.below(16) {
        0 => 0,
        1 => last,
        _ => rng.below(last + 1),
    };
    let extent = Extent::new(Lba::new(lba), Sectors::new(sectors));
    let durability = if rng.below(4) == 0 { Durability::Durable } else { Durability::Cached };
    match rng.below(16) {
        0..7 => read(extent),
        7..13 => Command::Write { extent, durability, zero_tail: ZeroTail::None },
        13..15 => Command::WriteZeroes { extent, durability },
        _ => Command::Flush,
    }
}

fn check_batch(
    device: &mut dyn BlockDevice,
    model: &mut Memory,
    rng: &mut Rng,
    batch: &[Command],
    seed: u64,
) {
    let requests = |rng: &mut Rng| -> Vec<Request> {
        batch.iter().map(|&command| request(command, rng)).collect()
    };
    // The same bytes for both: the stream is copied, then left where the second copy ended.
    let expected = model.run(requests(&mut rng.clone()));
    let got = device.run(requests(rng));
    assert_eq!(got.len(), batch.len(), "seed {seed}: replies to a batch");
    for ((command, got), expected) in batch.iter().zip(&got).zip(&expected) {
        assert!(got.outcome.is_good(), "seed {seed}: {command:?} ended as {:?}", got.outcome);
        if let Command::Read { .. } = command {
            assert_eq!(got.data.sectors(), command.payload(), "seed {seed}: {command:?}");
            let Data::Buf(expected) = &expected.data else {
                panic!("memory reads into one buffer")
            };
            let equal = got.data.holds(expected.as_slice());
            assert!(equal, "seed {seed}: {command:?} gave other bytes than were written");
        }
    }
}

/// The command with its bytes: a read into room of the caller's or not, a write in one piece or two.
fn request(command: Command, rng: &mut Rng) -> Request {
    let sectors = command.payload();
    let payload = match command {
        Command::Read { .. } if rng.below(2) == 0 => Payload::Room(Buf::zeroed(sectors)),
        Command::Write { .. } => {
            let mut buf = Buf::zeroed(sectors);
            rng.fill(buf.as_mut_slice());
            let whole = Piece::whole(Arc::new(buf));
            let first = rng.below(sectors.get()) as u32;
            let pieces = [whole.part(0, first), whole.part(first, whole.sectors() - first)];
            Payload::Pieces(pieces.into_iter().filter(|piece| piece.sectors() > 0).collect())
        }
        Command::Read { .. }
        | Command::WriteZeroes { .. }
        | Command::Trim { .. }
        | Command::Flush => Payload::None,
    };
    Request::new(command, payload)
}

#[cfg(test)]
mod tests {
    use levelhead_units::Ratio;

    use super::*;
    use crate::Reply;
    use crate::adapter::OneByOne;
    use crate::crash::Crash;
    use crate::faulty::{Faults, Faulty};

    const PLAN: SuiteSettings =
        SuiteSettings { seed: 7, requests: 2_000, sectors_max: 9, batch_max: 6 };

    fn memory() -> Memory {
        Memory::new(Sectors::new(64))
    }

    #[test]
    fn memory_conforms_to_itself() {
        check_device(&mut memory(), PLAN);
    }

    #[test]
    fn both_adapters_conform() {
        check_service(Arc::new(OneByOne::new(memory())), PLAN);
    }

    #[test]
    fn crashing_device_conforms_until_it_crashes() {
        check_device(&mut Crash::new(memory()), PLAN);
    }

    #[test]
    fn soft_faults_do_not_show_at_full_effort() {
        let faults = Faults { soft: Ratio::new(0.5).unwrap(), hard: Ratio::ZERO };
        let rng = Streams::new(1).stream("faults");
        check_device(&mut Faulty::new(memory(), faults, rng), PLAN);
    }

    /// The canary: a device that loses one bit of one sector must be caught.
    #[test]
    #[should_panic(expected = "gave other bytes than were written")]
    fn device_that_forgets_one_bit_is_caught() {
        struct Forgetful(Memory);
        impl BlockDevice for Forgetful {
            fn size(&self) -> Sectors {
                self.0.size()
            }
            fn run(&mut self, batch: Vec<Request>) -> Vec<Reply> {
                let replies = self.0.run(batch);
                let extent = Extent::new(Lba::new(63), Sectors::new(1));
                self.0.bytes_mut(extent)[4095] &= 0x7F;
                replies
            }
        }
        check_device(&mut Forgetful(memory()), PLAN);
    }

    #[test]
    #[should_panic(expected = "ended as")]
    fn device_that_disappears_is_caught() {
        let faults = Faults { soft: Ratio::ZERO, hard: Ratio::ZERO };
        let mut device = Faulty::new(memory(), faults, Streams::new(1).stream("faults"));
        device.disappear();
        check_device(&mut device, PLAN);
    }
}
