//! What the runtime is asked to do, and the buffers that it is asked to do it with.

use std::collections::{BTreeMap, VecDeque};

use levelhead_block::{BufId, Combine, Place, RequestId, Segment};
use levelhead_units::Sectors;

use crate::action::{Action, Deliver, Sums};
use crate::log::record::Record;
use crate::names::SubId;
use crate::settings::Content;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    actions: VecDeque<Action>,
    /// How often buffers are to be released before they are, besides once.
    retained: BTreeMap<BufId, u32>,
    buf_next: u64,
    content: Content,
}

impl Output {
    pub(super) fn new(content: Content) -> Self {
        Self { actions: VecDeque::new(), retained: BTreeMap::new(), buf_next: 0, content }
    }

    /// Asks for one more thing.
    pub(crate) fn push(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    /// Asks for more.
    pub(crate) fn extend(&mut self, actions: impl IntoIterator<Item = Action>) {
        self.actions.extend(actions);
    }

    /// The next thing to do.
    pub(crate) fn pop(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Takes back all commands that the runtime has not got yet.
    pub(crate) fn take_back_submits(&mut self) -> Vec<SubId> {
        let sent = self.actions.iter().filter_map(|action| match action {
            Action::Submit(submit) => Some(submit.sub),
            _ => None,
        });
        let sent = sent.collect();
        self.actions.retain(|action| !matches!(action, Action::Submit(_)));
        sent
    }

    /// A name for a buffer of the array's own.
    pub(crate) fn name_buf(&mut self) -> BufId {
        self.buf_next += 1;
        BufId::Own(self.buf_next)
    }

    /// A buffer of the array's own, there at once.
    pub(crate) fn acquire(&mut self, sectors: Sectors) -> BufId {
        let buf = self.name_buf();
        if self.content.is_carried() {
            self.push(Action::Acquire { buf, sectors });
        }
        buf
    }

    /// Lets go of a buffer: it is released when all have let go of it that retained it.
    pub(crate) fn release(&mut self, buf: BufId) {
        match self.retained.get_mut(&buf) {
            None if self.content.is_carried() => self.push(Action::Release(buf)),
            None => {}
            Some(1) => {
                self.retained.remove(&buf);
            }
            Some(count) => *count -= 1,
        }
    }

    /// One more needs a buffer, and will release it.
    pub(crate) fn retain(&mut self, buf: BufId) {
        *self.retained.entry(buf).or_default() += 1;
    }

    /// Has the header of a record put into a buffer.
    pub(crate) fn log(&mut self, into: Place, record: Record, sums: Sums) {
        match self.content {
            Content::Carried => {
                let record = Box::new(record);
                self.push(Action::Log { into, record, sums });
            }
            Content::Absent => {}
        }
    }

    /// Whether buffers have bytes.
    pub(crate) fn carries_content(&self) -> bool {
        self.content.is_carried()
    }

    /// Says where the data of a read lie.
    pub(crate) fn deliver(&mut self, request: RequestId, segments: Vec<Segment>) {
        self.push(Action::Deliver(Deliver { request, segments }));
    }

    /// Asks for arithmetic, and joins it to the last such action where they continue each other.
    pub(crate) fn combine(&mut self, into: Place, from: Vec<(u8, Place)>) {
        match self.content {
            Content::Carried => {}
            Content::Absent => return,
        }
        if let Some(Action::Combine(last)) = self.actions.back_mut()
            && continues(last, into, &from)
        {
            last.sectors += 1;
            return;
        }
        self.push(Action::Combine(Combine { into, sectors: 1, from }));
    }
}

/// Whether one more sector is the next one of everything in `last`.
fn continues(last: &Combine, into: Place, from: &[(u8, Place)]) -> bool {
    let next = |place: Place| place.plus(last.sectors);
    next(last.into) == into
        && last.from.len() == from.len()
        && last
            .from
            .iter()
            .zip(from)
            .all(|(&(coefficient, place), &other)| (coefficient, next(place)) == other)
}
