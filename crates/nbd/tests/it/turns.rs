//! Zeroings of much at once: what others wait for, and when they end.

use std::collections::VecDeque;
use std::io::Write;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::thread;

use levelhead_block::{BlockService, Command, Done, Outcome, Reply, Request};
use levelhead_nbd::codec::{CommandFlags, CommandKind, Cookie, Errno, RequestHeader};
use levelhead_units::Sectors;

use crate::common::{RawClient, Served, wait_until};

/// 4 GiB.
const SECTORS: Sectors = Sectors::new(1 << 20);

/// 40 of them are 80 GiB: 2560 pieces of 32 MiB.
const ZEROES: u32 = 2 << 30;
const REQUESTS: u64 = 40;

/// The most pieces of other clients that a write waits for.
const PIECES: usize = 8;

/// A service that keeps zeroings until it is told to end one, and does all else at once.
#[derive(Default)]
struct Kept(Mutex<State>);

#[derive(Default)]
struct State {
    zeroings: VecDeque<Done>,
    /// Zeroings that have come.
    pieces: usize,
    writes: usize,
    /// Whether nothing is kept any more.
    is_open: bool,
}

/// Opens it at the end of a test, however that ends, so that the server can stop.
struct Opener(Arc<Kept>);

impl Deref for Opener {
    type Target = Kept;

    fn deref(&self) -> &Kept {
        &self.0
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        let mut state = self.0.0.lock().unwrap();
        state.is_open = true;
        let zeroings = std::mem::take(&mut state.zeroings);
        drop(state);
        zeroings.into_iter().for_each(|done| done(Reply::bare(Outcome::GOOD)));
    }
}

impl Kept {
    fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.0.lock().unwrap())
    }

    /// Ends the oldest zeroing.
    fn end_one(&self) {
        let done = self.0.lock().unwrap().zeroings.pop_front();
        done.expect("one is kept")(Reply::bare(Outcome::GOOD));
    }

    /// Ends what comes until nothing does: how many pieces there were.
    fn end_all(&self, is_over: impl Fn() -> bool) -> usize {
        wait_until("the zeroings end", || {
            while self.look(|state| !state.zeroings.is_empty()) {
                self.end_one();
            }
            self.look(|state| state.pieces > 5 * PIECES) || is_over()
        });
        self.look(|state| state.pieces)
    }
}

impl BlockService for Kept {
    fn size(&self) -> Sectors {
        SECTORS
    }

    fn submit(&self, request: Request, done: Done) {
        let mut state = self.0.lock().unwrap();
        match request.command {
            Command::WriteZeroes { extent, .. } => {
                assert!(extent.sectors <= Sectors::new(8192), "a piece has 32 MiB at most");
                state.pieces += 1;
                if !state.is_open {
                    state.zeroings.push_back(done);
                    return;
                }
            }
            Command::Write { .. } => state.writes += 1,
            Command::Flush | Command::Read { .. } | Command::Trim { .. } => {}
        }
        drop(state);
        done(Reply::bare(Outcome::GOOD));
    }
}

/// A server, and a client that zeroes a lot, whose zeroings have begun.
fn zeroing() -> (Served, Opener, RawClient) {
    let kept = Arc::new(Kept::default());
    let served = Served::over(Arc::clone(&kept) as Arc<dyn BlockService>);
    let mut greedy = served.raw().impatient();
    greedy.go(&[]);
    for cookie in 0..REQUESTS {
        greedy.request(cookie, CommandKind::WriteZeroes, 0, ZEROES);
    }
    // The service has them all.
    greedy.request(REQUESTS, CommandKind::Flush, 0, 0);
    assert_eq!(greedy.simple(), (REQUESTS, None));
    (served, Opener(kept), greedy)
}

#[test]
fn write_into_what_others_zero_waits_for_a_few_pieces() {
    let (served, kept, greedy) = zeroing();
    let mut honest = served.raw().impatient();
    honest.go(&[]);
    honest.request(1, CommandKind::Write, 0, 4096);
    honest.send(&[1; 4096]);
    // Once this one is answered, the write is on its way.
    honest.request(2, CommandKind::Flush, 0, 0);
    assert_eq!(honest.simple(), (2, None));
    let mut ended = 0;
    while kept.look(|state| state.writes == 0) {
        kept.end_one();
        ended += 1;
        assert!(ended <= PIECES, "the write waits for more than {PIECES} pieces");
        let goes_on = |state: &State| state.writes > 0 || !state.zeroings.is_empty();
        wait_until("the next one comes", || kept.look(goes_on));
    }
    assert_eq!(honest.simple(), (1, None));
    drop(greedy);
    kept.end_all(|| served.running.connections() == 1);
}

#[test]
fn zeroings_of_a_client_that_has_gone_end() {
    let (served, kept, greedy) = zeroing();
    drop(greedy);
    let pieces = kept.end_all(|| served.running.connections() == 0);
    assert!(pieces <= PIECES, "{pieces} pieces were zeroed for nobody");
}

/// More than a connection may have in flight, so that nothing reads what it says.
#[test]
fn zeroings_of_a_client_that_has_gone_end_also_where_its_socket_is_not_read() {
    let (served, kept, mut greedy) = zeroing();
    for cookie in 0..300 {
        greedy.request(cookie, CommandKind::WriteZeroes, 0, ZEROES);
    }
    drop(greedy);
    let pieces = kept.end_all(|| served.running.connections() == 0);
    assert!(pieces <= PIECES, "{pieces} pieces were zeroed for nobody");
}

#[test]
fn zeroings_end_when_the_server_stops() {
    let (served, kept, mut greedy) = zeroing();
    let Served { running, dir } = served;
    let stopping = thread::spawn(move || running.stop());
    let mut flush = Vec::new();
    let (flags, kind, cookie) = (CommandFlags::NONE, CommandKind::Flush, Cookie::new(99));
    RequestHeader { flags, kind, cookie, offset: 0, length: 0 }.encode(&mut flush);
    wait_until("nothing more is read of it", || greedy.0.write_all(&flush).is_err());
    let pieces = kept.end_all(|| stopping.is_finished());
    stopping.join().unwrap();
    assert!(pieces <= PIECES, "{pieces} pieces were zeroed by a server that stops");
    let mut errors = std::iter::from_fn(|| Some(greedy.simple().1));
    assert!(errors.any(|error| error == Some(Errno::ShuttingDown)));
    drop(dir);
}

#[test]
fn long_zeroings_of_one_client_reach_the_service_in_pieces_and_end_well() {
    let (served, kept, mut greedy) = zeroing();
    let served_all = thread::spawn(move || {
        let mut cookies: Vec<u64> = (0..REQUESTS).map(|_| greedy.simple().0).collect();
        cookies.sort_unstable();
        assert!(cookies.into_iter().eq(0..REQUESTS));
    });
    while !served_all.is_finished() {
        while kept.look(|state| !state.zeroings.is_empty()) {
            kept.end_one();
        }
        thread::yield_now();
    }
    served_all.join().unwrap();
    assert_eq!(kept.look(|state| state.pieces), 40 * 64);
    drop(served);
}
