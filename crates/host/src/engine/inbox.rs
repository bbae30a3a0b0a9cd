//! Where an engine hears of what happens elsewhere: a channel, and the bell that wakes it where it waits
//! in its ring instead.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SendError, TryIter};
use std::time::Duration;

use crate::bell::Bell;

/// What others put their inputs into.
pub(crate) struct Inlet<T> {
    inputs: mpsc::Sender<T>,
    bell: Option<Arc<Bell>>,
}

/// The engine's end.
pub(crate) struct Inbox<T> {
    inputs: Receiver<T>,
    bell: Option<Arc<Bell>>,
}

/// Both ends. Without a bell the engine never waits anywhere else.
pub(crate) fn open<T>(bell: Option<Bell>) -> (Inlet<T>, Inbox<T>) {
    let (sender, receiver) = mpsc::channel();
    let bell = bell.map(Arc::new);
    (Inlet { inputs: sender, bell: bell.clone() }, Inbox { inputs: receiver, bell })
}

impl<T> Inlet<T> {
    /// Gives the input back if there is no engine any more.
    pub(crate) fn send(&self, input: T) -> Result<(), SendError<T>> {
        self.inputs.send(input)?;
        if let Some(bell) = &self.bell {
            bell.ring();
        }
        Ok(())
    }
}

impl<T> Clone for Inlet<T> {
    fn clone(&self) -> Self {
        Self { inputs: self.inputs.clone(), bell: self.bell.clone() }
    }
}

impl<T> Inbox<T> {
    /// The next input, once there is one, for which it waits this long at most.
    pub(super) fn wait(&self, patience: Duration) -> Option<T> {
        if patience == Duration::ZERO {
            return self.inputs.try_recv().ok();
        }
        self.inputs.recv_timeout(patience).ok()
    }

    /// The next input, if there is one. Otherwise has the engine wait in its ring, where the bell
    /// wakes it, for this long at most.
    pub(super) fn wait_in_ring(
        &self,
        patience: Duration,
        wait: impl FnOnce(Duration),
    ) -> Option<T> {
        let bell = self.bell.as_ref().expect("a ring comes with a bell");
        bell.arm();
        let input = self.inputs.try_recv().ok();
        wait(if input.is_some() { Duration::ZERO } else { patience });
        bell.disarm();
        input
    }

    /// What else has come.
    pub(super) fn more(&self) -> TryIter<'_, T> {
        self.inputs.try_iter()
    }
}
