//! One operation of a caller: its bytes, and the requests it was split into.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use levelhead_block::{Buf, Piece};

use crate::codec::{CommandFlags, CommandKind, Errno};

/// The memory an operation reads into or writes from.
#[derive(Debug)]
pub(super) enum Memory {
    /// There is nothing to read or write.
    None,
    Sectors(Buf),
    Pieces(Vec<Piece>),
    Bytes(Vec<u8>),
}

impl Memory {
    /// How many bytes it has.
    pub(super) fn len(&self) -> usize {
        self.slices(0..usize::MAX).iter().map(|slice| slice.len()).sum()
    }

    /// Those of its bytes that are in `bytes`, in order.
    fn slices(&self, bytes: Range<usize>) -> Vec<&[u8]> {
        let all: Vec<&[u8]> = match self {
            Self::None => Vec::new(),
            Self::Sectors(buf) => vec![buf.as_slice()],
            Self::Pieces(pieces) => pieces.iter().map(Piece::bytes).collect(),
            Self::Bytes(bytes) => vec![bytes],
        };
        let mut first = 0;
        let cut = |slice| -> &[u8] {
            let slice: &[u8] = slice;
            let place = first..first + slice.len();
            first = place.end;
            let (start, end) = (bytes.start.max(place.start), bytes.end.min(place.end));
            if start < end { &slice[start - place.start..end - place.start] } else { &[] }
        };
        all.into_iter().map(cut).filter(|slice| !slice.is_empty()).collect()
    }

    fn as_mut_slice(&mut self) -> &mut [u8] {
        match self {
            Self::None => &mut [],
            Self::Sectors(buf) => buf.as_mut_slice(),
            Self::Bytes(bytes) => bytes,
            Self::Pieces(_) => panic!("what is written is never filled"),
        }
    }
}

/// What an operation asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) kind: CommandKind,
    pub(super) flags: CommandFlags,
    /// The first byte it is about.
    pub(super) offset: u64,
    /// How many bytes it is about.
    pub(super) length: u64,
}

/// How a part of an operation ended, if not well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The server refused these bytes, counted from the operation's first.
    Failed { bytes: Range<u64>, error: Errno },
    /// The connection was lost before the answer came: why.
    Lost(Arc<str>),
}

/// How an operation ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) memory: Memory,
    pub(super) troubles: Vec<Trouble>,
}

/// What to call when an operation has ended.
pub(super) type Finish = Box<dyn FnOnce(Ended) + Send>;

/// An operation under way.
///
/// Its bytes have a lock of their own: the writer holds that one while it waits for the socket, and
/// the reader must be able to end other parts meanwhile, or client and server could wait for each
/// other.
pub(super) struct Operation {
    pub(super) ask: Ask,
    memory: Mutex<Memory>,
    progress: Mutex<Progress>,
}

struct Progress {
    /// How many parts have not ended.
    open: usize,
    troubles: Vec<Trouble>,
    /// Until the last part has ended.
    finish: Option<Finish>,
}

impl Operation {
    /// An operation in `parts` parts.
    pub(super) fn new(ask: Ask, memory: Memory, parts: usize, finish: Finish) -> Arc<Self> {
        assert!(parts > 0);
        let progress = Progress { open: parts, troubles: Vec::new(), finish: Some(finish) };
        Arc::new(Self { ask, memory: Mutex::new(memory), progress: Mutex::new(progress) })
    }

    /// Lends the bytes of one part to `look`. `None` if the operation has ended, which before its
    /// bytes are sent it only has if the server answered what it cannot have received.
    pub(super) fn with_bytes<T>(
        &self,
        bytes: Range<usize>,
        look: impl FnOnce(Vec<&[u8]>) -> T,
    ) -> Option<T> {
        let (memory, len) = (lock(&self.memory), bytes.len());
        let slices = memory.slices(bytes);
        let has: usize = slices.iter().map(|slice| slice.len()).sum();
        (has == len).then(|| look(slices))
    }

    /// Lends the bytes of one part to `fill`. `None` if it has no such bytes.
    pub(super) fn fill(&self, bytes: Range<usize>, fill: impl FnOnce(&mut [u8])) -> Option<()> {
        lock(&self.memory).as_mut_slice().get_mut(bytes).map(fill)
    }

    /// One part has ended. Calls back if it was the last.
    pub(super) fn end_part(&self, trouble: Option<Trouble>) {
        let mut progress = lock(&self.progress);
        progress.troubles.extend(trouble);
        progress.open = progress.open.checked_sub(1).expect("no part ends twice");
        if progress.open > 0 {
            return;
        }
        let troubles = std::mem::take(&mut progress.troubles);
        let finish = progress.finish.take().expect("an operation ends once");
        drop(progress);
        let memory = std::mem::replace(&mut *lock(&self.memory), Memory::None);
        finish(Ended { memory, troubles });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
