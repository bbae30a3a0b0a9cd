use std::sync::mpsc;
use std::thread;

use tempfile::TempDir;

use super::super::snapshot::tests::array;
use super::*;

/// What ends a test that would hang.
const LONG: Duration = Duration::from_secs(60);

fn desk(handle: &ArrayHandle) -> Desk {
    let ending = Ending { stop: Stop::new(), ended: Arc::default() };
    let (answering, followers, is_crowded) = Default::default();
    Desk { handle: handle.clone(), ending, answering, followers, is_crowded }
}

/// What a client hears that asks this while no thread is to be had.
fn answer_without_thread(desk: &Desk, question: &str) -> String {
    let (mut client, server) = UnixStream::pair().unwrap();
    client.write_all(question.as_bytes()).unwrap();
    desk.answer_one(&server, &AppError::trouble("none is left")).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn client_for_whom_no_thread_is_to_be_had_is_answered_once_or_refused_in_a_sentence() {
    let folder = TempDir::new().unwrap();
    let handle = array(&folder);
    let desk = desk(&handle);
    let status = answer_without_thread(&desk, "{\"verb\": \"status\"}\n{\"verb\": \"status\"}\n");
    assert!(status.starts_with("{\"ok\":{"), "{status}");
    assert_eq!(status.lines().count(), 1, "one question");
    let follow = answer_without_thread(&desk, "{\"verb\": \"events\", \"follow\": true}\n");
    assert!(follow.contains("events cannot be followed now, try again: none is left"), "{follow}");
    assert!(answer_without_thread(&desk, "dance\n").contains("not a question"));
    desk.ending.ended.set(Ok(())).unwrap();
    assert_eq!(answer_without_thread(&desk, "{\"verb\": \"stop\"}\n"), "{\"ok\":null}\n");
    assert!(desk.ending.stop.is_wished());
    handle.stop().unwrap();
}

/// The thread is woken by its socket: what lies at the socket's name is nobody's business.
#[test]
fn control_socket_ends_although_its_file_is_gone_or_another_socket_lies_there() {
    for is_taken in [false, true] {
        let folder = TempDir::new().unwrap();
        let handle = array(&folder);
        let path = folder.path().join("control");
        let listener = Listener::bind(&path).unwrap();
        let controlled = listener.start(None, handle.clone(), Stop::new()).unwrap();
        fs::remove_file(&path).unwrap();
        let other = is_taken.then(|| UnixListener::bind(&path).unwrap());
        let (ends, ended) = mpsc::channel();
        thread::spawn(move || {
            controlled.end(Ok(()));
            ends.send(()).unwrap();
        });
        ended.recv_timeout(LONG).expect("the accepting thread was not woken");
        assert_eq!(path.exists(), is_taken, "the file of another program stays");
        drop(other);
        handle.stop().unwrap();
    }
}

#[test]
fn client_whose_question_was_not_read_yet_is_not_sent_away_for_newer_ones() {
    let mut clients = Clients::default();
    let mut others = Vec::new();
    for _ in 0..WAITING_MAX + 2 {
        let (client, server) = UnixStream::pair().unwrap();
        let (end, ended) = mpsc::channel::<()>();
        let thread = thread::spawn(move || ended.iter().for_each(drop));
        clients.0.push(Client { stream: Arc::new(server), is_busy: Arc::default(), thread });
        others.push((client, end));
    }
    others[0].0.write_all(b"{").unwrap();
    clients.make_room(&AtomicBool::new(false), &AtomicBool::new(false));
    let is_away = |at: usize| {
        let mut client = &others[at].0;
        client.set_nonblocking(true).unwrap();
        client.read(&mut [0]).is_ok()
    };
    assert_eq!([0, 1, 2].map(is_away), [false, true, false]);
    others.clear();
}

/// It would have its thread for as long as it asks.
#[test]
fn client_that_was_answered_leaves_where_others_wait_to_be_accepted() {
    let folder = TempDir::new().unwrap();
    let handle = array(&folder);
    let desk = desk(&handle);
    for (is_crowded, expected) in [(false, 2), (true, 1)] {
        desk.is_crowded.store(is_crowded, Ordering::Relaxed);
        let (mut client, server) = UnixStream::pair().unwrap();
        client.write_all(b"dance\ndance\n").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        desk.converse(&server, &AtomicBool::new(false)).unwrap();
        drop(server);
        let mut answers = String::new();
        client.read_to_string(&mut answers).unwrap();
        assert_eq!(answers.lines().count(), expected);
    }
    handle.stop().unwrap();
}

#[test]
fn client_past_those_that_are_answered_at_a_time_waits_for_one_of_them() {
    let slots = Arc::<Slots>::default();
    let first = slots.take(1, Duration::ZERO).unwrap();
    assert!(slots.take(1, Duration::ZERO).is_none());
    thread::scope(|scope| {
        let second = scope.spawn(|| slots.take(1, LONG).is_some());
        drop(first);
        assert!(second.join().unwrap());
    });
    assert_eq!(*slots.lock(), 0);
}
