//! Which drives there are and which of them belong together, asked of children again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use levelhead_fleet::erc::Role;
use levelhead_fleet::watch::{Group, MEMBERS_MAX, Member};
use levelhead_host::fleet::{Look, Redundancy, Source, Survey, SurveyedDrive, SurveyedGroup};

use super::audits::Standing;
use super::{GroupLine, Host};

/// Between two surveys, and how long one may take.
const PERIOD: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(30);

/// Groups that are watched at most.
const GROUPS_MAX: usize = 1024;

/// See the module.
pub(super) struct Finder {
    host: Host,
    /// The text of the operator's groups.
    file: Option<String>,
    survey: Survey,
    surveyor: Source,
    zpool: Source,
    /// What `zpool` has said last.
    pools: Option<String>,
    next: Instant,
    /// How often each of the two has been heard or given up, as far as that matters.
    is_surveyed: bool,
    are_pools_known: bool,
    /// Whether the last survey was cut off or could not be made, and whether `zpool` has not answered: what is in no group may be in
    /// one that was not found.
    is_survey_partial: bool,
    is_pools_answer_old: bool,
    /// What was said of each source, until it answers again.
    said: BTreeSet<&'static str>,
    /// Groups that were told of, by what identifies them.
    told: BTreeMap<String, GroupLine>,
}

/// What a look has brought.
#[derive(Default)]
pub(super) struct Found {
    /// Whether drives or groups may be others than before.
    pub(super) is_new: bool,
    pub(super) notes: Vec<String>,
    /// Groups that are new, have changed or are gone.
    pub(super) groups: Vec<GroupLine>,
}

impl Finder {
    pub(super) fn new(host: Host, file: Option<String>) -> Self {
        Self {
            host,
            file,
            survey: Survey::default(),
            surveyor: Source::default(),
            zpool: Source::default(),
            pools: None,
            next: Instant::now(),
            is_surveyed: false,
            are_pools_known: false,
            is_survey_partial: false,
            is_pools_answer_old: false,
            said: BTreeSet::new(),
            told: BTreeMap::new(),
        }
    }

    /// Whether a child is to be looked at soon.
    pub(super) fn is_waiting(&self) -> bool {
        [&self.surveyor, &self.zpool].iter().any(|it| it.is_busy() && !it.is_given_up())
    }

    /// Whether everything that can be known is.
    pub(super) fn is_ready(&self) -> bool {
        self.is_surveyed && self.are_pools_known
    }

    /// The folder of the drives' files.
    pub(super) fn dev(&self) -> PathBuf {
        self.host.root.join("dev")
    }

    pub(super) fn survey(&self) -> &Survey {
        &self.survey
    }

    /// Takes answers, and asks anew when that is due. Never waits.
    pub(super) fn look(&mut self, now: Instant) -> Found {
        let mut found = Found::default();
        if now >= self.next {
            self.next = now + PERIOD;
            self.ask(&mut found);
        }
        let survey = match self.surveyor.look() {
            Look::Answered(text) if Survey::is_whole(&text) => {
                self.said.remove("survey");
                self.is_survey_partial = false;
                Survey::parse(&text)
            }
            Look::Answered(part) => self.part_of(&part, "it ended early", &mut found),
            Look::Failed { why, part } => self.part_of(&part, &why, &mut found),
            Look::Idle | Look::Waiting => None,
        };
        let pools = match self.zpool.look() {
            Look::Answered(text) => match Survey::default().add_pools(&text) {
                Ok(()) => Some(text),
                Err(error) => {
                    let sentence = format!("{error}; pools are as they were: it takes OpenZFS 2.3");
                    self.fail_pools(sentence, &mut found);
                    None
                }
            },
            Look::Failed { why, .. } => {
                self.fail_pools(format!("zpool: {why}; pools are as they were"), &mut found);
                None
            }
            Look::Idle | Look::Waiting => None,
        };
        self.is_surveyed |= survey.is_some();
        let is_new = survey.is_some() || pools.is_some();
        if let Some(text) = pools {
            self.are_pools_known = true;
            self.is_pools_answer_old = false;
            self.pools = Some(text);
        }
        if is_new {
            self.take(survey.unwrap_or_else(|| self.survey.clone()), &mut found);
        }
        found
    }

    fn ask(&mut self, found: &mut Found) {
        if let [program, arguments @ ..] = &*self.host.surveyor {
            let mut command = Command::new(program);
            command.args(arguments).arg(&self.host.root);
            if let Err(error) = self.surveyor.ask(command, PATIENCE) {
                self.is_surveyed = true;
                self.is_survey_partial = true;
                self.note("survey", format!("groups cannot be looked for: {error}"), found);
            }
        }
        // A host without ZFS has no such folder, and need not be asked again and again.
        if !self.host.root.join("proc/spl/kstat/zfs").exists() {
            self.are_pools_known = true;
            self.is_pools_answer_old = false;
            self.pools = None;
            return;
        }
        let mut command = Command::new(&self.host.zpool);
        command.args(["status", "-P", "-L", "-j"]);
        if let Err(error) = self.zpool.ask(command, PATIENCE) {
            self.fail_pools(format!("pools cannot be asked for: {error}"), found);
        }
    }

    fn fail_pools(&mut self, sentence: String, found: &mut Found) {
        self.are_pools_known = true;
        self.is_pools_answer_old = true;
        self.note("zpool", sentence, found);
    }

    /// What a survey said before it broke off, over what was known: groups that it did not come to are as they were.
    fn part_of(&mut self, part: &str, why: &str, found: &mut Found) -> Option<Survey> {
        self.is_surveyed = true;
        self.is_survey_partial = true;
        let sentence = format!("the survey of groups: {why}; what it did not say is as it was");
        self.note("survey", sentence, found);
        let part = Survey::parse(part)?;
        let mut survey = self.survey.clone();
        survey.merge(part);
        Some(survey)
    }

    /// Says something once, until the source answers again.
    fn note(&mut self, source: &'static str, sentence: String, found: &mut Found) {
        if self.said.insert(source) {
            found.notes.push(sentence);
        }
    }

    fn take(&mut self, mut survey: Survey, found: &mut Found) {
        if let Some(file) = &self.file {
            // It was looked through when the watch began.
            if let Err(error) = survey.take_groups(file) {
                self.note("groups", error, found);
            }
        } else if let Some(pools) = &self.pools {
            match survey.add_pools(pools) {
                Ok(()) => drop(self.said.remove("zpool")),
                Err(error) => {
                    let sentence = format!("pools are not known ({error}): it takes OpenZFS 2.3");
                    self.note("zpool", sentence, found);
                }
            }
        }
        let widest = survey.groups.iter().map(|it| it.members.len()).max().unwrap_or(0);
        if survey.groups.len() > GROUPS_MAX || widest > MEMBERS_MAX {
            let sentence = format!(
                "at most {GROUPS_MAX} groups of {MEMBERS_MAX} drives are watched; there are more"
            );
            self.note("bound", sentence, found);
            survey.groups.truncate(GROUPS_MAX);
        }
        survey.tell_apart();
        self.survey = survey;
        found.is_new = true;
        let now = self.survey.groups.iter().map(|it| (it.id.clone(), self.line(it)));
        let now: BTreeMap<_, _> = now.collect();
        for (id, line) in &self.told {
            if !now.contains_key(id) {
                found.groups.push(GroupLine { is_gone: true, ..line.clone() });
            }
        }
        let is_news = |(id, line): &(&String, &GroupLine)| self.told.get(*id) != Some(*line);
        found.groups.extend(now.iter().filter(is_news).map(|(_, line)| line.clone()));
        self.told = now;
    }

    fn line(&self, group: &SurveyedGroup) -> GroupLine {
        GroupLine {
            name: group.name.clone(),
            kind: group.kind.name(),
            is_redundant: group.redundancy != Redundancy::None,
            devices: group.members.iter().map(|key| self.device(key)).collect(),
            is_gone: false,
        }
    }

    /// The kernel's name of a drive; of one that is not there its key.
    fn device(&self, key: &String) -> String {
        let drive = self.survey.drives.get(key);
        drive.and_then(|it| it.devices.first()).unwrap_or(key).clone()
    }

    pub(super) fn groups(&self) -> Vec<Group> {
        let member = |key: &String| {
            let model = self.survey.drives.get(key).map(|it| it.model.clone());
            let device = self.device(key);
            Member { key: key.clone(), device, model: model.unwrap_or_default() }
        };
        let group = |it: &SurveyedGroup| Group {
            id: it.id.clone(),
            name: it.name.clone(),
            members: it.members.iter().map(member).collect(),
            is_rebuilding: it.is_rebuilding,
        };
        self.survey.groups.iter().map(group).collect()
    }

    /// Drives that belong to a group.
    pub(super) fn members(&self) -> impl Iterator<Item = &SurveyedDrive> {
        let keys: BTreeSet<_> = self.survey.groups.iter().flat_map(|it| &it.members).collect();
        keys.into_iter().filter_map(|key| self.survey.drives.get(key))
    }

    /// The groups of a drive, and what stands behind it.
    pub(super) fn standing(&self, key: &str) -> Standing {
        let of = |it: &&SurveyedGroup| it.members.iter().any(|member| member == key);
        let groups: Vec<_> = self.survey.groups.iter().filter(of).collect();
        let all = |redundancy| groups.iter().all(|it| it.redundancy == redundancy);
        // A drive with parts in several groups is worth what the poorest of them is.
        let role = if groups.is_empty() {
            let is_certain = !self.is_survey_partial && !self.is_pools_answer_old;
            if is_certain { Role::Alone } else { Role::Unknown }
        } else if all(Redundancy::Spare) {
            Role::Redundant
        } else if all(Redundancy::None) {
            Role::Alone
        } else {
            Role::Unknown
        };
        Standing { groups: groups.into_iter().map(|it| it.name.clone()).collect(), role }
    }
}
