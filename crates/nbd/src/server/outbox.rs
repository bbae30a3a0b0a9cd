//! Answers on their way to one client.
//!
//! ```text
//!   callback --- short, and nothing is before it ---> socket, as much as it takes at once
//!      |                                                 | the rest
//!      +---> queue <-------------------------------------+
//!              |
//!            writer ---> socket, several answers at a time, waiting for the client
//! ```
//!
//! # Invariants
//!
//! - O1. Answers are sent whole, one after the other: one thread at a time is *sending*.
//! - O2. [`Outbox::send`] never waits for the client.
//! - O3. Once the socket is broken, or the last [`Sender`] is gone and everything sent, the writer ends.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::budget::Account;
use super::in_flight::Permit;
use crate::codec::{Payload, ServerMessage};
use crate::socket::Socket;

/// Answers of more bytes are left to the writer, which copies them into the socket while others go on:
/// 64 KiB of data, and the head.
const DIRECT_MAX: usize = (64 << 10) + HEAD_USUAL;

/// What the writer hands to the socket at a time, unless one answer alone is more.
const BATCH_MAX: usize = 1 << 20;

/// Answers that the writer hands to the socket at a time.
const BATCH_COUNT_MAX: usize = 64;

/// Bytes of the head of an answer that brings what was read, and some more.
const HEAD_USUAL: usize = 64;

/// Parts in memory of one call; the system takes 1024.
const SLICES_MAX: usize = 512;

/// Bytes of one call, so that it shows whether the client takes any: 256 KiB.
const CALL_MAX: usize = 256 << 10;

/// See the module.
pub(super) struct Outbox {
    socket: Arc<Socket>,
    /// What is told that the client takes its answers.
    account: Arc<Account>,
    state: Mutex<OutboxState>,
    changed: Condvar,
    /// Whether the client takes nothing any more: what the state says, for those who do not hold it.
    is_broken: AtomicBool,
}

#[derive(Default)]
struct OutboxState {
    queue: VecDeque<Outgoing>,
    /// Whether a thread is in the socket (O1).
    sending: bool,
    /// Whether the writer waits to be told of something.
    waiting: bool,
    /// How many [`Sender`]s there are.
    senders: usize,
    broken: bool,
}

/// An answer, and the permit of its request, which is given back once the answer is sent.
struct Outgoing {
    head: Vec<u8>,
    data: Option<Payload>,
    /// Bytes of it that are sent.
    sent: usize,
    permit: Permit,
}

impl Outgoing {
    fn len(&self) -> usize {
        self.head.len() + self.data.as_ref().map_or(0, Payload::len)
    }

    /// Sends as much of it as there is room for: how many bytes it was.
    fn send_at_once(&self, socket: &Socket) -> io::Result<usize> {
        // The usual answer lies in two parts, and needs no list of them.
        let mut slices = self.slices();
        let usual = [slices.next(), slices.next()];
        if let ([Some(head), Some(data)], None) = (usual, slices.next()) {
            return socket.write_at_once(&[head, data]);
        }
        let slices: Vec<IoSlice<'_>> = self.slices().take(SLICES_MAX).collect();
        socket.write_at_once(&slices)
    }

    /// It is sent: there is room for another one.
    fn end(self) {
        let Self { permit, .. } = self;
        drop(permit);
    }

    /// What is left to be sent.
    fn slices(&self) -> impl Iterator<Item = IoSlice<'_>> {
        self.parts().map(IoSlice::new)
    }

    fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let data = self.data.iter().flat_map(Payload::slices);
        let mut skip = self.sent;
        let rest = move |slice: &'_ [u8]| -> usize {
            let gone = skip.min(slice.len());
            skip -= gone;
            gone
        };
        let slices = std::iter::once(self.head.as_slice()).chain(data);
        let cut = slices.scan(rest, |rest, slice| Some(&slice[rest(slice)..]));
        cut.filter(|slice| !slice.is_empty())
    }
}

/// What answers are given to. The writer ends when the last of them is gone.
pub(super) struct Sender(Arc<Outbox>);

impl Outbox {
    /// For the client at `socket`, and what answers are given to.
    pub(super) fn new(socket: Arc<Socket>, account: Arc<Account>) -> (Arc<Self>, Sender) {
        let state = Mutex::new(OutboxState { senders: 1, ..OutboxState::default() });
        let outbox = Arc::new(Self {
            socket,
            account,
            state,
            changed: Condvar::new(),
            is_broken: AtomicBool::new(false),
        });
        (Arc::clone(&outbox), Sender(outbox))
    }

    fn lock(&self) -> MutexGuard<'_, OutboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, outgoing: Outgoing) {
        let mut state = self.lock();
        if state.broken {
            drop(state);
            return drop(outgoing);
        }
        let is_direct = state.queue.is_empty() && !state.sending && outgoing.len() <= DIRECT_MAX;
        if !is_direct {
            state.queue.push_back(outgoing);
            return self.wake(&mut state);
        }
        state.sending = true;
        drop(state);
        self.send_now(outgoing);
    }

    /// Sends as much as the socket takes, and leaves the rest to the writer.
    fn send_now(&self, mut outgoing: Outgoing) {
        let sent = outgoing.send_at_once(&self.socket);
        let mut state = self.lock();
        state.sending = false;
        match sent {
            Ok(sent) => {
                if sent > 0 {
                    self.account.note_taken();
                }
                outgoing.sent += sent;
                let is_over = outgoing.sent == outgoing.len();
                if !is_over {
                    state.queue.push_front(outgoing);
                    return self.wake(&mut state);
                }
                if !state.queue.is_empty() {
                    self.wake(&mut state);
                }
                drop(state);
                outgoing.end();
            }
            Err(_) => {
                drop(outgoing);
                self.end(state);
            }
        }
    }

    /// Tells the writer that there is something for it.
    fn wake(&self, state: &mut OutboxState) {
        if state.waiting && !state.sending {
            state.waiting = false;
            self.changed.notify_one();
        }
    }

    /// The client takes nothing any more. The reader learns of that from the socket, or when it looks.
    fn end(&self, mut state: MutexGuard<'_, OutboxState>) {
        state.broken = true;
        self.is_broken.store(true, Ordering::Relaxed);
        let unsent = std::mem::take(&mut state.queue);
        self.wake(&mut state);
        drop(state);
        self.socket.shutdown(Shutdown::Both);
        drop(unsent);
    }

    /// What the writer does, until there is nothing more to come.
    pub(super) fn write(&self) {
        while let Some(batch) = self.next_batch() {
            let result = self.write_batch(&batch);
            let mut state = self.lock();
            state.sending = false;
            if result.is_err() {
                self.end(state);
            } else {
                drop(state);
            }
            drop(batch);
        }
    }

    /// Waits for answers that are to be sent by the caller.
    fn next_batch(&self) -> Option<Vec<Outgoing>> {
        let mut state = self.lock();
        loop {
            if state.broken {
                return None;
            }
            if !state.sending && !state.queue.is_empty() {
                break;
            }
            if !state.sending && state.senders == 0 {
                return None;
            }
            state.waiting = true;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting = false;
        state.sending = true;
        let mut batch: Vec<Outgoing> = Vec::new();
        let mut bytes = 0;
        while batch.len() < BATCH_COUNT_MAX
            && let Some(outgoing) = state.queue.front()
            && (batch.is_empty() || bytes + outgoing.len() <= BATCH_MAX)
        {
            bytes += outgoing.len();
            batch.extend(state.queue.pop_front());
        }
        Some(batch)
    }

    fn write_batch(&self, batch: &[Outgoing]) -> io::Result<()> {
        let parts = batch.iter().flat_map(Outgoing::parts);
        let mut slices: Vec<IoSlice<'_>> =
            parts.flat_map(|part| part.chunks(CALL_MAX)).map(IoSlice::new).collect();
        let mut left = slices.as_mut_slice();
        while !left.is_empty() {
            let mut bytes = 0;
            let fits = |slice: &&IoSlice<'_>| {
                bytes += slice.len();
                bytes <= CALL_MAX
            };
            let call = left[..left.len().min(SLICES_MAX)].iter().take_while(fits).count();
            let count = self.socket.write(&left[..call])?;
            self.account.note_taken();
            IoSlice::advance_slices(&mut left, count);
        }
        Ok(())
    }
}

impl Sender {
    /// Gives an answer on its way, and frees its place in flight once it is sent. Without a client it is
    /// dropped.
    pub(super) fn send(&self, message: ServerMessage, permit: Permit) {
        let mut head = Vec::with_capacity(HEAD_USUAL);
        message.encode_head(&mut head);
        self.send_part(head, message.into_payload(), permit);
    }

    /// The same for a part of a message, a head that is encoded and data that follow it.
    pub(super) fn send_part(&self, head: Vec<u8>, data: Option<Payload>, permit: Permit) {
        self.0.send(Outgoing { head, data, sent: 0, permit });
    }
}

impl Sender {
    /// Whether the client has been seen to take no answers any more.
    pub(super) fn is_broken(&self) -> bool {
        self.0.is_broken.load(Ordering::Relaxed)
    }
}

impl Clone for Sender {
    fn clone(&self) -> Self {
        self.0.lock().senders += 1;
        Self(Arc::clone(&self.0))
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.senders -= 1;
        if state.senders == 0 {
            self.0.wake(&mut state);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use levelhead_block::{Buf, Data};
    use levelhead_units::SECTOR_SIZE;

    use super::*;
    use crate::codec::Cookie;
    use crate::server::Bounds;
    use crate::server::budget::Budget;
    use crate::server::in_flight::InFlight;

    /// An outbox, its sender, what counts its answers, and the client's end.
    fn outbox() -> (Arc<Outbox>, Sender, InFlight, UnixStream) {
        let (server, client) = UnixStream::pair().unwrap();
        let socket = Arc::new(Socket::Unix(server));
        let account = Account::new(Budget::new(&Bounds::default()), Arc::clone(&socket));
        let in_flight = InFlight::new(Arc::clone(&account));
        let (outbox, sender) = Outbox::new(socket, account);
        (outbox, sender, in_flight, client)
    }

    fn answer(number: u8, sectors: usize) -> ServerMessage {
        let buf = Buf::copy_of(&vec![number; sectors * SECTOR_SIZE]);
        let data = Payload::part_of(Data::Buf(buf), 0, sectors * SECTOR_SIZE);
        ServerMessage::Simple { cookie: Cookie::new(number.into()), error: None, data }
    }

    fn bytes_of(answers: impl Iterator<Item = ServerMessage>) -> Vec<u8> {
        let mut bytes = Vec::new();
        answers.for_each(|answer| answer.encode(&mut bytes));
        bytes
    }

    #[test]
    fn short_answer_is_sent_by_the_callback_itself() {
        let (outbox, sender, in_flight, mut client) = outbox();
        sender.send(answer(1, 1), in_flight.enter(4096).unwrap());
        in_flight.wait_empty();
        drop((sender, outbox));
        let mut got = Vec::new();
        drop(in_flight);
        client.set_nonblocking(true).unwrap();
        let _would_block = client.read_to_end(&mut got);
        assert!(got == bytes_of([answer(1, 1)].into_iter()));
    }

    /// The client reads nothing until all are given on their way: callbacks do not wait, and what the
    /// socket did not take follows in order, not mixed up.
    #[test]
    fn answers_that_the_client_does_not_take_wait_for_the_writer() {
        let (outbox, sender, in_flight, mut client) = outbox();
        let answers = || (0..100).map(|number| answer(number, 1 + usize::from(number) % 40));
        for answer in answers() {
            sender.send(answer, in_flight.enter(4096).unwrap());
        }
        drop(sender);
        let writer = std::thread::spawn(move || outbox.write());
        let expected = bytes_of(answers());
        let mut got = vec![0; expected.len()];
        client.read_exact(&mut got).unwrap();
        assert!(got == expected);
        writer.join().unwrap();
        in_flight.wait_empty();
    }

    #[test]
    fn client_that_is_gone_frees_what_waits_and_ends_the_writer() {
        let (outbox, sender, in_flight, client) = outbox();
        (0..100).for_each(|number| sender.send(answer(number, 16), in_flight.enter(4096).unwrap()));
        drop(client);
        outbox.write();
        sender.send(answer(0, 1), in_flight.enter(4096).unwrap());
        in_flight.wait_empty();
    }
}
