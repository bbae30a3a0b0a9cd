//! The life of a filesystem and its images.

use std::collections::VecDeque;
use std::fmt;

use levelhead_fs::format::ladder::Ladder;
use levelhead_fs::{FileKind, Moment, Wishes};
use levelhead_stats::{Rng, Streams};
use levelhead_units::{Lba, Nanos, Sectors};

use super::check::{Trust, look};
use super::disk::{Disk, Fate};
use super::machine::{Image, Left, Machine, Start};
use super::model::{Found, Model};
use super::op::{self, Op};
use super::survey::Survey;
use super::{Aim, Fates, Files, Tally};

/// How deep cuts inside recoveries, and lives after cuts, go.
const DEPTH_MAX: u32 = 3;

/// Commands of a mount, and some more, before anything is asked for.
const MOUNT_STEPS: u64 = 8;

/// Commands of one life: far more than any takes.
const STEPS_MAX: u32 = 1_000_000;

/// What a filesystem is made like.
#[derive(Clone, Debug)]
pub(crate) struct Make {
    sectors: u64,
    copies: u8,
    rungs: Vec<u16>,
    interleave: u8,
    cache: u64,
    /// Of kind B's ladder; none if there are no such files.
    forced: Vec<u16>,
}

impl fmt::Display for Make {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sectors, copies, rungs, interleave, cache, forced } = self;
        write!(
            f,
            "{sectors} sectors, {copies} copies, rungs {rungs:?}, {interleave} woven, {cache} cached, of kind B {forced:?}"
        )
    }
}

impl Aim {
    fn operations_of<T: FromIterator<Op>>(&self, rng: &mut Rng, count: u64) -> T {
        let one = |_| match self.files {
            Files::OfKinds if rng.below(3) == 0 => op::draw_of_pages(rng),
            Files::OnFullDisk => op::draw_on_full_disk(rng),
            Files::Plain | Files::OfKinds => op::draw(rng),
        };
        (0..count).map(one).collect()
    }
}

impl Make {
    fn draw(rng: &mut Rng, files: Files) -> Self {
        let has_kinds = files == Files::OfKinds;
        // Pages come early only where what they share with others is in no memory.
        let caches = if has_kinds { [8, 200, 1_000] } else { [200, 1_000, 1 << 16] };
        let ladders: [&[u16]; 4] = match files {
            Files::Plain | Files::OfKinds => [&[0, 4, 8, 16], &[0, 15, 50], &[8, 48], &[0, 0, 20]],
            // The code 9,246, with as many redundant sectors for all lengths and with fewer for shorter ones; and two with one and two.
            Files::OnFullDisk => [
                &[0, 0, 0, 0, 0, 0, 0, 0, 246],
                &[0, 1, 4, 12, 29, 58, 104, 166, 246],
                &[250],
                &[0, 400],
            ],
        };
        Self {
            sectors: [4_096, 4_096, 5_000, 9_000][rng.below(4) as usize],
            copies: [1, 2, 3, 3, 3, 4][rng.below(6) as usize],
            rungs: ladders[rng.below(4) as usize].to_vec(),
            interleave: [1, 1, 2, 4][rng.below(4) as usize],
            cache: caches[rng.below(3) as usize],
            forced: match has_kinds {
                true => [&[20, 40][..], &[16], &[0, 33]][rng.below(3) as usize].to_vec(),
                false => Vec::new(),
            },
        }
    }

    /// The same with copies and a code that do without some sectors.
    fn of_unwritable(self) -> Self {
        Self { copies: 3, rungs: vec![0, 0, 0, 0, 60], ..self }
    }

    /// The same with a code of this many data sectors at most.
    pub(crate) fn of_sequences(self, codeword: u16) -> Self {
        Self { sectors: 4_096, rungs: vec![8, codeword], ..self }
    }

    fn disk(&self) -> Disk {
        let wishes = Wishes {
            size: Sectors::new(self.sectors),
            copies: self.copies,
            ladder: Ladder::new(&self.rungs).expect("there is such a code"),
            interleave: self.interleave,
            forced: Ladder::new(&self.forced),
            identity: [7; 16],
            label: String::new(),
            uid: 0,
            gid: 0,
            now: Moment::default(),
        };
        let new = levelhead_fs::make(&wishes).expect("it is large enough");
        let mut disk = Disk::new(Sectors::new(self.sectors));
        for written in new.first.iter().chain(&new.last) {
            disk.store(written.lba, written.bytes[..].into());
        }
        disk
    }
}

/// What a run does.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) seed: u64,
    pub(crate) aim: Aim,
    pub(crate) make: Make,
    pub(crate) operations: Vec<Op>,
    /// Requests that are under way at most.
    window: usize,
    /// The last operations, during which there are images.
    looked_at: usize,
    /// What was asked for in the life that was cut off last, for people.
    pub(crate) told: Vec<String>,
}

impl Script {
    pub(crate) fn draw(seed: u64, aim: &Aim) -> Self {
        let mut rng = Streams::new(seed).stream("files");
        let count = 1 + rng.below(aim.operations);
        let window = [1, 3, 8][rng.below(3) as usize];
        let make = Make::draw(&mut rng, aim.files);
        let make = if aim.odds.unwritable > 0 { make.of_unwritable() } else { make };
        let mut operations: Vec<Op> = aim.operations_of(&mut rng, count);
        let (looked_at, told) = match aim.files {
            Files::Plain | Files::OfKinds => (usize::MAX, Vec::new()),
            Files::OnFullDisk => {
                operations.splice(0..0, op::filling(&mut rng, make.sectors));
                (count as usize, Vec::new())
            }
        };
        Self { seed, aim: *aim, make, operations, window, looked_at, told }
    }

    /// One operation at a time, with images during the last of them.
    pub(crate) fn of(seed: u64, aim: &Aim, operations: Vec<Op>, looked_at: usize) -> Self {
        Self { operations, window: 1, looked_at, ..Self::draw(seed, aim) }
    }

    pub(crate) fn run(&mut self, tally: &mut Tally) -> Result<(), String> {
        let rng = Streams::new(self.seed).stream("images");
        let (aim, cache, looked_at) = (self.aim, self.make.cache, self.looked_at);
        let mut life = Life { rng, aim, tally, cache, looked_at, told: Vec::new() };
        let ended = life.all(self);
        self.told = life.told;
        ended
    }
}

/// See the module.
pub(crate) struct Life<'a> {
    rng: Rng,
    aim: Aim,
    tally: &'a mut Tally,
    cache: u64,
    /// The last operations, during which there are images.
    looked_at: usize,
    told: Vec<String>,
}

impl Life<'_> {
    fn all(&mut self, script: &Script) -> Result<(), String> {
        let mut disk = script.make.disk();
        let made = super::survey::newest(&disk).expect("it was just made");
        if self.aim.odds.unwritable > 0 {
            disk.wear_out(self.aim.odds.unwritable, &made.geometry, &mut self.rng);
        }
        let root = made.root;
        // The first mount of a new disk can be cut off as any other.
        let mut machine = self.start(disk, Model::new(root, 0), false)?;
        machine.told.clear();
        let operations = script.operations.iter().copied().collect();
        self.life(machine, operations, script.window, 0)
    }

    /// One occasion of `odds`.
    fn happens(&mut self, odds: u64) -> bool {
        odds > 0 && self.rng.below(odds) == 0
    }

    fn start(&mut self, disk: Disk, model: Model, is_damaged: bool) -> Result<Machine, String> {
        let (rules, retries, seed) = (self.aim.rules, self.aim.odds.retries, self.rng.bits());
        let files = self.aim.files;
        let kind = match files {
            Files::OfKinds => FileKind::ALL[self.rng.below(4) as usize],
            Files::Plain | Files::OnFullDisk => FileKind::Auto,
        };
        let start = Start { rules, seed, retries, is_damaged, cache: self.cache, kind, files };
        Machine::start(disk, model, start)
    }

    /// Some operations, with images at boundaries between commands; then a clean end.
    fn life(
        &mut self,
        mut machine: Machine,
        mut left: VecDeque<Op>,
        window: usize,
        depth: u32,
    ) -> Result<(), String> {
        let ended = self.live(&mut machine, &mut left, window, depth);
        let at_rest = ended.and_then(|()| {
            let found = machine.walk()?;
            let is_now = machine.model.is_now(&found);
            is_now.map(|()| found).map_err(|how| format!("at rest: {how}"))
        });
        if at_rest.is_err() && self.told.is_empty() {
            self.told = machine.told.clone();
        }
        let found = at_rest?;
        // Who unmounts may know files without names still: those stay until the next mount.
        let forgets = self.rng.below(2) == 0;
        if forgets {
            machine.forget_all();
        }
        let model = machine.model.clone();
        let disk = self.end(machine, depth)?;
        self.ended(&disk, &found, forgets)?;
        match depth < DEPTH_MAX && self.happens(self.aim.odds.stops) {
            true => self.lives_on(disk, model, &found, depth + 1),
            false => Ok(()),
        }
    }

    /// A disk that was left in order is mounted once more: from its first command on that can be cut off as any other life.
    fn lives_on(
        &mut self,
        disk: Disk,
        mut model: Model,
        found: &Found,
        depth: u32,
    ) -> Result<(), String> {
        model.end(found);
        self.tally.stops += 1;
        let mut machine = self.start(disk, model, false)?;
        for _ in 0..self.rng.below(MOUNT_STEPS) {
            if machine.step() && self.happens(self.aim.odds.image) {
                machine.is_good()?;
                self.examine(&machine.image(), depth)?;
            }
        }
        let again = machine.walk()?;
        if again != *found {
            return Err(format!("mounted once more: {}", difference(&again, found)));
        }
        machine.model.hold_found();
        let count = 1 + self.rng.below(self.aim.operations);
        let operations = self.aim.operations_of(&mut self.rng, count);
        let ended = self.life(machine, operations, 4, depth);
        ended.map_err(|how| format!("mounted once more, {how}"))
    }

    fn live(
        &mut self,
        machine: &mut Machine,
        left: &mut VecDeque<Op>,
        window: usize,
        depth: u32,
    ) -> Result<(), String> {
        let mut is_last = false;
        for _ in 0..STEPS_MAX {
            if machine.outstanding() < window
                && self.rng.below(3) == 0
                && let Some(op) = left.pop_front()
            {
                self.tally.operations += 1;
                machine.send(op);
            }
            let has_stepped = machine.step();
            machine.is_good()?;
            let is_looked_at = left.len() < self.looked_at;
            if has_stepped && is_looked_at && self.happens(self.aim.odds.image) {
                self.examine(&machine.image(), depth)?;
            }
            if has_stepped || !left.is_empty() {
                continue;
            }
            if machine.outstanding() > 0 {
                machine.wait_on()?;
            } else if is_last {
                return Ok(());
            } else {
                // Everything comes to its place.
                machine.wait(Nanos::from_secs(60));
                is_last = true;
            }
        }
        Err("it goes on and on".into())
    }

    /// Unmounts, with images of that.
    fn end(&mut self, mut machine: Machine, depth: u32) -> Result<Disk, String> {
        machine.begin_unmount();
        while machine.step() {
            machine.is_good()?;
            if self.happens(self.aim.odds.image) {
                self.examine(&machine.image(), depth)?;
            }
        }
        if !machine.fs.is_unmounted() {
            return Err("an unmount never ends".into());
        }
        self.tally.unmounts += 1;
        Ok(machine.into_disk())
    }

    /// A disk was left in order: it is that, and has what was found last, whatever of it is damaged that can be repaired.
    fn ended(&mut self, disk: &Disk, found: &Found, is_forgotten: bool) -> Result<(), String> {
        let survey = match is_forgotten {
            true => check(disk)?,
            false => check_open(disk, Trust::Whole)?,
        };
        if !self.happens(self.aim.odds.damage) {
            return Ok(());
        }
        let mut damaged = disk.clone();
        self.tally.damaged += survey.damage(&mut damaged, |_| true, &mut self.rng);
        self.finds(damaged, found).map_err(|how| format!("with damage, {how}"))
    }

    /// A disk is mounted, has what was found last, and is left in order.
    fn finds(&mut self, disk: Disk, found: &Found) -> Result<(), String> {
        let mut machine = self.start(disk, Model::new(0, 0), true)?;
        let again = machine.walk().map_err(|how| format!("{how}, {:?}", machine.is_good()))?;
        if again != *found {
            return Err(difference(&again, found));
        }
        machine.is_good()?;
        // What the walk has not met a scrub repairs.
        machine.scrub()?;
        check_as(&machine.unmount()?.disk, Trust::Scrubbed).map(drop)
    }

    /// The power fails, and what is left is mounted, perhaps several times.
    fn examine(&mut self, image: &Image, depth: u32) -> Result<(), String> {
        let one = [Fate::ALL[self.rng.below(Fate::ALL.len() as u64) as usize]];
        let fates = if self.aim.fates == Fates::All { &Fate::ALL[..] } else { &one };
        for &fate in fates {
            let mut image = image.clone();
            image.cut(fate, &mut self.rng);
            let examined = self.examine_cut(image, depth);
            examined.map_err(|how| format!("cut ({fate:?}), {how}"))?;
        }
        Ok(())
    }

    fn examine_cut(&mut self, image: Image, depth: u32) -> Result<(), String> {
        self.tally.images += 1;
        let Image { disk, model, .. } = image;
        look(&disk, Trust::Cut)?;
        let mut machine = self.start(disk.clone(), model, false)?;
        if depth < DEPTH_MAX && self.happens(self.aim.odds.again) {
            let most = self.rng.below(60);
            machine.steps(most);
            machine.is_good()?;
            self.tally.again += 1;
            return self.examine(&machine.image(), depth + 1);
        }
        let found = machine.walk()?;
        let at = machine.model.allows(&found)?;
        machine.model.begin_again(at, &found);
        machine.model.hold_found();
        if self.happens(self.aim.odds.damage_at_once) {
            // What was being written when the power failed the recovery has written.
            let Left { disk: left, written } = machine.unmount()?;
            let survey = check(&left)?;
            self.tally.damaged_at_once += 1;
            let mut damaged = disk.clone();
            let may = |lba| !written.contains(&lba);
            self.tally.damaged += survey.damage(&mut damaged, may, &mut self.rng);
            let journal = survey.journal();
            let at = Lba::new(journal.lba.get() + self.rng.below(journal.sectors.get()));
            // A record that was on its way was promised to none: whether what is left of it is enough may hang on any of its sectors.
            if !damaged.cut_off.contains(&at) {
                damaged.damage(at, &mut self.rng);
            }
            return self.finds(damaged, &found).map_err(|how| format!("with damage, {how}"));
        }
        let goes_on = depth < DEPTH_MAX && self.happens(self.aim.odds.goes_on);
        let count =
            if goes_on { 1 + self.rng.below(self.aim.operations) } else { self.rng.below(5) };
        let operations = self.aim.operations_of(&mut self.rng, count);
        self.tally.went_on += u64::from(goes_on);
        // Without images the next mount of a disk in order shows nothing new.
        let (image, stops) =
            if goes_on { (8 * self.aim.odds.image, self.aim.odds.stops) } else { (0, 0) };
        let odds = super::Odds { image, stops, ..self.aim.odds };
        let aim = Aim { odds, fates: Fates::One, ..self.aim };
        let rng = Streams::new(self.rng.bits()).stream("images/next");
        let (cache, looked_at) = (self.cache, usize::MAX);
        let tally = &mut *self.tally;
        let mut next = Life { rng, aim, tally, cache, looked_at, told: Vec::new() };
        let ended = next.life(machine, operations, 4, depth + 1);
        let told = std::mem::take(&mut next.told);
        if ended.is_err() && !told.is_empty() && self.told.is_empty() {
            self.told = told;
            self.told.insert(0, "after a cut:".to_owned());
        }
        ended
    }
}

/// A disk that was left in order is that.
fn check(disk: &Disk) -> Result<Survey, String> {
    check_as(disk, Trust::Whole)
}

fn check_as(disk: &Disk, trust: Trust) -> Result<Survey, String> {
    let survey = check_open(disk, trust)?;
    match survey.orphans.as_slice() {
        [] => Ok(survey),
        orphans => Err(format!("inodes without names are left: {orphans:?}")),
    }
}

/// The same, where inodes without names may be left: who unmounted it knew them still.
fn check_open(disk: &Disk, trust: Trust) -> Result<Survey, String> {
    let (survey, orphans) = (Survey::of(disk)?, look(disk, trust)?);
    match survey.orphans.len() as u64 == orphans {
        true => Ok(survey),
        false => Err(format!("a check says {orphans} orphans and not {:?}", survey.orphans)),
    }
}

fn difference(found: &Found, known: &Found) -> String {
    for (path, looks) in &known.looks {
        let path_text = String::from_utf8_lossy(path);
        match found.looks.get(path) {
            Some(other) if other != looks => {
                return format!("{path_text} is {other:?} and was {looks:?}");
            }
            None => return format!("{path_text} is not there any more"),
            Some(_) if found.contents.get(path) != known.contents.get(path) => {
                return format!("{path_text} has other bytes");
            }
            Some(_) => {}
        }
    }
    "something is there that was not".into()
}
