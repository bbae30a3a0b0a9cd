//! An answer of Prometheus as it is read: each sample goes into its drive's window at once.
//!
//! - AN1. A string has at most [`STRING_MAX`] bytes: a longer one ends the reading before it is held.
//! - AN2. All groups together have at most [`Gather::CELLS_MAX`] drives times windows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, BufReader, Read};

use levelhead_fleet::detect::{Gather, Sample};
use levelhead_units::foreign;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::{Member, Members};

/// The most bytes of one string of an answer: a label, a value, an error.
const STRING_MAX: usize = 64 << 10;

/// An answer, as far as it matters; what the server says of itself is clean.
#[derive(Default)]
pub(super) struct Answer<'a> {
    pub(super) status: String,
    pub(super) error: String,
    pub(super) has_data: bool,
    pub(super) result_type: String,
    pub(super) gathered: Gathered<'a>,
}

/// Samples of members, by group, and how many series were of nobody.
#[derive(Default)]
pub(super) struct Gathered<'a> {
    pub(super) groups: BTreeMap<&'a str, Gather>,
    pub(super) strangers: usize,
    seen: BTreeSet<&'a Member>,
    /// Drives times windows of all groups (AN2).
    cells: usize,
}

/// Reads an answer.
pub(super) fn read(text: impl Read, members: &Members, unit_us: f64) -> Result<Answer<'_>, String> {
    let mut answer = Answer::default();
    let text = BufReader::with_capacity(64 << 10, ShortStrings { text, state: Place::Outside });
    let mut json = serde_json::Deserializer::from_reader(text);
    let target = Target { members, unit_us };
    let read =
        json.deserialize_map(Whole { answer: &mut answer, target }).and_then(|()| json.end());
    let wrong = |error: serde_json::Error| foreign(&error.to_string());
    read.map_err(|error| format!("this is not an answer of Prometheus: {}", wrong(error)))?;
    Ok(answer)
}

/// Whose samples are taken, and as what.
#[derive(Clone, Copy)]
struct Target<'a> {
    members: &'a Members,
    unit_us: f64,
}

struct Whole<'a, 'b> {
    answer: &'b mut Answer<'a>,
    target: Target<'a>,
}

impl<'de> Visitor<'de> for Whole<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object with status and data")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { answer, target } = self;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "status" => answer.status = foreign(&map.next_value::<String>()?),
                "error" => answer.error = foreign(&map.next_value::<String>()?),
                "data" => map.next_value_seed(Data { answer, target })?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The field `data`, which may be null.
struct Data<'a, 'b> {
    answer: &'b mut Answer<'a>,
    target: Target<'a>,
}

impl<'de> DeserializeSeed<'de> for Data<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Data<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object with resultType and result")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { answer, target } = self;
        answer.has_data = true;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "resultType" => answer.result_type = foreign(&map.next_value::<String>()?),
                "result" if matches!(answer.result_type.as_str(), "" | "matrix") => {
                    map.next_value_seed(AllSeries { gathered: &mut answer.gathered, target })?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The field `result` of a matrix.
struct AllSeries<'a, 'b> {
    gathered: &'b mut Gathered<'a>,
    target: Target<'a>,
}

impl<'de> DeserializeSeed<'de> for AllSeries<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for AllSeries<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of series")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { gathered, target } = self;
        while list.next_element_seed(OneSeries { gathered, target })?.is_some() {}
        Ok(())
    }
}

struct OneSeries<'a, 'b> {
    gathered: &'b mut Gathered<'a>,
    target: Target<'a>,
}

impl<'de> DeserializeSeed<'de> for OneSeries<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OneSeries<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object with metric and values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { gathered, target } = self;
        // Nothing until the labels have come, and then the member that they are of, if any.
        let mut found: Option<Option<&Member>> = None;
        while let Some(key) = map.next_key::<String>()? {
            match (key.as_str(), found) {
                ("metric", None) => {
                    let labels: BTreeMap<String, String> =
                        map.next_value_seed(Labels(&target.members.labels))?;
                    let member = target.members.of(&labels);
                    gathered.begin(member).map_err(A::Error::custom)?;
                    found = Some(member);
                }
                ("values", Some(Some(member))) => {
                    map.next_value_seed(Values { gathered, member, unit_us: target.unit_us })?;
                }
                ("metric", Some(_)) | ("values", None) => {
                    return Err(A::Error::custom(
                        "a series has its labels once, before its values",
                    ));
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        match found {
            Some(_) => Ok(()),
            None => Err(A::Error::missing_field("metric")),
        }
    }
}

/// The labels of a series, of which those are kept that members are known by.
struct Labels<'a>(&'a [String]);

impl<'de> DeserializeSeed<'de> for Labels<'_> {
    type Value = BTreeMap<String, String>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Labels<'_> {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object of labels")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut labels = BTreeMap::new();
        while let Some(key) = map.next_key::<String>()? {
            if self.0.contains(&key) {
                labels.insert(key, map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(labels)
    }
}

/// The values of a member's series: unix seconds and a number as text.
struct Values<'a, 'b> {
    gathered: &'b mut Gathered<'a>,
    member: &'a Member,
    unit_us: f64,
}

impl<'de> DeserializeSeed<'de> for Values<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Values<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { gathered, member, unit_us } = self;
        while let Some((at, value)) = list.next_element::<(f64, String)>()? {
            let latency_us = value.parse().unwrap_or(f64::NAN) * unit_us;
            let sample = Sample { at: at.floor() as i64, latency_us, load: 1.0, count: 1 };
            gathered.add(member, &sample).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

impl<'a> Gathered<'a> {
    /// A series begins, of that member or of nobody.
    fn begin(&mut self, member: Option<&'a Member>) -> Result<(), String> {
        let Some(member) = member else {
            self.strangers += 1;
            return Ok(());
        };
        if !self.seen.insert(member) {
            let Member { group, drive } = member;
            return Err(format!("two series are of drive {drive} of group {group}"));
        }
        self.groups.entry(&member.group).or_default();
        Ok(())
    }

    fn add(&mut self, member: &'a Member, sample: &Sample) -> Result<(), String> {
        let gather = self.groups.entry(&member.group).or_default();
        let before = gather.cell_count();
        gather.add(&member.drive, sample).map_err(|error| error.to_string())?;
        self.cells += gather.cell_count() - before;
        if self.cells > Gather::CELLS_MAX {
            let most = Gather::CELLS_MAX;
            return Err(format!("the groups have more than {most} drives times windows together"));
        }
        Ok(())
    }
}

/// JSON in which no string is too long (AN1).
struct ShortStrings<R> {
    text: R,
    state: Place,
}

/// Where a text of JSON has been read to.
#[derive(Clone, Copy)]
enum Place {
    Outside,
    /// In a string, behind this number of bytes of it.
    Inside(usize),
    /// The same, behind a backslash.
    Escaped(usize),
}

impl<R: Read> Read for ShortStrings<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.text.read(out)?;
        for byte in &out[..count] {
            self.state = match (self.state, byte) {
                (Place::Outside, b'"') => Place::Inside(0),
                (Place::Outside, _) => Place::Outside,
                (Place::Inside(_), b'"') => Place::Outside,
                (Place::Inside(length), _) if length == STRING_MAX => {
                    return Err(io::Error::other(format!(
                        "a string is longer than {STRING_MAX} bytes"
                    )));
                }
                (Place::Inside(length), b'\\') => Place::Escaped(length),
                (Place::Inside(length) | Place::Escaped(length), _) => Place::Inside(length + 1),
            };
        }
        Ok(count)
    }
}
