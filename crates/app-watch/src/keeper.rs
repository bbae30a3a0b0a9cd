//! What both a watch and one look at a host are made of: groups, samples, audits.

use std::time::Instant;

use levelhead_fleet::detect::Kind;
use levelhead_fleet::watch::{Event, Sample, Saved, Watch};
use levelhead_host::fleet::{Auditor, Sampler};

use super::audits::DriveAudit;
use super::finder::Finder;
use super::{GroupLine, Host};

/// See the module.
pub(super) struct Keeper {
    pub(super) finder: Finder,
    pub(super) watch: Watch,
    sampler: Sampler,
    auditor: Option<Auditor>,
}

/// What a look has brought.
pub(super) struct Looked {
    pub(super) notes: Vec<String>,
    pub(super) groups: Vec<GroupLine>,
    /// Whether audits may be others than before.
    pub(super) is_audit_new: bool,
}

impl Keeper {
    pub(super) fn new(host: &Host, groups: Option<String>, saved: Saved) -> Self {
        Self {
            watch: Watch::new(Box::new(|count| Kind::Level.detector(count)), saved),
            sampler: Sampler::new(&host.root),
            auditor: host.smartctl.clone().map(Auditor::new),
            finder: Finder::new(host.clone(), groups),
        }
    }

    /// Whether a child is to be looked at soon.
    pub(super) fn is_waiting(&self) -> bool {
        self.finder.is_waiting() || self.auditor.as_ref().is_some_and(Auditor::is_waiting)
    }

    pub(super) fn has_no_group(&self) -> bool {
        self.finder.survey().groups.is_empty()
    }

    /// Whether every drive has said what it has to say of its error recovery.
    pub(super) fn is_audited(&self) -> bool {
        self.finder.is_ready() && self.auditor.as_ref().is_none_or(Auditor::is_done)
    }

    /// Takes what children have answered, and asks anew. Never waits.
    pub(super) fn look(&mut self, now: Instant) -> Looked {
        let found = self.finder.look(now);
        if found.is_new {
            self.take_groups();
        }
        let has_answered = self.auditor.as_mut().is_some_and(Auditor::advance);
        let is_audit_new = has_answered || found.is_new;
        Looked { notes: found.notes, groups: found.groups, is_audit_new }
    }

    fn take_groups(&mut self) {
        self.watch.handle_groups(&self.finder.groups());
        let members = self.finder.members().map(|it| (it.key.clone(), it.devices.clone()));
        self.sampler.handle_drives(members);
        if let Some(auditor) = &mut self.auditor {
            let dev = self.finder.dev();
            let drives = self.finder.survey().drives.values();
            auditor.handle_drives(
                drives.filter_map(|it| Some((it.key.clone(), dev.join(it.devices.first()?)))),
            );
        }
    }

    /// Takes a sample, at `now` in unix seconds.
    pub(super) fn sample(&mut self, now: i64) -> Vec<Event> {
        let sample = self.sampler.sample();
        self.take_sample(now, &sample)
    }

    /// The counters as they are.
    pub(super) fn counters(&mut self) -> Sample {
        self.sampler.sample()
    }

    pub(super) fn take_sample(&mut self, now: i64, sample: &Sample) -> Vec<Event> {
        self.watch.handle_sample(now, sample);
        std::iter::from_fn(|| self.watch.poll()).collect()
    }

    /// What is known of each drive's error recovery, and what of that does not suit its role.
    pub(super) fn audits(&self) -> Vec<DriveAudit> {
        let Some(auditor) = &self.auditor else { return Vec::new() };
        let audit = |(key, audit)| {
            let drive = self.finder.survey().drives.get(key)?;
            Some(DriveAudit::new(drive, self.finder.standing(key), audit))
        };
        auditor.audits().filter_map(audit).collect()
    }
}
