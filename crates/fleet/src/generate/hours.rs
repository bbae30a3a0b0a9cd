//! Hours tables after `[TAIL16]`: groups of drives of which some are slow for a while, together and again.
//!
//! A group hour has a largest slowdown, drawn from the study's T1. Group hours of 2 and more come as sessions of one or more intervals,
//! in which the drives stay the same and are about as slow from hour to hour; hours from 1.2 to 2 come alone; all that is below 1.2 is
//! spread around a median of exactly 1. How often a group has sessions is its habit, which depends on age and model. What has been
//! made beyond or short of the study's shares is kept in a ledger that tilts the chances of what comes: a fleet of 20 million hours is
//! a sample without much luck in it.
//!
//! * G1: the same shape gives the same tables and events, to the byte.
//! * G2: no more drives lie above 1.2 than leave the median among the others.
//! * G3: an event stands at the end of its hour: a drive has a row in the hour in which it is unplugged, and none in that of its replug.

use levelhead_stats::{Rng, Streams};

use super::fitted::{Age, DISK, Fitted, Habit, Imbalance, Members, Prone, SSD};
use super::group::{Group, Level, Place};
use super::law::{GOLDEN, normal, share_at, shuffle_first, value_at, value_between};
use super::ledger::{Ledger, Made};
use super::table::{Kind, Shape};
use crate::events::EventsTable;
use crate::{HoursTable, MODEL_UNKNOWN};

const MISSING_MEAN: f64 = 12.0;
const MISSING_SHARE: f64 = 0.1;
const LOAD_SPREAD: f64 = 0.42;
const HOURS_A_YEAR: f64 = 8766.0;
/// Spread of the logarithm of an interval's ranks, from hour to hour.
const RANK_SPREAD: f64 = 0.15;
/// Where groups stand in age, model and habit: multiples of these, which fill a cube evenly (Roberts' sequence).
const STEPS: [f64; 3] = [0.819_172_513_4, 0.671_043_606_7, 0.549_700_477_9];

/// Makes a table, an hour at a time, and the events of its drives.
pub struct HoursGenerator {
    fitted: &'static Fitted,
    shape: Shape,
    rng: Rng,
    groups: Vec<Group>,
    hour: usize,
    drive_next: i32,
    ledger: Ledger,
    events: EventsTable,
    scratch: Scratch,
}

/// The hour of a group at hand.
#[derive(Default)]
struct Scratch {
    /// Slots of drives that are in.
    present: Vec<usize>,
    /// Of these, the ones that are not slow.
    calm: Vec<usize>,
    slow: Vec<usize>,
    /// Slowdowns by slot.
    values: Vec<f64>,
    sorted: Vec<f64>,
}

impl HoursGenerator {
    /// Before the first hour. Panics for more than a million groups.
    pub fn new(shape: Shape) -> Self {
        assert!(
            shape.group_count <= 1_000_000,
            "a fleet has at most a million groups, not {}",
            shape.group_count
        );
        let fitted = match shape.kind {
            Kind::Disk => &DISK,
            Kind::Ssd => &SSD,
        };
        let mut rng = Streams::new(shape.seed).stream("hours");
        let begin: [f64; 3] = std::array::from_fn(|_| rng.unit());
        let width_mean = fitted.widths.iter().sum::<usize>() as f64 / fitted.widths.len() as f64;
        let mut drive_next = 0;
        let mut same_rank = rng.unit();
        let mut groups = Vec::with_capacity(shape.group_count);
        for raid in 0..shape.group_count {
            let [of_age, of_model, of_habit] =
                std::array::from_fn(|axis| (begin[axis] + raid as f64 * STEPS[axis]).fract());
            let age = &fitted.ages[index_of(fitted.ages.iter().map(|age| age.share), of_age)];
            let model = index_of(fitted.models.iter().map(|model| model.share), of_model);
            let width = fitted.widths[raid % fitted.widths.len()];
            let habit = habit_of(fitted, age, fitted.models[model].times, of_habit);
            let mut group = Group::new(drive_next, width, habit);
            let year_left = (HOURS_A_YEAR - shape.hour_count as f64).max(1.0);
            group.age_hours =
                (f64::from(age.year) * HOURS_A_YEAR + year_left * rng.unit()).ceil() as i32;
            group.model = model;
            group.mild = fitted.models[model].mild;
            group.weight = width as f64 / width_mean;
            group.latency_us = latency_us(shape.kind) * (0.5 + rng.unit());
            group.ios = 20_000.0 * (0.3 + rng.unit());
            // Of groups whose drives are always the same the shares are filled evenly, too.
            if matches!(habit.members, Members::Same) {
                same_rank = (same_rank + GOLDEN).fract();
            }
            group.begin(fitted.together.slow_at(same_rank), &mut rng);
            groups.push(group);
            drive_next += width as i32;
        }
        let ledger = Ledger::new(fitted, [rng.unit(), rng.unit()]);
        Self {
            fitted,
            shape,
            rng,
            groups,
            hour: 0,
            drive_next,
            ledger,
            events: EventsTable::default(),
            scratch: Scratch::default(),
        }
    }

    /// The model of a group's drives, if customers tell. Panics for a group that is none.
    pub fn model_of(&self, raid: i32) -> Option<&'static str> {
        self.fitted.models[self.groups[raid as usize].model].name
    }

    /// What happened to drives in the hours made so far and not yet taken.
    pub fn take_events(&mut self) -> EventsTable {
        std::mem::take(&mut self.events)
    }

    /// Adds the next hour's rows to `table`; false if there are no more hours.
    pub fn next_hour(&mut self, table: &mut HoursTable) -> bool {
        if self.hour == self.shape.hour_count {
            return false;
        }
        if table.models.is_empty() {
            let names = self.fitted.models.iter().map(|model| model.name.unwrap_or_default());
            table.models = names.map(str::to_owned).collect();
        }
        let mut groups = std::mem::take(&mut self.groups);
        for (raid, group) in groups.iter_mut().enumerate() {
            let goes_missing = MISSING_SHARE / (1.0 - MISSING_SHARE) / MISSING_MEAN;
            if group.missing > 0 {
                group.missing -= 1;
                group.slots.iter_mut().for_each(|slot| slot.level = Level::Stable);
            } else if self.rng.unit() < goes_missing {
                group.missing = (-MISSING_MEAN * (1.0 - self.rng.unit()).ln()) as u32;
                group.slots.iter_mut().for_each(|slot| slot.level = Level::Stable);
            } else {
                self.make(raid as i32, group, table);
            }
            group.move_drives(
                self.hour as i32,
                &mut self.ledger,
                &mut self.drive_next,
                &mut self.events,
                &mut self.rng,
            );
        }
        self.groups = groups;
        self.hour += 1;
        true
    }

    fn make(&mut self, raid: i32, group: &mut Group, table: &mut HoursTable) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let is_slow = group.advance(&mut self.ledger, &mut self.rng);
        scratch.begin(group, is_slow);
        let made = if scratch.slow.is_empty() {
            self.raise_alone(group, &mut scratch)
        } else {
            self.raise_session(group, &mut scratch)
        };
        self.ledger.enter(&made);
        self.spread(&mut scratch, made.slow + made.upper + made.lower);
        self.watch(group, &scratch);
        self.write(raid, group, &scratch, table);
        self.scratch = scratch;
    }

    /// An hour of a session: its members at the interval's rank, others below.
    fn raise_session(&mut self, group: &Group, scratch: &mut Scratch) -> Made {
        let rng = &mut self.rng;
        let own = group.rank.unwrap_or(1.0);
        let rank = turned(own * (RANK_SPREAD * normal(rng)).exp());
        let first = value_at(self.fitted.first, rank * share_at(self.fitted.first, 2.0)).max(2.0);
        for (place, &slot) in scratch.slow.iter().enumerate() {
            let along = turned(rank * (RANK_SPREAD * normal(rng)).exp());
            let other = value_at(self.fitted.others, along).max(2.0);
            scratch.values[slot] = if place == 0 { first } else { other.min(first) };
        }
        let slow = scratch.slow.len();
        let made =
            Made { width: scratch.present.len(), slow, upper: 0, lower: 0, rank: Some(rank) };
        self.raise_others(scratch, made, first)
    }

    /// An hour without a slow drive: the largest from 1.2 to 2, or below.
    fn raise_alone(&mut self, group: &Group, scratch: &mut Scratch) -> Made {
        let width = scratch.present.len();
        let none = Made { width, slow: 0, upper: 0, lower: 0, rank: None };
        let first = self.fitted.first;
        let [from_1_2, from_1_5, from_2] = [1.2, 1.5, 2.0].map(|at| share_at(first, at));
        let upper = (from_1_5 - from_2) * group.weight * group.mild * self.ledger.haste_upper();
        let lower = (from_1_2 - from_1_5) * group.weight * self.ledger.haste_lower();
        let u = (1.0 - from_2) * self.rng.unit();
        let share = if u < upper {
            from_2 + (from_1_5 - from_2) * (u / upper)
        } else if u < upper + lower {
            from_1_5 + (from_1_2 - from_1_5) * ((u - upper) / lower)
        } else {
            return none;
        };
        // Beside its median a group of one or two others has room for no more.
        if width < 3 {
            return none;
        }
        let is_upper = u < upper;
        let edge = if is_upper { 1.999 } else { 1.499 };
        let value = value_at(first, share).min(edge);
        shuffle_first(&mut self.rng, &mut scratch.calm, (width - 1) / 2);
        if let Some(prone) = group.draw_prone(&mut self.rng)
            && let Some(place) = scratch.calm.iter().position(|&slot| slot == prone)
        {
            scratch.calm.swap(0, place);
        }
        scratch.values[scratch.calm[0]] = value;
        let (upper, lower) = if is_upper { (1, 0) } else { (0, 1) };
        self.raise_others(scratch, Made { upper, lower, ..none }, value)
    }

    /// Raises further drives, as many as leave the median alone, to values from 1.2 up to `first`.
    fn raise_others(&mut self, scratch: &mut Scratch, made: Made, first: f64) -> Made {
        let mut made = made;
        let room = (made.width - 1) / 2;
        if made.slow > 0 {
            shuffle_first(&mut self.rng, &mut scratch.calm, room);
        }
        let shares = &self.fitted.drives;
        let [from_1_2, from_1_5, from_2] =
            [(1.2, shares.from_1_2), (1.5, shares.from_1_5), (2.0, shares.from_2)]
                .map(|(at, share)| super::law::Point { at, share });
        let mut place = made.upper + made.lower;
        while first >= 1.5 && place + made.slow < room && self.ledger.draw_upper(&mut self.rng) {
            let value = value_between(&from_1_5, &from_2, &mut self.rng).min(1.999);
            scratch.values[scratch.calm[place]] = value.min(first);
            (place, made.upper) = (place + 1, made.upper + 1);
        }
        while place + made.slow < room && self.ledger.draw_lower(&mut self.rng) {
            let value = value_between(&from_1_2, &from_1_5, &mut self.rng).min(1.499);
            scratch.values[scratch.calm[place]] = value.min(first);
            (place, made.lower) = (place + 1, made.lower + 1);
        }
        made
    }

    /// Fills in those that are not raised, below 1.2, so that the median of all is 1.
    fn spread(&mut self, scratch: &mut Scratch, raised: usize) {
        let Scratch { present, calm, slow, values, sorted } = scratch;
        let body = &calm[raised - slow.len()..];
        sorted.clear();
        for &slot in body {
            let value = (self.fitted.body_spread * normal(&mut self.rng)).exp();
            values[slot] = value;
            sorted.push(value);
        }
        sorted.sort_unstable_by(f64::total_cmp);
        let width = present.len();
        let median = (sorted[(width - 1) / 2] + sorted[width / 2]) / 2.0;
        for &slot in body {
            values[slot] = (values[slot] / median).min(1.199);
        }
    }

    /// Slow drives draw attention: some will be unplugged within a day.
    fn watch(&mut self, group: &mut Group, scratch: &Scratch) {
        for (slot, &value) in group.slots.iter_mut().zip(&scratch.values) {
            let before = slot.level;
            slot.level = if slot.place.is_in() { Level::of(value) } else { Level::Stable };
            if slot.level > before
                && slot.place == Place::In
                && self.rng.unit() < self.fitted.unplugging.chance(value)
            {
                slot.place = Place::Leaving(2 + self.rng.below(23) as u32);
            }
        }
    }

    fn write(&mut self, raid: i32, group: &Group, scratch: &Scratch, table: &mut HoursTable) {
        let is_tail = !scratch.slow.is_empty();
        let load = LOAD_SPREAD * normal(&mut self.rng)
            - if is_tail { self.fitted.degradation } else { 0.0 };
        let load = group.ios * load.exp();
        let is_named = self.fitted.models[group.model].name.is_some();
        let model = if is_named { group.model as u16 } else { MODEL_UNKNOWN };
        for &number in &group.by_drive {
            let (slot, slowdown) = (&group.slots[number], scratch.values[number]);
            if !slot.place.is_in() {
                continue;
            }
            let bits = self.rng.bits();
            let [a, b, c, d] =
                [0, 16, 32, 48].map(|shift| ((bits >> shift) & 0xffff) as f64 / 65536.0);
            let chance = |of: &Imbalance| if slowdown >= 2.0 { of.slow } else { of.stable };
            let ios = load * if a < chance(&self.fitted.rate) { 2.4 + b } else { 0.9 + 0.2 * b };
            let bytes =
                65536.0 * if c < chance(&self.fitted.size) { 2.4 + d } else { 0.9 + 0.2 * d };
            table.hour.push(self.hour as i32);
            table.raid.push(raid);
            table.drive.push(slot.drive);
            table.latency_us.push((group.latency_us * slowdown) as f32);
            table.ios.push((ios as i32).max(1));
            table.bytes.push(bytes as f32);
            table.age_hours.push(group.age_hours + self.hour as i32);
            table.model.push(model);
        }
    }
}

impl Scratch {
    fn begin(&mut self, group: &Group, is_slow: bool) {
        self.values.clear();
        self.values.resize(group.slots.len(), 0.0);
        self.present.clear();
        self.present.extend((0..group.slots.len()).filter(|&slot| group.slots[slot].place.is_in()));
        self.slow.clear();
        if is_slow {
            let room = self.present.len().saturating_sub(1) / 2;
            let members = group.members.iter().copied();
            self.slow.extend(members.filter(|&slot| group.slots[slot].place.is_in()).take(room));
        }
        self.calm.clear();
        self.calm.extend(self.present.iter().copied().filter(|slot| !self.slow.contains(slot)));
    }
}

fn latency_us(kind: Kind) -> f64 {
    match kind {
        Kind::Disk => 8000.0,
        Kind::Ssd => 400.0,
    }
}

/// Which of these shares, one after the other, `at` falls in; the last for all that is left.
fn index_of(shares: impl ExactSizeIterator<Item = f64>, at: f64) -> usize {
    let last = shares.len() - 1;
    let mut until = 0.0;
    let mut shares = shares;
    let found = shares.position(|share| {
        until += share;
        at < until
    });
    found.unwrap_or(last).min(last)
}

fn habit_of(fitted: &'static Fitted, age: &Age, times: f64, at: f64) -> &'static Habit {
    match age.prone {
        Prone::Worn => &fitted.habits[0],
        Prone::Times(of_age) => {
            let shares = fitted.habits.iter().map(|habit| habit.share * of_age * times);
            let last = fitted.habits.len() - 1;
            let index = index_of(shares.take(last), at);
            let within: f64 =
                fitted.habits[..last].iter().map(|habit| habit.share * of_age * times).sum();
            &fitted.habits[if at < within { index } else { last }]
        }
    }
}

/// A rank above 1 as far below it.
fn turned(rank: f64) -> f64 {
    if rank > 1.0 { 1.0 / rank } else { rank }
}
