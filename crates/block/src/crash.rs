//! A decorator that loses power: what was not flushed may be there, or not.

use levelhead_stats::Rng;
use levelhead_units::{Extent, Sectors};

use crate::{
    BlockDevice, Buf, Command, Data, Durability, Effort, Outcome, Payload, Piece, Reply, Request,
};

/// A device with a volatile write cache, sector by sector. [`Crash::power_cut`] keeps a random part
/// of the cached sectors and forgets the rest; nothing that was flushed or written durably is lost.
pub struct Crash<D> {
    inner: D,
    /// Cached sectors in the order of their writing; a later one hides an earlier one.
    cached: Vec<(Extent, Buf)>,
}

impl<D: BlockDevice> Crash<D> {
    /// Puts a volatile cache over `inner`.
    pub fn new(inner: D) -> Self {
        Self { inner, cached: Vec::new() }
    }

    /// Cuts the power: each cached sector reaches the medium or not, as `rng` decides. Returns the
    /// medium.
    pub fn power_cut(mut self, rng: &mut Rng) -> D {
        for (extent, buf) in std::mem::take(&mut self.cached) {
            if rng.below(2) == 0 {
                self.store(extent, buf);
            }
        }
        self.inner
    }

    fn store(&mut self, extent: Extent, buf: Buf) {
        let replies = self.inner.run(vec![Request::write(extent, Durability::Durable, buf)]);
        assert!(replies[0].outcome.is_good(), "the medium under a crash test does not fail");
    }

    fn flush(&mut self) {
        for (extent, buf) in std::mem::take(&mut self.cached) {
            self.store(extent, buf);
        }
    }

    fn cache(&mut self, extent: Extent, pieces: &[Piece], durability: Durability) {
        for (lba, sector) in extent.iter().zip(Piece::each_sector(pieces)) {
            let at = Extent::new(lba, Sectors::new(1));
            match durability {
                Durability::Cached => self.cached.push((at, Buf::copy_of(sector))),
                Durability::Durable => {
                    self.cached.retain(|(cached, _)| *cached != at);
                    self.store(at, Buf::copy_of(sector));
                }
            }
        }
    }

    fn read(&mut self, extent: Extent, request: Request) -> Reply {
        let mut reply = self.inner.run(vec![request]).pop().expect("one request, one reply");
        if let Outcome::Done { .. } = reply.outcome {
            let mut buf = reply.data.into_buf();
            for (cached, bytes) in &self.cached {
                if extent.contains(cached.lba) {
                    let offset = (cached.lba - extent.lba).as_usize();
                    buf.part_mut(offset, 1).copy_from_slice(bytes.as_slice());
                }
            }
            reply.data = Data::Buf(buf);
        }
        reply
    }
}

impl<D: BlockDevice> BlockDevice for Crash<D> {
    fn size(&self) -> Sectors {
        self.inner.size()
    }

    fn run(&mut self, batch: Vec<Request>) -> Vec<Reply> {
        let run = |request: Request| {
            let request = request.spelled_out();
            match (request.command, &request.payload) {
                (Command::Read { extent, effort }, _) => {
                    if effort == Effort::Medium {
                        self.flush(); // W5. More than is asked for, as a device may.
                    }
                    return self.read(extent, request);
                }
                (Command::Write { extent, durability, .. }, Payload::Pieces(pieces)) => {
                    self.cache(extent, pieces, durability);
                }
                (Command::Flush, _) => self.flush(),
                (Command::Write { .. } | Command::WriteZeroes { .. } | Command::Trim { .. }, _) => {
                }
            }
            Reply::good(Data::None)
        };
        batch.into_iter().map(run).collect()
    }
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;
    use levelhead_units::{Lba, SECTOR_SIZE};

    use super::*;
    use crate::Memory;

    fn write(value: u8, durability: Durability) -> Request {
        let extent = Extent::new(Lba::ZERO, Sectors::new(1));
        Request::write(extent, durability, Buf::copy_of(&[value; SECTOR_SIZE]))
    }

    #[test]
    fn power_cut_loses_only_what_was_not_flushed() {
        let mut lost = 0;
        for seed in 0..64 {
            let mut device = Crash::new(Memory::new(Sectors::new(4)));
            device.run(vec![write(1, Durability::Cached)]);
            device.run(vec![Request::bare(Command::Flush)]);
            device.run(vec![write(2, Durability::Cached)]);
            let medium = device.power_cut(&mut Streams::new(seed).stream("power"));
            let left = medium.bytes(Extent::new(Lba::ZERO, Sectors::new(1)))[0];
            assert!(left == 1 || left == 2, "seed {seed}: {left}");
            lost += u32::from(left == 1);
        }
        assert!((10..54).contains(&lost), "{lost} of 64 power cuts lost the cached write");
    }

    #[test]
    fn durable_write_survives_and_is_not_hidden_by_an_older_cached_one() {
        for seed in 0..16 {
            let mut device = Crash::new(Memory::new(Sectors::new(4)));
            device.run(vec![write(1, Durability::Cached)]);
            device.run(vec![write(2, Durability::Durable)]);
            let medium = device.power_cut(&mut Streams::new(seed).stream("power"));
            assert_eq!(medium.bytes(Extent::new(Lba::ZERO, Sectors::new(1)))[0], 2, "seed {seed}");
        }
    }
}
