//! What the testbench plays: groups of sectors with their coefficients, and what must leave.

use std::fmt::Write;

use levelhead_erasure::{Code, DecodePlan, Field, Kernel, UseError};

use crate::sector::File;

/// Bytes that the engine takes in a cycle.
const BEAT_SIZE: usize = 16;

/// One group: sectors that come in, and those that are computed from them.
#[derive(Clone, Debug)]
pub struct Group {
    /// The coefficients of each sector that comes in: those of each wanted symbol. Rows that are not
    /// wanted get 0.
    pub coefficients: Vec<Vec<u16>>,
    /// Sectors that come in, in their order.
    pub sources: Vec<Vec<u8>>,
    /// Sectors that must leave, in their order.
    pub wanted: Vec<Vec<u8>>,
}

/// The coefficients of a plan: for each source, those of each wanted symbol.
///
/// They are what the plan makes of sectors that are 1 in one element each and 0 elsewhere.
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
    plan.run(Kernel::Naive, &units, &mut into)?;
    let element = |image: &[u8], source| match code.field() {
        Field::Bytes => image[place(source)].into(),
        Field::Tower => u16::from_le_bytes([image[place(source)], image[place(source) + 64]]),
    };
    Ok((0..count)
        .map(|source| images.iter().map(|image| element(image, source)).collect())
        .collect())
}

/// The groups of one run of the testbench.
#[derive(Clone, Debug)]
pub struct Vectors<'a> {
    /// The code of the engine.
    pub code: &'a Code,
    /// The logarithm of a sector's size in 16 bytes: the parameter of the engine.
    pub beats_log: u32,
    /// What comes in and leaves, one after the other.
    pub groups: &'a [Group],
}

impl Vectors<'_> {
    /// The testbench, and the tables that it reads from the folder it runs in.
    ///
    /// # Panics
    ///
    /// If a sector has another size, or a group has no sectors that come in, or none or more than the
    /// redundant symbols that leave.
    pub fn files(&self) -> Vec<File> {
        let (mut coefficients, mut ins, mut outs) = (String::new(), String::new(), String::new());
        let rows = self.code.redundant();
        for group in self.groups {
            assert!((1..=rows).contains(&group.wanted.len()));
            assert!(!group.sources.is_empty());
            assert_eq!(group.sources.len(), group.coefficients.len());
            for of_source in &group.coefficients {
                for row in 0..rows {
                    let element = of_source.get(row).copied().unwrap_or(0);
                    writeln!(coefficients, "{element:04x}").expect("a string takes all");
                }
            }
            let last = group.sources.len() - 1;
            for (source, bytes) in group.sources.iter().enumerate() {
                let beats = self.beats(bytes);
                for (at, beat) in beats.iter().enumerate() {
                    let is_last = source == last && at + 1 == beats.len();
                    let flags = format!("{:01x}{:02x}", u8::from(is_last), group.wanted.len());
                    ins.push_str(&flags);
                    ins.push_str(beat);
                    ins.push('\n');
                }
            }
            for beat in group.wanted.iter().flat_map(|bytes| self.beats(bytes)) {
                outs.push_str(&beat);
                outs.push('\n');
            }
        }
        let count = |text: &str| text.lines().count().to_string();
        let top = if self.code.field() == Field::Tower { "15" } else { "7" };
        let testbench = include_str!("testbench.sv")
            .replace("@BEATS_LOG@", &self.beats_log.to_string())
            .replace("@COEFFICIENTS@", &count(&coefficients))
            .replace("@INS@", &count(&ins))
            .replace("@OUTS@", &count(&outs))
            .replace("@SYMBOL_TOP@", top);
        vec![
            File { name: "testbench.sv", text: testbench },
            File { name: "coefficients.hex", text: coefficients },
            File { name: "in.hex", text: ins },
            File { name: "out.hex", text: outs },
        ]
    }

    /// A sector as numbers of 16 bytes, the first byte the least.
    fn beats(&self, sector: &[u8]) -> Vec<String> {
        assert_eq!(sector.len(), BEAT_SIZE << self.beats_log);
        let number = |beat: &[u8]| {
            beat.iter().rev().fold(String::new(), |mut text, byte| {
                write!(text, "{byte:02x}").expect("a string takes all");
                text
            })
        };
        sector.chunks(BEAT_SIZE).map(number).collect()
    }
}
