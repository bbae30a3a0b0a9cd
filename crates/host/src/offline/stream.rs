//! What each drive has of the next windows, read by a thread of its own.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, Scope};

use levelhead_block::Buf;
use levelhead_units::DriveIdx;

use super::reading::{Stretch, read_window};
use super::sums::DriveSums;
use super::window::Window;
use super::{Offline, OfflineDrive};

/// Windows of a drive that are read before they are wanted.
const AHEAD: usize = 2;

/// What a drive has of all windows, one after the other.
pub(crate) struct Stream {
    stretches: Receiver<Stretch>,
    empty: SyncSender<Buf>,
}

impl Stream {
    /// Begins to read what lies in these windows.
    ///
    /// # Errors
    ///
    /// The system has no thread left.
    pub(crate) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        array: &'scope Offline,
        (at, drive): (DriveIdx, &'scope OfflineDrive),
        windows: impl Iterator<Item = Window> + Send + 'scope,
    ) -> io::Result<Self> {
        let (sender, stretches) = sync_channel(AHEAD);
        let (empty, returned) = sync_channel::<Buf>(AHEAD + 2);
        let read = move || {
            let mut sums = DriveSums::begin(array, at, drive);
            for window in windows {
                let buf = returned.try_recv().ok().filter(|buf| buf.sectors() == window.sectors());
                let buf = buf.unwrap_or_else(|| Buf::zeroed(window.sectors()));
                let stretch = match &mut sums {
                    Some(sums) => sums.read_window(&window, buf),
                    None => read_window(&drive.opened, &array.area, &window, buf),
                };
                // What is not wanted any more is not read.
                if sender.send(stretch).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("reading".into()).spawn_scoped(scope, read)?;
        Ok(Self { stretches, empty })
    }

    /// What it has of the next window.
    pub(crate) fn next(&self) -> Stretch {
        self.stretches.recv().expect("its thread reads every window")
    }

    /// Takes a buffer back.
    pub(crate) fn give_back(&self, buf: Buf) {
        // Beyond what is read ahead they are not kept.
        drop(self.empty.try_send(buf));
    }
}
