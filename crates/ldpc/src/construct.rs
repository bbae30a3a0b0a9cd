//! How the shifts were found, and what there is to know of them: girth, weights and rank.
//!
//! *Weights.* Data columns in their order each take the four rows with the fewest circulants so far, ties by chance: what is
//! left is balanced after the last columns are dropped, too. With an even weight in every column the rows would add up to
//! zero; so the last redundant column has five circulants. The seven redundant columns are drawn anew until their
//! 7 by 7 matrix of weights has an inverse modulo 2, which is the condition for the blocks to have one (`ring`): the
//! matrix has full rank.
//!
//! *Shifts.* For each column 1,000 sets of shifts are drawn. One that would close a cycle of four is refused; of the others the
//! one that closes the fewest cycles of six is taken. Two columns close a cycle of four if in two rows their shifts
//! differ by the same, modulo 512; three close one of six if the differences along the cycle add up to zero.

use levelhead_stats::{Rng, Streams};

use crate::code::column_of;
use crate::shape::{BLOCK_BITS, COLUMNS, DATA_COLUMNS, ROWS};

/// Sets of shifts that are drawn for a column.
const CANDIDATES: usize = 1_000;

/// The shifts of a column, by row.
pub(crate) type Shifts = [Option<u16>; ROWS];

/// Makes a matrix: by column, the shift of each row's circulant. The same seed gives the same matrix.
pub fn construct(seed: u64) -> Vec<[Option<u16>; ROWS]> {
    let mut rng = Streams::new(seed).stream("ldpc/construct");
    let weights = weights(&mut rng);
    let mut cycles = Cycles::new();
    let mut columns = Vec::with_capacity(COLUMNS);
    for rows in weights {
        let candidates = (0..CANDIDATES).map(|_| {
            let mut shifts: Shifts = [None; ROWS];
            for &row in &rows {
                shifts[row] = Some(rng.below(BLOCK_BITS as u64) as u16);
            }
            shifts
        });
        let found = candidates
            .filter(|shifts| !cycles.closes_four(shifts))
            .min_by_key(|shifts| cycles.sixes(shifts))
            .expect("of a thousand sets of shifts some close no cycle of four");
        cycles.add(&found);
        columns.push(found);
    }
    columns
}

/// The rows of each column's circulants.
fn weights(rng: &mut Rng) -> Vec<Vec<usize>> {
    let mut degrees = [0_u32; ROWS];
    let data: Vec<Vec<usize>> = (0..DATA_COLUMNS).map(|_| lightest(rng, &mut degrees, 4)).collect();
    loop {
        let mut degrees = degrees;
        let redundant: Vec<Vec<usize>> = (0..ROWS)
            .map(|at| lightest(rng, &mut degrees, if at == ROWS - 1 { 5 } else { 4 }))
            .collect();
        if is_invertible(&redundant) {
            return [data, redundant].concat();
        }
    }
}

/// The `count` rows with the fewest circulants, which get one more.
fn lightest(rng: &mut Rng, degrees: &mut [u32; ROWS], count: usize) -> Vec<usize> {
    let mut rows: Vec<(u32, u64, usize)> =
        (0..ROWS).map(|row| (degrees[row], rng.bits(), row)).collect();
    rows.sort_unstable();
    let mut rows: Vec<usize> = rows[..count].iter().map(|(_, _, row)| *row).collect();
    rows.sort_unstable();
    rows.iter().for_each(|row| degrees[*row] += 1);
    rows
}

/// Whether the matrix with ones in these rows of its columns has an inverse modulo 2.
fn is_invertible(columns: &[Vec<usize>]) -> bool {
    let mut vectors: Vec<u32> =
        columns.iter().map(|rows| rows.iter().map(|row| 1 << row).sum()).collect();
    (0..ROWS).all(|row| {
        let Some(at) = vectors.iter().position(|vector| vector >> row & 1 == 1) else {
            return false;
        };
        let pivot = vectors.swap_remove(at);
        for vector in vectors.iter_mut().filter(|vector| **vector >> row & 1 == 1) {
            *vector ^= pivot;
        }
        true
    })
}

/// What has been taken so far, as a candidate's cycles are counted.
struct Cycles {
    columns: Vec<Shifts>,
    /// By two rows, the differences of shifts that occur in a column.
    differences: Vec<Vec<bool>>,
    /// By two rows, how many ways by two columns and a third row have this difference.
    ways: Vec<Vec<u32>>,
}

impl Cycles {
    fn new() -> Self {
        let pairs = ROWS * ROWS;
        Self {
            columns: Vec::new(),
            differences: vec![vec![false; BLOCK_BITS]; pairs],
            ways: vec![vec![0; BLOCK_BITS]; pairs],
        }
    }

    fn closes_four(&self, shifts: &Shifts) -> bool {
        pairs(shifts).any(|(i, k, difference)| self.differences[i * ROWS + k][difference])
    }

    /// The orbits of cycles of six that a column would close with two that are there.
    fn sixes(&self, shifts: &Shifts) -> u32 {
        pairs(shifts)
            .filter(|(i, k, _)| i < k)
            .map(|(i, k, difference)| self.ways[i * ROWS + k][difference])
            .sum()
    }

    fn add(&mut self, shifts: &Shifts) {
        for (i, j, first) in pairs(shifts) {
            for other in &self.columns {
                for (from, k, second) in pairs(other) {
                    if from == j && k != i {
                        // From i to j by the new column and on to k by the other one, and the way back.
                        let sum = (first + second) % BLOCK_BITS;
                        self.ways[i * ROWS + k][sum] += 1;
                        self.ways[k * ROWS + i][(BLOCK_BITS - sum) % BLOCK_BITS] += 1;
                    }
                }
            }
        }
        for (i, k, difference) in pairs(shifts) {
            self.differences[i * ROWS + k][difference] = true;
        }
        self.columns.push(*shifts);
    }
}

/// Two rows of a column in both orders, and the first's shift less the second's.
fn pairs(shifts: &Shifts) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..ROWS).flat_map(move |i| {
        (0..ROWS).filter(move |k| i != *k).filter_map(move |k| {
            let difference = usize::from(shifts[i]?) + BLOCK_BITS - usize::from(shifts[k]?);
            Some((i, k, difference % BLOCK_BITS))
        })
    })
}

/// What there is to count in the committed matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Census {
    /// The length of its shortest cycle: 4, 6, or 8 for anything longer.
    pub girth: u32,
    /// Its orbits of cycles of six: 512 cycles each.
    pub sixes: u32,
    /// Circulants of each column.
    pub column_weights: Vec<usize>,
    /// Circulants of each row.
    pub row_weights: Vec<usize>,
    /// Whether its rows are independent.
    pub is_full_rank: bool,
}

/// Counts them.
pub fn census() -> Census {
    let shifts = crate::shifts::SHIFTS;
    let mut cycles = Cycles::new();
    let (mut has_four, mut sixes) = (false, 0);
    for column in &shifts {
        has_four |= cycles.closes_four(column);
        sixes += cycles.sixes(column);
        cycles.add(column);
    }
    let rows = |column: usize| -> Vec<usize> { column_of(column).map(|entry| entry.row).collect() };
    let redundant: Vec<Vec<usize>> = (DATA_COLUMNS..COLUMNS).map(rows).collect();
    let in_row = |row: usize| (0..COLUMNS).filter(|column| shifts[*column][row].is_some()).count();
    Census {
        girth: match (has_four, sixes) {
            (true, _) => 4,
            (false, 0) => 8,
            (false, _) => 6,
        },
        sixes,
        column_weights: (0..COLUMNS).map(|column| column_of(column).count()).collect(),
        row_weights: (0..ROWS).map(in_row).collect(),
        is_full_rank: is_invertible(&redundant),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shifts::SHIFTS;

    /// The seed of the committed shifts.
    const SEED: u64 = 1;

    #[test]
    fn committed_shifts_are_what_their_seed_gives() {
        let made = construct(SEED);
        let text: String = made
            .iter()
            .map(|column| {
                let entry = |shift: &Option<u16>| match shift {
                    Some(shift) => format!("{shift}"),
                    None => "-1".to_owned(),
                };
                let entries: Vec<String> = column.iter().map(entry).collect();
                format!("    [{}],\n", entries.join(", "))
            })
            .collect();
        assert!(made == SHIFTS, "shifts.rs should have\n{text}");
    }

    #[test]
    fn matrix_has_girth_six_weight_four_and_full_rank() {
        let census = census();
        assert_eq!(census.girth, 6);
        assert!(census.sixes < 180, "{} orbits of cycles of six", census.sixes);
        assert!(census.column_weights[..COLUMNS - 1].iter().all(|weight| *weight == 4));
        assert_eq!(census.column_weights[COLUMNS - 1], 5);
        assert!(census.row_weights.iter().all(|weight| [40, 41].contains(weight)), "{census:?}");
        assert!(census.is_full_rank);
    }

    #[test]
    fn even_weights_are_seen_to_lack_rank() {
        let even: Vec<Vec<usize>> =
            (0..ROWS).map(|at| (at..at + 4).map(|row| row % ROWS).collect()).collect();
        assert!(!is_invertible(&even));
    }

    /// Cycles of a graph of a few columns, counted by walking.
    #[test]
    fn cycles_are_those_that_a_walk_finds() {
        let columns = &SHIFTS[..9];
        let mut walked = 0;
        let shift = |c: usize, r: usize| columns[c][r].map(i32::from);
        for (a, b, c) in triples(columns.len()) {
            for (i, j, k) in triples(ROWS) {
                for [i, j, k] in [[i, j, k], [i, k, j], [j, i, k], [j, k, i], [k, i, j], [k, j, i]]
                {
                    // a joins i and j, b joins j and k, c joins k and i.
                    let sum = || {
                        Some(
                            shift(a, i)? - shift(a, j)? + shift(b, j)? - shift(b, k)?
                                + shift(c, k)?
                                - shift(c, i)?,
                        )
                    };
                    if sum().is_some_and(|sum| sum.rem_euclid(BLOCK_BITS as i32) == 0) {
                        walked += 1;
                    }
                }
            }
        }
        let mut cycles = Cycles::new();
        let mut counted = 0;
        for column in columns {
            counted += cycles.sixes(column);
            cycles.add(column);
        }
        assert_eq!(counted, walked);
    }

    fn triples(count: usize) -> impl Iterator<Item = (usize, usize, usize)> {
        (0..count).flat_map(move |a| {
            (a + 1..count).flat_map(move |b| (b + 1..count).map(move |c| (a, b, c)))
        })
    }
}
