//! SCSI log page 03h: what a drive counts about its reads.
//!
//! ```text
//!   0  page code (low 6 bits)   2..4  length   4..  parameters, one after the other:
//!                                                     0..2  code   3  length   4..  big-endian count
//! ```
//!
//! Reference: SBC-4 and SPC-6, error counter log pages.

use super::scsi::{self, u16_be};
use super::{Access, Fact};

const PAGE_READ_ERRORS: u8 = 0x03;
const ROOM: u16 = 1024;

/// Counts over a drive's life; each may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadErrors {
    /// Errors corrected without substantial delay (parameter 0000h): on the fly.
    pub corrected_fast: Option<u64>,
    /// Errors corrected with possible delays (0001h).
    pub corrected_delayed: Option<u64>,
    /// Times a read was repeated (0002h).
    pub rereads: Option<u64>,
    /// Bytes read (0005h).
    pub bytes: Option<u64>,
    /// Errors that nothing corrected (0006h).
    pub uncorrected: Option<u64>,
}

/// Asks a drive for the page.
pub(crate) fn ask(device: &dyn Access) -> Fact<ReadErrors> {
    let page = scsi::fetch(device, &scsi::log_sense(PAGE_READ_ERRORS, 0, ROOM), ROOM)?;
    parse(&page).ok_or_else(|| "the drive returned another page".to_owned())
}

/// The counts in a page; `None` if it is another one.
pub(crate) fn parse(page: &[u8]) -> Option<ReadErrors> {
    if page.first()? & 0x3F != PAGE_READ_ERRORS {
        return None;
    }
    let len = usize::from(u16_be(page, 2)?);
    let mut rest = page.get(4..)?;
    rest = &rest[..len.min(rest.len())];
    let mut found = ReadErrors::default();
    while let Some((header, after)) = rest.split_first_chunk::<4>() {
        let len = usize::from(header[3]);
        let Some(value) = after.get(..len) else { break };
        rest = &after[len..];
        let field = match u16::from_be_bytes([header[0], header[1]]) {
            0x0000 => &mut found.corrected_fast,
            0x0001 => &mut found.corrected_delayed,
            0x0002 => &mut found.rereads,
            0x0005 => &mut found.bytes,
            0x0006 => &mut found.uncorrected,
            _ => continue,
        };
        *field = number(value);
    }
    Some(found)
}

/// A big-endian number; `None` if there is none or it has no place in 64 bits.
fn number(bytes: &[u8]) -> Option<u64> {
    let zeroes = bytes.len().saturating_sub(8);
    let (high, low) = bytes.split_at(zeroes);
    let fits = !bytes.is_empty() && high.iter().all(|&byte| byte == 0);
    fits.then(|| low.iter().fold(0, |value, &byte| (value << 8) | u64::from(byte)))
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::devices::fake::FakeDevice;

    /// A page with these parameters, each as wide as said.
    pub(crate) fn page(parameters: &[(u16, usize, u64)]) -> Vec<u8> {
        let mut page = vec![PAGE_READ_ERRORS, 0, 0, 0];
        for (code, width, value) in parameters {
            page.extend(code.to_be_bytes());
            page.extend([0x02, *width as u8]);
            page.extend(&value.to_be_bytes()[8 - width..]);
        }
        let len = (page.len() - 4) as u16;
        page[2..4].copy_from_slice(&len.to_be_bytes());
        page
    }

    #[test]
    fn every_counter_is_read_whatever_its_width() {
        let bytes = page(&[
            (0, 4, 7),
            (1, 8, 8),
            (2, 2, 513),
            (3, 4, 99),
            (4, 4, 99),
            (5, 8, 1 << 40),
            (6, 1, 3),
            (0x8000, 4, 1),
        ]);
        let expected = ReadErrors {
            corrected_fast: Some(7),
            corrected_delayed: Some(8),
            rereads: Some(513),
            bytes: Some(1 << 40),
            uncorrected: Some(3),
        };
        assert_eq!(parse(&bytes), Some(expected));
        let device = FakeDevice::default().page(&[0x4D, 0, 0x43], &bytes);
        assert_eq!(ask(&device), Ok(expected));
        // Cut off in the middle of the bytes read: what came before counts.
        let cut = ReadErrors { bytes: None, uncorrected: None, ..expected };
        assert_eq!(parse(&bytes[..bytes.len() - 20]), Some(cut));
    }

    #[test]
    fn nonsense_gives_nothing() {
        assert_eq!(parse(&[]), None);
        assert_eq!(parse(&[3]), None);
        assert_eq!(parse(&[2, 0, 0, 0]), None);
        assert_eq!(parse(&[3, 0, 0xFF, 0xFF]), Some(ReadErrors::default()));
        assert_eq!(
            parse(&[3, 0, 0, 4, 0, 1, 0, 0]),
            Some(ReadErrors::default()),
            "no bytes, no count"
        );
        let mut wide = vec![3, 0, 0, 13, 0, 1, 0, 9, 1];
        wide.extend([0; 8]);
        assert_eq!(parse(&wide), Some(ReadErrors::default()), "more than 64 bits");
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            parse(&bytes);
        }

        #[test]
        fn what_was_put_in_comes_out(values in prop::collection::vec((0_u16..8, 1_usize..=8, any::<u64>()), 0..20)) {
            let values: Vec<_> =
                values.into_iter().map(|(code, width, value)| (code, width, value >> (64 - 8 * width))).collect();
            let found = parse(&page(&values)).unwrap();
            let last = |code| values.iter().rev().find(|(c, ..)| *c == code).map(|(.., value)| *value);
            prop_assert_eq!(found.rereads, last(2));
            prop_assert_eq!(found.bytes, last(5));
        }
    }
}
