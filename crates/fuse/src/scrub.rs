//! A step of a scrub of a mounted filesystem: the name of an attribute of its root says where, and its value what was found.
//!
//! ```text
//!   system.levelhead.scrub.dr-.i.8001.3.0.0  -->  read 4301  damaged 2  repaired 2  lost 0  next i.8001.3.4096.0
//!                          |    |
//!                          |    +-- an inode: lead of its unit, its place there, the page, and whether a page before is lost;
//!                          |        or g and a group
//!                          +-- data, redundancy, metadata
//! ```

use std::path::Path;

use levelhead_fs::{Answer, ScrubParts, ScrubPlace, Scrubbed, What};
use levelhead_units::Lba;
use rustix::io::Errno;

/// What the names begin with.
const PREFIX: &str = "system.levelhead.scrub.";

/// The most bytes of an answer.
const TEXT_MAX: usize = 4096;

fn place_text(place: ScrubPlace) -> String {
    match place {
        ScrubPlace::Group(group) => format!("g.{group}"),
        ScrubPlace::Inode { lead, slot, page, was_damaged } => {
            format!("i.{}.{slot}.{page}.{}", lead.get(), u8::from(was_damaged))
        }
    }
}

fn parse_place(text: &str) -> Option<ScrubPlace> {
    let (kind, rest) = text.split_once('.')?;
    let mut numbers = rest.split('.').map(|number| number.parse::<u64>().ok());
    let mut next = || numbers.next().flatten();
    let place = match kind {
        "g" => ScrubPlace::Group(next()?),
        "i" => {
            let (lead, slot, page, was_damaged) = (next()?, next()?, next()?, next()?);
            let slot = usize::try_from(slot).ok().filter(|&slot| slot < levelhead_fs::INODES)?;
            let lead = Lba::new(lead);
            ScrubPlace::Inode { lead, slot, page, was_damaged: was_damaged == 1 }
        }
        _ => return None,
    };
    (place_text(place) == text).then_some(place)
}

fn name(place: ScrubPlace, parts: ScrubParts) -> String {
    let ScrubParts { data, redundancy, metadata } = parts;
    let letter = |is_wanted, letter| if is_wanted { letter } else { '-' };
    let parts: String =
        [letter(data, 'd'), letter(redundancy, 'r'), letter(metadata, 'm')].iter().collect();
    format!("{PREFIX}{parts}.{}", place_text(place))
}

/// What a name asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    place: ScrubPlace,
    parts: ScrubParts,
}

impl Asked {
    pub(crate) fn what(self) -> What {
        What::Scrub { place: self.place, parts: self.parts }
    }
}

pub(crate) fn parse_name(text: &str) -> Option<Asked> {
    let (parts, place) = text.strip_prefix(PREFIX)?.split_once('.')?;
    let &[data, redundancy, metadata] = parts.as_bytes() else { return None };
    let parts = ScrubParts {
        data: data == b'd',
        redundancy: redundancy == b'r',
        metadata: metadata == b'm',
    };
    let place = parse_place(place)?;
    (name(place, parts) == text).then_some(Asked { place, parts })
}

/// An answer as the attribute's value.
pub(crate) fn value(answer: Answer) -> Answer {
    let Answer::Scrubbed(Scrubbed { next, read, damaged, repaired, lost }) = answer else {
        return answer;
    };
    let next = next.map_or("-".to_owned(), place_text);
    let text =
        format!("read {read}\ndamaged {damaged}\nrepaired {repaired}\nlost {lost}\nnext {next}\n");
    Answer::Bytes(text.into_bytes())
}

fn parse(text: &str) -> Option<Scrubbed> {
    let figure = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned))
    };
    let number = |name: &str| figure(name)?.parse().ok();
    let next = match figure("next")?.as_str() {
        "-" => None,
        place => Some(parse_place(place)?),
    };
    Some(Scrubbed {
        next,
        read: number("read")?,
        damaged: number("damaged")?,
        repaired: number("repaired")?,
        lost: number("lost")?,
    })
}

/// A step of a scrub of the filesystem that is mounted on `point`; nothing if none of ours is mounted there.
///
/// # Errors
///
/// Only the superuser may scrub; or the filesystem does not answer.
pub fn scrub_step(
    point: &Path,
    place: ScrubPlace,
    parts: ScrubParts,
) -> std::io::Result<Option<Scrubbed>> {
    let mut bytes = vec![0; TEXT_MAX];
    match rustix::fs::getxattr(point, name(place, parts), &mut bytes) {
        Ok(count) => Ok(std::str::from_utf8(&bytes[..count]).ok().and_then(parse)),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_and_found_is_read_as_it_was_written() {
        let inode =
            ScrubPlace::Inode { lead: Lba::new(8_001), slot: 7, page: 4_096, was_damaged: true };
        let some = ScrubParts { data: true, redundancy: false, metadata: true };
        for place in [ScrubPlace::FIRST, ScrubPlace::Group(77), inode] {
            for parts in [ScrubParts::ALL, some] {
                let name = name(place, parts);
                assert_eq!(parse_name(&name), Some(Asked { place, parts }), "{name}");
                assert_eq!(parse_name(&name[1..]), None);
                assert_eq!(parse_name(&format!("{name}0.")), None);
            }
            for next in [Some(place), None] {
                let found = Scrubbed { next, read: 1, damaged: 2, repaired: 3, lost: u64::MAX };
                let Answer::Bytes(text) = value(Answer::Scrubbed(found)) else { panic!("a text") };
                assert_eq!(parse(std::str::from_utf8(&text).unwrap()), Some(found));
            }
        }
        assert_eq!(parse_name("system.levelhead.scrub.drm.i.1.8.0.0"), None);
    }
}
