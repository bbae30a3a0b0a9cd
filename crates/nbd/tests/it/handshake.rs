//! Clients that never come to the end of their handshake, and those that do.

use std::io::{self, Write};
use std::time::Duration;

use levelhead_nbd::codec::{ClientOption, CommandKind};
use levelhead_nbd::{Bounds, CONNECTIONS_MAX, HANDSHAKE_MAX};

use crate::common::{Served, export, memory, wait_until};

/// Less time than usual, and more than a client takes that does what it should.
const TIME: Duration = Duration::from_secs(1);

/// A server that gives a handshake less time than usual.
fn hasty(handshake_max: Duration) -> Served {
    Served::bounded(vec![export(memory(64))], Bounds { handshake_max, ..Bounds::default() })
}

/// Whether an error of a client's socket says that the server has closed it.
fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

#[test]
fn silent_client_is_disconnected_at_every_stage_of_its_handshake() {
    let served = hasty(TIME);
    let mut silent = served.raw().impatient();
    let mut between_options = served.raw().impatient();
    let mut in_an_option = served.raw().impatient();
    assert!(silent.receive().is_some(), "the greeting");
    between_options.greet();
    in_an_option.greet();
    in_an_option.send(b"IHAVEOPT\0\0\0\x07\0\0\0\x20half");
    for mut client in [silent, between_options, in_an_option] {
        assert_eq!(client.receive(), None);
    }
    wait_until("all have left", || served.running.connections() == 0);
}

#[test]
fn client_that_drips_bytes_is_disconnected_all_the_same() {
    let served = hasty(TIME);
    let mut client = served.raw().impatient();
    client.greet();
    // An option whose data are longer than this test is patient.
    client.send(b"IHAVEOPT\0\0\0\x03\0\x10\0\0");
    wait_until("it is disconnected", || match client.0.write(&[0]) {
        Ok(_) => false,
        Err(error) => is_closed(&error),
    });
}

#[test]
fn client_that_never_ends_its_options_is_disconnected_all_the_same() {
    let served = hasty(TIME);
    let mut client = served.raw().impatient();
    client.greet();
    let mut list = Vec::new();
    ClientOption::List.encode(&mut list);
    wait_until("it is disconnected", || {
        client.0.write_all(&list).is_err_and(|error| is_closed(&error))
            || (0..2).any(|_| client.receive().is_none())
    });
}

#[test]
fn client_that_takes_no_answers_to_its_options_is_disconnected() {
    let served = hasty(TIME);
    let mut client = served.raw().impatient();
    client.greet();
    let mut list = Vec::new();
    ClientOption::List.encode(&mut list);
    // Answers pile up until the server waits for the client, and then requests until the client
    // waits for the server.
    let error = loop {
        if let Err(error) = client.0.write_all(&list) {
            break error;
        }
    };
    assert!(is_closed(&error), "{error}");
}

#[test]
fn time_for_the_handshake_is_no_time_for_what_follows() {
    let served = hasty(2 * TIME);
    let mut idle = served.raw().impatient();
    idle.go(&[]);
    let mut later = served.raw().impatient();
    assert!(later.receive().is_some(), "the greeting");
    assert_eq!(later.receive(), None, "its time is over, and with it what the first had left");
    idle.request(1, CommandKind::Flush, 0, 0);
    assert_eq!(idle.simple(), (1, None));
}

#[test]
fn limit_is_what_the_documentation_says() {
    assert_eq!(Bounds::default().handshake_max, HANDSHAKE_MAX);
    let page = include_str!("../../../../docs/nbd.md");
    let row = format!(
        "to the choice of an export | {} s (`--handshake-limit`) |",
        HANDSHAKE_MAX.as_secs()
    );
    assert!(page.contains(&row));
    let row =
        format!("| clients that have chosen an export | {CONNECTIONS_MAX} (`--max-connections`) |");
    assert!(page.contains(&row));
}
