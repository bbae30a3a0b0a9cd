//! `levelhead-lab ecc code`: the parameters of the code, and its matrix as a file.

use std::io::{self, Write};
use std::path::Path;

use levelhead_ldpc::{
    BLOCK_BITS, CODE_BITS, COLUMNS, Census, DATA_BITS, ROWS, SECTOR_BYTES, census, column_of,
    shift_of,
};
use levelhead_report::json;
use serde::Serialize;

use levelhead_app::{AppError, Show, files};

/// The parameters of the code.
#[derive(Clone, Debug)]
pub struct CodeShown {
    census: Census,
}

/// The code's parameters; its parity-check matrix goes to `alist`, in the format of that name, if a file is named.
///
/// # Errors
///
/// The file cannot be written.
pub fn show_code(alist: Option<&Path>) -> Result<CodeShown, AppError> {
    if let Some(path) = alist {
        files::write_whole(path, |out| write_alist(out))?;
    }
    Ok(CodeShown { census: census() })
}

/// Sizes, largest weights, weights, then the checks of each bit and the bits of each check, all counted from 1 and
/// filled up with zeroes.
fn write_alist(out: &mut dyn Write) -> io::Result<()> {
    let checks_of = |bit: usize| {
        let (column, place) = (bit / BLOCK_BITS, bit % BLOCK_BITS);
        column_of(column).map(move |entry| {
            entry.row * BLOCK_BITS + (place + BLOCK_BITS - entry.shift) % BLOCK_BITS
        })
    };
    let bits_of = |check: usize| {
        let (row, place) = (check / BLOCK_BITS, check % BLOCK_BITS);
        (0..COLUMNS).filter_map(move |column| {
            Some(column * BLOCK_BITS + (place + shift_of(row, column)?) % BLOCK_BITS)
        })
    };
    let checks = ROWS * BLOCK_BITS;
    let bit_lines: Vec<Vec<usize>> = (0..CODE_BITS).map(|bit| checks_of(bit).collect()).collect();
    let check_lines: Vec<Vec<usize>> = (0..checks).map(|check| bits_of(check).collect()).collect();
    let heaviest = |lines: &[Vec<usize>]| lines.iter().map(Vec::len).max().unwrap_or(0);
    let most = [heaviest(&bit_lines), heaviest(&check_lines)];
    writeln!(out, "{CODE_BITS} {checks}\n{} {}", most[0], most[1])?;
    for lines in [&bit_lines, &check_lines] {
        let weights: Vec<String> = lines.iter().map(|line| line.len().to_string()).collect();
        writeln!(out, "{}", weights.join(" "))?;
    }
    for (lines, most) in [&bit_lines, &check_lines].into_iter().zip(most) {
        for line in lines {
            let places = line.iter().map(|place| place + 1).chain(std::iter::repeat(0)).take(most);
            let places: Vec<String> = places.map(|place| place.to_string()).collect();
            writeln!(out, "{}", places.join(" "))?;
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct Json {
    code_bits: usize,
    data_bits: usize,
    block_bits: usize,
    rows: usize,
    columns: usize,
    rate: f64,
    girth: u32,
    cycles_of_six: u64,
    column_weights: Vec<usize>,
    row_weights: Vec<usize>,
    full_rank: bool,
}

fn rate() -> f64 {
    DATA_BITS as f64 / CODE_BITS as f64
}

impl Show for CodeShown {
    fn text(&self) -> String {
        let Census { girth, sixes, column_weights, row_weights, is_full_rank } = &self.census;
        let span = |weights: &[usize]| {
            let (least, most) = (weights.iter().min(), weights.iter().max());
            format!("{} to {}", least.unwrap_or(&0), most.unwrap_or(&0))
        };
        let rank = if *is_full_rank { "full" } else { "not full" };
        format!(
            "code: {CODE_BITS} bits, {DATA_BITS} of them data (a sector of {SECTOR_BYTES} bytes), rate {:.4}\n\
             matrix: {ROWS} by {COLUMNS} circulants of {BLOCK_BITS} by {BLOCK_BITS}, rank {rank}\n\
             circulants in a column: {}\n\
             circulants in a row: {}\n\
             girth: {girth}, with {} cycles of length 6\n\
             zero forcing: a column is 64 bytes; 256, 512 and 1024 bytes leave 4, 8 and 16 of them out\n",
            rate(),
            span(column_weights),
            span(row_weights),
            u64::from(*sixes) * BLOCK_BITS as u64,
        )
    }

    fn json(&self) -> String {
        let census = &self.census;
        json::pretty(&Json {
            code_bits: CODE_BITS,
            data_bits: DATA_BITS,
            block_bits: BLOCK_BITS,
            rows: ROWS,
            columns: COLUMNS,
            rate: rate(),
            girth: census.girth,
            cycles_of_six: u64::from(census.sixes) * BLOCK_BITS as u64,
            column_weights: census.column_weights.clone(),
            row_weights: census.row_weights.clone(),
            full_rank: census.is_full_rank,
        })
        .expect("these are plain values")
    }
}
