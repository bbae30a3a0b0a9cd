//! Carries out on a drive what its [`Rule`] decides, and lets reads with retries through.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use levelhead_units::{Instant, Nanos};

use super::super::ata::{self, ErrorRecovery, Timer};
use super::super::{Access, Fact};
use super::Recovered;
use super::records::Store;
#[cfg(test)]
use super::rule::HOLD;
use super::rule::{Duties, Duty, Rule, SHORT, Seen, Step};
pub(super) use super::rule::{Now, Standing};

/// Where reads come by on their way to a drive.
#[derive(Debug, Default)]
pub(crate) struct Gate(Mutex<Passed>);

#[derive(Debug, Default)]
struct Passed {
    /// Whether the drive's own limit may not hold.
    is_shut: bool,
    seen: Seen,
}

/// A read with retries that is inside, or waits, until this is dropped.
#[derive(Debug)]
pub(crate) struct Pass {
    gate: Arc<Gate>,
    /// Whether the read has to wait for the drive's own limit.
    pub(crate) must_wait: bool,
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.gate.lock().seen.full_inside -= 1;
    }
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Passed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A read with retries comes.
    pub(crate) fn enter(self: &Arc<Self>) -> Pass {
        let mut passed = self.lock();
        passed.seen.full_inside += 1;
        passed.seen.full_came += 1;
        Pass { gate: Arc::clone(self), must_wait: passed.is_shut }
    }

    /// A read without retries comes.
    pub(crate) fn note_fast(&self) {
        self.lock().seen.fast_came += 1;
    }

    /// What has come since this was last asked, and what is inside.
    fn look(&self) -> Seen {
        let mut passed = self.lock();
        let seen = passed.seen;
        passed.seen = Seen { full_inside: seen.full_inside, ..Seen::default() };
        seen
    }

    /// Nothing gets in from now on without waiting. Returns false, and changes nothing, if something is inside.
    fn shut(&self, duties: Duties) -> bool {
        let mut passed = self.lock();
        let may = passed.seen.full_inside == 0 || !duties.keep(Duty::Full);
        passed.is_shut |= may && duties.keep(Duty::Full);
        may
    }

    fn open(&self) {
        self.lock().is_shut = false;
    }
}

/// What a drive's limit is changed with.
pub(crate) struct Means {
    pub(crate) device: Box<dyn Access>,
    pub(crate) records: Box<dyn Store>,
    /// How long a drive keeps its own limit for reads with retries.
    pub(crate) hold: Nanos,
}

/// See the module.
pub(super) struct Keeper {
    own: ErrorRecovery,
    /// What the drive is called in the records.
    key: String,
    device: Box<dyn Access>,
    records: Box<dyn Store>,
    gate: Arc<Gate>,
    rule: Rule,
    is_recorded: bool,
    duties: Duties,
}

impl Keeper {
    pub(super) fn new(
        own: ErrorRecovery,
        key: String,
        gate: Arc<Gate>,
        Means { device, records, hold }: Means,
    ) -> Self {
        let duties = Duties::default();
        let rule = Rule::new(own, hold, duties);
        Self { own, key, device, records, gate, rule, is_recorded: false, duties }
    }

    /// The same that leaves out a duty.
    #[cfg(test)]
    pub(super) fn with_duties(self, duties: Duties) -> Self {
        Self { rule: Rule::new(self.own, HOLD, duties), duties, ..self }
    }

    /// Does what is to be done now. Each step asks the drive a few things, and waits.
    pub(super) fn advance(&mut self, now: Instant, may: Now) {
        if may == Now::Last {
            self.rule.hurry(now);
        }
        let mut seen = self.gate.look();
        while let Some(step) = self.rule.next(now, may, seen) {
            if step == Step::Shorten && !self.gate.shut(self.duties) {
                self.rule.handle_overtaken();
                break;
            }
            let found = self.carry_out(step);
            self.rule.handle_done(now, step, found);
            // What has come is not to be acted on twice.
            seen = Seen { full_inside: self.gate.look().full_inside, ..Seen::default() };
        }
        if self.rule.is_own() {
            self.gate.open();
        }
        if self.rule.is_given_up() || (may == Now::Last && self.rule.is_own()) {
            self.forget();
        }
    }

    /// What a read with retries that waits is told.
    pub(super) fn recovered(&self) -> Recovered {
        if self.rule.is_own() { Recovered::Own } else { Recovered::Perhaps }
    }

    /// How the limit stands.
    pub(super) fn standing(&self) -> Standing {
        self.rule.standing()
    }

    /// The end, after the last step: why the drive does not have its own limits, if so.
    pub(super) fn end(self) -> Option<String> {
        match self.rule.standing() {
            Standing::Own | Standing::GivenUp(_) => None,
            Standing::Changed(why) => Some(why),
            Standing::Short(_) => Some("its limit was not put back".to_owned()),
        }
    }

    fn carry_out(&mut self, step: Step) -> Fact<ErrorRecovery> {
        let device = self.device.as_ref();
        match step {
            Step::Look => ata::ask_timers(device),
            Step::Restore => restore(device, self.own),
            Step::Shorten => {
                if !self.is_recorded && self.duties.keep(Duty::Record) {
                    self.records.save(&self.key, self.own)?;
                    self.is_recorded = true;
                }
                let wanted = ErrorRecovery { read: Some(SHORT), ..self.own };
                match self.duties.keep(Duty::ReadBack) {
                    true => set(device, wanted, self.duties),
                    false => ata::set_timer(device, Timer::Read, wanted.read).map(|()| wanted),
                }
            }
        }
    }

    /// The drive has its own limits for good: the record is not needed any more. One that stays does no harm.
    fn forget(&mut self) {
        if self.is_recorded && self.records.remove(&self.key).is_ok() {
            self.is_recorded = false;
        }
    }
}

/// Gives a drive its own limits, and says which it has then.
pub(super) fn restore(device: &dyn Access, own: ErrorRecovery) -> Fact<ErrorRecovery> {
    let found = ata::ask_timers(device)?;
    if found == own { Ok(found) } else { set(device, own, Duties::default()) }
}

/// Sets the limit of reads, and that of writes where it has changed on the way (EC5). Says which the drive has then.
fn set(device: &dyn Access, wanted: ErrorRecovery, duties: Duties) -> Fact<ErrorRecovery> {
    ata::set_timer(device, Timer::Read, wanted.read)?;
    let found = ata::ask_timers(device)?;
    if found.write == wanted.write {
        return Ok(found);
    }
    if !duties.keep(Duty::Write) {
        return Ok(ErrorRecovery { write: wanted.write, ..found });
    }
    ata::set_timer(device, Timer::Write, wanted.write)?;
    ata::ask_timers(device)
}
