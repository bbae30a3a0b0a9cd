//! Both decoders of the NBD codec on any bytes: no panic, bounded memory, and the same messages
//! however the bytes are split.
//!
//! The first byte chooses the side and where the conversation stands, the second how the bytes are
//! split, the rest are what came from the other side.

#![no_main]

use levelhead_nbd::codec::{
    Answer, ClientDecoder, ClientFlags, ClientMessage, ClientOption, Cookie, HandshakeFlags,
    ProtocolError, ServerDecoder, ServerMessage, encode_flags, option,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [stage, split, bytes @ ..] = input else { return };
    let in_transmission = stage & 2 != 0;
    let split = usize::from(*split) + 1;
    if stage & 1 == 0 {
        let mut all = Vec::new();
        if in_transmission {
            encode_flags(ClientFlags::KNOWN, &mut all);
            ClientOption::ExportName(String::new()).encode(&mut all);
        }
        all.extend_from_slice(bytes);
        assert_eq!(server_side(&all, all.len().max(1)), server_side(&all, split));
    } else {
        let mut all = Vec::new();
        if in_transmission {
            ServerMessage::Greeting(HandshakeFlags::KNOWN).encode(&mut all);
            ServerMessage::Answer { option: option::GO, answer: Answer::Ack }.encode(&mut all);
        }
        all.extend_from_slice(bytes);
        assert_eq!(client_side(&all, all.len().max(1)), client_side(&all, split));
    }
});

/// One side of the codec, as far as both sides are alike.
trait Side {
    type Message;
    fn space(&mut self) -> &mut [u8];
    fn filled(&mut self, count: usize);
    fn next(&mut self) -> Result<Option<Self::Message>, ProtocolError>;
}

struct Server(ServerDecoder);

impl Side for Server {
    type Message = ClientMessage;

    fn space(&mut self) -> &mut [u8] {
        self.0.space()
    }

    fn filled(&mut self, count: usize) {
        self.0.filled(count);
    }

    fn next(&mut self) -> Result<Option<ClientMessage>, ProtocolError> {
        let message = self.0.next()?;
        if let Some(ClientMessage::Option(ClientOption::Go { .. } | ClientOption::ExportName(_))) =
            message
        {
            self.0.begin_transmission();
        }
        Ok(message)
    }
}

struct Client(ClientDecoder);

impl Side for Client {
    type Message = ServerMessage;

    fn space(&mut self) -> &mut [u8] {
        self.0.space()
    }

    fn filled(&mut self, count: usize) {
        self.0.filled(count);
    }

    fn next(&mut self) -> Result<Option<ServerMessage>, ProtocolError> {
        let mut read_len = |cookie: Cookie| (cookie.get() != 3).then_some(cookie.get() as u32 % 9);
        let message = self.0.next(&mut read_len)?;
        if let Some(ServerMessage::Answer { option: option::GO, answer: Answer::Ack }) = message {
            self.0.begin_transmission();
        }
        Ok(message)
    }
}

fn server_side(bytes: &[u8], split: usize) -> (Vec<ClientMessage>, Result<(), ProtocolError>) {
    drain(&mut Server(ServerDecoder::new()), bytes, split)
}

fn client_side(bytes: &[u8], split: usize) -> (Vec<ServerMessage>, Result<(), ProtocolError>) {
    drain(&mut Client(ClientDecoder::new()), bytes, split)
}

/// Everything `side` makes of `bytes`, which come `split` at a time.
fn drain<S: Side>(
    side: &mut S,
    bytes: &[u8],
    split: usize,
) -> (Vec<S::Message>, Result<(), ProtocolError>) {
    let mut messages = Vec::new();
    let mut left = bytes;
    loop {
        match side.next() {
            Ok(Some(message)) => messages.push(message),
            Ok(None) if left.is_empty() => return (messages, Ok(())),
            Ok(None) => {
                let space = side.space();
                let count = split.min(left.len()).min(space.len());
                assert!(count > 0, "no message and no space");
                space[..count].copy_from_slice(&left[..count]);
                side.filled(count);
                left = &left[count..];
            }
            Err(error) => {
                assert_eq!(side.next().err(), Some(error.clone()), "an error stays");
                return (messages, Err(error));
            }
        }
    }
}
