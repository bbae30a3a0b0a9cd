//! The codec against itself: what one side encodes, the other decodes, however it is split.

use levelhead_nbd::codec::{
    Answer, BUFFER, Body, Chunk, ClientDecoder, ClientFlags, ClientMessage, ClientOption,
    CommandFlags, CommandKind, Cookie, Errno, ErrorChunk, ExportFlags, HandshakeFlags, Info,
    OPTION_MAX, OPTION_SKIP_MAX, PAYLOAD_MAX, PAYLOAD_SKIP_MAX, Padding, Payload, Place,
    ProtocolError, Refusal, RequestHeader, ServerDecoder, ServerMessage, StatusRun, encode_flags,
    info, option,
};
use levelhead_units::Bytes;
use proptest::prelude::*;

/// Everything a server's decoder makes of `bytes`, which come in parts of `splits` bytes, over and
/// over. It begins to expect requests after GO or EXPORT_NAME.
fn server_side(bytes: &[u8], splits: &[usize]) -> (Vec<ClientMessage>, Option<ProtocolError>) {
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
fn read_len(cookie: Cookie) -> Option<u32> {
    match cookie.get() % 4 {
        0 => Some(0),
        1 => Some(5),
        2 => Some(70_000),
        _ => None,
    }
}

/// Everything a client's decoder makes of `bytes`. It begins to expect replies after GO was
/// acknowledged, and an export after EXPORT_NAME was (which no server does: it is a test's signal).
fn client_side(bytes: &[u8], splits: &[usize]) -> (Vec<ServerMessage>, Option<ProtocolError>) {
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

fn header(kind: CommandKind, offset: u64, length: u32) -> RequestHeader {
    RequestHeader { flags: CommandFlags::FUA, kind, cookie: Cookie::new(77), offset, length }
}

fn encode_option(option: &ClientOption) -> Vec<u8> {
    let mut bytes = Vec::new();
    option.encode(&mut bytes);
    bytes
}

/// A client's bytes from the first to the beginning of requests.
fn until_requests() -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_flags(ClientFlags::KNOWN, &mut bytes);
    ClientOption::ExportName("x".to_owned()).encode(&mut bytes);
    bytes
}

fn options() -> Vec<ClientOption> {
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

fn kinds() -> [CommandKind; 9] {
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
fn client_talk() -> (Vec<u8>, Vec<ClientMessage>) {
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

fn answers() -> Vec<Answer> {
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

fn chunks() -> Vec<Chunk> {
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
fn server_talk() -> (Vec<u8>, Vec<ServerMessage>) {
    let mut messages = vec![ServerMessage::Greeting(HandshakeFlags::KNOWN)];
    let answer = |answer| ServerMessage::Answer { option: option::INFO, answer };
    messages.extend(answers().into_iter().map(answer));
    messages.push(ServerMessage::Answer { option: option::GO, answer: Answer::Ack });
    for chunk in chunks() {
        messages.push(ServerMessage::Chunk { cookie: Cookie::new(3), place: Place::Inner, chunk });
    }
    for (cookie, error, len) in
        [(0, None, 0), (1, None, 5), (1, Some(Errno::Io), 0), (2, None, 70_000)]
    {
        let data = Payload::copy_of(0, &vec![0xA5; len]);
        messages.push(ServerMessage::Simple { cookie: Cookie::new(cookie), error, data });
    }
    let (cookie, place) = (Cookie::new(u64::MAX), Place::Last);
    messages.push(ServerMessage::Chunk { cookie, place, chunk: Chunk::None });
    let mut bytes = Vec::new();
    messages.iter().for_each(|message| message.encode(&mut bytes));
    (bytes, messages)
}

#[test]
fn server_understands_every_message_of_a_client() {
    let (bytes, messages) = client_talk();
    assert_eq!(server_side(&bytes, &[bytes.len()]), (messages, None));
}

#[test]
fn client_understands_every_message_of_a_server() {
    let (bytes, messages) = server_talk();
    assert_eq!(client_side(&bytes, &[bytes.len()]), (messages, None));
}

#[test]
fn client_understands_the_answer_to_export_name_with_its_padding() {
    let ack = ServerMessage::Answer { option: option::EXPORT_NAME, answer: Answer::Ack };
    let (size, flags, padding) = (Bytes::new(12_288), ExportFlags::HAS_FLAGS, Padding::Zeroes);
    let (cookie, place) = (Cookie::new(1), Place::Last);
    let messages = vec![
        ServerMessage::Greeting(HandshakeFlags::FIXED_NEWSTYLE),
        ack,
        ServerMessage::Export { size, flags, padding },
        ServerMessage::Chunk { cookie, place, chunk: Chunk::None },
    ];
    let mut bytes = Vec::new();
    messages.iter().for_each(|message| message.encode(&mut bytes));
    assert_eq!(client_side(&bytes, &[7]), (messages, None));
}

#[test]
fn greeting_and_request_are_the_bytes_of_the_specification() {
    let mut bytes = Vec::new();
    ServerMessage::Greeting(HandshakeFlags::KNOWN).encode(&mut bytes);
    assert_eq!(bytes, b"NBDMAGICIHAVEOPT\0\x03");
    let request = RequestHeader {
        flags: CommandFlags::FUA,
        kind: CommandKind::Trim,
        cookie: Cookie::new(0x0102_0304_0506_0708),
        offset: 0x1000,
        length: 0x200,
    };
    bytes.clear();
    request.encode(&mut bytes);
    let expected = b"\x25\x60\x95\x13\0\x01\0\x04\x01\x02\x03\x04\x05\x06\x07\x08\
                     \0\0\0\0\0\0\x10\0\0\0\x02\0";
    assert_eq!(bytes, expected);
    let reply = ServerMessage::Simple {
        cookie: Cookie::new(5),
        error: Some(Errno::Io),
        data: Payload::empty(),
    };
    bytes.clear();
    reply.encode(&mut bytes);
    assert_eq!(bytes, b"\x67\x44\x66\x98\0\0\0\x05\0\0\0\0\0\0\0\x05");
    let chunk = Chunk::Data { offset: 2, data: Payload::copy_of(2, b"ab") };
    bytes.clear();
    ServerMessage::Chunk { cookie: Cookie::new(5), place: Place::Last, chunk }.encode(&mut bytes);
    let expected = b"\x66\x8e\x33\xef\0\x01\0\x01\0\0\0\0\0\0\0\x05\0\0\0\x0a\0\0\0\0\0\0\0\x02ab";
    assert_eq!(bytes, expected);
}

#[test]
fn written_bytes_lie_where_the_sectors_want_them() {
    let mut bytes = until_requests();
    header(CommandKind::Write, 4090, 12).encode(&mut bytes);
    bytes.extend_from_slice(b"hello sector");
    let (mut messages, error) = server_side(&bytes, &[1]);
    assert_eq!(error, None);
    let Some(ClientMessage::Request(_, Body::Bytes(payload))) = messages.pop() else { panic!() };
    let buf = payload.into_buf();
    assert_eq!(buf.sectors().get(), 2);
    assert_eq!(&buf.as_slice()[4090..4102], b"hello sector");
}

#[test]
fn wrong_magics_end_the_connection() {
    let mut option = until_requests();
    option[4] ^= 1;
    let mut request = until_requests();
    header(CommandKind::Read, 0, 1).encode(&mut request);
    request[until_requests().len()] ^= 1;
    for bytes in [option, request] {
        let (_, error) = server_side(&bytes, &[bytes.len()]);
        assert!(matches!(error, Some(ProtocolError::Magic { .. })), "{error:?}");
    }
    let (talk, _) = server_talk();
    for at in [0, 8, 18] {
        let mut bytes = talk.clone();
        bytes[at] ^= 1;
        let (_, error) = client_side(&bytes, &[bytes.len()]);
        assert!(matches!(error, Some(ProtocolError::Magic { .. })), "{error:?}");
    }
}

#[test]
fn client_flags_that_were_not_offered_end_the_connection() {
    let (_, error) = server_side(&[0, 0, 0, 0x83], &[4]);
    assert_eq!(error, Some(ProtocolError::ClientFlags(0x83)));
}

#[test]
fn long_options_are_skipped_up_to_a_limit() {
    let mut bytes = Vec::new();
    encode_flags(ClientFlags::NONE, &mut bytes);
    let mut long = encode_option(&ClientOption::List);
    long.truncate(12);
    long.extend_from_slice(&(OPTION_MAX + 1).to_be_bytes());
    long.resize(16 + OPTION_MAX as usize + 1, 0);
    bytes.extend_from_slice(&long);
    bytes.extend_from_slice(&encode_option(&ClientOption::Abort));
    let (messages, error) = server_side(&bytes, &[1000]);
    assert_eq!(error, None);
    assert!(matches!(
        &messages[1..],
        [
            ClientMessage::BadOption { option: option::LIST, refusal: Refusal::TooBig, .. },
            ClientMessage::Option(ClientOption::Abort)
        ]
    ));
    bytes.truncate(16);
    bytes.extend_from_slice(&(OPTION_SKIP_MAX + 1).to_be_bytes());
    let (_, error) = server_side(&bytes, &[1000]);
    assert_eq!(error, Some(ProtocolError::OptionLength(OPTION_SKIP_MAX + 1)));
}

#[test]
fn options_that_make_no_sense_are_handed_over_as_bad() {
    let bad = |number: u32, data: &[u8]| {
        let mut bytes = Vec::new();
        encode_flags(ClientFlags::NONE, &mut bytes);
        bytes.extend_from_slice(b"IHAVEOPT");
        bytes.extend_from_slice(&number.to_be_bytes());
        bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
        bytes.extend_from_slice(data);
        match server_side(&bytes, &[bytes.len()]) {
            (messages, None) => match messages.last() {
                Some(ClientMessage::BadOption { option, refusal, .. }) => {
                    assert_eq!(*option, number);
                    *refusal
                }
                other => panic!("option {number} with {data:?} became {other:?}"),
            },
            (_, Some(error)) => panic!("{error}"),
        }
    };
    assert_eq!(bad(option::LIST, b"x"), Refusal::Invalid);
    assert_eq!(bad(option::STRUCTURED_REPLY, b"x"), Refusal::Invalid);
    assert_eq!(bad(option::EXPORT_NAME, b"\xFF\xFE"), Refusal::Invalid, "it is no UTF-8");
    assert_eq!(bad(option::EXPORT_NAME, &[b'n'; 4097]), Refusal::Invalid, "it is too long");
    assert_eq!(bad(option::GO, b""), Refusal::Invalid);
    assert_eq!(bad(option::GO, b"\0\0\0\x09abc\0\0"), Refusal::Invalid, "the name is not there");
    assert_eq!(bad(option::GO, b"\0\0\0\x01a\0\x02\0\0"), Refusal::Invalid, "a fact is missing");
    assert_eq!(bad(option::GO, b"\0\0\0\x01a\0\0\0"), Refusal::Invalid, "one byte too many");
    let queries = b"\0\0\0\x01a\xFF\xFF\xFF\xFF\0\0\0\0";
    assert_eq!(bad(option::SET_META_CONTEXT, queries), Refusal::Invalid, "4 billion queries");
    assert_eq!(bad(option::EXTENDED_HEADERS, b""), Refusal::Unsupported);
    assert_eq!(bad(4711, b"whatever"), Refusal::Unsupported);
}

#[test]
fn long_payloads_are_skipped_up_to_a_limit() {
    let mut bytes = until_requests();
    let long = header(CommandKind::Write, 0, PAYLOAD_MAX + 1);
    long.encode(&mut bytes);
    bytes.resize(bytes.len() + PAYLOAD_MAX as usize + 1, 0);
    let next = header(CommandKind::Flush, 0, 0);
    next.encode(&mut bytes);
    let (messages, error) = server_side(&bytes, &[100_000]);
    assert_eq!(error, None);
    let expected =
        [ClientMessage::Request(long, Body::Skipped), ClientMessage::Request(next, Body::Nothing)];
    assert_eq!(messages[2..], expected);
    let mut bytes = until_requests();
    header(CommandKind::Write, 0, PAYLOAD_SKIP_MAX + 1).encode(&mut bytes);
    let (_, error) = server_side(&bytes, &[100]);
    assert_eq!(error, Some(ProtocolError::PayloadLength(PAYLOAD_SKIP_MAX + 1)));
    // Only a write brings its bytes along.
    let mut bytes = until_requests();
    header(CommandKind::WriteZeroes, 0, u32::MAX).encode(&mut bytes);
    assert_eq!(server_side(&bytes, &[100]).1, None);
}

/// A server's bytes up to the replies, then a chunk of this kind.
fn with_chunk(kind: u16, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    ServerMessage::Greeting(HandshakeFlags::KNOWN).encode(&mut bytes);
    ServerMessage::Answer { option: option::GO, answer: Answer::Ack }.encode(&mut bytes);
    bytes.extend_from_slice(b"\x66\x8e\x33\xef\0\x01");
    bytes.extend_from_slice(&kind.to_be_bytes());
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
    bytes.extend_from_slice(data);
    bytes
}

#[test]
fn chunks_that_make_no_sense_end_the_connection() {
    for (kind, data) in [
        (0, &b"x"[..]),
        (1, b"\0\0\0\0\0\0\0\0"),
        (2, b"\0\0\0\0\0\0\0\0\0\0\0"),
        (5, b"\0\0\0\x01"),
        (5, b"\0\0\0\x01\0\0\0\x01\0\0\0"),
        (6, b"a kind nobody knows"),
        (0x8001, b"\0\0\0\x05\0\x09short"),
        (0x8002, b"\0\0\0\x05\0\0no off"),
    ] {
        let (_, error) = client_side(&with_chunk(kind, data), &[1000]);
        assert!(matches!(error, Some(ProtocolError::Chunk { .. })), "{kind:#x}: {error:?}");
    }
}

#[test]
fn error_chunks_of_unknown_kinds_are_errors_all_the_same() {
    let bytes = with_chunk(0x8FFF, b"\0\0\x10\x01\0\x02hmwith more behind");
    let (messages, error) = client_side(&bytes, &[1000]);
    assert_eq!(error, None);
    let (cookie, place, message) = (Cookie::new(0), Place::Last, "hm".to_owned());
    let chunk = Chunk::Error(ErrorChunk { error: Errno::Invalid, message, offset: None });
    assert_eq!(messages.last(), Some(&ServerMessage::Chunk { cookie, place, chunk }));
}

#[test]
fn simple_reply_to_nothing_ends_the_connection() {
    let (mut bytes, _) = server_talk();
    let (cookie, error) = (Cookie::new(3), None);
    ServerMessage::Simple { cookie, error, data: Payload::empty() }.encode(&mut bytes);
    let (_, error) = client_side(&bytes, &[1000]);
    assert_eq!(error, Some(ProtocolError::UnknownCookie(cookie)));
}

#[test]
fn decoders_keep_no_more_than_their_bound() {
    let mut decoder = ServerDecoder::new();
    assert_eq!(decoder.space().len(), BUFFER);
    // An option whose data never come: space shrinks and never grows past the buffer.
    let mut bytes = Vec::new();
    encode_flags(ClientFlags::NONE, &mut bytes);
    bytes.extend_from_slice(b"IHAVEOPT\0\0\0\x07\0\0\x7F\xFF");
    assert_eq!(decoder.feed(&bytes), bytes.len());
    assert!(matches!(decoder.next(), Ok(Some(ClientMessage::Flags(_)))));
    assert_eq!(decoder.next(), Ok(None));
    assert!(decoder.space().len() < BUFFER);
}

/// A conversation with some bytes changed, cut out or put in.
fn damage(mut bytes: Vec<u8>, changes: &[(usize, u8, u8)]) -> Vec<u8> {
    for &(at, value, how) in changes {
        let at = at % bytes.len().max(1);
        match how % 3 {
            0 if !bytes.is_empty() => bytes[at] = value,
            1 if !bytes.is_empty() => drop(bytes.remove(at)),
            _ => bytes.insert(at, value),
        }
    }
    bytes
}

fn splits() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![1..4_usize, 1..100_usize, 1..200_000_usize], 1..8)
}

fn changes() -> impl Strategy<Value = Vec<(usize, u8, u8)>> {
    prop::collection::vec((any::<usize>(), any::<u8>(), any::<u8>()), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn servers_take_any_bytes_and_splits_make_no_difference(
        changes in changes(), splits in splits(), noise in prop::collection::vec(any::<u8>(), 0..99),
    ) {
        let mut bytes = damage(client_talk().0, &changes);
        bytes.extend(noise);
        let whole = server_side(&bytes, &[bytes.len().max(1)]);
        prop_assert_eq!(server_side(&bytes, &splits), whole);
    }

    #[test]
    fn clients_take_any_bytes_and_splits_make_no_difference(
        changes in changes(), splits in splits(), noise in prop::collection::vec(any::<u8>(), 0..99),
    ) {
        let mut bytes = damage(server_talk().0, &changes);
        bytes.extend(noise);
        let whole = client_side(&bytes, &[bytes.len().max(1)]);
        prop_assert_eq!(client_side(&bytes, &splits), whole);
    }

    #[test]
    fn noise_alone_is_refused_or_waited_for(
        bytes in prop::collection::vec(any::<u8>(), 0..300), splits in splits(),
    ) {
        let whole = server_side(&bytes, &[bytes.len().max(1)]);
        prop_assert_eq!(server_side(&bytes, &splits), whole);
        let whole = client_side(&bytes, &[bytes.len().max(1)]);
        prop_assert_eq!(client_side(&bytes, &splits), whole);
    }
}
