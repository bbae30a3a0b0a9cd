//! An emulated drive: the drive core paced by the clock, in front of a file.
//!
//! One thread owns the core. It sleeps until the core's deadline or the next message; the bytes move
//! when the model says that the command has ended. The core keeps its own time, so a thread that
//! wakes up late delays one report and nothing after it.
//!
//! Where the deadline is a millisecond away or more, the thread wakes up a little before it, moves the bytes, and answers at the very
//! time that the model says. Most such answers are late by less than a microsecond instead of a tenth of a millisecond, which is a
//! twentieth of a short seek. A message that comes in between is heard after the answer.
//!
//! New faults take effect with the next command that the drive begins; queue, arm and health page stay
//! as they are. What is silently wrong with a command (the core's completion says it, and no client hears of
//! it) is wrong in the file: sectors that did not reach the platter keep their old bytes, for example.
//!
//! # Memory
//!
//! What a drive that writes back has taken and not written stays in this process, over the file's old
//! bytes; it goes to the file when the model says that the medium has it. So a process that is killed
//! loses what a drive loses whose power fails, and nothing that was flushed or written durably. A drive
//! that is dropped in good order writes everything first, as one that is told to stop.
//!
//! A file that takes no bytes then is a drive that has failed: the writes were answered long ago.
//!
//! Differs from the real thing: what the medium has is in the machine's page cache, safe from the end
//! of this program and not from a power failure of the machine.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SendError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use levelhead_block::{BlockService, Command, Done, Health, Outcome, Payload, Reply, Request};
use levelhead_bytes::{Caching, Ended, Failed, Platter};
use levelhead_drive::{
    Completion, Drive, Faults, Profile, Settings, SettingsError, VerifyCounters,
};
use levelhead_stats::Streams;
use levelhead_units::{Instant, Nanos, Sectors};

use crate::backend::{Emulated, Look, Member, prepared};
use crate::blocking::{Asked, because, failed_read};
use crate::clock::{Clock, precise_timers, receive_ahead_of, stay_awake_until};
use crate::errno::failed_write;
use crate::error::HostError;
use crate::medium::Disk;

/// How often an idle drive with bytes in its memory is asked what it has written meanwhile: the model
/// makes no event of that.
const DESTAGE_INTERVAL: Nanos = Nanos::from_millis(50);

/// How long the thread may take to say what has been read back.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// See the module.
pub(crate) struct EmulatedDrive<D> {
    disk: D,
    /// Absent only while it is dropped.
    messages: Option<Sender<Message>>,
    health: Arc<Mutex<Health>>,
    thread: Option<JoinHandle<()>>,
}

/// What the core of an emulated drive is made from.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its make.
    pub profile: Arc<Profile>,
    /// What it is besides.
    pub settings: Settings,
    /// Where its chance comes from.
    pub streams: Streams,
    /// The name under which it draws from there: `drive/0` for the first of an array.
    pub name: String,
}

impl Model {
    /// The drive as it is when it is switched on, or what is wrong with the settings.
    pub fn drive(&self) -> Result<Drive, SettingsError> {
        Drive::new(Arc::clone(&self.profile), self.settings, self.streams, &self.name)
    }
}

enum Message {
    Request(Request, Done),
    Faults(Box<Faults>),
    Death,
    /// Everything is to end and to be written; tells when it is.
    WindUp(Sender<()>),
    /// Asks for what has been read back by now.
    Verified(Sender<VerifyCounters>),
}

impl<D: Disk> EmulatedDrive<D> {
    pub(crate) fn start(model: &Model, disk: D, clock: Clock) -> Result<Self, HostError> {
        let drive = model.drive().map_err(|error| HostError::new(error.to_string()))?;
        let (sender, messages) = mpsc::channel();
        let health = Arc::new(Mutex::new(Health::default()));
        let caching = Caching::of(drive.writes_back());
        let worker = Worker {
            drive,
            platter: Platter::new(disk.clone(), caching),
            clock,
            reached: Instant::ZERO,
            waiting: VecDeque::new(),
            inside: BTreeMap::new(),
            name_last: 0,
            failure: None,
            health: Arc::clone(&health),
        };
        let thread = std::thread::Builder::new()
            .name("emulated drive".into())
            .spawn(move || worker.run(&messages))
            .map_err(|error| HostError::new(format!("cannot start a thread: {error}")))?;
        Ok(Self { disk, messages: Some(sender), health, thread: Some(thread) })
    }

    /// Gives it back if the thread has ended.
    fn send(&self, message: Message) -> Result<(), SendError<Message>> {
        self.messages.as_ref().expect("it is there until the drop").send(message)
    }
}

impl<D: Disk> BlockService for EmulatedDrive<D> {
    fn size(&self) -> Sectors {
        self.disk.size()
    }

    fn submit(&self, request: Request, done: Done) {
        let Some((request, done)) = prepared(self.size(), request, done) else { return };
        if let Err(SendError(Message::Request(_, done))) =
            self.send(Message::Request(request, done))
        {
            done(Reply::gone("its thread has ended"));
        }
    }
}

impl<D: Disk> Member for EmulatedDrive<D> {
    fn health(&self) -> Option<Health> {
        Some(*self.health.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn emulated(&self) -> Option<&dyn Emulated> {
        Some(self)
    }

    fn look(&self) -> Option<Look> {
        let disk = self.disk.clone();
        Some(Box::new(move || disk.loss()))
    }
}

impl<D: Disk> Emulated for EmulatedDrive<D> {
    fn set_faults(&self, faults: Faults) {
        // A thread that has ended has no faults.
        drop(self.send(Message::Faults(Box::new(faults))));
    }

    fn die(&self) {
        // A thread that has ended is as good as dead.
        drop(self.send(Message::Death));
    }

    fn wind_up(&self) {
        let (sender, done) = mpsc::channel();
        if self.send(Message::WindUp(sender)).is_ok() {
            // A thread that panics has said so on its own.
            let _ended = done.recv();
        }
    }

    fn verified(&self) -> Option<VerifyCounters> {
        let (sender, answer) = mpsc::channel();
        self.send(Message::Verified(sender)).ok()?;
        answer.recv_timeout(ANSWER_WITHIN).ok()
    }
}

impl<D> Drop for EmulatedDrive<D> {
    fn drop(&mut self) {
        self.messages = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so on its own.
            drop(thread.join());
        }
    }
}

/// What the thread owns.
struct Worker<D> {
    drive: Drive,
    platter: Platter<D>,
    clock: Clock,
    /// The latest time that the core has been told, which may be a little ahead of the clock.
    reached: Instant,
    /// Requests that the drive has no room for yet.
    waiting: VecDeque<(Request, Done)>,
    /// Requests inside the drive, by the name they have there.
    inside: BTreeMap<u64, (Request, Done)>,
    name_last: u64,
    /// Why the file did not take what was in memory, until a client has heard of it.
    failure: Option<String>,
    health: Arc<Mutex<Health>>,
}

impl<D: Disk> Worker<D> {
    fn run(mut self, messages: &Receiver<Message>) {
        precise_timers();
        loop {
            let now = self.now();
            let look = (self.platter.unwritten_len() > 0).then(|| now + DESTAGE_INTERVAL);
            let due = [self.drive.deadline(), look].into_iter().flatten().min();
            let message = match due {
                Some(at) => receive_ahead_of(messages, self.clock.moment(at)),
                None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match message {
                Ok(message) => self.handle(message),
                Err(RecvTimeoutError::Timeout) => {
                    self.reached = self.now().max(due.unwrap_or_default());
                    self.drive.handle_timeout(self.reached);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.run_out();
                    // Told to stop, a drive writes what it has. No client is left to hear of a failure.
                    drop(self.platter.flush());
                    return;
                }
            }
            self.finish();
            self.destage();
            self.follow_up();
        }
    }

    /// The time for the core, which never goes back.
    fn now(&self) -> Instant {
        self.clock.now().max(self.reached)
    }

    /// Ends everything that is inside or waits.
    fn run_out(&mut self) {
        // What waits to be read back is not waited for.
        while self.drive.queue_len() > 0
            && let Some(at) = self.drive.deadline()
        {
            std::thread::sleep(self.clock.until(at).into());
            self.drive.handle_timeout(self.now());
            self.finish();
            self.destage();
            self.follow_up();
        }
    }

    /// Brings to the file what the model has brought to the medium.
    fn destage(&mut self) {
        if self.platter.unwritten_len() == 0 {
            return;
        }
        let now = self.now();
        let waiting = self.drive.unwritten(now);
        if let Err(error) = self.platter.destage(&waiting) {
            self.failure = Some(error.to_string());
            self.platter.lose_power();
            self.drive.handle_death(now);
        }
        // Asking may have ended commands.
        self.finish();
    }

    /// Carries out what has become of writes that the drive has read back.
    fn follow_up(&mut self) {
        while let Some(aftermath) = self.drive.poll_aftermath() {
            if let Err(error) = self.platter.carry_out(aftermath) {
                self.failure = Some(error.to_string());
                self.drive.handle_death(self.now());
                self.finish();
            }
        }
    }

    fn handle(&mut self, message: Message) {
        let now = self.now();
        match message {
            Message::Request(request, done) => {
                self.waiting.push_back((request, done));
                self.admit();
            }
            Message::Faults(faults) => {
                self.drive.set_faults(now, *faults).expect("the engine has checked them");
            }
            Message::Death => self.drive.handle_death(now),
            Message::WindUp(sender) => {
                self.run_out();
                // No client is left to hear of a failure.
                drop(self.platter.flush());
                let _unheard = sender.send(());
            }
            Message::Verified(sender) => {
                self.drive.settle(now);
                // One that does not wait any longer has no use for it.
                let _unheard = sender.send(self.drive.counters().verify);
            }
        }
    }

    /// Lets waiting requests into the drive as long as it has room.
    fn admit(&mut self) {
        while self.drive.has_room()
            && let Some((request, done)) = self.waiting.pop_front()
        {
            self.name_last += 1;
            // The drive finds the zeroes in the bytes, as that of [SDHDD] does.
            let request = request.with_tail_found();
            let (command, origin) = (request.command, request.origin);
            self.inside.insert(self.name_last, (request, done));
            self.drive.handle_submit(self.now(), self.name_last, command, origin);
        }
    }

    /// Moves the bytes of what has ended and answers it.
    fn finish(&mut self) {
        while let Some(Completion { id, outcome, ended, silent, is_read_back, after, .. }) =
            self.drive.poll()
        {
            let (request, done) = self.inside.remove(&id).expect("it was submitted");
            let read_back = is_read_back.then_some(id);
            let mut reply = self.platter.end(request, Ended { outcome, silent, read_back, after });
            if let Ok(Reply { outcome: Outcome::Gone, reason, .. }) = &mut reply {
                *reason = self.failure.take();
            }
            let reply = reply.unwrap_or_else(|failed| self.blame(failed));
            let now = self.now();
            *self.health.lock().unwrap_or_else(PoisonError::into_inner) = self.drive.health(now);
            stay_awake_until(self.clock.moment(ended));
            assert!(self.clock.now() >= ended, "no answer comes before its time");
            done(reply);
            self.admit();
        }
    }

    /// The end of a request that the model has carried out and the file has not.
    fn blame(&mut self, Failed { request, error }: Failed<io::Error>) -> Reply {
        match (request.command, request.payload) {
            (Command::Read { extent, effort }, Payload::Room(buf)) => {
                let read = |extent, bytes: &mut [u8]| self.platter.read(extent, bytes);
                failed_read(Asked { extent, effort }, buf, &error, read)
            }
            (Command::Write { extent, .. }, payload) => {
                drop(payload); // M2
                because(failed_write(extent, &error), &error)
            }
            // The writes that the file did not take were answered long ago.
            (Command::Flush, _) => because(Outcome::Gone, &error),
            (command, payload) => panic!("{command:?} came with {payload:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use levelhead_block::{Buf, Durability, Effort, Piece, SectorSet, ZeroTail};
    use levelhead_testkit::profiles::forgetful;
    use levelhead_units::{Extent, Lba, Ratio, SECTOR_SIZE};
    use tempfile::TempDir;

    use super::*;
    use crate::medium::Shared;
    use crate::member::MemberSpec;

    struct Bench {
        drive: EmulatedDrive<Shared>,
        sender: Sender<Reply>,
        ended: Receiver<Reply>,
        dir: TempDir,
    }

    /// A drive whose every sector is full of ones, with these options.
    fn bench(options: &str) -> Bench {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("a.img");
        std::fs::write(&path, vec![1; 64 * SECTOR_SIZE]).unwrap();
        let member: MemberSpec = format!("emu:{}?{options}", path.display()).parse().unwrap();
        let medium = member.open_medium().unwrap();
        let model = member.model(medium.size(), 32, "drive/0").unwrap().unwrap();
        let (sender, ended) = mpsc::channel();
        let disk = Shared(Arc::new(medium));
        let drive = EmulatedDrive::start(&model, disk, Clock::start()).unwrap();
        Bench { drive, sender, ended, dir }
    }

    impl Bench {
        fn path(&self) -> std::path::PathBuf {
            self.dir.path().join("a.img")
        }

        /// Asks for two sectors.
        fn ask(&mut self, effort: Effort) {
            let extent = Extent::new(Lba::new(7), Sectors::new(2));
            self.submit(Request::read(extent, effort).with_origin(1));
        }

        fn submit(&self, request: Request) {
            let sender = self.sender.clone();
            self.drive.submit(request, Box::new(move |reply| drop(sender.send(reply))));
        }

        /// The next end; every byte of a sector is the same.
        fn end(&mut self) -> (Outcome, [u8; 2]) {
            let Reply { outcome, data, .. } = self.ended.recv().unwrap();
            let buf = data.into_buf();
            let values = [0, 1].map(|at| {
                let sector = buf.part(at, 1);
                assert!(sector.iter().all(|&byte| byte == sector[0]));
                sector[0]
            });
            (outcome, values)
        }
    }

    fn all() -> SectorSet {
        SectorSet::first(Sectors::new(2))
    }

    #[test]
    fn what_the_model_does_not_read_cannot_be_used() {
        let mut soft = bench("retry-rate=100%&rotations=1");
        soft.ask(Effort::Fast);
        let unknown = Outcome::Done { unknown: all(), damaged: SectorSet::EMPTY };
        assert_eq!(soft.end(), (unknown, [0xEE; 2]), "B3");
        soft.ask(Effort::Full);
        assert_eq!(soft.end(), (Outcome::GOOD, [1; 2]));
        let mut hard = bench("hard-rate=100%&rotations=1");
        hard.ask(Effort::Full);
        let damaged = Outcome::Done { unknown: SectorSet::EMPTY, damaged: all() };
        assert_eq!(hard.end(), (damaged, [0xEE; 2]), "B3");
    }

    /// The same chance decides; where the drive knows of zeroes, a part of the same sectors fails.
    #[test]
    fn sectors_that_are_written_with_zeroes_at_their_ends_fail_less() {
        let bench = bench("retry-rate=50%&zero-tails=20%/0%&rotations=1");
        let all = Extent::new(Lba::ZERO, Sectors::new(64));
        let failed = |tail| {
            let zeroes = match tail {
                ZeroTail::None => 0,
                ZeroTail::B256 => 256,
                ZeroTail::B512 => 512,
            };
            let mut bytes = Buf::zeroed(all.sectors);
            for sector in bytes.as_mut_slice().chunks_mut(SECTOR_SIZE) {
                sector[..SECTOR_SIZE - zeroes].fill(1);
            }
            // Nothing is said of them: the drive finds them.
            let write = Request::write(all, Durability::Cached, bytes);
            bench.submit(write.with_origin(1));
            assert_eq!(bench.ended.recv().unwrap().outcome, Outcome::GOOD);
            bench.submit(Request::read(all, Effort::Fast).with_origin(2));
            match bench.ended.recv().unwrap().outcome {
                Outcome::Done { unknown, .. } => unknown,
                other => panic!("{other:?}"),
            }
        };
        let [none, b256, b512] = [ZeroTail::None, ZeroTail::B256, ZeroTail::B512].map(failed);
        assert!(b256.len() < none.len() && b256.iter().all(|at| none.contains(at)));
        assert!(none.len() > 20 && b256.len() > 4 && b512.is_empty(), "{none:?} {b256:?}");
        assert_eq!(failed(ZeroTail::None), none, "zeroes are forgotten");
    }

    #[test]
    fn new_faults_keep_the_queue_and_the_health_page() {
        let mut bench = bench("");
        let hard: Faults = "hard-rate=100%,rotations=1".parse().unwrap();
        (0..4).for_each(|_| bench.ask(Effort::Full));
        (0..4).for_each(|_| assert_eq!(bench.end(), (Outcome::GOOD, [1; 2])));
        bench.drive.set_faults(Faults { slowdown: 2.0, ..hard });
        (0..4).for_each(|_| bench.ask(Effort::Full));
        // What waits inside is neither lost nor delayed until the drive is empty.
        bench.drive.set_faults(hard);
        for _ in 0..4 {
            assert_eq!(bench.end().1, [0xEE; 2]);
        }
        let health = bench.drive.health().unwrap();
        assert_eq!((health.commands, health.first_pass_failures), (Some(8), Some(8)));
        assert_eq!(health.retry_rate, Ratio::new(0.5));
    }

    /// Writes twos to sectors 7 to 10, from two places, as writes of an array come.
    fn write_twos(bench: &Bench, durability: Durability) {
        let extent = Extent::new(Lba::new(7), Sectors::new(4));
        let whole = Piece::whole(Arc::new(Buf::copy_of(&[2; 4 * SECTOR_SIZE])));
        let pieces = vec![whole.part(0, 2), whole.part(2, 2)];
        let write = Request::write_pieces(extent, durability, pieces);
        bench.submit(write.with_origin(2));
        assert_eq!(bench.ended.recv().unwrap().outcome, Outcome::GOOD);
    }

    /// Every sector of the drive as it reads.
    fn read_all(bench: &Bench) -> Vec<Vec<u8>> {
        let extent = Extent::new(Lba::ZERO, Sectors::new(64));
        bench.submit(Request::read(extent, Effort::Full).with_origin(3));
        let buf = bench.ended.recv().unwrap().data.into_buf();
        buf.as_slice().chunks(SECTOR_SIZE).map(Vec::from).collect()
    }

    #[test]
    fn sectors_that_a_write_silently_missed_keep_their_old_bytes() {
        for (options, expected) in [
            ("", [2; 4]),
            ("lost-writes=100%", [1; 4]),
            // Where it is torn, a hash decides: here within the first piece.
            ("torn-writes=100%", [2, 1, 1, 1]),
        ] {
            let bench = bench(options);
            write_twos(&bench, Durability::Durable);
            let seen = read_all(&bench);
            assert_eq!([7, 8, 9, 10].map(|at: usize| seen[at][0]), expected, "{options}");
        }
    }

    #[test]
    fn misdirected_write_is_whole_somewhere_else_in_the_file() {
        let bench = bench("misdirected-writes=100%");
        write_twos(&bench, Durability::Cached);
        let seen = read_all(&bench);
        let twos: Vec<usize> = (0..64).filter(|&at| seen[at] == [2; SECTOR_SIZE]).collect();
        let first = twos[0];
        assert_eq!(twos, [first, first + 1, first + 2, first + 3]);
        assert!(first >= 11 || first + 4 <= 7, "{twos:?}");
        assert!((0..64).all(|at| twos.contains(&at) || seen[at] == [1; SECTOR_SIZE]));
        assert_eq!(std::fs::read(bench.path()).unwrap(), seen.concat());
    }

    #[test]
    fn every_sector_flips_one_bit_at_rest_in_reads_and_as_it_is_stored_in_the_file() {
        let bench = bench("flips=100%");
        let wrong = |sector: &[u8], value: u8| {
            sector.iter().map(|byte| (byte ^ value).count_ones()).sum::<u32>()
        };
        let before = read_all(&bench);
        assert!(before.iter().all(|sector| wrong(sector, 1) == 1));
        assert_eq!(read_all(&bench), before, "the same ones in every read");
        write_twos(&bench, Durability::Durable);
        let file = std::fs::read(bench.path()).unwrap();
        let file: Vec<&[u8]> = file.chunks(SECTOR_SIZE).collect();
        let seen = read_all(&bench);
        for at in 0..64 {
            let (value, flipped) = if (7..11).contains(&at) { (2, 1) } else { (1, 0) };
            assert_eq!(wrong(file[at], value), flipped, "sector {at} of the file");
            assert_eq!(wrong(&seen[at], value), 1, "sector {at} as it reads");
        }
        assert_eq!(seen[7..11].concat(), file[7..11].concat());
    }

    #[test]
    fn lying_flush_leaves_the_file_as_it_was_and_the_end_in_good_order_does_not() {
        let dir = TempDir::new().unwrap();
        let profile = dir.path().join("forgetful.toml");
        std::fs::write(&profile, forgetful()).unwrap();
        for (options, flushed) in [("", 2), ("&lying-flush=100%", 1)] {
            let options = format!("profile={}&cache=write-back{options}", profile.display());
            let bench = bench(&options);
            write_twos(&bench, Durability::Cached);
            bench.submit(Request::bare(Command::Flush).with_origin(4));
            assert_eq!(bench.ended.recv().unwrap().outcome, Outcome::GOOD);
            let path = bench.path();
            let stored = || std::fs::read(&path).unwrap()[7 * SECTOR_SIZE];
            assert_eq!(stored(), flushed, "{options}");
            let Bench { drive, dir: _dir, .. } = bench;
            drop(drive);
            assert_eq!(stored(), 2, "{options}: told to stop, it writes");
        }
    }

    #[test]
    fn dead_drive_ends_everything_as_gone_and_stays_dead() {
        let mut bench = bench("slowdown=1000");
        (0..3).for_each(|_| bench.ask(Effort::Full));
        bench.drive.set_faults(Faults::NONE);
        (0..3).for_each(|_| bench.ask(Effort::Full));
        bench.drive.die();
        bench.drive.set_faults(Faults::NONE);
        (0..3).for_each(|_| bench.ask(Effort::Full));
        for _ in 0..9 {
            assert_eq!(bench.ended.recv().unwrap().outcome, Outcome::Gone);
        }
    }
}
