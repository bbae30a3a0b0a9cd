//! A read for which the memory that connections share has no room: it is done piece by piece, in the memory that
//! its connection has to itself, and waits for no other client.
//!
//! ```text
//!   structured     [ chunk: piece ] [ chunk: piece ] [ last chunk: piece ]     a piece that fails: an error chunk
//!   simple, DF     [ head, piece ]  [ piece ]        [ piece ]                 all are read before the first is sent
//! ```
//!
//! # Invariants
//!
//! - PI1. A piece has its bytes before it is read, and keeps them until it is sent. One piece is read at a time, by
//!   the connection's reader, so no further request comes meanwhile.
//! - PI2. Nothing comes between the parts of one message: before its first one everything else is answered and sent.
//! - PI3. A head that says success is sent once every piece has been read. If one fails all the same the second time,
//!   the connection ends, as the protocol demands: there is no other way left to say it.

use std::ops::Range;
use std::sync::mpsc;

use levelhead_block::{Effort, Reply, Request};
use levelhead_units::SECTOR_SIZE;

use super::change::covering;
use super::connection::{Next, Reader};
use super::failure::{Failure, check_outcome};
use super::in_flight::Permit;
use super::negotiation::Replies;
use crate::codec::{Chunk, ChunkPosition, CommandFlags, Payload, RequestHeader, ServerMessage};

impl Reader<'_> {
    /// Reads what `header` asks for, and answers.
    pub(super) fn read_in_pieces(&self, header: &RequestHeader) -> Next {
        // Nothing of it is left to be done for a client that has gone.
        self.try_in_pieces(header).map_or(Next::Leave, |()| Next::Stay)
    }

    fn try_in_pieces(&self, header: &RequestHeader) -> Option<()> {
        let whole = header.offset..header.offset + u64::from(header.length);
        let len = self.connection.in_flight.account().floor().max(SECTOR_SIZE);
        let is_whole =
            self.agreed.replies == Replies::Simple || header.flags.contains(CommandFlags::DF);
        if is_whole {
            self.connection.in_flight.wait_empty();
            for piece in pieces(whole.clone(), len) {
                let (permit, data) = self.fetch(piece)?;
                if let Err(failure) = data {
                    self.pending(header, permit).fail(failure);
                    return Some(());
                }
            }
        }
        for piece in pieces(whole.clone(), len) {
            let (mut permit, data) = self.fetch(piece.clone())?;
            let data = match data {
                Ok(data) => data,
                Err(_) if is_whole => return None,
                Err(failure) => {
                    self.pending(header, permit).fail(failure);
                    return Some(());
                }
            };
            let message = self.part(header, data, &piece, is_whole || piece.end == whole.end);
            let mut head = Vec::new();
            if !is_whole {
                message.encode_head(&mut head);
            } else if piece.start == whole.start {
                message.encode_head_of(header.length as usize, &mut head);
            }
            permit.answered();
            self.answers.send_part(head, message.into_payload(), permit);
        }
        Some(())
    }

    /// A message with the bytes of this piece.
    fn part(
        &self,
        header: &RequestHeader,
        data: Payload,
        piece: &Range<u64>,
        is_last: bool,
    ) -> ServerMessage {
        let cookie = header.cookie;
        match self.agreed.replies {
            Replies::Simple => ServerMessage::Simple { cookie, error: None, data },
            Replies::Structured => {
                let position = if is_last { ChunkPosition::Last } else { ChunkPosition::Inner };
                let chunk = Chunk::Data { offset: piece.start, data };
                ServerMessage::Chunk { cookie, position, chunk }
            }
        }
    }

    /// Reads these bytes in memory of the connection's own. Nothing if the client takes no answers any more.
    fn fetch(&self, piece: Range<u64>) -> Option<(Permit, Result<Payload, Failure>)> {
        let len = (piece.end - piece.start) as usize;
        let skew = (piece.start % SECTOR_SIZE as u64) as usize;
        let request = Request::read(covering(piece), Effort::Full);
        let bytes = Payload::sectors_of(skew as u64, len).bytes().get() as usize;
        let permit = self.connection.in_flight.enter_own(bytes)?;
        if self.answers.is_broken() {
            return None;
        }
        let command = request.command;
        let (sender, reply) = mpsc::channel();
        // The reader waits for it.
        let done = move |reply: Reply| drop(sender.send(reply));
        self.export.device.service.submit(request, Box::new(done));
        let reply = reply.recv().expect("a service answers every request");
        let checked = check_outcome(&reply.outcome, &command);
        Some((permit, checked.map(|()| Payload::part_of(reply.data, skew, len))))
    }
}

/// These bytes in pieces of whole sectors, `len` bytes of them at most.
fn pieces(whole: Range<u64>, len: usize) -> impl Iterator<Item = Range<u64>> {
    let len = len as u64;
    let mut start = whole.start;
    std::iter::from_fn(move || {
        let sector = start - start % SECTOR_SIZE as u64;
        let piece = start..(sector + len).min(whole.end);
        start = piece.end;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_of_whole_sectors_but_for_the_ends() {
        let all = |whole, len| pieces(whole, len).collect::<Vec<_>>();
        assert_eq!(all(5..20_000, 8192), [5..8192, 8192..16_384, 16_384..20_000]);
        assert_eq!(all(8191..8193, 4096), [8191..8192, 8192..8193]);
        assert_eq!(all(4096..20_480, 8192), [4096..12_288, 12_288..20_480]);
    }
}
