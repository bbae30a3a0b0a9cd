//! Clients that no library writes: rude, greedy, broken, gone.

use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use levelhead_block::adapter::OneByOne;
use levelhead_block::faulty::{Faults, Faulty};
use levelhead_block::{Durability, Memory};
use levelhead_nbd::codec::{
    Answer, Chunk, ChunkPosition, ClientOption, CommandFlags, CommandKind, Cookie, Errno,
    ErrorChunk, PAYLOAD_MAX, PAYLOAD_SKIP_MAX, Payload, Refusal, ServerMessage, StatusRun,
};
use levelhead_nbd::{CONNECTIONS_MAX, Client, Export};
use levelhead_stats::Streams;
use levelhead_units::{Bytes, Ratio, Sectors};

use crate::common::{RawClient, Served, export, memory, wait_until};

const SIZE: u64 = 64 * 4096;

fn served() -> Served {
    Served::over(memory(64))
}

fn works(served: &Served) {
    let client = Client::connect(served.running.endpoint(), "").unwrap();
    client.write_at(Bytes::new(3), b"works", Durability::Durable).unwrap();
    let mut out = [0; 5];
    client.read_at(Bytes::new(3), &mut out).unwrap();
    assert_eq!(&out, b"works");
}

#[test]
fn wrong_requests_get_their_errors_and_the_connection_stays() {
    let served = served();
    let mut client = served.raw();
    client.go(&[]);
    let mut check = |kind, offset, length, expected: Errno| {
        client.request(9, kind, offset, length);
        if kind == CommandKind::Write {
            client.send(&vec![0; length as usize]);
        }
        assert_eq!(client.simple(), (9, Some(expected)), "{kind:?} of {length} at {offset}");
    };
    check(CommandKind::Read, SIZE, 1, Errno::Invalid);
    check(CommandKind::Read, u64::MAX, u32::MAX, Errno::Invalid);
    check(CommandKind::Read, 0, 0, Errno::Invalid);
    check(CommandKind::Write, SIZE - 1, 2, Errno::NoSpace);
    check(CommandKind::Write, u64::MAX - 1, 512, Errno::NoSpace);
    check(CommandKind::Write, 0, 0, Errno::Invalid);
    check(CommandKind::WriteZeroes, SIZE, 4096, Errno::NoSpace);
    check(CommandKind::Trim, SIZE, 4096, Errno::Invalid);
    check(CommandKind::Cache, SIZE, 4096, Errno::Invalid);
    check(CommandKind::BlockStatus, 0, 4096, Errno::Invalid);
    check(CommandKind::Unknown(8), 0, 4096, Errno::Invalid);
    check(CommandKind::Unknown(u16::MAX), 0, 0, Errno::Invalid);
    client.request_with(9, CommandKind::Flush, CommandFlags::DF, 0, 0);
    assert_eq!(client.simple(), (9, Some(Errno::Invalid)));
    client.request(10, CommandKind::Flush, 0, 0);
    assert_eq!(client.simple(), (10, None));
}

#[test]
fn long_requests_are_refused_and_longer_ones_end_the_connection() {
    let large = Served::over(memory(PAYLOAD_SKIP_MAX as u64 / 4096 + 8));
    let mut client = large.raw();
    client.go(&[]);
    client.request(1, CommandKind::Read, 0, PAYLOAD_MAX + 1);
    assert_eq!(client.simple(), (1, Some(Errno::Invalid)));
    client.request(2, CommandKind::Write, 0, PAYLOAD_MAX + 1);
    client.send(&vec![1; PAYLOAD_MAX as usize + 1]);
    assert_eq!(client.simple(), (2, Some(Errno::Invalid)));
    client.request(3, CommandKind::Write, 0, PAYLOAD_MAX);
    client.send(&vec![1; PAYLOAD_MAX as usize]);
    assert_eq!(client.simple(), (3, None));
    client.request(4, CommandKind::WriteZeroes, 1, PAYLOAD_SKIP_MAX + 3);
    assert_eq!(client.simple(), (4, None), "zeroes have no limit");
    client.request(5, CommandKind::Write, 0, PAYLOAD_SKIP_MAX + 1);
    assert_eq!(client.receive(), None);
    works(&large);
}

#[test]
fn malformed_bytes_end_the_connection_and_nothing_else() {
    let served = served();
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xFF; 64], b"\0\0\0\x03IHAVEOPTIHAVEOPT\0\0"] {
        let mut client = served.raw();
        assert!(matches!(client.receive(), Some(ServerMessage::Greeting(_))));
        client.send(bytes);
        client.0.shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.receive(), None);
    }
    let mut client = served.raw();
    client.go(&[]);
    client.request(1, CommandKind::Flush, 0, 0);
    assert_eq!(client.simple(), (1, None));
    client.send(&[0x25; 28]);
    assert_eq!(client.receive(), None, "the magic is wrong");
    works(&served);
    wait_until("all have left", || served.running.connections() == 0);
}

#[test]
fn options_are_refused_politely_and_the_handshake_goes_on() {
    let served = served();
    let mut client = served.raw();
    client.greet();
    let refused = |answers: &[Answer], with| {
        let [Answer::Refused { refusal, .. }] = answers else { panic!("{answers:?}") };
        assert_eq!(*refusal, with);
    };
    refused(&client.ask(&ClientOption::StartTls), Refusal::Unsupported);
    let queries = vec!["base:allocation".to_owned()];
    let context = ClientOption::SetMetaContext { export: String::new(), queries };
    refused(&client.ask(&context), Refusal::Invalid);
    let go = ClientOption::Go { export: "other".to_owned(), wanted: Vec::new() };
    refused(&client.ask(&go), Refusal::UnknownExport);
    let list = client.ask(&ClientOption::List);
    let (name, description) = ("disk".to_owned(), "for a test".to_owned());
    assert_eq!(list, [Answer::Server { name, description }, Answer::Ack]);
    assert_eq!(client.ask(&ClientOption::Abort), [Answer::Ack]);
    assert_eq!(client.receive(), None);
}

#[test]
fn export_name_begins_without_an_answer_to_the_option() {
    let served = served();
    let mut client = served.raw();
    client.greet();
    let mut bytes = Vec::new();
    ClientOption::ExportName("disk".to_owned()).encode(&mut bytes);
    client.send(&bytes);
    let mut answer = [0; 10];
    std::io::Read::read_exact(&mut client.0, &mut answer).unwrap();
    assert_eq!(answer[..8], SIZE.to_be_bytes());
    let mut other = served.raw();
    other.greet();
    bytes.clear();
    ClientOption::ExportName("other".to_owned()).encode(&mut bytes);
    other.send(&bytes);
    assert_eq!(other.receive(), None, "there is no way to refuse it");
}

#[test]
fn structured_replies_carry_data_status_and_errors_in_chunks() {
    let served = served();
    let mut client = served.raw();
    let queries = vec!["base:allocation".to_owned()];
    let context = ClientOption::SetMetaContext { export: "disk".to_owned(), queries };
    client.go(&[ClientOption::StructuredReply, context]);
    let (cookie, position) = (Cookie::new(1), ChunkPosition::Last);
    let mut check = |kind, flags, offset, length, chunk| {
        client.request_with(1, kind, flags, offset, length);
        let expected = ServerMessage::Chunk { cookie, position, chunk };
        assert_eq!(client.receive(), Some(expected));
    };
    let data = Payload::copy_of(4095, &[0; 3]);
    check(CommandKind::Read, CommandFlags::DF, 4095, 3, Chunk::Data { offset: 4095, data });
    let runs = vec![StatusRun { length: 70_000, status: 0 }];
    let status = Chunk::Status { context: 1, runs };
    check(CommandKind::BlockStatus, CommandFlags::REQ_ONE, 1, 70_000, status);
    let message = format!("1 bytes at {SIZE} do not fit into {SIZE} bytes");
    let error = Chunk::Error(ErrorChunk { error: Errno::Invalid, message, offset: None });
    check(CommandKind::Read, CommandFlags::NONE, SIZE, 1, error);
    let message = "disks write zeroes no faster than anything else".to_owned();
    let error = Chunk::Error(ErrorChunk { error: Errno::NotSupported, message, offset: None });
    check(CommandKind::WriteZeroes, CommandFlags::FAST_ZERO, 0, 4096, error);
}

#[test]
fn damage_is_reported_with_the_first_byte_that_was_asked_for_and_failed() {
    let faults = Faults { soft: Ratio::ONE, hard: Ratio::ONE };
    let device = Memory::new(Sectors::new(4));
    let device = Faulty::new(device, faults, Streams::new(1).stream("faults"));
    let served = Served::over(Arc::new(OneByOne::new(device)));
    let mut client = served.raw();
    client.go(&[ClientOption::StructuredReply]);
    for (kind, expected) in [
        (CommandKind::Read, Some(4100)),
        (CommandKind::Write, Some(4100)),
        (CommandKind::WriteZeroes, None),
    ] {
        client.request(1, kind, 4100, 10);
        if kind == CommandKind::Write {
            client.send(&[1; 10]);
        }
        let Some(ServerMessage::Chunk { chunk: Chunk::Error(error), .. }) = client.receive() else {
            panic!("{kind:?} succeeded")
        };
        assert_eq!((error.error, error.offset), (Errno::Io, expected), "{kind:?}");
    }
}

#[test]
fn simple_replies_carry_data_and_hints_are_accepted() {
    let served = served();
    let mut client = served.raw();
    client.go(&[]);
    client.request_with(1, CommandKind::Write, CommandFlags::FUA, 4094, 4);
    client.send(b"abcd");
    assert_eq!(client.simple(), (1, None));
    client.request(2, CommandKind::Cache, 0, 4096);
    assert_eq!(client.simple(), (2, None));
    client.request(3, CommandKind::Trim, 8192, 4096);
    assert_eq!(client.simple(), (3, None));
    client.request(4, CommandKind::Read, 4093, 6);
    let (cookie, data) = (Cookie::new(4), Payload::copy_of(0, b"\0abcd\0"));
    let expected = ServerMessage::Simple { cookie, error: None, data };
    assert_eq!(client.receive_with(6), Some(expected));
    client.request(5, CommandKind::Disconnect, 0, 0);
    assert_eq!(client.receive(), None);
}

#[test]
fn disconnecting_client_gets_what_is_in_flight_first() {
    let (served, held) = Served::held(64);
    let mut client = served.raw();
    client.go(&[]);
    client.request(1, CommandKind::Flush, 0, 0);
    client.request(2, CommandKind::Disconnect, 0, 0);
    wait_until("the flush has come", || held.seen() == 1);
    held.open();
    assert_eq!(client.simple(), (1, None));
    assert_eq!(client.receive(), None);
}

#[test]
fn clients_that_vanish_leave_nothing_behind_and_block_nobody() {
    let (served, held) = Served::held(64);
    let mut half_written = served.raw();
    half_written.go(&[]);
    half_written.request(1, CommandKind::Write, 0, 1 << 20);
    half_written.send(&vec![1; 1 << 19]);
    drop(half_written);
    let mut mid_option = served.raw();
    mid_option.greet();
    mid_option.send(b"IHAVEOPT\0\0\0\x07\0\0\0\x20half");
    drop(mid_option);
    let mut waiting = served.raw();
    waiting.go(&[]);
    for cookie in 0..100 {
        waiting.request(cookie, CommandKind::Read, 0, 4096);
    }
    // One of them will be between its two commands when it is let go.
    waiting.request(100, CommandKind::Write, 5, 5);
    waiting.send(b"hello");
    wait_until("its requests have come", || held.seen() == 101);
    drop(waiting);
    wait_until("the others have left", || served.running.connections() == 1);
    held.open();
    wait_until("it has left", || served.running.connections() == 0);
    works(&served);
    let Served { running, dir } = served;
    running.stop();
    // The thread of the last client counts as gone a moment before it is.
    wait_until("nothing is left of the server", || Arc::strong_count(&held.0) == 1);
    drop(dir);
}

#[test]
fn greedy_client_is_not_read_past_the_bound() {
    let (served, held) = Served::held(64);
    let mut client = served.raw();
    client.go(&[]);
    for cookie in 0..300 {
        client.request(cookie, CommandKind::Read, 0, 4096);
    }
    wait_until("the bound is reached", || held.seen() == 128);
    // Another client is served meanwhile; whatever the first could still do, it has done by then.
    let mut other = served.raw();
    other.go(&[]);
    other.request(1, CommandKind::Flush, 0, 0);
    wait_until("the other is served", || held.seen() == 129);
    held.release_last();
    assert_eq!(other.simple(), (1, None));
    assert_eq!(held.seen(), 129, "requests in the service");
    held.open();
    for _ in 0..300 {
        let reply = client.receive_with(4096);
        assert!(matches!(reply, Some(ServerMessage::Simple { error: None, .. })), "{reply:?}");
    }
}

#[test]
fn bytes_in_flight_are_bounded_too() {
    let sectors = u64::from(PAYLOAD_MAX) / 4096;
    let (served, held) = Served::held(sectors);
    let mut client = served.raw();
    client.go(&[]);
    for cookie in 0..4 {
        client.request(cookie, CommandKind::Read, 0, PAYLOAD_MAX);
    }
    let mut other = served.raw();
    other.go(&[]);
    other.request(1, CommandKind::Flush, 0, 0);
    wait_until("two reads and the flush have come", || held.seen() == 3);
    other.request(2, CommandKind::Flush, 0, 0);
    wait_until("the other is served", || held.seen() == 4);
    held.release_last();
    assert_eq!(other.simple(), (2, None));
    assert_eq!(held.seen(), 4, "requests in the service");
    held.open();
    assert_eq!(other.simple(), (1, None));
    for _ in 0..4 {
        let reply = client.receive_with(PAYLOAD_MAX);
        assert!(matches!(reply, Some(ServerMessage::Simple { error: None, .. })));
    }
    assert_eq!(held.seen(), 6);
}

#[test]
fn client_that_takes_no_answers_holds_up_nobody_not_even_the_end() {
    let served = Served::over(memory(2048));
    let mut client = served.raw();
    client.go(&[]);
    for cookie in 0..100 {
        client.request(cookie, CommandKind::Read, 0, 1 << 20);
    }
    works(&served);
    served.running.stop();
}

#[test]
fn clients_past_the_bound_are_turned_away_with_a_reason() {
    let served = served();
    let mut agreed: Vec<RawClient> = Vec::new();
    for _ in 0..CONNECTIONS_MAX {
        let mut client = served.raw();
        client.go(&[]);
        agreed.push(client);
    }
    let mut refused = served.raw();
    refused.greet();
    let go = ClientOption::Go { export: String::new(), wanted: Vec::new() };
    let answers = refused.ask(&go);
    let [Answer::Refused { refusal: Refusal::Policy, reason }] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert!(reason.contains("as many clients as it serves"), "{reason}");
    assert_eq!(refused.receive(), None);
    let mut nameless = served.raw();
    nameless.greet();
    let mut bytes = Vec::new();
    ClientOption::ExportName(String::new()).encode(&mut bytes);
    nameless.send(&bytes);
    assert_eq!(nameless.receive(), None, "there is no way to refuse it");
    agreed.pop();
    wait_until("there is a place", || served.running.connections() < CONNECTIONS_MAX);
    works(&served);
    let traffic = served.running.look().traffic();
    assert_eq!((traffic.refused, traffic.dropped), (2, 0));
}

#[test]
fn second_export_is_found_by_its_name_and_the_first_by_none() {
    let second = Export { name: "second".to_owned(), ..export(memory(3)) };
    let served = Served::new(vec![export(memory(2)), second]);
    for (name, sectors) in [("", 2), ("disk", 2), ("second", 3)] {
        let client = Client::connect(served.running.endpoint(), name).unwrap();
        assert_eq!(client.size_bytes(), Bytes::new(sectors * 4096), "'{name}'");
    }
    let stranger = UnixStream::connect(served.path()).unwrap();
    drop(stranger);
}
