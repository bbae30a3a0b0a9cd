//! What is kept of a drive and of a group: the edges at which another part may go on, and totals.

/// Longest interval or gap with a count of its own, in hours; longer ones count with it.
pub(super) const HOURS_MAX: usize = 4096;

/// Counts of lengths in hours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lengths(pub(super) Vec<u64>);

impl Lengths {
    pub(super) fn new() -> Self {
        Self(vec![0; HOURS_MAX + 1])
    }

    pub(super) fn count(&mut self, hours: i64) {
        let count = &mut self.0[(hours.max(0) as usize).min(HOURS_MAX)];
        *count = count.saturating_add(1);
    }
}

/// What drives did in time, of all together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Runs {
    /// Slow runs whose beginning and end have been seen, by length.
    pub(super) intervals: Lengths,
    /// Hours since the drive's slow hour before.
    pub(super) gaps: Lengths,
    /// Hours of which the next was there too, by whether the first was slow, then by whether the second was.
    pub(super) steps: [[u64; 2]; 2],
}

/// A drive of a group, over the hours seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Drive {
    pub(super) id: i32,
    pub(super) first_hour: i32,
    pub(super) last_hour: i32,
    /// Hours of the slow run that begins with the first hour.
    pub(super) head: u32,
    /// Hours of the slow run that ends with the last hour.
    pub(super) tail: u32,
    pub(super) hours: u32,
    pub(super) slow: u32,
    /// Meaningful if `slow` is above 0, as the next.
    pub(super) first_slow: i32,
    pub(super) last_slow: i32,
    pub(super) slowdown_max: f32,
}

impl Drive {
    pub(super) fn of_hour(id: i32, hour: i32, slowdown: f64, is_slow: bool) -> Self {
        let slow = u32::from(is_slow);
        let slow_hour = if is_slow { hour } else { 0 };
        Self {
            id,
            first_hour: hour,
            last_hour: hour,
            head: slow,
            tail: slow,
            hours: 1,
            slow,
            first_slow: slow_hour,
            last_slow: slow_hour,
            slowdown_max: slowdown as f32,
        }
    }

    /// Whether it was slow in all hours from the first to the last.
    pub(super) fn is_one_run(&self) -> bool {
        self.head > 0
            && i64::from(self.first_hour) + i64::from(self.head) - 1 == i64::from(self.last_hour)
    }

    /// Goes on with what follows: the same drive, all of it later.
    pub(super) fn follow(&mut self, next: &Drive, runs: &mut Runs) {
        assert!(next.first_hour > self.last_hour, "a drive's hours rise");
        let is_neighbour = i64::from(self.last_hour) + 1 == i64::from(next.first_hour);
        if is_neighbour {
            let steps = &mut runs.steps[usize::from(self.tail > 0)][usize::from(next.head > 0)];
            *steps = steps.saturating_add(1);
        }
        let (mine_whole, theirs_whole) = (self.is_one_run(), next.is_one_run());
        if is_neighbour && self.tail > 0 && next.head > 0 {
            let joined = self.tail.saturating_add(next.head);
            if !mine_whole && !theirs_whole {
                runs.intervals.count(i64::from(joined));
            }
            self.head = if mine_whole { joined } else { self.head };
            self.tail = if theirs_whole { joined } else { next.tail };
        } else {
            if self.tail > 0 && !mine_whole {
                runs.intervals.count(i64::from(self.tail));
            }
            if next.head > 0 && !theirs_whole {
                runs.intervals.count(i64::from(next.head));
            }
            self.tail = next.tail;
        }
        if next.slow > 0 {
            if self.slow > 0 {
                runs.gaps.count(i64::from(next.first_slow) - i64::from(self.last_slow));
            } else {
                self.first_slow = next.first_slow;
            }
            self.last_slow = next.last_slow;
        }
        self.last_hour = next.last_hour;
        self.hours = self.hours.saturating_add(next.hours);
        self.slow = self.slow.saturating_add(next.slow);
        self.slowdown_max = self.slowdown_max.max(next.slowdown_max);
    }
}

/// A group in one hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupHour {
    pub(super) hour: i32,
    /// Requests of all its drives.
    pub(super) ios: u64,
    pub(super) is_tail: bool,
}

/// A group over the hours seen.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    pub(super) id: i32,
    pub(super) first: GroupHour,
    pub(super) last: GroupHour,
    /// In the order of their numbers.
    pub(super) drives: Vec<Drive>,
}
