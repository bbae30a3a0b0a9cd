//! The arithmetic of slowdowns, after `[TAIL16]`, section 2: a drive against the median of its group in the same hour.

/// A run of rows of the hours table, as slices of equal lengths, in the order of (`hour`, `raid`): the drives of a group in an hour
/// follow one another.
#[derive(Clone, Copy, Debug)]
pub struct Hours<'a> {
    /// Hours since any moment.
    pub hour: &'a [i32],
    /// The group.
    pub raid: &'a [i32],
    /// The drive, by a number that no other drive of the fleet has.
    pub drive: &'a [i32],
    /// Mean latency, in microseconds.
    pub latency_us: &'a [f32],
    /// How many requests.
    pub ios: &'a [i32],
    /// Their mean size, in bytes.
    pub bytes: &'a [f32],
    /// The drive's age in hours, where it is known: empty if it is of none.
    pub age_hours: &'a [i32],
    /// The drive's model, as a place in `models`: empty if it is known of none.
    pub model: &'a [u16],
    /// The names of models.
    pub models: &'a [String],
}

/// The median: of an even number of values the mean of the two in the middle. The values are left in another order.
///
/// Panics for no values, and for one that is not a number.
pub fn median_of(values: &mut [f64]) -> f64 {
    assert!(!values.is_empty(), "no values have no median");
    let (middle, is_odd) = (values.len() / 2, values.len() % 2 == 1);
    let by_value = |a: &f64, b: &f64| a.partial_cmp(b).expect("a latency is a number");
    let (below, upper, _) = values.select_nth_unstable_by(middle, by_value);
    let upper = *upper;
    if is_odd {
        return upper;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (lower + upper) / 2.0
}
