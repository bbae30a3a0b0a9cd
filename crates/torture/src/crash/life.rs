//! The life of an array of a crash swarm: writes, reads, flushes and mishaps, with an image at the boundaries between
//! their effects.

use levelhead_array::membership::Membership;
use levelhead_array::{Ending, Layout, Patience, Spec};
use levelhead_block::Durability;
use levelhead_stats::{Rng, Streams};
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, Sectors};

use super::aim::{Aim, Faults, Odds};
use super::image::{Assembled, Image, assemble, is_refusal, journal_of, places_of, refuses_twin};
use super::machine::{Machine, Start, Trouble, Wrong};
use super::make::{Made, Make};
use super::met::Fault;
use super::promise::Promise;
use super::{DEPTH_MAX, Tally};

/// Steps after the last request of a life: places are written and flushed in fewer.
const LAST_STEPS: u64 = 400;

/// One array, from its creation on.
pub(super) struct Run<'a> {
    pub(super) rng: Rng,
    pub(super) aim: Aim,
    pub(super) tally: &'a mut Tally,
    pub(super) spec: Spec,
    /// The member that late writes land on, or that goes back in time: it counts as faulty all the time.
    pub(super) remote: DriveSet,
}

impl Run<'_> {
    pub(super) fn all(&mut self, make: Make) -> Result<(), String> {
        let Made { disks, listed } = make.disks(&mut self.rng);
        let size = make.layout().size().get();
        let mut promise = Promise::new(size, make.logs, make.piece > 0);
        promise.lack(&listed);
        self.tally.listed += u64::from(!listed.is_empty());
        let image = Image::new(disks, promise);
        let machine = self.start(image, DriveSet::EMPTY)?;
        self.life(machine, 0)
    }

    fn odds(&self) -> Odds {
        self.aim.odds
    }

    fn faults(&self) -> Faults {
        self.aim.faults
    }

    /// One occasion of `odds`.
    fn happens(&mut self, odds: u64) -> bool {
        odds > 0 && self.rng.below(odds) == 0
    }

    fn start(&mut self, image: Image, hidden: DriveSet) -> Result<Machine, String> {
        let has_patience = self.odds().trouble > 0 && self.rng.below(2) == 0;
        let patience = has_patience.then_some(Patience::DEFAULT);
        let (rules, seed) = (self.aim.rules, self.rng.bits());
        let Aim { slow_metadata, slow_aside, fills, verify, lies, planted, .. } = self.aim;
        let has_background = self.faults().scrub > 0;
        let start = Start {
            image,
            hidden,
            rules,
            patience,
            slow_metadata,
            slow_aside,
            fills,
            verify,
            lies,
            has_background,
            planted,
            seed,
        };
        Machine::start(start)
    }

    /// Some writes, with an image at the boundaries between their effects.
    pub(super) fn life(&mut self, mut machine: Machine, depth: u32) -> Result<(), String> {
        let mut writes = 1 + self.rng.below(self.aim.writes);
        let mut losses = self.happens(self.odds().loss);
        let may_trouble = machine.has_patience() || self.faults().failed > 0;
        let mut troubles = may_trouble && self.happens(self.odds().trouble);
        let has_asides = self.happens(self.odds().aside);
        let mut second = match self.happens(self.faults().second) {
            true => self.start(machine.image(), DriveSet::EMPTY).ok(),
            false => None,
        };
        self.tally.second += u64::from(second.is_some());
        let mut steps_left = LAST_STEPS;
        while steps_left > 0 {
            if let Some(second) = &mut second
                && self.rng.below(3) == 0
            {
                self.turn_of(second, &mut machine);
            }
            let may_send = machine.outstanding() < 3;
            if writes > 0 && may_send && self.rng.below(4) == 0 {
                writes -= 1;
                let extent = self.extent(&machine);
                let is_durable = self.rng.below(8) == 0;
                let durability = if is_durable { Durability::Durable } else { Durability::Cached };
                machine.write(extent, durability);
            }
            if writes > 0 && may_send && self.happens(self.odds().read) {
                let extent = self.extent(&machine);
                machine.read(extent);
            }
            if writes > 0 && may_send && self.happens(self.odds().flush) {
                machine.flush();
            }
            if self.happens(self.odds().back) {
                let before = machine.returned;
                machine.take_back(&mut self.rng);
                losses |= machine.returned > before && self.rng.below(2) == 0;
            }
            if self.happens(self.odds().copy) {
                let drive = self.any();
                let gone = machine.gone().or(machine.faults());
                if self.can_lose(gone, drive) {
                    let Self { rng, tally, .. } = self;
                    tally.copies += u64::from(machine.copy(drive, rng));
                }
            }
            if losses && self.rng.below(30) == 0 {
                losses = false;
                self.lose(&mut machine);
            }
            if troubles && self.rng.below(30) == 0 {
                troubles = false;
                self.begin_trouble(&mut machine);
            }
            if has_asides && self.rng.below(25) == 0 {
                let drive = self.any();
                self.tally.aside += u64::from(machine.turn_aside(drive));
            }
            self.meet(&mut machine);
            if machine.trouble.is_some() && self.rng.below(80) == 0 {
                machine.trouble = None;
            }
            let is_unsynced = machine.array.synced() < machine.array.layout().stripes();
            if is_unsynced && self.rng.below(20) == 0 {
                machine.resync();
            }
            if !machine.step(&mut self.rng) && writes == 0 {
                break;
            }
            machine.is_good()?;
            self.tally.seated += std::mem::take(&mut machine.seated);
            if self.happens(self.aim.one_of) {
                self.cut(&mut machine, depth)?;
            }
            if writes == 0 && machine.outstanding() == 0 {
                steps_left -= 1;
            }
        }
        self.tally.logged_again += machine.array.counters().journal_logged_again;
        self.tally.read_back += machine.array.counters().verify_reads;
        self.tally.flawed += machine.array.counters().verify_found;
        self.tally.failed += std::mem::take(&mut machine.failed);
        self.tally.met.add(&std::mem::take(&mut machine.met));
        machine.trouble = None;
        if let Some(mut second) = second {
            let rng = &mut self.rng;
            let mut ended = Ok(());
            machine.beside(&mut second, |second| ended = second.run_until_answered(rng));
            self.tally.met.add(&second.met);
            ended?;
        }
        machine.flush(); // What is read from now on outlasts a crash.
        machine.verify(&mut self.rng)?;
        if self.happens(self.odds().stop) {
            return self.stop(machine, depth);
        }
        let settled = if machine.is_beyond { Ok(()) } else { machine.settle(&mut self.rng) };
        self.tally.met.add(&machine.met);
        settled
    }

    /// The array is stopped cleanly, with images of that too, and started again.
    fn stop(&mut self, mut machine: Machine, depth: u32) -> Result<(), String> {
        self.tally.stops += 1;
        machine.slow_aside = false; // It would be found silent.
        machine.stop();
        for _ in 0..20_000 {
            if machine.ending().is_some() {
                break;
            }
            if !machine.step(&mut self.rng) {
                return Err("a stop never ends".into());
            }
            if self.happens(self.aim.one_of) {
                self.cut(&mut machine, depth)?;
            }
        }
        if machine.ending() != Some(Ending::Clean) {
            return Err(format!("a stop has ended as {:?}", machine.ending()));
        }
        self.cut(&mut machine, depth)
    }

    /// What a write is of: anything from a sector to all, and often whole stripes.
    fn extent(&mut self, machine: &Machine) -> Extent {
        let size = machine.array.size().get();
        let spec = machine.array.layout().spec();
        let stripe = spec.chunk().get() * spec.data() as u64;
        let focus = self.aim.focus.min(size);
        let kinds = if self.aim.seeks_damage { 3 } else { 4 };
        let (lba, sectors) = match self.rng.below(kinds) {
            _ if self.aim.is_whole && self.rng.below(8) > 0 => {
                (self.rng.below(size / stripe) * stripe, stripe)
            }
            _ if focus > 0 && self.rng.below(16) > 0 => (self.rng.below(focus), 1),
            0 => (self.rng.below(size / stripe) * stripe, stripe),
            1 => {
                let lba = self.rng.below(size);
                (lba, 1 + self.rng.below(size - lba))
            }
            _ => (self.rng.below(size), 1),
        };
        Extent::new(Lba::new(lba), Sectors::new(sectors))
    }

    /// Takes a disk away if the layout survives that. Half of them come back after a crash.
    fn lose(&mut self, machine: &mut Machine) {
        let Some(drive) = self.one_to_lose(machine) else { return };
        if self.rng.below(2) == 0 {
            machine.dead = machine.dead.with(drive);
        }
        machine.lose(drive);
        self.tally.lost += 1;
    }

    fn begin_trouble(&mut self, machine: &mut Machine) {
        let Some(drive) = self.one_to_lose(machine) else { return };
        let wrong = [Wrong::Hangs, Wrong::Refuses, Wrong::Full, Wrong::ReadOnly];
        // Without patience an array waits for ever for a disk that hangs.
        let wrong = match self.happens(self.faults().failed) || !machine.has_patience() {
            true => Wrong::Fails,
            false => wrong[self.rng.below(wrong.len() as u64) as usize],
        };
        machine.trouble(Trouble { drive, wrong });
        self.tally.troubled += 1;
    }

    /// A second server writes or goes on.
    fn turn_of(&mut self, second: &mut Machine, machine: &mut Machine) {
        let extent =
            (second.outstanding() == 0 && self.rng.below(16) == 0).then(|| self.extent(second));
        let rng = &mut self.rng;
        machine.beside(second, |second| match extent {
            Some(extent) => second.write(extent, Durability::Durable),
            None => drop(second.step(rng)),
        });
    }

    /// The faults that come between two steps.
    fn meet(&mut self, machine: &mut Machine) {
        let faults = self.faults();
        if faults == Faults::NONE {
            return;
        }
        if self.happens(faults.scrub) {
            self.tally.scrubs += u64::from(machine.start_or_stop_scrub());
        }
        if self.happens(faults.pause) {
            machine.turn_rebuilds();
        }
        if self.happens(faults.standstill) {
            machine.stand_still();
            self.tally.standstills += 1;
        }
        if self.happens(faults.disconnect) {
            self.tally.disconnected += u64::from(machine.disconnect(self.remote, &mut self.rng));
        }
        if self.happens(faults.land) {
            self.tally.landed += u64::from(machine.land(&mut self.rng));
        }
        if faults.older + faults.older_sectors + faults.going_back > 0 && self.rng.below(20) == 0 {
            self.remote.iter().for_each(|drive| machine.remember(drive));
        }
        if self.happens(faults.going_back) {
            self.tally.older += u64::from(machine.go_back(&mut self.rng).is_some());
        }
    }

    /// A disk that the layout can do without besides all others that are lost or count like that.
    fn one_to_lose(&mut self, machine: &Machine) -> Option<DriveIdx> {
        let is_valid = machine.array.synced() == machine.array.layout().stripes();
        let drive = self.any();
        // In the end the array makes itself do without a disk that is copied.
        let copied = machine.array.copy().map(|copy| copy.drive).filter(|&copied| copied != drive);
        let gone = machine.gone().or(machine.faults()).or(copied.into_iter().collect());
        (is_valid && self.can_lose(gone, drive)).then_some(drive)
    }

    pub(super) fn any(&mut self) -> DriveIdx {
        DriveIdx::from_usize(self.rng.below(self.spec.members() as u64) as usize)
    }

    /// Whether the layout survives the loss of this disk besides the others.
    fn can_lose(&self, gone: DriveSet, drive: DriveIdx) -> bool {
        let gone = gone.or(self.remote);
        !gone.contains(drive) && self.spec.survives(gone.with(drive))
    }

    fn can_lose_one(&self, gone: DriveSet) -> bool {
        let all = DriveSet::first(self.spec.members() as u8);
        all.iter().any(|drive| self.can_lose(gone, drive))
    }

    /// What is left of a machine if the power fails now.
    fn cut(&mut self, machine: &mut Machine, depth: u32) -> Result<(), String> {
        machine.meet(Fault::Cut);
        self.tally.met.add(&std::mem::take(&mut machine.met));
        self.crash(machine.image(), depth)
    }

    /// The power fails, and the array is started again, perhaps several times.
    fn crash(&mut self, image: Image, depth: u32) -> Result<(), String> {
        let was_beyond = image.is_beyond;
        match self.crash_once(image, depth) {
            Err(how) if was_beyond && is_refusal(&how) => {
                self.tally.refused += 1;
                Ok(())
            }
            ended => ended,
        }
    }

    fn crash_once(&mut self, mut image: Image, depth: u32) -> Result<(), String> {
        if self.happens(self.faults().death) {
            image.leave_late(self.remote, &mut self.rng);
        }
        image.crash(&mut self.rng);
        if self.happens(self.faults().older) {
            self.tally.older += u64::from(image.go_back(&mut self.rng).is_some());
        }
        if self.happens(self.faults().older_sectors) {
            self.tally.older += u64::from(image.go_back_in_part(&mut self.rng));
        }
        self.tally.images += 1;
        self.tally.doubtful += u64::from(image.doubts.is_some());
        let known = assemble(&image.disks, image.dead, image.lost)?;
        // What is being filled is of no use before enough disks say that it is full.
        let mut gone = known.absent.or(known.assembly.filling).or(image.unfilled);
        let in_part =
            known.assembly.metadata.members.iter().any(|member| match member.membership {
                Membership::Filling { to } => to > 0 && to < known.assembly.metadata.stripes(),
                _ => false,
            });
        self.tally.part_filled += u64::from(in_part);
        self.tally.back += u64::from(!image.lost.without(gone).is_empty());
        let stripes = Layout::new(self.spec, known.assembly.area.size()).stripes();
        let is_all_valid = |shown: &Assembled| shown.assembly.trusted == stripes;
        // The copies of a mirror have all that was written; what was never written was not copied for good.
        let is_mirror = self.spec.is_mirror();
        let is_in_doubt = |shown: &Assembled| {
            let is_in_part = is_mirror && !is_all_valid(shown) && !gone.is_empty();
            shown.assembly.doubt.is_some() || is_in_part
        };
        // On enough disks, so that whichever are missing that the array survives, one says it.
        // Without a journal an unclean shutdown leaves redundancy in doubt, and says so.
        let is_recorded = image.recorded == stripes && self.aim.has_journal;
        let doubted =
            || Err("all redundancy is valid for good, and the array doubts it".to_owned());
        if is_in_doubt(&known) {
            // A disk was lost when all redundancy was valid, before that was recorded.
            self.tally.doubts += 1;
            return if is_recorded { doubted() } else { Ok(()) };
        }
        // Disks with old data are shown as often as not; the array must leave them out.
        let mut hidden = if self.rng.below(2) == 0 { gone } else { image.dead };
        let shown = match hidden == image.dead {
            true => known,
            false => assemble(&image.disks, hidden, image.lost)?,
        };
        if is_in_doubt(&shown) {
            // That all redundancy is valid is recorded on a disk alone that is being filled and is not shown.
            self.tally.doubts += 1;
            return if is_recorded { doubted() } else { Ok(()) };
        }
        let is_valid = is_all_valid(&shown);
        while is_valid
            && self.can_lose_one(gone.or(image.faults()))
            && self.happens(self.odds().without)
        {
            let drive = self.any();
            if !self.can_lose(gone.or(image.faults()), drive) {
                continue;
            }
            let later = assemble(&image.disks, hidden.with(drive), image.lost)?;
            if later.assembly.doubt.is_some() || !is_all_valid(&later) {
                if is_recorded {
                    return doubted();
                }
                break; // That all redundancy is valid is recorded on this disk alone.
            }
            if self.happens(self.faults().twins) {
                self.show_twin(&image, hidden, drive)?;
            }
            (hidden, gone) = (hidden.with(drive), gone.with(drive));
            if self.rng.below(2) == 0 {
                image.dead = image.dead.with(drive);
            }
            self.tally.without += 1;
        }
        if self.happens(self.odds().record) {
            let drive = self.any();
            let is_within = self.can_lose(gone.or(image.faults()), drive);
            if is_within && self.spoil_record(&mut image, drive) {
                image.spoilt = image.spoilt.with(drive);
                self.tally.unreadable += 1;
            }
        }
        if is_valid && self.happens(self.odds().place) {
            let drive = self.any();
            if self.can_lose(gone.or(image.faults()), drive) && self.spoil_place(&mut image, drive)
            {
                self.tally.bad_places += 1;
            }
        }
        if self.happens(self.faults().beyond) {
            hidden = self.go_beyond(&mut image, hidden);
        }
        let is_beyond = image.is_beyond;
        let mut machine = match self.start(image, hidden) {
            Err(how) if is_beyond && is_refusal(&how) => {
                self.tally.refused += 1;
                return Ok(());
            }
            started => started?,
        };
        if depth == 0 && self.happens(self.faults().recovery) {
            self.cut_everywhere(&mut machine, depth)?;
        }
        if self.happens(self.odds().loss_again) {
            for _ in 0..self.rng.below(60) {
                machine.step(&mut self.rng);
            }
            self.lose(&mut machine);
        }
        if depth < DEPTH_MAX && self.happens(self.odds().again) {
            for _ in 0..self.rng.below(60) {
                machine.step(&mut self.rng);
            }
            machine.is_good()?;
            self.tally.again += 1;
            return self.cut(&mut machine, depth + 1);
        }
        machine.verify(&mut self.rng)?;
        self.tally.unstored += u64::from(machine.has_unstored());
        let is_excused = machine.doubts.is_some() || is_beyond;
        if is_valid && machine.given_up > 0 && !is_excused {
            return Err(format!("{} sectors were given up without need", machine.given_up));
        }
        self.tally.given_up += machine.given_up;
        self.tally.met.add(&std::mem::take(&mut machine.met));
        if !is_beyond && self.odds().back > 0 && self.rng.below(3) > 0 {
            self.catch_up(&mut machine)?;
        }
        let is_damaged = self.aim.seeks_damage && machine.damaged > 0;
        self.tally.damaged += std::mem::take(&mut machine.damaged);
        machine.note_recovered();
        if depth < DEPTH_MAX && (is_damaged || self.happens(self.aim.goes_on)) {
            let times = if is_damaged { 1 } else { 8 };
            let aim = Aim { one_of: times * self.aim.one_of, ..self.aim };
            let rng = Streams::new(self.rng.bits()).stream("crash/next");
            let mut next =
                Run { rng, aim, tally: self.tally, spec: self.spec, remote: self.remote };
            return next.life(machine, depth + 1);
        }
        let is_valid = machine.array.synced() == machine.array.layout().stripes();
        if is_valid && !is_beyond {
            while self.can_lose_one(machine.gone().or(machine.faults())) {
                self.lose(&mut machine);
            }
        }
        self.tally.met.add(&machine.met);
        machine.verify(&mut self.rng).map_err(|how| format!("with disks less, {how}"))
    }

    /// The power fails at every boundary of a recovery.
    fn cut_everywhere(&mut self, machine: &mut Machine, depth: u32) -> Result<(), String> {
        while machine.array.journal_status().is_some_and(|status| status.is_recovering) {
            self.cut(machine, depth + 1)?;
            self.tally.again += 1;
            if !machine.step(&mut self.rng) {
                return Err("a recovery never ends".into());
            }
            machine.is_good()?;
        }
        Ok(())
    }

    /// A copy of another member is in the place of one that is missing: the array must not be started with both.
    fn show_twin(
        &mut self,
        image: &Image,
        hidden: DriveSet,
        drive: DriveIdx,
    ) -> Result<(), String> {
        let shown = DriveSet::first(self.spec.members() as u8).without(hidden);
        let others: Vec<DriveIdx> = shown.iter().filter(|&other| other != drive).collect();
        let of = others[self.rng.below(others.len() as u64) as usize];
        self.tally.twins += 1;
        let is_refused = refuses_twin(&image.disks, shown, drive, of);
        let both = || format!("drive {of} and a copy of it in the place of {drive} were taken");
        is_refused.then_some(()).ok_or_else(both)
    }

    /// One fault more than the layout survives. Returns the disks that are not shown to the array.
    fn go_beyond(&mut self, image: &mut Image, hidden: DriveSet) -> DriveSet {
        let drive = self.any();
        let (is_beyond, hidden) = match self.rng.below(3) {
            0 => (self.spoil_record(image, drive), hidden),
            1 => (self.spoil_place(image, drive), hidden),
            _ => (true, hidden.with(drive)),
        };
        self.tally.beyond += u64::from(is_beyond);
        image.is_beyond |= is_beyond;
        hidden
    }

    /// Disks that are back are given what they lack.
    fn catch_up(&mut self, machine: &mut Machine) -> Result<(), String> {
        let before = machine.returned;
        for _ in 0..2_000 {
            machine.take_back(&mut self.rng);
            let is_filled = machine.array.lost() == machine.array.away();
            if !machine.step(&mut self.rng) || (is_filled && machine.array.rebuild().is_none()) {
                break;
            }
        }
        let is_whole = machine.array.lost() == machine.array.away();
        self.tally.returned += machine.returned - before;
        self.tally.caught_up += u64::from(is_whole && machine.returned > before);
        machine.verify(&mut self.rng).map_err(|how| format!("with disks that are back, {how}"))
    }

    /// A sector of a journal that holds something cannot be read any more.
    fn spoil_record(&mut self, image: &mut Image, drive: DriveIdx) -> bool {
        let disk = &mut image.disks[drive.as_usize()];
        let Some(sectors) = journal_of(disk) else { return false };
        let records = sectors.iter().flat_map(|extent| extent.iter());
        let records: Vec<Lba> = records.filter(|&lba| disk.holds_something(lba)).collect();
        if records.is_empty() {
            return false;
        }
        let lba = records[self.rng.below(records.len() as u64) as usize];
        self.spoil(image, drive, lba);
        true
    }

    /// A sector that holds data or redundancy cannot be read any more.
    fn spoil_place(&mut self, image: &mut Image, drive: DriveIdx) -> bool {
        let disk = &mut image.disks[drive.as_usize()];
        let places: Vec<Lba> =
            places_of(disk).iter().flatten().flat_map(|extent| extent.iter()).collect();
        if places.is_empty() {
            return false;
        }
        let lba = places[self.rng.below(places.len() as u64) as usize];
        self.spoil(image, drive, lba);
        true
    }

    /// A sector cannot be read, or can for some time.
    fn spoil(&mut self, image: &mut Image, drive: DriveIdx, lba: Lba) {
        let disk = &mut image.disks[drive.as_usize()];
        match self.happens(self.aim.faults.flaky) {
            true => disk.spoil_between(lba, 1 + self.rng.below(3), self.rng.below(2) == 0),
            false => disk.spoil(lba),
        }
    }
}
