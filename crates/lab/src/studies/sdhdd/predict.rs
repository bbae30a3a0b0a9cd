//! What a drive takes a sector for, from the ones in its last bytes: exact tails, the same counted, and what a wrong guess costs.
//!
//! Ones are counted among the hard decisions of a segment of 256 bytes. Of zeroes each is a one with the probability `z` that a zero's level is
//! negative, of random bytes with `r`, the mean of that and of a one's. So counts are binomial:
//!
//! ```text
//!   P(wrong | no zeroes)  = P(Bin(2048, r) <= 204)
//!   P(wrong | 256 zeroes) = 1 - P(Bin(2048, z) <= 204) P(Bin(2048, r) > 204)
//!   P(wrong | 512 zeroes) = 1 - P(Bin(2048, z) <= 204)^2
//! ```
//!
//! The planner has the tails; the counts are those of `ldpc`, which knows no tail.

use levelhead_ldpc::{
    CODE_BITS, Channel, ChannelKind, Codeword, DATA_COLUMNS, KINDS, Kernel, ReadBack, SECTOR_BYTES,
    SectorCode, Shares, ZeroForcing,
};
use levelhead_planner::binomial::{above, ln_above, quantile};
use levelhead_stats::{Rng, Streams};

use crate::studies::{Ask, Cell, Head, Measured, Row, Study, StudyPlan, Takes, Unit};

pub(super) const PREDICT: Study = Study {
    name: "sdhdd.predict",
    title: "Kinds of sectors guessed from the ones at their ends",
    source: "[SDHDD], sec. 3.4",
    says: "At a raw bit error rate of 3e-2, more than a tenth of 256 zero bytes' bits are ones with a probability of 1.3e-47; after a \
           failure the other kinds are tried.",
    bed: "the LDPC code of a sector over its channel; no drive, no array",
    seeds_quick: 2,
    seeds_full: 5,
    takes: Takes::Nothing,
    plan: |ask| plan(ask),
};

/// The paper's probability that more than a tenth of the bits are ones.
const PAPERS_TAIL: f64 = 1.3e-47;

/// Raw bit error rates that are decoded, too. The last is beyond the code, and is the paper's example.
const BERS: [f64; 3] = [0.01, 0.0175, 0.03];

/// So noisy a channel that wrong guesses can be counted.
const BER_FAR: f64 = 0.09;

const ITERATIONS: u32 = 50;

/// Bits of a segment, and the most ones of zeroes.
const BITS: u64 = Shares::BITS as u64;
const ONES_MAX: u64 = Shares::ONES_MAX as u64;

fn plan(ask: &Ask) -> Result<StudyPlan, String> {
    let mut plan = StudyPlan::default();
    for (bytes, bits) in [(256, BITS), (512, 2 * BITS)] {
        let head = Head::new(format!("BER 0.03, {bytes} zero bytes"), "more than a tenth ones");
        let row = Row::exact(head, Unit::Probability, above(bits, bits / 10, 0.03));
        plan.rows.push(row.maybe_paper((bytes == 256).then_some(PAPERS_TAIL)));
    }
    let soft = BERS.map(|ber| (ChannelKind::Soft, ber));
    for (kind, ber) in soft.into_iter().chain([(ChannelKind::Hard, BER_FAR)]) {
        add_guesses(&mut plan, ask, kind, ber)?;
    }
    for (ber, kind) in BERS.into_iter().flat_map(|ber| KINDS.map(|kind| (ber, kind))) {
        add_costs(&mut plan, ask, ber, kind);
    }
    let random = ln_above(BITS, BITS - ONES_MAX - 1, 0.5) / std::f64::consts::LN_10;
    plan.remarks = vec![
        format!("Random bytes are taken for zeroes once in 10^{:.0} sectors, which is 0 in the rows.", -random),
        "A tenth of 2,048 bits are 204 ones. The soft channel rounds, and a sum of nearly nothing counts as a zero: its tails \
         are those of slightly fewer errors than the BER says."
            .to_owned(),
        "Forcing fewer zeroes than a sector has is not an error, but decodes with less: only forcing more fails."
            .to_owned(),
        "At a BER of 0.03 the code fails whatever is forced, after three tries.".to_owned(),
    ];
    Ok(plan)
}

/// Probabilities of a one among a segment's hard decisions.
#[derive(Clone, Copy, Debug)]
struct Ones {
    of_zeroes: f64,
    of_random: f64,
}

impl Ones {
    fn of(channel: &Channel) -> Self {
        let law = channel.law();
        let sum = |is_counted: fn(i8) -> bool| {
            let counted = law.iter().filter(|(level, _)| is_counted(*level));
            counted.map(|(_, share)| share).sum::<f64>()
        };
        // A one has the level of a zero with the other sign.
        let (of_zeroes, of_ones) = (sum(|level| level < 0), sum(|level| level > 0));
        Self { of_zeroes, of_random: f64::midpoint(of_zeroes, of_ones) }
    }

    /// The probability of a wrong guess.
    fn is_mistaken(self, kind: ZeroForcing) -> f64 {
        let missed = above(BITS, ONES_MAX, self.of_zeroes);
        let taken = above(BITS, BITS - ONES_MAX - 1, 1.0 - self.of_random);
        match kind {
            ZeroForcing::None => taken,
            ZeroForcing::B256 => missed + (1.0 - missed) * taken,
            ZeroForcing::B512 => missed + (1.0 - missed) * missed,
            ZeroForcing::B1024 => unreachable!("a kilobyte of zeroes is not a kind"),
        }
    }
}

/// The ones of zeroes and of random bytes, and the guesses from them.
fn add_guesses(plan: &mut StudyPlan, ask: &Ask, kind: ChannelKind, ber: f64) -> Result<(), String> {
    let channel = Channel::new(kind, ber).map_err(|error| error.to_string())?;
    let ones = Ones::of(&channel);
    let name = format!("BER {ber}, {kind}");
    // The counts that one segment in ten and one in a hundred exceeds.
    let limits = [0.9, 0.99].map(|share| quantile(BITS, ones.of_zeroes, share));
    let counted = |limit: u64| format!("zeroes above {limit} ones");
    for limit in limits {
        let case = format!("{name}, zeroes above {limit} of {BITS} ones");
        let exact = above(BITS, limit, ones.of_zeroes);
        let head = Head::new(case.clone(), "exact");
        plan.rows.push(Row::exact(head, Unit::Probability, exact));
        let (cell, value) = (name.clone(), counted(limit));
        plan.rows.push(Row::new(Head::new(case, "counted"), Unit::Probability, move |seed| {
            seed.get(&cell, &value)
        }));
    }
    for kind in KINDS {
        let case = format!("{name}, {kind} zero bytes");
        let head = Head::new(case.clone(), "wrong guess, exact");
        plan.rows.push(Row::exact(head, Unit::Probability, ones.is_mistaken(kind)));
        let head = Head::new(case, "wrong guess, counted");
        let cell = name.clone();
        plan.rows.push(Row::new(head, Unit::Probability, move |seed| {
            seed.get(&cell, &format!("wrong, {kind}"))
        }));
    }
    let sectors: u32 = ask.pick(4_000, 40_000);
    plan.cells.push(Cell::new(name.clone(), move |seed| {
        let mut rng = Streams::new(seed).stream(&format!("predict/guesses/{name}"));
        let mut levels = vec![0; CODE_BITS];
        let mut measured = Measured::default();
        for kind in KINDS {
            let (mut wrong, mut above) = (0, [0; 2]);
            for _ in 0..sectors {
                channel.transmit(&ended(kind, &mut rng), &mut rng, &mut levels);
                let shares = Shares::of(&levels);
                wrong += u32::from(shares.guess() != kind);
                for (count, limit) in above.iter_mut().zip(limits) {
                    *count += u32::from(u64::from(shares.last) > limit);
                }
            }
            let rate = |count: u32| f64::from(count) / f64::from(sectors);
            measured = measured.with(&format!("wrong, {kind}"), rate(wrong));
            if kind == ZeroForcing::B512 {
                for (limit, count) in limits.into_iter().zip(above) {
                    measured = measured.with(&counted(limit), rate(count));
                }
            }
        }
        Ok(measured)
    }));
    Ok(())
}

/// A sector whose last 512 bytes are as randomising leaves them, and of which nothing else is read.
fn ended(kind: ZeroForcing, rng: &mut Rng) -> Codeword {
    let mut word = Codeword::ZERO;
    let columns = |kind: ZeroForcing| kind.bytes() * DATA_COLUMNS / SECTOR_BYTES;
    let (first, end) = (DATA_COLUMNS - columns(ZeroForcing::B512), DATA_COLUMNS - columns(kind));
    word.0[first..end].iter_mut().flatten().for_each(|bits| *bits = rng.bits());
    word
}

/// Reads of sectors of one kind with each guess, on the same levels.
fn add_costs(plan: &mut StudyPlan, ask: &Ask, ber: f64, kind: ZeroForcing) {
    let name = format!("BER {ber}, {kind} zero bytes");
    for guess in KINDS {
        let case = format!("{name}, {guess} guessed");
        for (metric, unit) in [
            ("tries", Unit::Count),
            ("iterations", Unit::Count),
            ("failed", Unit::Probability),
            ("wrong bytes", Unit::Count),
        ] {
            let (cell, value) = (name.clone(), format!("{metric}, {guess}"));
            plan.rows.push(Row::new(Head::new(case.clone(), metric), unit, move |seed| {
                seed.get(&cell, &value)
            }));
        }
    }
    let sectors: u32 = ask.pick(60, 1_000);
    plan.cells.push(Cell::new(name.clone(), move |seed| {
        let channel = Channel::new(ChannelKind::Soft, ber).map_err(|error| error.to_string())?;
        let mut rng = Streams::new(seed).stream(&format!("predict/costs/{name}"));
        let mut code = SectorCode::new(Kernel::best());
        let mut sector = vec![0; SECTOR_BYTES];
        let mut levels = vec![0; CODE_BITS];
        let mut sums = [Costs::default(); KINDS.len()];
        for _ in 0..sectors {
            rng.fill(&mut sector[..SECTOR_BYTES - kind.bytes()]);
            channel.transmit(&code.write(&sector), &mut rng, &mut levels);
            for (guess, sum) in KINDS.into_iter().zip(&mut sums) {
                sum.add(&code.read_as(guess, &levels, ITERATIONS), &sector);
            }
        }
        let mean = |sum: u32| f64::from(sum) / f64::from(sectors);
        Ok(KINDS.into_iter().zip(sums).fold(Measured::default(), |measured, (guess, sum)| {
            measured
                .with(&format!("tries, {guess}"), mean(sum.tries))
                .with(&format!("iterations, {guess}"), mean(sum.iterations))
                .with(&format!("failed, {guess}"), mean(sum.failed))
                .with(&format!("wrong bytes, {guess}"), f64::from(sum.wrong))
        }))
    }));
}

/// What reads took in all.
#[derive(Clone, Copy, Debug, Default)]
struct Costs {
    tries: u32,
    iterations: u32,
    failed: u32,
    /// Sectors that came back with other bytes than were written.
    wrong: u32,
}

impl Costs {
    fn add(&mut self, read: &ReadBack, sector: &[u8]) {
        let effort = read.effort();
        self.tries += effort.tries;
        self.iterations += effort.iterations;
        match read {
            ReadBack::Failed { .. } => self.failed += 1,
            ReadBack::Sector { bytes, .. } => self.wrong += u32::from(bytes != sector),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::Estimate;
    use crate::studies::tests::measured_rows;

    /// `[SDHDD]` sec. 3.4 has 1.3e-47.
    #[test]
    fn a_tenth_of_ones_among_zeroes_is_rarer_than_the_paper_says() {
        for (bits, expected) in [(2_048, 2.34e-49), (4_096, 9.6e-97)] {
            let tail = above(bits, bits / 10, 0.03);
            assert!((tail / expected - 1.0).abs() < 5e-3, "{bits}: {tail:e}");
        }
    }

    #[test]
    fn guesses_follow_their_tails_and_cost_tries_but_no_bytes() {
        let ask = Ask { quick: true, seed: 7, seeds: 1, traces: Vec::new() };
        let rows = measured_rows(&plan(&ask).unwrap(), 7);
        let of = |case: &str, metric: &str| {
            let is_asked = |row: &&Estimate| row.case == case && row.metric == metric;
            rows.iter().find(is_asked).unwrap_or_else(|| panic!("no row {case}, {metric}")).ours
        };
        for row in rows.iter().filter(|row| row.metric.ends_with("counted")) {
            let exact = of(&row.case, &row.metric.replace("counted", "exact"));
            // Four standard errors of 4,000 sectors, and no more than one where none is expected.
            let reach = 4.0 * (exact / 4_000.0).sqrt();
            assert!((row.ours - exact).abs() <= reach, "{}: {}, {exact}", row.case, row.ours);
        }
        let seen = of("BER 0.09, hard, 256 zero bytes", "wrong guess, counted");
        assert!(seen > 0.01, "{seen}");
        assert!(rows.iter().all(|row| row.metric != "wrong bytes" || row.ours < 0.5));
        let cost = |ber: &str, kind: u32, guess: u32, metric: &str| {
            of(&format!("BER {ber}, {kind} zero bytes, {guess} guessed"), metric)
        };
        // Forced too little it is one try; forced too much, a try in vain of all iterations.
        for (kind, guess) in [(256, 0), (512, 0), (512, 256)] {
            assert!((cost("0.01", kind, guess, "tries") - 1.0).abs() < 1e-9, "{kind} {guess}");
        }
        for (kind, guess) in [(0, 256), (0, 512), (256, 512)] {
            assert!((cost("0.01", kind, guess, "tries") - 2.0).abs() < 1e-9, "{kind} {guess}");
            assert!(cost("0.01", kind, guess, "iterations") > 50.0, "{kind} {guess}");
        }
        for (kind, guess) in KINDS.into_iter().flat_map(|kind| KINDS.map(|guess| (kind, guess))) {
            let failed = |ber| cost(ber, kind.bytes() as u32, guess.bytes() as u32, "failed");
            assert!(failed("0.01") < 0.01 && failed("0.03") > 0.99, "{kind} {guess}");
        }
    }
}
