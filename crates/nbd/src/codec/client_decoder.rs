//! How a client takes apart what a server says.

use levelhead_units::Bytes;

use super::from_server::PADDING;
use super::input::{BUFFER, Fields, Input};
use super::wire::{
    CHUNK_MAGIC, OPTION_MAGIC, OPTION_REPLY_MAGIC, SERVER_MAGIC, SIMPLE_REPLY_MAGIC, chunk,
};
use super::{
    Answer, Body, Chunk, ChunkPosition, Cookie, Errno, ExportFlags, HandshakeFlags, PAYLOAD_MAX,
    Padding, Payload, ProtocolError, ServerMessage,
};

/// Takes a server's bytes apart. See the [module](super) on how to drive it.
pub struct ClientDecoder {
    input: Input,
    stage: Stage,
}

enum Stage {
    Greeting,
    Answers,
    Export(Padding),
    Replies,
    /// The bytes of a reply are on their way.
    Data(Head),
}

#[derive(Clone, Copy)]
enum Head {
    Simple { cookie: Cookie },
    Chunk { cookie: Cookie, position: ChunkPosition, offset: u64 },
}

impl Default for ClientDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl ClientDecoder {
    /// A decoder for a new connection.
    pub fn new() -> Self {
        Self { input: Input::new(), stage: Stage::Greeting }
    }

    /// Where the next bytes from the socket go. Not empty once [`ClientDecoder::next`] gave nothing.
    pub fn space(&mut self) -> &mut [u8] {
        self.input.space()
    }

    /// The first `count` bytes of the space have been filled.
    ///
    /// Panics if that is more than there was.
    pub fn filled(&mut self, count: usize) {
        self.input.filled(count);
    }

    /// Whether it holds no byte that is not part of a message it has given: before TLS begins there must be
    /// none, because that would count as encrypted.
    pub fn is_drained(&self) -> bool {
        self.input.is_empty()
    }

    /// Copies as many of `bytes` as there is space for; how many that was.
    pub fn feed(&mut self, bytes: &[u8]) -> usize {
        self.input.feed(bytes)
    }

    /// The client sent [`super::ClientOption::ExportName`]: its answer is next, then replies.
    ///
    /// Panics unless answers were expected.
    pub fn expect_export(&mut self, padding: Padding) {
        assert!(matches!(self.stage, Stage::Answers));
        self.stage = Stage::Export(padding);
    }

    /// The server accepted [`super::ClientOption::Go`]: replies follow.
    ///
    /// Panics unless answers were expected.
    pub fn begin_transmission(&mut self) {
        assert!(matches!(self.stage, Stage::Answers));
        self.stage = Stage::Replies;
    }

    /// The next message, if all its bytes are there. `read_len` tells how many bytes a good simple
    /// reply to a request carries: what was asked for after a read, zero after anything else, `None`
    /// if no such request was made.
    pub fn next(
        &mut self,
        read_len: &mut dyn FnMut(Cookie) -> Option<u32>,
    ) -> Result<Option<ServerMessage>, ProtocolError> {
        match self.stage {
            Stage::Greeting => self.next_greeting(),
            Stage::Answers => self.next_answer(),
            Stage::Export(padding) => Ok(self.next_export(padding)),
            Stage::Replies => self.next_reply(read_len),
            Stage::Data(head) => Ok(self.next_data(head)),
        }
    }

    fn next_greeting(&mut self) -> Result<Option<ServerMessage>, ProtocolError> {
        const LEN: usize = 18;
        let Some(bytes) = self.input.peek(LEN) else { return Ok(None) };
        let mut fields = Fields(bytes);
        let (Some(server), Some(style), Some(flags)) = (fields.u64(), fields.u64(), fields.u16())
        else {
            return Ok(None);
        };
        for (got, right, expected) in [
            (server, SERVER_MAGIC, "an NBD server"),
            (style, OPTION_MAGIC, "a server of the newstyle"),
        ] {
            if got != right {
                return Err(ProtocolError::Magic { expected, got });
            }
        }
        self.input.consume(LEN);
        self.stage = Stage::Answers;
        Ok(Some(ServerMessage::Greeting(HandshakeFlags::from_bits(flags))))
    }

    fn next_answer(&mut self) -> Result<Option<ServerMessage>, ProtocolError> {
        const HEAD: usize = 20;
        let Some(head) = self.input.peek(HEAD) else { return Ok(None) };
        let mut fields = Fields(head);
        let (Some(magic), Some(option), Some(kind), Some(length)) =
            (fields.u64(), fields.u32(), fields.u32(), fields.u32())
        else {
            return Ok(None);
        };
        if magic != OPTION_REPLY_MAGIC {
            return Err(ProtocolError::Magic { expected: "an answer to an option", got: magic });
        }
        let whole = HEAD + length as usize;
        if whole > BUFFER {
            return Err(ProtocolError::Answer { option, kind });
        }
        let Some(bytes) = self.input.peek(whole) else { return Ok(None) };
        let answer =
            Answer::parse(kind, &bytes[HEAD..]).ok_or(ProtocolError::Answer { option, kind })?;
        self.input.consume(whole);
        Ok(Some(ServerMessage::Answer { option, answer }))
    }

    fn next_export(&mut self, padding: Padding) -> Option<ServerMessage> {
        let len = match padding {
            Padding::Zeroes => 10 + PADDING,
            Padding::None => 10,
        };
        let mut fields = Fields(self.input.peek(len)?);
        let size = Bytes::new(fields.u64()?);
        let flags = ExportFlags::from_bits(fields.u16()?);
        self.input.consume(len);
        self.stage = Stage::Replies;
        Some(ServerMessage::Export { size, flags, padding })
    }

    fn next_reply(
        &mut self,
        read_len: &mut dyn FnMut(Cookie) -> Option<u32>,
    ) -> Result<Option<ServerMessage>, ProtocolError> {
        let Some(magic) = self.input.peek(4).and_then(|bytes| Fields(bytes).u32()) else {
            return Ok(None);
        };
        match magic {
            SIMPLE_REPLY_MAGIC => self.next_simple(read_len),
            CHUNK_MAGIC => self.next_chunk(),
            other => Err(ProtocolError::Magic { expected: "a reply", got: other.into() }),
        }
    }

    fn next_simple(
        &mut self,
        read_len: &mut dyn FnMut(Cookie) -> Option<u32>,
    ) -> Result<Option<ServerMessage>, ProtocolError> {
        const LEN: usize = 16;
        let Some(bytes) = self.input.peek(LEN) else { return Ok(None) };
        let mut fields = Fields(&bytes[4..]);
        let (Some(number), Some(cookie)) = (fields.u32(), fields.u64()) else { return Ok(None) };
        let cookie = Cookie::new(cookie);
        let len = read_len(cookie).ok_or(ProtocolError::UnknownCookie(cookie))?;
        if len > PAYLOAD_MAX {
            return Err(ProtocolError::PayloadLength(len));
        }
        self.input.consume(LEN);
        if number != 0 || len == 0 {
            let error = (number != 0).then(|| Errno::from_wire(number));
            return Ok(Some(ServerMessage::Simple { cookie, error, data: Payload::empty() }));
        }
        self.input.begin_payload(Payload::room(0, len as usize));
        let head = Head::Simple { cookie };
        self.stage = Stage::Data(head);
        Ok(self.next_data(head))
    }

    fn next_chunk(&mut self) -> Result<Option<ServerMessage>, ProtocolError> {
        const HEAD: usize = 20;
        const OFFSET: usize = 8;
        let Some(head) = self.input.peek(HEAD) else { return Ok(None) };
        let mut fields = Fields(&head[4..]);
        let (Some(flags), Some(kind), Some(cookie), Some(length)) =
            (fields.u16(), fields.u16(), fields.u64(), fields.u32())
        else {
            return Ok(None);
        };
        let cookie = Cookie::new(cookie);
        let position =
            if flags & chunk::DONE == 0 { ChunkPosition::Inner } else { ChunkPosition::Last };
        let wrong = ProtocolError::Chunk { kind, length };
        if kind == chunk::OFFSET_DATA {
            let len = (length as usize).checked_sub(OFFSET).filter(|&len| len > 0).ok_or(wrong)?;
            if len > PAYLOAD_MAX as usize {
                return Err(ProtocolError::PayloadLength(length));
            }
            let Some(bytes) = self.input.peek(HEAD + OFFSET) else { return Ok(None) };
            let Some(offset) = Fields(&bytes[HEAD..]).u64() else { return Ok(None) };
            self.input.consume(HEAD + OFFSET);
            self.input.begin_payload(Payload::room(offset, len));
            let head = Head::Chunk { cookie, position, offset };
            self.stage = Stage::Data(head);
            return Ok(self.next_data(head));
        }
        let whole = HEAD + length as usize;
        if whole > BUFFER {
            return Err(wrong);
        }
        let Some(bytes) = self.input.peek(whole) else { return Ok(None) };
        let chunk = Chunk::parse(kind, &bytes[HEAD..]).ok_or(wrong)?;
        self.input.consume(whole);
        Ok(Some(ServerMessage::Chunk { cookie, position, chunk }))
    }

    fn next_data(&mut self, head: Head) -> Option<ServerMessage> {
        let Body::Bytes(data) = self.input.take_body()? else { return None };
        self.stage = Stage::Replies;
        Some(match head {
            Head::Simple { cookie } => ServerMessage::Simple { cookie, error: None, data },
            Head::Chunk { cookie, position, offset } => {
                ServerMessage::Chunk { cookie, position, chunk: Chunk::Data { offset, data } }
            }
        })
    }
}
