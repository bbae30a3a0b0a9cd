//! What happens to the drives of a world and to its power, and what comes after it: new drives, a new array.

use std::sync::Arc;

use levelhead_array::membership::Why;
use levelhead_array::{Array, NewMember, NotReplaced, Promise, Settings, SubId};
use levelhead_block::{BlockDevice, Outcome};
use levelhead_bytes::GARBAGE;
use levelhead_drive::Drive;
use levelhead_units::{DriveIdx, Extent, Instant, Lba, Nanos};

use super::bay::Bay;
use super::{Event, HEALTH_INTERVAL, World};

impl World {
    /// A drive stops answering.
    pub fn kill(&mut self, now: Instant, drive: DriveIdx) {
        let at = self.clock.machine_time(now);
        self.drives[drive.as_usize()].drive.handle_death(at);
        self.collect(now, drive);
        self.run_until_quiet(now);
    }

    /// An operator wants the array to do without a drive.
    pub fn lose(&mut self, now: Instant, drive: DriveIdx) {
        assert!(now <= self.next_at(), "{now:?} is past the next event");
        self.array.handle_lost(now, drive, Why::ByHand);
        self.run_until_quiet(now);
    }

    /// A drive ends nothing from now on, until the next start. What it had in memory only is lost.
    pub fn hang(&mut self, now: Instant, drive: DriveIdx) {
        assert!(now <= self.next_at(), "{now:?} is past the next event");
        self.destage(now, drive);
        self.stirred = self.stirred.with(drive);
        let bay = &mut self.drives[drive.as_usize()];
        bay.hangs = true;
        bay.drive.handle_power_cut(self.clock.machine_time(now));
        while bay.drive.poll().is_some() {}
        while bay.drive.poll_aftermath().is_some() {}
        if let Some(bytes) = &mut self.bytes {
            bytes.lose_power_of(drive);
        }
    }

    /// What a drive ends is told no sooner than `until`, and then all at once.
    pub fn stall(&mut self, now: Instant, drive: DriveIdx, until: Instant) {
        assert!(now <= self.next_at() && now <= until, "{now:?} is past the next event");
        self.drives[drive.as_usize()].stalls_until = until;
        self.events.push(until, Event::Wake(drive));
    }

    /// The machine has no room for what a drive is to write or flush, until then.
    pub fn refuse(&mut self, now: Instant, drive: DriveIdx, until: Instant) {
        assert!(now <= self.next_at() && now <= until, "{now:?} is past the next event");
        self.drives[drive.as_usize()].refuses_until = until;
    }

    /// A cable comes out: what is inside the drive, and all that is asked of it later, ends as gone. What it had
    /// in memory only is lost.
    pub fn disconnect(&mut self, now: Instant, drive: DriveIdx) {
        assert!(now <= self.next_at(), "{now:?} is past the next event");
        self.destage(now, drive);
        let bay = &mut self.drives[drive.as_usize()];
        bay.is_connected = false;
        bay.drive.handle_power_cut(self.clock.machine_time(now));
        if let Some(bytes) = &mut self.bytes {
            bytes.lose_power_of(drive);
        }
        self.collect(now, drive);
        self.run_until_quiet(now);
    }

    /// The server does not run for `gap` of the machine's time, while the drives complete what they have inside. Then it
    /// looks at what is due with time, and after that at what was completed, which is the worst order.
    pub fn stand_still(&mut self, now: Instant, gap: Nanos) {
        self.miss(now, gap, Nanos::ZERO);
    }

    /// The same, and the server's clock takes the gap for time in which it ran: a canary.
    pub fn stand_still_unnoticed(&mut self, now: Instant, gap: Nanos) {
        self.miss(now, gap, gap);
    }

    fn miss(&mut self, now: Instant, gap: Nanos, planned: Nanos) {
        assert!(now <= self.next_at(), "{now:?} is past the next event");
        let from = self.clock.machine_time(now);
        let until = from + gap;
        for bay in &mut self.drives {
            while let Some(at) = bay.drive.deadline().filter(|&at| at <= until) {
                bay.drive.handle_timeout(at);
            }
            bay.wake = None; // It comes sooner by the time that the server has missed.
        }
        self.stir_all();
        self.clock.plan_wait(from - Instant::ZERO); // A world looks at its clock here alone.
        self.clock.read(from);
        self.clock.plan_wait(planned);
        let now = self.clock.read(until);
        self.skip_to(now);
        if self.clock.take_standstill() {
            self.array.handle_standstill(now);
        }
        self.array.handle_timeout(now);
        self.run_until_quiet(now);
        for idx in 0..self.drives.len() {
            self.collect(now, DriveIdx::from_usize(idx));
        }
        self.run_until_quiet(now);
    }

    /// The events until then that the server has missed.
    fn skip_to(&mut self, now: Instant) {
        while self.next_at() <= now {
            match self.events.pop() {
                Some((_, Event::Wake(_))) | None => {}
                Some((_, Event::Timer)) => self.timer = None,
                Some((at, Event::Health)) => self.events.push(at + HEALTH_INTERVAL, Event::Health),
            }
        }
    }

    /// Whether a drive hangs or is not connected, until the next start.
    pub fn is_away(&self, drive: DriveIdx) -> bool {
        let Bay { is_connected, hangs, .. } = &self.drives[drive.as_usize()];
        !is_connected || *hangs
    }

    /// The power of all fails and comes back at `now`, which must not be before the last event nor after
    /// the next. Requests that were not answered never will be, and what drives had in memory only is
    /// gone. The array begins anew, with no redundancy valid until [`World::resync`] has made it so.
    pub fn power_cut(&mut self, now: Instant) {
        assert!(now <= self.next_at(), "{now:?} is past the next event");
        for idx in 0..self.drives.len() {
            self.destage(now, DriveIdx::from_usize(idx));
            let bay = &mut self.drives[idx];
            bay.drive.handle_power_cut(self.clock.machine_time(now));
            bay.forget();
        }
        self.stir_all();
        if let Some(bytes) = &mut self.bytes {
            bytes.lose_power();
        }
        self.answers.clear();
        self.array = match self.records {
            // Nothing runs until it is started again.
            Some(_) => Array::new(&self.array_settings, self.streams),
            None => {
                Array::new(&Settings { synced: 0, ..self.array_settings.clone() }, self.streams)
            }
        };
    }

    /// Begins anew with what `settings` says, in the place of an array that has ended.
    pub(crate) fn replace_array(&mut self, settings: Settings) {
        self.stir_all();
        let mut leftover = false;
        for bay in &mut self.drives {
            if std::mem::take(&mut bay.hangs) || bay.stalls_until > Instant::ZERO {
                leftover |= !bay.inside.is_empty();
                bay.forget();
            }
            assert!(bay.inside.is_empty(), "a drive is at work");
        }
        if let Some(bytes) = &mut self.bytes {
            // What drives that hang were to fill or to write was never given back.
            assert!(leftover || bytes.buffers.is_empty(), "buffers are left");
            bytes.forget_buffers();
        }
        self.array = Array::new(&settings, self.streams);
        for idx in 0..self.drives.len() {
            let drive = DriveIdx::from_usize(idx);
            self.array.handle_promise(drive, Promise::Medium);
            self.array.handle_revolution(drive, Some(self.makes.profile.rotation()));
        }
        (self.array_settings, self.ending) = (settings, None);
        self.losses.clear();
        self.array_events.clear();
    }

    /// A new drive, full of garbage, is in the place of another. Returns what was inside that one.
    pub(crate) fn put_new_drive(&mut self, drive: DriveIdx) -> Vec<SubId> {
        self.stirred = self.stirred.with(drive);
        let at = drive.as_usize();
        let mut settings = self.makes.drives[at % self.makes.drives.len()];
        settings.faults.death = None;
        let name = format!("drive/{at}/{}", self.replaced);
        let made = Drive::new(Arc::clone(&self.makes.profile), settings, self.streams, &name);
        let old = std::mem::replace(
            &mut self.drives[at],
            Bay::new(made.expect("the drive before it was made alike")),
        );
        if let Some(bytes) = &mut self.bytes {
            bytes.lose_power_of(drive);
            let medium = bytes.platter_mut(drive);
            let all = Extent::new(Lba::ZERO, medium.size());
            medium.bytes_mut(all).fill(GARBAGE);
        }
        old.inside.into_keys().chain(old.refused).collect()
    }

    /// The array is told that a drive is back.
    pub(crate) fn take_back_into_array(
        &mut self,
        now: Instant,
        drive: DriveIdx,
        new: Option<NewMember>,
    ) -> Result<(), NotReplaced> {
        self.array.handle_returned(now, drive, new)?;
        self.run_until_quiet(now);
        Ok(())
    }

    /// The array is told of a new drive, and that what was inside the old one is gone.
    pub(crate) fn replace_in_array(
        &mut self,
        now: Instant,
        drive: DriveIdx,
        new: Option<NewMember>,
        orphans: Vec<SubId>,
    ) -> Result<(), NotReplaced> {
        self.array.handle_replaced(now, drive, new)?;
        for sub in orphans {
            self.array.handle_done(now, sub, &Outcome::Gone);
        }
        self.run_until_quiet(now);
        Ok(())
    }
}
