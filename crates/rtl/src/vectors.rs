//! What the testbench of `sector` plays: groups of sectors with their coefficients, and what must leave.

use levelhead_erasure::{Code, DecodePlan, Field, Kernel, UseError};
use levelhead_stats::Rng;

use crate::engine::{File, Play};
use crate::hex::Table;
use crate::testbench::Testbench;

/// Bytes that the engine takes in a cycle.
pub(crate) const BEAT_SIZE: usize = 16;

/// One group: sectors that come in, and those that are computed from them.
#[derive(Clone, Debug)]
pub struct Group {
    /// The coefficients of each sector that comes in: those of each wanted symbol.
    pub coefficients: Vec<Vec<u16>>,
    /// Sectors that come in, in their order.
    pub sources: Vec<Vec<u8>>,
    /// Sectors that must leave, in their order.
    pub wanted: Vec<Vec<u8>>,
}

impl Group {
    /// A random codeword of sectors of `size` bytes, with the `erased` of its symbols computed from the
    /// others.
    ///
    /// # Errors
    ///
    /// More are erased than are redundant, or the code takes no symbols of this size.
    pub fn random(
        code: &Code,
        size: usize,
        erased: &[usize],
        rng: &mut Rng,
    ) -> Result<Self, UseError> {
        let mut symbols = vec![vec![0; size]; code.len()];
        let (data, redundant) = symbols.split_at_mut(code.data());
        data.iter_mut().for_each(|sector| rng.fill(sector));
        let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let mut into: Vec<&mut [u8]> = redundant.iter_mut().map(Vec::as_mut_slice).collect();
        code.encode(Kernel::Portable, &data, &mut into)?;
        let plan = code.plan(erased, erased)?;
        let take = |at: &usize| symbols[*at].clone();
        Ok(Self {
            coefficients: coefficients(code, &plan)?,
            sources: plan.sources().iter().map(take).collect(),
            wanted: erased.iter().map(take).collect(),
        })
    }
}

/// The groups of a run.
pub(crate) fn groups(
    code: &Code,
    size: usize,
    play: Play,
    rng: &mut Rng,
) -> Result<Vec<Group>, UseError> {
    let redundant: Vec<usize> = (code.data()..code.len()).collect();
    let mut patterns = Vec::new();
    match play {
        Play::Patterns(count) => {
            patterns.push(redundant);
            for erased in 1..=code.redundant() {
                patterns.extend((0..count).map(|_| pattern(code, erased, rng)));
            }
        }
        Play::Row(count) => {
            for group in 0..count {
                patterns.push(match group % 2 {
                    0 => redundant.clone(),
                    _ => pattern(code, code.redundant(), rng),
                });
            }
        }
    }
    patterns.iter().map(|erased| Group::random(code, size, erased, rng)).collect()
}

/// `count` symbols of a code, in order.
fn pattern(code: &Code, count: usize, rng: &mut Rng) -> Vec<usize> {
    let mut erased = Vec::new();
    while erased.len() < count {
        let symbol = rng.below(code.len() as u64) as usize;
        if !erased.contains(&symbol) {
            erased.push(symbol);
        }
    }
    erased.sort_unstable();
    erased
}

/// The coefficients of a plan: for each source, those of each wanted symbol.
///
/// They are what the plan makes of sectors that are 1 in one element each and 0 elsewhere, so they are
/// right for every code and every pattern of erasures.
///
/// # Errors
///
/// None but those of [`DecodePlan::run`].
pub fn coefficients(code: &Code, plan: &DecodePlan) -> Result<Vec<Vec<u16>>, UseError> {
    let count = plan.sources().len();
    let place = |source: usize| match code.field() {
        Field::Bytes => source,
        Field::Tower => source / 64 * 128 + source % 64,
    };
    let size = count.div_ceil(64) * 128;
    let units: Vec<Vec<u8>> = (0..count)
        .map(|source| {
            let mut unit = vec![0; size];
            unit[place(source)] = 1;
            unit
        })
        .collect();
    let units: Vec<&[u8]> = units.iter().map(Vec::as_slice).collect();
    let mut images = vec![vec![0; size]; plan.wanted().len()];
    let mut into: Vec<&mut [u8]> = images.iter_mut().map(Vec::as_mut_slice).collect();
    plan.run(Kernel::Portable, &units, &mut into)?;
    let element = |image: &[u8], source| match code.field() {
        Field::Bytes => image[place(source)].into(),
        Field::Tower => u16::from_le_bytes([image[place(source)], image[place(source) + 64]]),
    };
    Ok((0..count)
        .map(|source| images.iter().map(|image| element(image, source)).collect())
        .collect())
}

/// The testbench, which rests by `chance`, not 0; the tables that it plays; and the coefficients of encoding, for
/// the builder of a host.
///
/// # Panics
///
/// If a sector has another size, or a group has no sectors that come in, or none or more than the
/// redundant symbols that leave.
pub(crate) fn files(code: &Code, size: usize, groups: &[Group], chance: u32) -> Vec<File> {
    let rows = code.redundant();
    let (mut coefficients, mut ins, mut outs) =
        (Table::default(), Table::default(), Table::default());
    for group in groups {
        assert!((1..=rows).contains(&group.wanted.len()));
        assert!(!group.sources.is_empty());
        assert_eq!(group.sources.len(), group.coefficients.len());
        assert!(group.sources.iter().chain(&group.wanted).all(|sector| sector.len() == size));
        for of_source in &group.coefficients {
            // A row that is not wanted gets 0.
            for row in 0..rows {
                let element: u16 = of_source.get(row).copied().unwrap_or(0);
                coefficients.push_bytes(&element.to_le_bytes(), &[]);
            }
        }
        let beats = group.sources.iter().flat_map(|sector| sector.chunks(BEAT_SIZE));
        let last = group.sources.len() * (size / BEAT_SIZE) - 1;
        let leave = u8::try_from(group.wanted.len()).expect("no engine has more than 255 rows");
        for (at, beat) in beats.enumerate() {
            ins.push_bytes(beat, &[leave, u8::from(at == last)]);
        }
        for beat in group.wanted.iter().flat_map(|sector| sector.chunks(BEAT_SIZE)) {
            outs.push_bytes(beat, &[]);
        }
    }
    let top = if code.field() == Field::Tower { "15" } else { "7" };
    let engine = include_str!("text/sector_side.sv")
        .replace("@BEATS_LOG@", &(size / BEAT_SIZE).ilog2().to_string())
        .replace("@COEFFICIENTS@", &coefficients.lines.to_string())
        .replace("@SYMBOL_TOP@", top);
    let testbench = Testbench {
        engine: &engine,
        ins: ins.lines,
        in_bits: 8 * (BEAT_SIZE + 2),
        in_last: 8 * (BEAT_SIZE + 1),
        outs: outs.lines,
        out_bits: 8 * BEAT_SIZE,
        out: "beat",
        others: coefficients.lines,
        chance,
    };
    vec![
        File { name: "testbench.sv", text: testbench.text() },
        File { name: "encoding.hex", text: encoding(code) },
        File { name: "coefficients.hex", text: coefficients.text },
        File { name: "in.hex", text: ins.text },
        File { name: "out.hex", text: outs.text },
    ]
}

/// The coefficients of encoding, one a line: those of the first data symbol for each row, then the second's.
fn encoding(code: &Code) -> String {
    let mut table = Table::default();
    for column in 0..code.data() {
        for row in 0..code.redundant() {
            let element = code.element(row, column).expect("the code has this row and column");
            table.push_bytes(&element.to_le_bytes(), &[]);
        }
    }
    table.text
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;

    #[test]
    fn coefficients_of_encoding_are_those_of_the_code_in_both_fields() {
        for code in [Code::new(20, 3), Code::new(260, 4)] {
            let code = code.expect("it exists");
            let redundant: Vec<usize> = (code.data()..code.len()).collect();
            let plan = code.plan(&redundant, &redundant).expect("all of them can be computed");
            let found = coefficients(&code, &plan).expect("the sizes fit");
            for (column, of_column) in found.iter().enumerate() {
                for (row, &element) in of_column.iter().enumerate() {
                    assert_eq!(Some(element), code.element(row, column));
                }
            }
        }
    }

    #[test]
    fn run_has_every_number_of_erasures_and_a_row_encodes_and_decodes() {
        let code = Code::new(20, 3).expect("it exists");
        let mut rng = Streams::new(9).stream("rtl");
        let mut leave = |play| -> Vec<usize> {
            let groups = groups(&code, 256, play, &mut rng).expect("the sizes fit");
            groups.iter().map(|group| group.wanted.len()).collect()
        };
        assert_eq!(leave(Play::Patterns(2)), [3, 1, 1, 2, 2, 3, 3]);
        assert_eq!(leave(Play::Row(4)), [3; 4]);
    }
}
