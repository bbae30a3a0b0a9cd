//! A survey as the text that a child hands to its parent, and the operator's own file of groups.
//!
//! ```text
//!   drive <TAB> key <TAB> sda,sdb <TAB> model <TAB> 1 <TAB> 30 <TAB> off
//!   group <TAB> id <TAB> name <TAB> md <TAB> redundant <TAB> idle <TAB> key <TAB> key ..
//! ```

use std::fmt;

use levelhead_units::{escaped, foreign};

use super::survey::{Kind, Redundancy, Survey, SurveyedDrive, SurveyedGroup};

/// Groups of a file, and drives of one of them.
const GROUPS_MAX: usize = 1024;
const GROUP_MAX: usize = 1024;

impl fmt::Display for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for drive in self.drives.values() {
            let SurveyedDrive { key, devices, model, is_rotational, timer, cdl } = drive;
            let timer = timer.map(|it| it.to_string()).unwrap_or_default();
            let cdl = match cdl {
                None => "",
                Some(false) => "off",
                Some(true) => "on",
            };
            let (key, model, turns) = (foreign(key), foreign(model), u8::from(*is_rotational));
            let devices = escaped(&devices.join(",")).into_owned();
            writeln!(f, "drive\t{key}\t{devices}\t{model}\t{turns}\t{timer}\t{cdl}")?;
        }
        for group in &self.groups {
            let redundant = match group.redundancy {
                Redundancy::Spare => "redundant",
                Redundancy::UsedUp => "used-up",
                Redundancy::None => "alone",
            };
            let busy = if group.is_rebuilding { "rebuilding" } else { "idle" };
            let (id, name, kind) = (foreign(&group.id), foreign(&group.name), group.kind.name());
            write!(f, "group\t{id}\t{name}\t{kind}\t{redundant}\t{busy}")?;
            for key in &group.members {
                write!(f, "\t{}", foreign(key))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl Survey {
    /// Reads what a survey shows itself as, one part or several; the last line of a text that was cut off is left out.
    /// `None` of another text.
    pub fn parse(text: &str) -> Option<Self> {
        let mut survey = Self::default();
        for line in text[..text.rfind('\n').map_or(0, |at| at + 1)].lines() {
            let fields: Vec<_> = line.split('\t').collect();
            match *fields {
                ["end"] => {}
                ["drive", key, devices, model, turns, timer, cdl] => {
                    let drive = SurveyedDrive {
                        key: key.to_owned(),
                        devices: devices.split(',').map(str::to_owned).collect(),
                        model: model.to_owned(),
                        is_rotational: turns == "1",
                        timer: timer.parse().ok(),
                        cdl: (!cdl.is_empty()).then_some(cdl == "on"),
                    };
                    survey.drives.insert(key.to_owned(), drive);
                }
                ["group", id, name, kind, redundant, busy, ref keys @ ..] => {
                    survey.groups.push(SurveyedGroup {
                        id: id.to_owned(),
                        name: name.to_owned(),
                        kind: Kind::ALL.iter().find(|(_, it)| *it == kind)?.0,
                        redundancy: match redundant {
                            "redundant" => Redundancy::Spare,
                            "alone" => Redundancy::None,
                            _ => Redundancy::UsedUp,
                        },
                        is_rebuilding: busy == "rebuilding",
                        members: keys.iter().map(|&key| key.to_owned()).collect(),
                    });
                }
                _ => return None,
            }
        }
        Some(survey)
    }

    /// Whether a text has all parts.
    pub fn is_whole(text: &str) -> bool {
        text.ends_with("end\n")
    }

    /// Takes the operator's groups instead of those that were found: a line a group, its name and the kernel's names or the keys of
    /// its drives, separated by blanks; `#` begins a remark.
    ///
    /// # Errors
    ///
    /// The line with a group that has no drive, too many of them, or the name of another one; or one group too many.
    pub fn take_groups(&mut self, file: &str) -> Result<(), String> {
        let mut groups = Vec::<SurveyedGroup>::new();
        for (at, line) in file.lines().enumerate() {
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            let Some(name) = words.next() else { continue };
            let device = |word: &str| {
                let name = word.strip_prefix("/dev/").unwrap_or(word);
                // One that is not there now is a member all the same.
                self.drives
                    .get(word)
                    .map(|it| it.key.as_str())
                    .or_else(|| self.key_of(name))
                    .map_or_else(|| foreign(word), str::to_owned)
            };
            let members: Vec<_> = words.map(device).collect();
            if members.is_empty() {
                return Err(format!("line {}: group {name} has no drive", at + 1));
            }
            if members.len() > GROUP_MAX {
                let count = members.len();
                return Err(format!(
                    "line {}: a group has at most {GROUP_MAX} drives, {name} has {count}",
                    at + 1
                ));
            }
            if groups.iter().any(|it| it.name == foreign(name)) {
                return Err(format!("line {}: group {name} is there already", at + 1));
            }
            if groups.len() == GROUPS_MAX {
                return Err(format!("line {}: there are at most {GROUPS_MAX} groups", at + 1));
            }
            groups.push(SurveyedGroup {
                id: foreign(name),
                name: foreign(name),
                kind: Kind::File,
                redundancy: Redundancy::Spare,
                is_rebuilding: false,
                members,
            });
        }
        self.groups = groups;
        Ok(())
    }
}
