//! What is kept of a group, as bytes: a host's verdicts survive its restart.
//!
//! ```text
//!   "LVLDET 1"  constants (f64 each)  members (u32)
//!   each member:  windows u64   slow u8   decided u8, at i64, windows u64   values u32, f64 each   blocks u32, f64 each
//! ```
//!
//! Little-endian. State under other constants is not taken over: it would be judged by a rule that it was not kept for.

use std::collections::VecDeque;

use super::{BLOCKS_MAX, Decided, Level, Options, SPANS, spread_of_blocks};

const MAGIC: &[u8; 8] = b"LVLDET 1";

impl Level {
    /// The state as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(constants(&self.options));
        bytes.extend((self.members.len() as u32).to_le_bytes());
        for member in &self.members {
            bytes.extend(member.windows.to_le_bytes());
            bytes.push(u8::from(member.is_slow));
            let decided = member.decided.unwrap_or(Decided { at: 0, windows: 0 });
            bytes.push(u8::from(member.decided.is_some()));
            bytes.extend(decided.at.to_le_bytes());
            bytes.extend(decided.windows.to_le_bytes());
            put_values(&mut bytes, member.history.values());
            put_values(&mut bytes, member.blocks.iter().copied());
        }
        bytes
    }

    /// The state that [`Level::to_bytes`] wrote for a group of this number of members under the same constants; none for any other bytes.
    pub fn from_bytes(bytes: &[u8], member_count: usize, options: Options) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?.strip_prefix(constants(&options).as_slice())?;
        let mut level = Self::new(member_count, options);
        if u32::from_le_bytes(take(&mut rest)?) as usize != member_count {
            return None;
        }
        let longest = options.lengths()[SPANS - 1];
        for member in &mut level.members {
            member.windows = u64::from_le_bytes(take(&mut rest)?);
            member.is_slow = flag(&mut rest)?;
            let is_decided = flag(&mut rest)?;
            let at = i64::from_le_bytes(take(&mut rest)?);
            let windows = u64::from_le_bytes(take(&mut rest)?);
            member.decided = is_decided.then_some(Decided { at, windows });
            let values = take_values(&mut rest, longest)?;
            if member.windows < values.len() as u64 || (member.is_slow && !is_decided) {
                return None;
            }
            for value in values {
                member.history.push(value);
            }
            member.blocks = VecDeque::from(take_values(&mut rest, BLOCKS_MAX)?);
            member.block_spread = spread_of_blocks(&member.blocks);
        }
        level.noise = level.noise();
        rest.is_empty().then_some(level)
    }
}

fn constants(options: &Options) -> Vec<u8> {
    let Options {
        spans_hours,
        ratio_min,
        threshold,
        inflation,
        is_scaled,
        own_share,
        excursion,
        lasting,
        peers_min,
    } = *options;
    let spans = spans_hours.map(|hours| hours as f64);
    let others = [
        ratio_min,
        threshold,
        inflation,
        f64::from(u8::from(is_scaled)),
        own_share,
        excursion,
        lasting,
        peers_min as f64,
    ];
    spans.into_iter().chain(others).flat_map(f64::to_le_bytes).collect()
}

fn put_values(bytes: &mut Vec<u8>, values: impl ExactSizeIterator<Item = f64>) {
    bytes.extend((values.len() as u32).to_le_bytes());
    values.for_each(|value| bytes.extend(value.to_le_bytes()));
}

fn take<const LENGTH: usize>(rest: &mut &[u8]) -> Option<[u8; LENGTH]> {
    let (first, others) = rest.split_first_chunk()?;
    *rest = others;
    Some(*first)
}

fn flag(rest: &mut &[u8]) -> Option<bool> {
    match take(rest)? {
        [0] => Some(false),
        [1] => Some(true),
        _ => None,
    }
}

/// At most this number of values, all of them finite.
fn take_values(rest: &mut &[u8], count_max: usize) -> Option<Vec<f64>> {
    let count = u32::from_le_bytes(take(rest)?) as usize;
    if count > count_max {
        return None;
    }
    let value = |_| take(rest).map(f64::from_le_bytes).filter(|value: &f64| value.is_finite());
    (0..count).map(value).collect()
}
