//! Every write checked in little memory: bytes where there is room, checksums for the rest, and a late start.

use levelhead_drive::{IdleVerify, Placing, Retention, Verify, VerifyStart};
use levelhead_units::Bytes;

use super::Input;
use super::bed::{Bed, MEGABYTE, PAPER, figures};
use super::tables::{TABLE_1, plan_of};
use crate::studies::{Ask, Measured, Row, Study, StudyPlan, Unit};

pub(super) const OURS: Study = Study {
    name: "iraw.ours",
    title: "Every write checked with 2 MB of bytes and 2 MB of checksums",
    source: "Levelhead's own question, on the workloads of [IRAW08]",
    says: "Nothing: the paper needs up to 60 MB for that. A checksum of 16 bytes a sector finds what a byte for byte \
           comparison finds; what it finds has to be repaired from elsewhere. An arm that sets out for a \
           verification as late as it can ends at the same time and delays fewer requests.",
    bed: "synthetic requests after the paper's traces (iraw:web and so on), whole, arrival times only, over one \
        iraw-15k \
          (code-dev: iraw-10k), SPTF, 32 in the drive; dedicated memory, 8 MB for reads and 2 MB for writes, 2 MB for \
          checksums; verification after 1 ms of idleness; none: the same memory without verification; RAW: every \
          write read back at once; by sums alone: 16 KiB for writes and 256 KiB for checksums, as an array with checksums has them",
    plan: |ask| Ok(ours(ask)),
    ..TABLE_1
};

const MEMORY: Retention = Retention {
    placing: Placing::Dedicated,
    memory: Bytes::new(8 * MEGABYTE),
    writes: Bytes::new(2 * MEGABYTE),
};

fn ours(ask: &Ask) -> StudyPlan {
    let rows = |input: &Input| {
        [
            ("validated", Unit::Percent),
            ("memory", Unit::Megabytes),
            ("delayed", Unit::Percent),
            ("delayed over plain", Unit::Times),
            ("foreground p99 over none", Unit::Times),
            ("foreground mean over none", Unit::Times),
            ("RAW mean over none", Unit::Times),
            ("validated by sums alone", Unit::Percent),
        ]
        .into_iter()
        .map(|(metric, unit)| Row::of(input.name.clone(), metric, unit))
        .collect()
    };
    plan_of(ask, measure, rows)
}

fn measure(input: &Input, seed: u64) -> Result<Measured, String> {
    let bed = Bed::new(input, seed)?;
    let sums = Bytes::new(2 * MEGABYTE);
    let late = IdleVerify { start: VerifyStart::Late, sums, ..PAPER };
    let plain = IdleVerify { start: VerifyStart::AtOnce, ..late };
    let alone = IdleVerify { sums: Bytes::new(MEGABYTE / 4), ..late };
    let run = |verify| bed.run(verify, MEMORY);
    let (late, plain) = (run(Verify::Idle(late))?, run(Verify::Idle(plain))?);
    let (none, raw) = (run(Verify::Off)?, run(Verify::Raw)?);
    let alone = bed.run(Verify::Idle(alone), Retention { writes: Retention::UNIT, ..MEMORY })?;
    let [with, without, at_once] =
        [&late, &none, &raw].map(|outcomes| outcomes.responses(bed.requests()));
    let [delayed, delayed_plain] = [&late, &plain].map(|one| one.counters.verify.delayed);
    // Nothing over nothing is no difference.
    let over_plain =
        if delayed == delayed_plain { 1.0 } else { delayed as f64 / delayed_plain as f64 };
    let ratio = |one: f64, other: f64| if other > 0.0 { one / other } else { 1.0 };
    let by_sums = figures(&alone).values["validated"];
    Ok(figures(&late)
        .with("validated by sums alone", by_sums)
        .with("delayed over plain", over_plain)
        .with("foreground p99 over none", ratio(with.quantile_ms(0.99), without.quantile_ms(0.99)))
        .with("foreground mean over none", ratio(with.mean_ms(), without.mean_ms()))
        .with("RAW mean over none", ratio(at_once.mean_ms(), without.mean_ms())))
}
