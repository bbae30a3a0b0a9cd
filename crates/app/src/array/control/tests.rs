use std::sync::mpsc;
use std::thread;

use tempfile::TempDir;

use super::super::snapshot::tests::array;
use super::*;

/// What ends a test that would hang.
const LONG: Duration = Duration::from_secs(60);

fn desk(handle: &ArrayHandle) -> Desk {
    let ending = Ending { stop: Stop::new(), ended: Arc::default() };
    Desk { handle: handle.clone(), ending, followers: Arc::default() }
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
