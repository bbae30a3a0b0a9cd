//! A bound on what one connection has in flight, and its way to the bytes that all have together.

use std::sync::Arc;

use levelhead_block::semaphore::{Class, Limit, Permit as Place, Semaphore, Weight};

use super::budget::{Account, Share};

/// Bytes of the requests of one connection and of their answers. A single request may be larger.
pub(super) const BYTES_MAX: usize = 64 << 20;

/// What one connection may have in flight: requests from their arrival until their answers are sent. A write
/// arrives with its head.
const LIMIT: Limit = Limit::of(Weight { requests: 128, bytes: BYTES_MAX as u64 });

/// Counts what is in flight and lets further requests wait.
pub(super) struct InFlight {
    places: Arc<Semaphore>,
    /// Those of them that the service has yet to answer.
    unanswered: Arc<Semaphore>,
    account: Arc<Account>,
}

/// A request in flight. Over when dropped.
pub(super) struct Permit {
    unanswered: Option<Place>,
    /// Its part of the budget; a request without bytes has none.
    share: Option<Share>,
    _place: Place,
}

impl InFlight {
    pub(super) fn new(account: Arc<Account>) -> Self {
        Self { places: Semaphore::new(LIMIT), unanswered: Semaphore::new(Limit::NONE), account }
    }

    /// Waits until there is room for a request of `bytes` bytes, here and in the budget. Nothing if
    /// the budget has been closed, or the client was disconnected.
    pub(super) fn enter(&self, bytes: usize) -> Option<Permit> {
        self.enter_with(bytes, |account| account.take(bytes))
    }

    /// The same, where the budget has to have room now.
    pub(super) fn enter_at_once(&self, bytes: usize) -> Option<Permit> {
        self.enter_with(bytes, |account| account.take_at_once(bytes))
    }

    /// The same for bytes of the connection's own.
    pub(super) fn enter_own(&self, bytes: usize) -> Option<Permit> {
        self.enter_with(bytes, |account| account.take_own(bytes))
    }

    fn enter_with(
        &self,
        bytes: usize,
        take: impl FnOnce(&Arc<Account>) -> Option<Share>,
    ) -> Option<Permit> {
        let weight = Weight::request(bytes as u64);
        let place = self.places.enter(weight, Class::Read)?;
        let share = if bytes == 0 { None } else { Some(take(&self.account)?) };
        // One that waits for its client to take other answers is not the service's yet.
        let unanswered = Some(self.unanswered.force(weight, Class::Read));
        Some(Permit { unanswered, share, _place: place })
    }

    /// What tells the budget that the client does its part.
    pub(super) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Waits until the service has answered all that is in flight.
    pub(super) fn wait_answered(&self) {
        self.unanswered.wait_idle();
    }

    /// Waits until nothing is in flight.
    pub(super) fn wait_empty(&self) {
        self.places.wait_idle();
    }
}

impl Permit {
    /// Its bytes have yet to come.
    pub(super) fn announced(&self) {
        self.share.iter().for_each(Share::leave_to_sender);
    }

    /// Its bytes have come.
    pub(super) fn received(&self) {
        self.share.iter().for_each(Share::leave_to_service);
    }

    /// The service has answered; the answer has yet to be sent.
    pub(super) fn answered(&mut self) {
        if self.unanswered.take().is_some() {
            self.share.iter().for_each(Share::leave_to_taker);
        }
    }
}
