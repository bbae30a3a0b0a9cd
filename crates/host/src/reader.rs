//! A file or block device that is only read, as many commands at a time as a drive holds.
//!
//! It is opened for reading alone and shares it with other programs. Past the page cache where the
//! file system allows it; [`Reader::is_direct`] says so, because reads through the
//! cache do not show what a disk does.

use std::io;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use levelhead_block::Buf;
use levelhead_drive::QUEUE_DEPTH_MAX;
use levelhead_units::{Extent, Sectors};

use crate::error::HostError;
use crate::medium::Medium;

/// Told how a read ended, on the thread that waited for it.
pub type ReadDone = Box<dyn FnOnce(io::Result<()>) + Send>;

type Order = (Extent, ReadDone);

/// See the module. Dropping it waits for what is under way, [`Reader::abandon`] does not.
pub struct Reader {
    medium: Arc<Medium>,
    /// Absent only while it is dropped: the end of the channel is the threads' end.
    orders: Option<Sender<Order>>,
    threads: Vec<JoinHandle<()>>,
}

impl Reader {
    /// Opens what is at `path`.
    ///
    /// # Errors
    ///
    /// What is there is no drive, or may not be read.
    pub fn open(path: &Path) -> Result<Self, HostError> {
        let medium = Arc::new(Medium::open_to_read(path)?);
        let (sender, receiver) = mpsc::channel();
        let orders = Arc::new(Mutex::new(receiver));
        let mut reader = Self { medium, orders: Some(sender), threads: Vec::new() };
        for _ in 0..QUEUE_DEPTH_MAX {
            let (orders, medium) = (Arc::clone(&orders), Arc::clone(&reader.medium));
            let thread = std::thread::Builder::new()
                .name("reader".into())
                .spawn(move || work(&orders, &medium))
                .map_err(|error| HostError::new(format!("cannot start a thread: {error}")))?;
            reader.threads.push(thread);
        }
        Ok(reader)
    }

    /// Lets go of it at once: what is under way ends when it ends, and is told then.
    pub fn abandon(mut self) {
        self.threads.clear();
    }

    /// How many whole sectors there are.
    pub fn size(&self) -> Sectors {
        self.medium.size()
    }

    /// Whether reads go past the page cache.
    pub fn is_direct(&self) -> bool {
        self.medium.is_direct()
    }

    /// Reads and throws away what was read; more than a drive holds waits its turn.
    ///
    /// # Panics
    ///
    /// If the extent is past the end.
    pub fn read(&self, extent: Extent, done: ReadDone) {
        assert!(extent.fits(self.size()), "{extent:?} is past the end");
        let orders = self.orders.as_ref().expect("it is there until the drop");
        orders.send((extent, done)).expect("the threads live as long as the channel");
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.orders = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so on its own.
            drop(thread.join());
        }
    }
}

fn work(orders: &Mutex<Receiver<Order>>, medium: &Medium) {
    let mut buf = Buf::zeroed(Sectors::new(1));
    loop {
        let order = orders.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((extent, done)) = order else { return };
        if buf.sectors() < extent.sectors {
            buf = Buf::zeroed(extent.sectors);
        }
        let bytes = &mut buf.as_mut_slice()[..extent.sectors.bytes().get() as usize];
        done(medium.read(extent.lba, bytes));
    }
}

#[cfg(test)]
mod tests {
    use levelhead_units::Lba;
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn reads_end_and_the_file_may_be_in_use() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("a.img");
        Medium::create(&path, Sectors::new(64)).unwrap();
        let owner = Medium::open(&path, crate::medium::Transfer::Cached).unwrap();
        let reader = Reader::open(&path).unwrap();
        assert_eq!(reader.size(), owner.size());
        let (sender, ends) = mpsc::channel();
        for lba in 0..60 {
            let sender = sender.clone();
            let done = Box::new(move |result: io::Result<()>| sender.send(result).unwrap());
            reader.read(Extent::new(Lba::new(lba), Sectors::new(1 + lba % 4)), done);
        }
        for _ in 0..60 {
            ends.recv().unwrap().unwrap();
        }
    }

    #[test]
    fn what_is_no_drive_is_refused_by_name() {
        let dir = TempDir::new().unwrap();
        let refused = |path: &Path| Reader::open(path).err().unwrap().to_string();
        let missing = dir.path().join("missing.img");
        assert_eq!(refused(&missing), format!("{} does not exist", missing.display()));
        let folder = format!("{} is a directory, not a drive", dir.path().display());
        assert_eq!(refused(dir.path()), folder);
    }
}
