//! The bytes behind the names: what both runtimes keep for the array's actions.

use std::collections::BTreeMap;
use std::sync::Arc;

use levelhead_block::Buf;
use levelhead_erasure::{Kernel, multiply, multiply_accumulate};

use crate::action::{BufId, Combine, Segment};

/// Buffers by name. A buffer is here, lent to one drive that fills it, or shared with drives that
/// only read it.
#[derive(Debug)]
pub struct Buffers {
    kernel: Kernel,
    table: BTreeMap<BufId, Held>,
}

#[derive(Debug)]
enum Held {
    Here(Buf),
    Shared(Arc<Buf>),
    Lent,
}

/// A part of a shared buffer, on its way to a drive.
#[derive(Clone, Debug)]
pub struct Piece {
    buf: Arc<Buf>,
    segment: Segment,
}

impl Piece {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.buf.part(self.segment.place.sector as usize, self.segment.sectors as usize)
    }
}

impl Buffers {
    /// No buffers yet; computes with `kernel`.
    pub const fn new(kernel: Kernel) -> Self {
        Self { kernel, table: BTreeMap::new() }
    }

    /// How many buffers are held.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether no buffer is held.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Takes a buffer under a new name.
    pub fn insert(&mut self, id: BufId, buf: Buf) {
        let before = self.table.insert(id, Held::Here(buf));
        assert!(before.is_none(), "{id:?} was there already");
    }

    /// Gives a buffer back. If a drive that was given up on still reads it, that one stays with the
    /// drive and an empty one of the same size comes back.
    ///
    /// Panics if a drive is filling it.
    pub fn remove(&mut self, id: BufId) -> Buf {
        match self.table.remove(&id).unwrap_or_else(|| panic!("{id:?} is not there")) {
            Held::Here(buf) => buf,
            Held::Shared(buf) => {
                Arc::try_unwrap(buf).unwrap_or_else(|buf| Buf::zeroed(buf.sectors()))
            }
            Held::Lent => panic!("{id:?} is with a drive that fills it"),
        }
    }

    /// Lends a buffer to a drive that will fill it.
    pub fn lend(&mut self, id: BufId) -> Buf {
        let held = self.table.get_mut(&id).unwrap_or_else(|| panic!("{id:?} is not there"));
        match std::mem::replace(held, Held::Lent) {
            Held::Here(buf) => buf,
            Held::Shared(_) | Held::Lent => panic!("{id:?} is with a drive already"),
        }
    }

    /// Takes a filled buffer back.
    pub fn give_back(&mut self, id: BufId, buf: Buf) {
        let held = self.table.get_mut(&id).unwrap_or_else(|| panic!("{id:?} is not there"));
        assert!(matches!(held, Held::Lent), "{id:?} was not lent");
        *held = Held::Here(buf);
    }

    /// Shares parts of buffers with a drive that reads them. It must drop them before it reports
    /// the command's end.
    pub fn share(&mut self, segments: &[Segment]) -> Vec<Piece> {
        segments
            .iter()
            .map(|&segment| Piece { buf: self.shared(segment.place.buf), segment })
            .collect()
    }

    fn shared(&mut self, id: BufId) -> Arc<Buf> {
        let held = self.table.get_mut(&id).unwrap_or_else(|| panic!("{id:?} is not there"));
        if let Held::Here(buf) = held {
            *held = Held::Shared(Arc::new(std::mem::replace(buf, Buf::empty())));
        }
        match held {
            Held::Shared(buf) => Arc::clone(buf),
            Held::Here(_) => unreachable!("it was shared above"),
            Held::Lent => panic!("{id:?} is with a drive that fills it"),
        }
    }

    /// The bytes of a buffer that is not lent.
    pub fn get(&self, id: BufId) -> &Buf {
        match &self.table[&id] {
            Held::Here(buf) => buf,
            Held::Shared(buf) => buf,
            Held::Lent => panic!("{id:?} is with a drive that fills it"),
        }
    }

    /// Carries out a [`Combine`].
    pub fn combine(&mut self, combine: &Combine) {
        let Combine { into, sectors, from } = combine;
        let held = self.table.get_mut(&into.buf).unwrap_or_else(|| panic!("{into:?} is not there"));
        // Out of the table while the sources, which are other buffers, are read.
        let Held::Here(mut target) = std::mem::replace(held, Held::Lent) else {
            panic!("{into:?} is with a drive")
        };
        let target_bytes = target.part_mut(into.sector as usize, *sectors as usize);
        for (at, &(coefficient, place)) in from.iter().enumerate() {
            let source = self.get(place.buf).part(place.sector as usize, *sectors as usize);
            if at == 0 {
                multiply(self.kernel, coefficient, source, target_bytes);
            } else {
                multiply_accumulate(self.kernel, coefficient, source, target_bytes);
            }
        }
        self.give_back(into.buf, target);
    }
}
