//! Telling a format from the first bytes.
//!
//! Detection is strict on purpose: a file taken for the wrong format gives plausible nonsense. A
//! first line that fits nothing is an error; the reader then holds every line to the format found.

use crate::Format;
use crate::error::quoted;
use crate::fields::{Fields, decimal, whole};
use crate::formats::{blkparse, msr, systor17, vscsi1};

/// How many lines or records are looked at.
const LOOKED_AT_MAX: usize = 64;

/// The format that `head` begins in. `is_all` says that nothing follows it.
pub(crate) fn detect(head: &[u8], is_all: bool) -> Option<Format> {
    if vscsi1::looks_like(head, LOOKED_AT_MAX) {
        return Some(Format::Vscsi1);
    }
    let mut lines = significant_lines(head, is_all).take(LOOKED_AT_MAX);
    let first = of_line(lines.next()?)?;
    // Times in milliseconds may be whole ones at first.
    if first == Format::Ssdsim && lines.any(|line| of_line(line) == Some(Format::MsrCut)) {
        return Some(Format::MsrCut);
    }
    Some(first)
}

/// What was expected where [`detect`] found nothing.
pub(crate) fn expectation() -> String {
    let names: Vec<String> = Format::ALL.iter().map(Format::to_string).collect();
    format!("a trace in one of the formats {}", names.join(", "))
}

/// What `head` looks like instead.
pub(crate) fn impression(head: &[u8]) -> String {
    match significant_lines(head, true).next() {
        Some(line) => format!("one that begins with {}", quoted(line)),
        None => "nothing".to_owned(),
    }
}

/// The lines that a reader would look at, except a last one that may go on.
fn significant_lines(head: &[u8], is_all: bool) -> impl Iterator<Item = &[u8]> {
    let end = if is_all {
        head.len()
    } else {
        head.iter().rposition(|byte| *byte == b'\n').unwrap_or(head.len())
    };
    head[..end]
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty() && !line.starts_with(b"#"))
        .filter(|line| !blkparse::is_preamble(line))
}

/// The format that a line fits, if it fits one.
fn of_line(line: &[u8]) -> Option<Format> {
    if line.starts_with(b"fio version ") {
        return Some(Format::FioLog);
    }
    let spaced = Fields::by_space(line);
    let field = |idx| spaced.get(idx).unwrap_or_default();
    if spaced.count() >= 7 && blkparse::is_device(field(0)) && decimal(field(3), 1).is_some() {
        return Some(Format::Blkparse);
    }
    if spaced.count() == 5 && matches!(field(4), b"0" | b"1") {
        return of_numbers(&spaced);
    }
    of_commas(&Fields::by_comma(line))
}

/// Five numbers, the last 0 or 1: two formats that differ in every unit.
fn of_numbers(spaced: &Fields<'_>) -> Option<Format> {
    let number = |idx| whole(spaced.get(idx).unwrap_or_default());
    let (_device, offset, length) = (number(1)?, number(2)?, number(3)?);
    if number(0).is_some() {
        return Some(Format::Ssdsim);
    }
    decimal(spaced.get(0).unwrap_or_default(), 1)?;
    // DiskSim's own text has milliseconds too, but counts blocks: take nothing for bytes that is
    // not whole blocks of them.
    (offset % 512 == 0 && length % 512 == 0).then_some(Format::MsrCut)
}

fn of_commas(commas: &Fields<'_>) -> Option<Format> {
    let field = |idx| commas.get(idx).unwrap_or_default();
    if msr::is_header(commas) {
        return Some(Format::Msr);
    }
    if systor17::is_header(commas) {
        return Some(Format::Systor17);
    }
    if commas.count() == 7 && whole(field(0)).is_some() && msr::kind(field(3)).is_some() {
        return Some(Format::Msr);
    }
    if commas.count() == 6
        && decimal(field(0), 1).is_some()
        && matches!(field(2), b"R" | b"W" | b"")
    {
        return Some(Format::Systor17);
    }
    let is_spc = commas.count() >= 5
        && [0, 1, 2].iter().all(|idx| whole(field(*idx)).is_some())
        && matches!(field(3), b"R" | b"r" | b"W" | b"w")
        && decimal(field(4), 1).is_some();
    is_spc.then_some(Format::Spc)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::sample;
    use crate::read;

    #[test]
    fn every_sample_is_told_for_what_it_is() {
        for format in Format::ALL {
            assert_eq!(detect(&sample(format), true), Some(format));
            assert_eq!(read(&*sample(format), "t", None, &mut |_| ()).unwrap().format, format);
        }
    }

    #[test]
    fn a_cut_in_the_last_line_does_not_matter() {
        let text = b"5 0 8 8 1\n6 0 8 8 1\n7.";
        assert_eq!(detect(text, false), Some(Format::Ssdsim));
        assert_eq!(detect(b"0 0 4096 4096 1\n1.5 0 8192 4096 0\n", true), Some(Format::MsrCut));
    }

    #[test]
    fn what_fits_nothing_is_refused_with_the_names_of_the_formats() {
        let refusals: [(&[u8], &str); 6] = [
            (b"", "nothing"),
            (b"\n# only a comment\n", "nothing"),
            (b"hello, world\n", "one that begins with 'hello, world'"),
            // DiskSim's own text: milliseconds and blocks.
            (b"0.500 0 1234 8 1\n", "one that begins with '0.500 0 1234 8 1'"),
            // The Alibaba format, which has no reader.
            (
                b"419,W,8792731648,16384,1577808144360767\n",
                "one that begins with '419,W,8792731648,16384,1577808144360767'",
            ),
            (&[0; 64], &format!("one that begins with '{}...'", "\\x00".repeat(40))),
        ];
        for (bytes, found) in refusals {
            let error = read(bytes, "t", None, &mut |_| ()).unwrap_err();
            let expected = "a trace in one of the formats \
                msr, msr-cut, mqsim, vscsi, spc, systor17, blkparse, fio";
            assert_eq!(error.to_string(), format!("t: expected {expected}, found {found}"));
        }
    }
}
