//! When a drive's limit of reads is short. Decides, and asks nothing.
//!
//! ```text
//!             a read without retries, allowed, nothing inside, HOLD over
//!       own ----------------------- Shorten ---------------------> changed
//!        ^                                                          |   ^
//!        |                                           short, as read |   | anything else that was read; a failure;
//!        | its own, as read back                     back           |   | forbidden; a read with retries
//!        +------- Restore ------- changed               Look -- short --+
//! ```
//!
//! `changed` is every state in which it is not known that the drive's own limit holds, also while a step is under way.
//! What has been refused once, clamped to a useless limit, or forgotten too often is given up: the limit stays the
//! drive's own for the rest of the run.

use levelhead_units::{Instant, Nanos};

use super::super::ata::ErrorRecovery;

/// What is asked for: the least there is. 553 of 30,590 server disks report it as their limit; see `docs/devices.md`.
pub(crate) const SHORT: Nanos = Nanos::from_millis(100);

/// The longest limit that is worth being called short. A read that redundancy answers waits for no more than that.
pub(crate) const USEFUL_MAX: Nanos = Nanos::from_secs(1);
const _: () = assert!(SHORT.get() <= USEFUL_MAX.get());

/// How long a drive keeps its own limit once a read with retries has ended a short one, and after each further such read. Each
/// change empties the drive's queue.
pub(crate) const HOLD: Nanos = Nanos::from_secs(30);

/// How often a short limit is read back: a drive that was reset has forgotten it.
pub(crate) const LOOK_EVERY: Nanos = Nanos::from_secs(60);

/// How long a drive is left alone that did not take its own limit back.
pub(crate) const AGAIN_AFTER: Nanos = Nanos::from_secs(10);

/// How often a drive may forget a short limit until it is not given one any more.
pub(crate) const FORGETS_MAX: u32 = 3;

/// What is to be done next. What the drive says afterwards goes to [`Rule::handle_done`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Make the limit of reads [`SHORT`], and read both limits back.
    Shorten,
    /// Give the drive its own limits, and read them back.
    Restore,
    /// Read the limits back.
    Look,
}

/// What a drive has been seen to do since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Reads with retries that are inside, or wait.
    pub(crate) full_inside: u32,
    /// Reads with retries that have come.
    pub(crate) full_came: u64,
    /// Reads without retries that have come.
    pub(crate) fast_came: u64,
}

/// What may be done to the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Now {
    /// It may be short: redundancy stands in for the drive.
    Allowed,
    /// It may not.
    Forbidden,
    /// It is to be the drive's own now: nothing comes after this.
    Last,
}

/// What is known of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Own,
    Short {
        limit: Nanos,
        looked: Instant,
    },
    Changed {
        /// When it is tried to put it back.
        at: Instant,
    },
}

/// How the limit stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is the drive's own.
    Own,
    /// It is this one.
    Short(Nanos),
    /// It is the drive's own and stays so, and why.
    GivenUp(String),
    /// It may be any, and why.
    Changed(String),
}

/// See the module.
pub(crate) struct Rule {
    own: ErrorRecovery,
    state: State,
    hold: Nanos,
    /// When the last of the reads with retries was seen that hold the drive's own limit.
    held_at: Option<Instant>,
    forgets: u32,
    /// Why the limit is never short any more.
    refusal: Option<String>,
    duties: Duties,
}

impl Rule {
    /// For a drive with these limits of its own.
    pub(crate) fn new(own: ErrorRecovery, hold: Nanos, duties: Duties) -> Self {
        let (state, held_at) = (State::Own, None);
        Self { own, state, hold, held_at, forgets: 0, refusal: None, duties }
    }

    /// Whether the drive's own limit is known to hold.
    pub(crate) fn is_own(&self) -> bool {
        self.state == State::Own
    }

    /// Whether the limit is its own and stays so.
    pub(crate) fn is_given_up(&self) -> bool {
        self.is_own() && self.refusal.is_some()
    }

    /// How the limit stands.
    pub(crate) fn standing(&self) -> Standing {
        match (self.state, &self.refusal) {
            (State::Own, None) => Standing::Own,
            (State::Own, Some(why)) => Standing::GivenUp(why.clone()),
            (State::Short { limit, .. }, _) => Standing::Short(limit),
            (State::Changed { .. }, why) => {
                Standing::Changed(why.clone().unwrap_or_else(|| "it is being changed".to_owned()))
            }
        }
    }

    /// The next step, which begins now; nothing if there is none for the time being.
    pub(crate) fn next(&mut self, now: Instant, may: Now, seen: Seen) -> Option<Step> {
        let ends_short = matches!(self.state, State::Short { .. });
        if (seen.full_inside > 0 || seen.full_came > 0) && (ends_short || self.held_at.is_some()) {
            self.held_at = Some(now);
        }
        let step = self.choose(now, may, seen)?;
        if step == Step::Shorten {
            self.held_at = None;
        }
        if step != Step::Look {
            self.state = State::Changed { at: now };
        }
        Some(step)
    }

    fn choose(&self, now: Instant, may: Now, seen: Seen) -> Option<Step> {
        let may_be_short = match may {
            Now::Allowed => true,
            Now::Forbidden => !self.duties.keep(Duty::Redundancy),
            Now::Last => !self.duties.keep(Duty::Last),
        };
        let must_be_own = seen.full_inside > 0 && self.duties.keep(Duty::Full);
        match self.state {
            State::Own => {
                let is_held = self.held_at.is_some_and(|at| now < at + self.hold);
                let may = may_be_short && self.refusal.is_none() && !must_be_own && !is_held;
                (may && seen.fast_came > 0).then_some(Step::Shorten)
            }
            State::Short { .. } if !may_be_short || must_be_own => Some(Step::Restore),
            State::Short { looked, .. } => {
                let is_due = now >= looked + LOOK_EVERY && self.duties.keep(Duty::Look);
                is_due.then_some(Step::Look)
            }
            State::Changed { at } => (now >= at).then_some(Step::Restore),
        }
    }

    /// The end has come: what was to be tried later is tried now.
    pub(crate) fn hurry(&mut self, now: Instant) {
        if let State::Changed { at } = &mut self.state {
            *at = now.min(*at);
        }
    }

    /// A step was not begun, because a read with retries has come in between.
    pub(crate) fn handle_overtaken(&mut self) {
        self.state = State::Own;
    }

    /// A step has ended with these limits, as they were read back, or could not be carried out.
    pub(crate) fn handle_done(
        &mut self,
        now: Instant,
        step: Step,
        found: Result<ErrorRecovery, String>,
    ) {
        self.state = match (step, found) {
            (_, Ok(found)) if found == self.own => {
                match step {
                    Step::Restore => {}
                    Step::Look => self.note_forgotten(),
                    Step::Shorten => self.give_up("the drive does not take a short limit"),
                }
                State::Own
            }
            (Step::Shorten | Step::Look, Ok(found)) => match (self.short(found), step) {
                (Some(limit), _) => State::Short { limit, looked: now },
                (None, Step::Look) => {
                    self.note_forgotten();
                    State::Changed { at: now }
                }
                (None, _) => {
                    self.give_up("the drive makes something else of a short limit");
                    State::Changed { at: now }
                }
            },
            (Step::Restore, Ok(_)) => {
                self.give_up("the drive did not take its own limit back");
                State::Changed { at: now + AGAIN_AFTER }
            }
            (Step::Shorten | Step::Look, Err(why)) => {
                self.give_up(&why);
                State::Changed { at: now }
            }
            (Step::Restore, Err(why)) => {
                self.give_up(&why);
                State::Changed { at: now + AGAIN_AFTER }
            }
        };
    }

    /// The short limit that was read back, if it is one and the limit of writes is the drive's own.
    fn short(&self, found: ErrorRecovery) -> Option<Nanos> {
        let limit = found.read.filter(|&limit| limit <= USEFUL_MAX)?;
        (found.write == self.own.write).then_some(limit)
    }

    fn note_forgotten(&mut self) {
        self.forgets += 1;
        if self.forgets >= FORGETS_MAX {
            self.give_up("the drive has forgotten its short limit too often");
        }
    }

    fn give_up(&mut self, why: &str) {
        self.refusal.get_or_insert_with(|| why.to_owned());
    }
}

/// What keeps a drive's own limit safe, by name, so that a test can leave one out and must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// EC1: the record comes before the first change.
    Record,
    /// EC2: what was set is read back.
    ReadBack,
    /// EC3: the limit is put back for a read with retries.
    Full,
    /// EC4: the limit is put back when redundancy is used up.
    Redundancy,
    /// EC5: the limit of writes is put back.
    Write,
    /// EC6: the limit is put back at the end.
    Last,
    /// What was forgotten is noticed.
    Look,
}

/// Which duties are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Duties {
    #[cfg(test)]
    left_out: Option<Duty>,
}

impl Duties {
    /// All but this one.
    #[cfg(test)]
    pub(crate) const fn without(duty: Duty) -> Self {
        Self { left_out: Some(duty) }
    }

    /// Whether this one is kept.
    #[cfg(test)]
    pub(crate) fn keep(self, duty: Duty) -> bool {
        self.left_out != Some(duty)
    }

    /// All are.
    #[cfg(not(test))]
    pub(crate) fn keep(self, _: Duty) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: ErrorRecovery =
        ErrorRecovery { read: Some(Nanos::from_secs(7)), write: Some(Nanos::from_secs(7)) };
    const FAST: Seen = Seen { full_inside: 0, full_came: 0, fast_came: 1 };

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Nanos::from_secs(secs)
    }

    fn short() -> Result<ErrorRecovery, String> {
        Ok(ErrorRecovery { read: Some(SHORT), ..OWN })
    }

    #[test]
    fn limit_that_a_read_with_retries_has_ended_is_not_short_again_until_there_were_none_for_long()
    {
        let mut rule = Rule::new(OWN, HOLD, Duties::default());
        let full = Seen { full_inside: 1, full_came: 1, fast_came: 1 };
        // Before a limit was short, such reads hold nothing.
        assert_eq!(rule.next(at(0), Now::Allowed, full), None);
        assert_eq!(rule.next(at(0), Now::Allowed, FAST), Some(Step::Shorten));
        rule.handle_done(at(0), Step::Shorten, short());
        assert_eq!(rule.standing(), Standing::Short(SHORT));
        assert_eq!(rule.next(at(1), Now::Allowed, full), Some(Step::Restore));
        assert!(!rule.is_own(), "EC2: nothing is read back");
        rule.handle_done(at(1), Step::Restore, Ok(OWN));
        assert!(rule.is_own());
        // One that came and ended between two looks counts.
        let came = Seen { full_inside: 0, ..full };
        for (secs, seen) in [(2, FAST), (10, came), (30, FAST), (39, FAST)] {
            assert_eq!(rule.next(at(secs), Now::Allowed, seen), None, "{secs} s");
        }
        assert_eq!(rule.next(at(40), Now::Allowed, Seen::default()), None, "no read wants it");
        assert_eq!(rule.next(at(41), Now::Allowed, FAST), Some(Step::Shorten));
    }

    #[test]
    fn limit_that_is_forgotten_too_often_is_given_up() {
        let mut rule = Rule::new(OWN, HOLD, Duties::default());
        for turn in 0..u64::from(FORGETS_MAX) {
            let now = at(1_000 * turn);
            assert_eq!(rule.next(now, Now::Allowed, FAST), Some(Step::Shorten), "{turn}");
            rule.handle_done(now, Step::Shorten, short());
            assert_eq!(rule.next(now, Now::Allowed, FAST), None);
            let now = now + LOOK_EVERY;
            assert_eq!(rule.next(now, Now::Allowed, FAST), Some(Step::Look));
            assert_eq!(rule.standing(), Standing::Short(SHORT), "a look changes nothing");
            rule.handle_done(now, Step::Look, Ok(OWN));
        }
        assert_eq!(rule.next(at(1_000_000), Now::Allowed, FAST), None);
        assert!(rule.is_given_up());
    }

    #[test]
    fn drive_that_does_not_take_its_own_limit_back_is_asked_again_after_a_pause() {
        let mut rule = Rule::new(OWN, HOLD, Duties::default());
        assert_eq!(rule.next(at(0), Now::Allowed, FAST), Some(Step::Shorten));
        rule.handle_done(at(0), Step::Shorten, Err("no".to_owned()));
        assert_eq!(rule.next(at(0), Now::Allowed, FAST), Some(Step::Restore));
        rule.handle_done(at(0), Step::Restore, short());
        for now in [at(0), at(9)] {
            assert_eq!(rule.next(now, Now::Allowed, FAST), None);
        }
        assert_eq!(rule.next(at(10), Now::Forbidden, FAST), Some(Step::Restore));
        rule.handle_done(at(10), Step::Restore, Err("no".to_owned()));
        // The end does not wait for the pause, and tries once.
        rule.hurry(at(11));
        assert_eq!(rule.next(at(11), Now::Last, FAST), Some(Step::Restore));
        rule.handle_done(at(11), Step::Restore, Err("no".to_owned()));
        assert_eq!(rule.next(at(11), Now::Last, FAST), None, "EC7");
        assert_eq!(rule.next(at(21), Now::Forbidden, FAST), Some(Step::Restore));
        rule.handle_done(at(21), Step::Restore, Ok(OWN));
        assert_eq!(rule.standing(), Standing::GivenUp("no".to_owned()));
    }
}
