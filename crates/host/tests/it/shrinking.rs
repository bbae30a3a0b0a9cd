//! Members that become shorter while they are served.

use std::fs::OpenOptions;
use std::time::{Duration, Instant};

use levelhead_block::BlockService;
use levelhead_host::{ArrayHandle, DriveState, Io, ServeOptions};

use crate::support::{CLEAN, Client, Shelf, check_content, fill, gather, make, noise, options};

/// How long a drive may take to be lost: a watch looks once a second.
const LOST_WITHIN: Duration = Duration::from_secs(60);

/// A write that is on its way when a file is cut off makes it as long as it was, and then no look finds it shorter.
fn wait_until_nothing_is_written(array: &ArrayHandle) {
    while array.status().unwrap().drives.iter().any(|drive| drive.queue_len > 0) {
        std::thread::yield_now();
    }
}

/// What was cut off is never read as zeroes, and no write brings it back as such.
#[test]
fn member_that_is_cut_off_is_lost_whether_it_is_asked_or_not() {
    for io in [Io::Threads, Io::Best] {
        for is_asked in [true, false] {
            let shelf = Shelf::new();
            let members = shelf.files(3, 40);
            make("raid5:2+1,chunk=8KiB", &members, CLEAN);
            let array =
                gather(&members).unwrap().serve(ServeOptions { io, ..options("normal") }).unwrap();
            let content = fill(&array, 1);
            wait_until_nothing_is_written(&array);
            let path = shelf.path("1.img");
            let size = path.metadata().unwrap().len();
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(size / 2).unwrap();
            if is_asked {
                check_content(&array, &content);
                assert!(Client::new(&array).write(0, noise(1, array.size().get())).is_good());
            }
            let begun = Instant::now();
            loop {
                let status = array.status().unwrap();
                if status.drives[1].state != DriveState::Present {
                    break;
                }
                assert!(begun.elapsed() < LOST_WITHIN, "{io}, asked: {is_asked}: {status:?}");
                std::thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(file.metadata().unwrap().len(), size / 2, "a write made it longer");
            let status = array.status().unwrap();
            let half = size / 2;
            let sentence = format!("it has become shorter, from {size} bytes to {half}");
            assert_eq!(status.drives[1].failure, Some(sentence), "{io}");
            check_content(&array, &content);
            array.stop().unwrap();
        }
    }
}
