//! The last windows of a cohort: what a detector is told again after a restart.

use std::collections::VecDeque;

use levelhead_stats::median_of;

use crate::detect::{Options, Reading, WINDOW, WINDOWS_PER_HOUR};

/// Windows that are kept: as many as the longest span of the rule has.
pub const WINDOWS_MAX: usize = 360;

const _: () = {
    let spans = Options::FROZEN.spans_hours;
    assert!(WINDOWS_MAX >= spans[spans.len() - 1] * WINDOWS_PER_HOUR);
};

/// One window: what each member did in it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Window {
    /// Its beginning, in unix seconds.
    pub(super) at: i64,
    /// In the order of the members. Latencies and loads are kept as `f32`.
    pub(super) readings: Vec<Option<(f32, f32)>>,
}

impl Window {
    pub(super) fn new(at: i64, readings: &[Option<Reading>]) -> Self {
        let kept = |it: &Reading| (it.latency_us as f32, it.load as f32);
        Self { at, readings: readings.iter().map(|it| it.as_ref().map(kept)).collect() }
    }

    /// As a detector takes it.
    pub(super) fn readings(&self) -> Vec<Option<Reading>> {
        let reading =
            |(latency, load): (f32, f32)| Reading { latency_us: latency.into(), load: load.into() };
        self.readings.iter().map(|it| it.map(reading)).collect()
    }
}

/// The last [`WINDOWS_MAX`] windows in which anything was read, in the order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct History(VecDeque<Window>);

impl History {
    pub(super) fn push(&mut self, window: Window) {
        if self.0.len() == WINDOWS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(window);
    }

    /// Windows that began after `at` are moved with all before them, so that the last one ends there.
    pub(super) fn end_before(&mut self, at: i64) {
        let Some(last) = self.0.back().map(|it| it.at).filter(|&last| last > at) else { return };
        for window in &mut self.0 {
            window.at = window.at.saturating_sub(last).saturating_add(at - WINDOW);
        }
    }

    pub(super) fn windows(&self) -> impl DoubleEndedIterator<Item = &Window> {
        self.0.iter()
    }

    /// The same with other members: `from[i]` is where the new member `i` was, if it was there.
    pub(super) fn rearranged(&self, from: &[Option<usize>]) -> Self {
        let window = |it: &Window| {
            let of = |at: &Option<usize>| at.and_then(|at| it.readings[at]);
            Window { at: it.at, readings: from.iter().map(of).collect() }
        };
        let windows = self.0.iter().map(window);
        Self(windows.filter(|it| it.readings.iter().any(Option::is_some)).collect())
    }

    /// The latencies of one member, the latest first.
    pub(super) fn latencies(&self, member: usize) -> impl Iterator<Item = f64> {
        self.0
            .iter()
            .rev()
            .filter_map(move |it| it.readings[member])
            .map(|(latency, _)| latency.into())
    }

    /// The beginning of the last window in which a member had a reading.
    pub(super) fn last_of(&self, member: usize) -> Option<i64> {
        self.0.iter().rev().find(|it| it.readings[member].is_some()).map(|it| it.at)
    }

    /// The load of one member over the median of the others', over the last `count` windows.
    pub(super) fn load_ratio(&self, member: usize, count: usize) -> Option<f64> {
        let (mut own, mut theirs) = (0.0, 0.0);
        for window in self.0.iter().rev().take(count) {
            let Some((_, load)) = window.readings[member] else { continue };
            let others = window.readings.iter().enumerate().filter(|&(at, _)| at != member);
            let mut others: Vec<f64> =
                others.filter_map(|(_, it)| it.map(|(_, load)| load.into())).collect();
            let Some(median) = median(&mut others) else { continue };
            own += f64::from(load);
            theirs += median;
        }
        (theirs > 0.0).then(|| own / theirs)
    }
}

/// The median; `None` of nothing.
pub(super) fn median(values: &mut [f64]) -> Option<f64> {
    (!values.is_empty()).then(|| median_of(values))
}
