//! A member that something outside of this crate answers for: an export of another program or machine, as a
//! service that was handed in.
//!
//! The program that hands it in has opened it; other programs cannot be kept out of it from here.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use levelhead_block::{
    BlockService, Buf, Command, Data, Done, Durability, Effort, Outcome, Reply, Request, SectorSet,
};
use levelhead_bytes::spoil;
use levelhead_units::{Extent, Lba, Sectors};

use crate::backend::{Member, prepared};
use crate::search::Search;

/// How long one command may take while the array is made or looked for: then it has failed.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// The pause before a command that was refused is sent again.
const PAUSE: Duration = Duration::from_millis(100);

/// See the module.
#[derive(Clone)]
pub(crate) struct Far(pub(crate) Arc<dyn BlockService>);

impl fmt::Debug for Far {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Far({} sectors)", self.0.size().get())
    }
}

impl PartialEq for Far {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Far {
    pub(crate) fn size(&self) -> Sectors {
        self.0.size()
    }

    /// Fills `bytes`, whole sectors, from sector `lba` on.
    pub(crate) fn read(&self, lba: Lba, bytes: &mut [u8]) -> io::Result<()> {
        let extent = Extent::new(lba, sectors_of(bytes));
        let reply = self.run(&|| Request::read(extent, Effort::Full))?;
        bytes.copy_from_slice(reply.data.into_buf().as_slice());
        Ok(())
    }

    /// Stores `bytes`, whole sectors, from sector `lba` on.
    pub(crate) fn write(&self, lba: Lba, bytes: &[u8]) -> io::Result<()> {
        let extent = Extent::new(lba, sectors_of(bytes));
        let request = || Request::write(extent, Durability::Cached, Buf::copy_of(bytes));
        self.run(&request).map(drop)
    }

    /// Puts everything written so far where a power failure does not reach it.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.run(&|| Request::bare(Command::Flush)).map(drop)
    }

    /// Runs a command, again where it was refused, and waits for it, though not for long.
    fn run(&self, request: &dyn Fn() -> Request) -> io::Result<Reply> {
        let until = Instant::now() + ANSWER_MAX;
        loop {
            let (sender, receiver) = mpsc::channel();
            self.0.submit(request(), Box::new(move |reply| drop(sender.send(reply))));
            let left = until.saturating_duration_since(Instant::now());
            let Ok(reply) = receiver.recv_timeout(left) else {
                let sentence = format!("no answer for {} s", ANSWER_MAX.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, sentence));
            };
            if reply.outcome.is_good() {
                return Ok(reply);
            }
            if !reply.outcome.may_be_sent_again() || Instant::now() + PAUSE >= until {
                let why = reply.reason.unwrap_or_else(|| "it failed".to_owned());
                return Err(io::Error::other(why));
            }
            std::thread::sleep(PAUSE);
        }
    }
}

fn sectors_of(bytes: &[u8]) -> Sectors {
    let sectors = levelhead_units::Bytes::new(bytes.len() as u64).sectors_exact();
    sectors.expect("whole sectors are moved")
}

/// Such a member at work.
pub(crate) struct FarMember(pub(crate) Far);

impl BlockService for FarMember {
    fn size(&self) -> Sectors {
        self.0.size()
    }

    fn submit(&self, request: Request, done: Done) {
        let Some((request, done)) = prepared(self.size(), request, done) else { return };
        let Command::Read { extent, effort } = request.command else {
            return self.0.0.submit(request, done);
        };
        let service = Arc::clone(&self.0.0);
        let finish = move |reply: Reply| match &reply.outcome {
            Outcome::Done { damaged, .. } if effort.is_full() && damaged.len() > 1 => {
                Halving::begin(service, extent, reply, done);
            }
            Outcome::Done { .. } | Outcome::Refused | Outcome::Unreachable | Outcome::Gone => {
                done(spoilt(reply));
            }
        };
        self.0.0.submit(request, Box::new(finish));
    }

    fn leave(&self) {
        self.0.0.leave();
    }
}

impl Member for FarMember {}

/// The same reply with garbage where sectors are not what they were.
fn spoilt(reply: Reply) -> Reply {
    let Reply { outcome, data, reason } = reply;
    let data = match (&outcome, data) {
        (Outcome::Done { unknown, damaged }, Data::Buf(mut buf)) => {
            spoil(&mut buf, unknown);
            spoil(&mut buf, damaged);
            Data::Buf(buf)
        }
        (_, data) => data,
    };
    Reply { outcome, data, reason }
}

/// Finds out which sectors of a failed read cannot be read: the other side says only that some cannot.
struct Halving {
    service: Arc<dyn BlockService>,
    extent: Extent,
    search: Search,
    buf: Buf,
    reason: Option<String>,
    done: Done,
}

impl Halving {
    fn begin(service: Arc<dyn BlockService>, extent: Extent, failed: Reply, done: Done) {
        let Reply { data, reason, .. } = failed;
        let search = Search::new(0..extent.sectors.get() as u32);
        let buf = data.into_buf();
        Box::new(Self { service, extent, search, buf, reason, done }).go_on();
    }

    /// Reads the next part, or answers.
    fn go_on(self: Box<Self>) {
        let Some(part) = self.search.part() else {
            let Self { search, buf, reason, done, .. } = *self;
            let (unknown, damaged) = (SectorSet::EMPTY, search.damaged());
            let outcome = Outcome::Done { unknown, damaged };
            return done(spoilt(Reply { outcome, data: Data::Buf(buf), reason }));
        };
        let count = Sectors::new((part.end - part.start).into());
        let lba = self.extent.lba + Sectors::new(part.start.into());
        let request = Request::read(Extent::new(lba, count), Effort::Full);
        let service = Arc::clone(&self.service);
        // A service that answers before it returns is asked again from its own answer, once for each read of
        // the search: at most twice as often as there are sectors.
        service.submit(request, Box::new(move |reply| self.handle(&part, reply)));
    }

    fn handle(mut self: Box<Self>, part: &Range<u32>, reply: Reply) {
        match &reply.outcome {
            Outcome::Done { damaged, unknown } if damaged.is_empty() && unknown.is_empty() => {
                let count = (part.end - part.start) as usize;
                let place = self.buf.part_mut(part.start as usize, count);
                place.copy_from_slice(reply.data.into_buf().as_slice());
                self.search.handle_read();
            }
            Outcome::Done { .. } => self.search.handle_failed(),
            Outcome::Refused | Outcome::Unreachable | Outcome::Gone => {
                let Self { done, .. } = *self;
                return done(Reply { data: Data::None, ..reply });
            }
        }
        self.go_on();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use levelhead_block::adapter::{OneByOne, Waiting};
    use levelhead_block::conformance::{SuiteSettings, check_service};
    use levelhead_block::{BlockDevice, Memory};
    use levelhead_bytes::GARBAGE;
    use levelhead_units::SECTOR_SIZE;

    use super::*;

    fn memory(sectors: u64) -> Arc<dyn BlockService> {
        Arc::new(OneByOne::new(Memory::new(Sectors::new(sectors))))
    }

    fn run(member: &Arc<FarMember>, request: Request) -> Reply {
        Waiting::new(Arc::clone(member)).run(vec![request]).pop().unwrap()
    }

    /// A service that cannot read some sectors and says of a whole read that it failed, as an NBD server does; and
    /// that refuses the first commands.
    struct Vague {
        inner: Arc<dyn BlockService>,
        bad: Vec<u64>,
        refuses: AtomicUsize,
        reads: Mutex<Vec<Extent>>,
    }

    impl Vague {
        fn new(sectors: u64, bad: &[u64], refuses: usize) -> Arc<Self> {
            let (inner, bad) = (memory(sectors), bad.to_vec());
            Arc::new(Self { inner, bad, refuses: refuses.into(), reads: Mutex::default() })
        }
    }

    impl BlockService for Vague {
        fn size(&self) -> Sectors {
            self.inner.size()
        }

        fn submit(&self, request: Request, done: Done) {
            let less = |left: usize| left.checked_sub(1);
            if self.refuses.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok() {
                return done(Reply::bare(Outcome::Refused));
            }
            let Command::Read { extent, effort } = request.command else {
                return self.inner.submit(request, done);
            };
            self.reads.lock().unwrap().push(extent);
            let is_bad = |&bad: &u64| extent.lba.get() <= bad && bad < extent.end().get();
            if !self.bad.iter().any(is_bad) {
                return self.inner.submit(request, done);
            }
            let all = SectorSet::first(extent.sectors);
            let (unknown, damaged) = match effort {
                Effort::Full | Effort::Medium => (SectorSet::EMPTY, all),
                Effort::Fast | Effort::Limited(_) => (all, SectorSet::EMPTY),
            };
            let data = Data::Buf(Buf::zeroed(extent.sectors));
            done(Reply { data, ..Reply::bare(Outcome::Done { unknown, damaged }) });
        }
    }

    #[test]
    fn member_that_was_handed_in_conforms() {
        let member = FarMember(Far(memory(64)));
        let settings = SuiteSettings { seed: 5, requests: 400, sectors_max: 9, batch_max: 12 };
        check_service(Arc::new(member), settings);
    }

    #[test]
    fn bad_sectors_of_a_whole_that_failed_are_found_by_halving() {
        let service = Vague::new(64, &[5, 37], 0);
        let far = Far(service.clone());
        far.write(Lba::ZERO, &vec![7; 64 * SECTOR_SIZE]).unwrap();
        let member = Arc::new(FarMember(far));
        let extent = Extent::new(Lba::ZERO, Sectors::new(64));
        let reply = run(&member, Request::read(extent, Effort::Full));
        let (unknown, damaged) = (SectorSet::EMPTY, [5, 37].into_iter().collect());
        assert_eq!(reply.outcome, Outcome::Done { unknown, damaged });
        let bytes = reply.data.into_buf();
        for at in 0..64 {
            let expected = if [5, 37].contains(&at) { GARBAGE } else { 7 };
            assert!(bytes.part(at, 1).iter().all(|&byte| byte == expected), "M3: sector {at}");
        }
        let reads = service.reads.lock().unwrap().len();
        assert!(reads <= 1 + 24, "{reads} reads");
    }

    #[test]
    fn less_than_full_effort_says_nothing_of_sectors_and_asks_once() {
        let service = Vague::new(8, &[1], 0);
        let member = Arc::new(FarMember(Far(service.clone())));
        let extent = Extent::new(Lba::ZERO, Sectors::new(4));
        let reply = run(&member, Request::read(extent, Effort::Fast));
        let (unknown, damaged) = (SectorSet::first(extent.sectors), SectorSet::EMPTY);
        assert_eq!(reply.outcome, Outcome::Done { unknown, damaged });
        assert!(reply.data.into_buf().as_slice().iter().all(|&byte| byte == GARBAGE), "M3");
        assert_eq!(service.reads.lock().unwrap().len(), 1);
    }

    #[test]
    fn what_is_refused_while_an_array_is_made_is_asked_again_and_what_fails_is_told() {
        let far = Far(Vague::new(8, &[3], 2));
        far.write(Lba::ZERO, &[9; SECTOR_SIZE]).unwrap();
        far.sync().unwrap();
        let mut sector = [0; SECTOR_SIZE];
        far.read(Lba::ZERO, &mut sector).unwrap();
        assert!(sector == [9; SECTOR_SIZE]);
        let error = far.read(Lba::new(3), &mut sector).unwrap_err();
        assert_eq!(error.to_string(), "it failed");
    }
}
