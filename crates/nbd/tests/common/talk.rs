//! Whole conversations, and what the decoders make of them.

#![allow(dead_code, reason = "every test file uses another part")]

use levelhead_nbd::codec::{
    Answer, Body, Chunk, ChunkPosition, ClientDecoder, ClientFlags, ClientMessage, ClientOption,
    CommandFlags, CommandKind, Cookie, Errno, ErrorChunk, ExportFlags, HandshakeFlags, Info,
    PAYLOAD_MAX, Padding, Payload, ProtocolError, Refusal, RequestHeader, ServerDecoder,
    ServerMessage, StatusRun, encode_flags, info, option,
};
use levelhead_units::Bytes;

/// Everything a server's decoder makes of `bytes`, which come in parts of `splits` bytes, over and
/// over. It begins to expect requests after GO or EXPORT_NAME.
pub(crate) fn server_side(
    bytes: &[u8],
    splits: &[usize],
) -> (Vec<ClientMessage>, Option<ProtocolError>) {
    let mut decoder = ServerDecoder::new();
    let mut messages = Vec::new();
    let mut left = bytes;
    for split in splits.iter().cycle() {
        let mut part;
        (part, left) = left.split_at((*split).min(left.len()));
        loop {
            match decoder.next() {
                Ok(Some(message)) => {
                    let go = matches!(
                        message,
                        ClientMessage::Option(
                            ClientOption::Go { .. } | ClientOption::ExportName(_)
                        )
                    );
                    if go {
                        decoder.begin_transmission();
                    }
                    messages.push(message);
                }
                Ok(None) if part.is_empty() => break,
                Ok(None) => {
                    let count = decoder.feed(part);
                    assert!(count > 0, "C3: no space and no message");
                    part = &part[count..];
                }
                Err(error) => {
                    assert_eq!(decoder.next(), Err(error.clone()), "C4");
                    return (messages, Some(error));
                }
            }
        }
        if left.is_empty() {
            return (messages, None);
        }
    }
    unreachable!("splits are given")
}

/// How long a good simple reply is, by its cookie.
pub(crate) fn read_len(cookie: Cookie) -> Option<u32> {
    match cookie.get() % 4 {
        0 => Some(0),
        1 => Some(5),
        2 => Some(70_000),
        _ => None,
    }
}

/// Everything a client's decoder makes of `bytes`. It begins to expect replies after GO was
/// acknowledged, and an export after EXPORT_NAME was (which no server does: it is a test's signal).
pub(crate) fn client_side(
    bytes: &[u8],
    splits: &[usize],
) -> (Vec<ServerMessage>, Option<ProtocolError>) {
    let mut decoder = ClientDecoder::new();
    let mut messages = Vec::new();
    let mut left = bytes;
    for split in splits.iter().cycle() {
        let mut part;
        (part, left) = left.split_at((*split).min(left.len()));
        loop {
            match decoder.next(&mut read_len) {
                Ok(Some(message)) => {
                    match message {
                        ServerMessage::Answer { option: option::GO, answer: Answer::Ack } => {
                            decoder.begin_transmission();
                        }
                        ServerMessage::Answer {
                            option: option::EXPORT_NAME,
                            answer: Answer::Ack,
                        } => decoder.expect_export(Padding::Zeroes),
                        _ => {}
                    }
                    messages.push(message);
                }
                Ok(None) if part.is_empty() => break,
                Ok(None) => {
                    let count = decoder.feed(part);
                    assert!(count > 0, "C3: no space and no message");
                    part = &part[count..];
                }
                Err(error) => {
                    assert_eq!(decoder.next(&mut read_len), Err(error.clone()), "C4");
                    return (messages, Some(error));
                }
            }
        }
        if left.is_empty() {
            return (messages, None);
        }
    }
    unreachable!("splits are given")
}

pub(crate) fn header(kind: CommandKind, offset: u64, length: u32) -> RequestHeader {
    RequestHeader { flags: CommandFlags::FUA, kind, cookie: Cookie::new(77), offset, length }
}

pub(crate) fn encode_option(option: &ClientOption) -> Vec<u8> {
    let mut bytes = Vec::new();
    option.encode(&mut bytes);
    bytes
}

/// A client's bytes from the first to the beginning of requests.
pub(crate) fn until_requests() -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_flags(ClientFlags::KNOWN, &mut bytes);
    ClientOption::ExportName("x".to_owned()).encode(&mut bytes);
    bytes
}

pub(crate) fn options() -> Vec<ClientOption> {
    let (export, wanted) = ("ümläut".to_owned(), vec![info::NAME, info::BLOCK_SIZE, 99]);
    let queries = vec!["base:allocation".to_owned(), String::new()];
    vec![
        ClientOption::Abort,
        ClientOption::List,
        ClientOption::StartTls,
        ClientOption::Info { export: export.clone(), wanted: wanted.clone() },
        ClientOption::StructuredReply,
        ClientOption::ListMetaContext { export: export.clone(), queries: Vec::new() },
        ClientOption::SetMetaContext { export: export.clone(), queries },
        ClientOption::Go { export, wanted },
    ]
}

pub(crate) fn kinds() -> [CommandKind; 9] {
    [
        CommandKind::Read,
        CommandKind::Write,
        CommandKind::Disconnect,
        CommandKind::Flush,
        CommandKind::Trim,
        CommandKind::Cache,
        CommandKind::WriteZeroes,
        CommandKind::BlockStatus,
        CommandKind::Unknown(4711),
    ]
}

/// A whole conversation of a client: its bytes, and the messages they mean.
pub(crate) fn client_talk() -> (Vec<u8>, Vec<ClientMessage>) {
    let mut bytes = Vec::new();
    encode_flags(ClientFlags::KNOWN, &mut bytes);
    let mut messages = vec![ClientMessage::Flags(ClientFlags::KNOWN)];
    for option in options() {
        option.encode(&mut bytes);
        messages.push(ClientMessage::Option(option));
    }
    for (kind, length) in kinds().into_iter().zip([9, 5000, 0, 0, 1, 2, 3, 4, 5]) {
        let header = header(kind, 4095, length);
        header.encode(&mut bytes);
        let body = if kind == CommandKind::Write {
            messages.push(ClientMessage::Announced(header));
            let payload: Vec<u8> = (0..length).map(|at| at as u8).collect();
            bytes.extend_from_slice(&payload);
            Body::Bytes(Payload::copy_of(4095, &payload))
        } else {
            Body::Nothing
        };
        messages.push(ClientMessage::Request(header, body));
    }
    let empty = header(CommandKind::Write, 0, 0);
    empty.encode(&mut bytes);
    messages.push(ClientMessage::Request(empty, Body::Nothing));
    (bytes, messages)
}

pub(crate) fn answers() -> Vec<Answer> {
    let text = "a text".to_owned();
    let info = [
        Info::Export { size: Bytes::new(1 << 40), flags: ExportFlags::KNOWN },
        Info::Name(text.clone()),
        Info::Description(String::new()),
        Info::BlockSize { min: 512, preferred: 4096, max: PAYLOAD_MAX },
        Info::Other(99),
    ];
    let refusals = [
        Refusal::Unsupported,
        Refusal::Policy,
        Refusal::Invalid,
        Refusal::Platform,
        Refusal::TlsRequired,
        Refusal::UnknownExport,
        Refusal::ShuttingDown,
        Refusal::BlockSizeRequired,
        Refusal::TooBig,
        Refusal::ExtendedHeadersRequired,
        Refusal::Other(99),
    ];
    let refused = |refusal| Answer::Refused { refusal, reason: "no".to_owned() };
    let others = [
        Answer::Server { name: text.clone(), description: text.clone() },
        Answer::MetaContext { id: 7, name: text },
        Answer::Ack,
    ];
    info.into_iter().map(Answer::Info).chain(refusals.map(refused)).chain(others).collect()
}

pub(crate) fn chunks() -> Vec<Chunk> {
    let message = "the disk is on fire".to_owned();
    let error =
        |error, offset| Chunk::Error(ErrorChunk { error, message: message.clone(), offset });
    let errors = [
        Errno::NotPermitted,
        Errno::Io,
        Errno::NoMemory,
        Errno::Invalid,
        Errno::NoSpace,
        Errno::Overflow,
        Errno::NotSupported,
        Errno::ShuttingDown,
    ];
    let run = |length, status| StatusRun { length, status };
    let mut chunks = vec![
        Chunk::None,
        Chunk::Data { offset: 4000, data: Payload::copy_of(4000, &[9; 300]) },
        Chunk::Hole { offset: 1 << 50, length: u32::MAX },
        Chunk::Status { context: 3, runs: vec![run(512, 0), run(u32::MAX, 3)] },
        error(Errno::Io, Some(8192)),
    ];
    chunks.extend(errors.map(|errno| error(errno, None)));
    chunks
}

/// A whole conversation of a server: its bytes, and the messages they mean.
pub(crate) fn server_talk() -> (Vec<u8>, Vec<ServerMessage>) {
    let mut messages = vec![ServerMessage::Greeting(HandshakeFlags::KNOWN)];
    let answer = |answer| ServerMessage::Answer { option: option::INFO, answer };
    messages.extend(answers().into_iter().map(answer));
    messages.push(ServerMessage::Answer { option: option::GO, answer: Answer::Ack });
    for chunk in chunks() {
        messages.push(ServerMessage::Chunk {
            cookie: Cookie::new(3),
            position: ChunkPosition::Inner,
            chunk,
        });
    }
    for (cookie, error, len) in
        [(0, None, 0), (1, None, 5), (1, Some(Errno::Io), 0), (2, None, 70_000)]
    {
        let data = Payload::copy_of(0, &vec![0xA5; len]);
        messages.push(ServerMessage::Simple { cookie: Cookie::new(cookie), error, data });
    }
    let (cookie, position) = (Cookie::new(u64::MAX), ChunkPosition::Last);
    messages.push(ServerMessage::Chunk { cookie, position, chunk: Chunk::None });
    let mut bytes = Vec::new();
    messages.iter().for_each(|message| message.encode(&mut bytes));
    (bytes, messages)
}
