//! `/sys/block/X/stat`: what the kernel counts of a block device.

/// What has ended so far, and what is inside now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads and writes that ended.
    pub ended: u64,
    /// Sectors of 512 bytes that they moved.
    pub sectors: u64,
    /// Milliseconds that they took, all together.
    pub millis: u64,
    /// Commands inside, whatever they are.
    pub inside: u64,
    /// Discards and flushes that ended, where the kernel counts them.
    pub others_ended: u64,
}

/// What happened between two looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Reads and writes that ended.
    pub ended: u64,
    /// Sectors of 512 bytes that they moved.
    pub sectors: u64,
    /// Milliseconds that they took, all together.
    pub millis: u64,
}

/// The counters in a text of 11, 15 or 17 numbers, or more in kernels to come; `None` of any other text.
pub fn parse_stat(text: &str) -> Option<Counters> {
    let mut fields = [0_u64; 17];
    let mut count = 0;
    for word in text.split_ascii_whitespace() {
        let number = word.parse().ok()?;
        if let Some(field) = fields.get_mut(count) {
            *field = number;
        }
        count += 1;
    }
    if count < 11 {
        return None;
    }
    Some(Counters {
        ended: fields[0].wrapping_add(fields[4]),
        sectors: fields[2].wrapping_add(fields[6]),
        millis: fields[3].wrapping_add(fields[7]),
        inside: fields[8],
        others_ended: fields[11].wrapping_add(fields[15]),
    })
}

impl Counters {
    /// What happened since `before`; `None` where a counter went back, which a wrap, a reset and another drive of the
    /// same name all look like.
    pub fn since(&self, before: &Self) -> Option<Progress> {
        Some(Progress {
            ended: self.ended.checked_sub(before.ended)?,
            sectors: self.sectors.checked_sub(before.sectors)?,
            millis: self.millis.checked_sub(before.millis)?,
        })
    }

    /// Whether something has been inside and nothing has ended since `before`.
    pub fn is_stuck_since(&self, before: &Self) -> bool {
        let is_same = self.ended == before.ended && self.others_ended == before.others_ended;
        is_same && self.inside > 0 && before.inside > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_of_every_length_is_read() {
        let short = parse_stat("  1 0 8 20 2 0 16 40 3 50 60\n").expect("eleven numbers");
        assert_eq!((short.ended, short.sectors, short.millis, short.inside), (3, 24, 60, 3));
        assert_eq!(
            parse_stat("1 0 8 20 2 0 16 40 3 50 60 5 6 7 8").map(|it| it.others_ended),
            Some(5)
        );
        assert_eq!(
            parse_stat("1 0 8 20 2 0 16 40 3 50 60 5 6 7 8 9 9").map(|it| it.others_ended),
            Some(14)
        );
        for bad in ["", "1 2 3", "1 0 8 20 2 0 16 40 3 50 x", "-1 0 8 20 2 0 16 40 3 50 60"] {
            assert_eq!(parse_stat(bad), None);
        }
    }

    #[test]
    fn counter_that_went_back_gives_no_progress() {
        let before = Counters { ended: u64::MAX, ..Counters::default() };
        assert_eq!(Counters::default().since(&before), None);
    }
}
