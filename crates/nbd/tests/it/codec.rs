//! The codec against itself: what one side encodes, the other decodes.

use levelhead_nbd::codec::{
    Answer, BUFFER, Body, Chunk, ChunkPosition, ClientFlags, ClientMessage, ClientOption,
    CommandFlags, CommandKind, Cookie, Errno, ErrorChunk, ExportFlags, HandshakeFlags, OPTION_MAX,
    OPTION_SKIP_MAX, PAYLOAD_MAX, PAYLOAD_SKIP_MAX, Padding, Payload, ProtocolError, Refusal,
    RequestHeader, ServerDecoder, ServerMessage, encode_flags, option,
};
use levelhead_units::Bytes;

use crate::talk::{
    client_side, client_talk, encode_option, header, server_side, server_talk, until_requests,
};

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
    let (cookie, position) = (Cookie::new(1), ChunkPosition::Last);
    let messages = vec![
        ServerMessage::Greeting(HandshakeFlags::FIXED_NEWSTYLE),
        ack,
        ServerMessage::Export { size, flags, padding },
        ServerMessage::Chunk { cookie, position, chunk: Chunk::None },
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
    ServerMessage::Chunk { cookie: Cookie::new(5), position: ChunkPosition::Last, chunk }
        .encode(&mut bytes);
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
    assert_eq!(bad(option::EXPORT_NAME, b"\xFF\xFE"), Refusal::Invalid, "it is not UTF-8");
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
    let (cookie, position, message) = (Cookie::new(0), ChunkPosition::Last, "hm".to_owned());
    let chunk = Chunk::Error(ErrorChunk { error: Errno::Invalid, message, offset: None });
    assert_eq!(messages.last(), Some(&ServerMessage::Chunk { cookie, position, chunk }));
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
