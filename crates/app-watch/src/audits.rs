//! A drive's error recovery in the light of the redundancy behind it, as a line and as JSON.

use std::fmt;

use levelhead_fleet::erc::{self, Cdl, Finding, Role};
use levelhead_fleet::smart::{Erc, Limit, Page, Smr};
use levelhead_host::fleet::{Audit, SurveyedDrive};
use serde::Serialize;

/// Where a drive stands.
pub(super) struct Standing {
    pub(super) groups: Vec<String>,
    pub(super) role: Role,
}

/// What is known of one drive.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveAudit {
    /// What identifies it.
    pub key: String,
    /// The kernel's names of the paths to it.
    pub devices: Vec<String>,
    /// The groups that it belongs to.
    pub groups: Vec<String>,
    /// What the audit goes by.
    pub audited: erc::Audited,
    /// What does not suit its role.
    pub findings: Vec<Finding>,
    /// Why it has said nothing, if so.
    pub silent: Option<String>,
}

impl DriveAudit {
    pub(super) fn new(drive: &SurveyedDrive, standing: Standing, audit: &Audit) -> Self {
        let (page, silent) = match audit {
            Audit::Said(page) => ((**page).clone(), None),
            Audit::NotAsked => (Page::default(), Some("it has not answered yet".to_owned())),
            Audit::NoAnswer(why) => (Page::default(), Some(why.clone())),
        };
        let audited = erc::Audited {
            role: standing.role,
            erc: page.erc,
            timer: drive.timer,
            cdl: match drive.cdl {
                None => Cdl::None,
                Some(false) => Cdl::Off,
                Some(true) => Cdl::On,
            },
            write_cache: page.write_cache,
            smr: page.smr,
            rotation: page.rotation,
        };
        let findings = erc::audit(&audited);
        Self {
            key: drive.key.clone(),
            devices: drive.devices.clone(),
            groups: standing.groups,
            audited,
            findings,
            silent,
        }
    }

    /// The kernel's name for it.
    pub fn device(&self) -> &str {
        self.devices.first().map_or(&self.key, String::as_str)
    }

    /// As JSON.
    pub(super) fn json(&self) -> AuditJson<'_> {
        let erc::Audited { role, erc, timer, cdl, write_cache, smr, .. } = self.audited;
        AuditJson {
            kind: "audit",
            drive: &self.key,
            devices: &self.devices,
            groups: &self.groups,
            role: role_name(role),
            erc: erc.name(),
            erc_read_seconds: erc.read_seconds(),
            erc_write_seconds: write_seconds(erc),
            timeout_seconds: timer,
            cdl: cdl_name(cdl),
            write_cache,
            smr: smr_name(smr),
            silent: self.silent.as_deref(),
            findings: self
                .findings
                .iter()
                .map(|it| FindingJson { text: it.to_string(), mend: it.mend() })
                .collect(),
        }
    }
}

/// `redundant`, `alone` or `unknown`.
pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::Redundant => "redundant",
        Role::Alone => "alone",
        Role::Unknown => "unknown",
    }
}

fn cdl_name(cdl: Cdl) -> &'static str {
    match cdl {
        Cdl::None => "none",
        Cdl::Off => "off",
        Cdl::On => "on",
    }
}

fn smr_name(smr: Smr) -> &'static str {
    match smr {
        Smr::NoSign => "no-sign",
        Smr::Likely => "likely",
        Smr::Zoned => "zoned",
    }
}

fn write_seconds(erc: Erc) -> Option<f64> {
    match erc {
        Erc::Limits { write: Limit::Tenths(tenths), .. } => Some(f64::from(tenths) / 10.0),
        Erc::Limits { write: Limit::Off, .. } | Erc::NotRead | Erc::NoSct | Erc::SctWithoutErc => {
            None
        }
    }
}

/// One line: what is set, and below it what does not suit the role.
impl fmt::Display for DriveAudit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let erc::Audited { role, erc, timer, cdl, write_cache, smr, .. } = self.audited;
        write!(f, "{}", self.device())?;
        if self.key != self.device() {
            write!(f, " ({})", self.key)?;
        }
        match role {
            Role::Redundant => write!(f, ", redundant in {}", self.groups.join(", "))?,
            Role::Alone => write!(f, ", alone on its data")?,
            Role::Unknown => write!(f, ", whether others hold its data is not known")?,
        }
        write!(f, ": error recovery {}", erc.name())?;
        match timer {
            Some(timer) => write!(f, ", kernel's timer {timer} s")?,
            None => write!(f, ", kernel's timer not read")?,
        }
        match cdl {
            Cdl::None => write!(f, ", no duration limits")?,
            Cdl::Off => write!(f, ", duration limits off")?,
            Cdl::On => write!(f, ", duration limits on")?,
        }
        match write_cache {
            Some(true) => write!(f, ", write cache on")?,
            Some(false) => write!(f, ", write cache off")?,
            None => write!(f, ", write cache not read")?,
        }
        match smr {
            Smr::NoSign => {}
            Smr::Likely => write!(f, ", shingled it seems")?,
            Smr::Zoned => write!(f, ", shingled")?,
        }
        if let Some(silent) = &self.silent {
            write!(f, " ({silent})")?;
        }
        for finding in &self.findings {
            write!(f, "\n  {}: {finding}", self.device())?;
            if let Some(mend) = finding.mend() {
                write!(f, "; {mend}")?;
            }
        }
        Ok(())
    }
}

/// See `docs/watch.md`.
#[derive(Serialize)]
pub(super) struct AuditJson<'a> {
    kind: &'static str,
    drive: &'a str,
    devices: &'a [String],
    groups: &'a [String],
    role: &'static str,
    erc: String,
    erc_read_seconds: Option<f64>,
    erc_write_seconds: Option<f64>,
    timeout_seconds: Option<f64>,
    cdl: &'static str,
    write_cache: Option<bool>,
    smr: &'static str,
    silent: Option<&'a str>,
    findings: Vec<FindingJson>,
}

#[derive(Serialize)]
struct FindingJson {
    text: String,
    mend: Option<&'static str>,
}
