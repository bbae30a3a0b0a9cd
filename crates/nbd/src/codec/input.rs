//! Where bytes wait until they are a whole message.

use super::{Body, Payload};

/// The most bytes that wait to be understood, payloads apart.
pub const BUFFER: usize = 64 << 10;

/// Bytes as they come, then the body of a message directly in the place it is meant for.
pub(super) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    body: Option<Incoming>,
}

/// What follows a message's head. While one is incomplete, nothing is buffered.
enum Incoming {
    Payload { payload: Payload, filled: usize },
    Skip { left: usize },
}

impl Input {
    pub(super) fn new() -> Self {
        Self { bytes: vec![0; BUFFER], start: 0, end: 0, body: None }
    }

    /// Where the next bytes go.
    pub(super) fn space(&mut self) -> &mut [u8] {
        match &mut self.body {
            Some(Incoming::Payload { payload, filled }) if *filled < payload.len() => {
                return &mut payload.bytes_mut()[*filled..];
            }
            Some(Incoming::Skip { left }) if *left > 0 => {
                let count = (*left).min(BUFFER);
                return &mut self.bytes[..count];
            }
            Some(_) | None => {}
        }
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == BUFFER {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.bytes[self.end..]
    }

    /// The first `count` bytes of the space have been filled.
    pub(super) fn filled(&mut self, count: usize) {
        assert!(count <= self.space().len());
        match &mut self.body {
            Some(Incoming::Payload { payload, filled }) if *filled < payload.len() => {
                *filled += count;
            }
            Some(Incoming::Skip { left }) if *left > 0 => *left -= count,
            Some(_) | None => self.end += count,
        }
    }

    /// Copies as many of `bytes` as there is space for; how many that was.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> usize {
        let space = self.space();
        let count = bytes.len().min(space.len());
        space[..count].copy_from_slice(&bytes[..count]);
        self.filled(count);
        count
    }

    /// Whether nothing waits to be understood.
    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The next `count` bytes, if they are there.
    pub(super) fn peek(&self, count: usize) -> Option<&[u8]> {
        assert!(count <= BUFFER);
        (self.end - self.start >= count).then(|| &self.bytes[self.start..][..count])
    }

    /// Drops `count` bytes that were peeked at.
    pub(super) fn consume(&mut self, count: usize) {
        assert!(count <= self.end - self.start);
        self.start += count;
    }

    /// From here on, bytes go into `payload` until it is full.
    pub(super) fn begin_payload(&mut self, mut payload: Payload) {
        assert!(self.body.is_none());
        let filled = payload.len().min(self.end - self.start);
        payload.bytes_mut()[..filled].copy_from_slice(&self.bytes[self.start..][..filled]);
        self.start += filled;
        self.body = Some(Incoming::Payload { payload, filled });
    }

    /// From here on, `count` bytes are thrown away.
    pub(super) fn begin_skip(&mut self, count: usize) {
        assert!(self.body.is_none());
        let gone = count.min(self.end - self.start);
        self.start += gone;
        self.body = Some(Incoming::Skip { left: count - gone });
    }

    /// The body once it is complete.
    pub(super) fn take_body(&mut self) -> Option<Body> {
        match self.body.take()? {
            Incoming::Payload { payload, filled } if filled == payload.len() => {
                Some(Body::Bytes(payload))
            }
            Incoming::Skip { left: 0 } => Some(Body::Skipped),
            incomplete => {
                self.body = Some(incomplete);
                None
            }
        }
    }
}

/// Reads fields off the front of a message.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (field, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(field)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N).and_then(|bytes| bytes.try_into().ok())
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A text of `count` bytes, if it is one and not too long.
    pub(super) fn text(&mut self, count: usize) -> Option<String> {
        if count > super::TEXT_MAX {
            return None;
        }
        String::from_utf8(self.bytes(count)?.to_vec()).ok()
    }

    /// A text after its own length.
    pub(super) fn counted_text(&mut self) -> Option<String> {
        let count = self.u32()?;
        self.text(count as usize)
    }

    /// Everything that is left, as a text.
    pub(super) fn rest_text(&mut self) -> Option<String> {
        self.text(self.0.len())
    }

    /// `value`, if nothing is left.
    pub(super) fn end<T>(&self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

/// Appends fields to a message.
pub(super) trait PutFields {
    fn put_u16(&mut self, value: u16);
    fn put_u32(&mut self, value: u32);
    fn put_u64(&mut self, value: u64);
    fn put_counted(&mut self, text: &str);
}

impl PutFields for Vec<u8> {
    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_counted(&mut self, text: &str) {
        self.put_u32(length(text.len()));
        self.extend_from_slice(text.as_bytes());
    }
}

/// A length field.
pub(super) fn length(len: usize) -> u32 {
    u32::try_from(len).expect("our own messages are shorter than 4 GiB")
}
