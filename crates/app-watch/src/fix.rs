//! Sets what does not suit a drive's role: limits of error recovery and the kernel's timer, after it was asked whether to.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use levelhead_fleet::erc::Role;
use levelhead_host::fleet::{Fix, FixAsk, Identity, fix_drive, udev_rule};
use levelhead_host::words;

use super::files::read_groups;
use super::keeper::Keeper;
use super::{DriveAudit, Host, LOOK};
use levelhead_app::{AppError, Show, Stop};

/// How long the survey and all pages may take before what has not answered is left out.
const AUDIT_MAX: Duration = Duration::from_secs(300);

/// How long each command of `smartctl` may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What would be set.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Drives that can be mended.
    mended: Vec<DriveAudit>,
    /// Those that belong to no group that is known.
    uncertain: Vec<DriveAudit>,
    /// Those that have said nothing.
    silent: Vec<DriveAudit>,
    audited: usize,
}

impl Plan {
    /// Whether there is nothing to set.
    pub fn is_empty(&self) -> bool {
        self.mended.is_empty()
    }
}

/// What was set, as it was read back.
#[derive(Clone, Debug)]
pub struct Fixed {
    drives: Vec<FixedDrive>,
}

#[derive(Clone, Debug)]
struct FixedDrive {
    audit: DriveAudit,
    fix: Result<Fix, String>,
}

/// Finds what does not suit and, if `is_wanted` says so of the plan, sets it; `None` where nothing was set.
///
/// # Errors
///
/// The groups cannot be read, or `smartctl` cannot be run.
pub fn fix(
    host: &Host,
    stop: &Stop,
    is_wanted: &mut dyn FnMut(&Plan) -> Result<bool, AppError>,
) -> Result<Option<Fixed>, AppError> {
    let Some(program) = &host.smartctl else {
        return Err(AppError::usage("--fix sets limits by smartctl, which --no-smart leaves out"));
    };
    let groups = read_groups(host.groups.as_deref())?;
    let mut keeper = Keeper::new(host, groups, levelhead_fleet::watch::Saved::default());
    let end = Instant::now() + AUDIT_MAX;
    while !stop.is_wished() && Instant::now() < end {
        let _looked = keeper.look(Instant::now());
        if keeper.is_audited() {
            break;
        }
        stop.wait_until(Instant::now() + LOOK);
    }
    let plan = plan(keeper.audits());
    if stop.is_wished() || !is_wanted(&plan)? || plan.is_empty() {
        return Ok(None);
    }
    let mut drives = Vec::new();
    for audit in plan.mended {
        if stop.is_wished() {
            break;
        }
        let fix = fix_drive(&FixAsk {
            program,
            root: &host.root,
            devices: &audit.devices,
            role: audit.audited.role,
            patience: PATIENCE,
        });
        drives.push(FixedDrive { audit, fix });
    }
    Ok(Some(Fixed { drives }))
}

fn plan(audits: Vec<DriveAudit>) -> Plan {
    let audited = audits.len();
    let (silent, said): (Vec<_>, Vec<_>) = audits.into_iter().partition(|it| it.silent.is_some());
    let has_mend = |it: &DriveAudit| it.findings.iter().any(|it| it.mend().is_some());
    // What is in no group that is known may be in one that nothing here knows, as another program's array.
    let is_certain = |it: &DriveAudit| !it.groups.is_empty();
    let (mended, uncertain) = said.into_iter().filter(has_mend).partition(is_certain);
    Plan { mended, uncertain, silent, audited }
}

impl Show for Plan {
    fn text(&self) -> String {
        let mut text = String::new();
        for audit in &self.silent {
            let why = audit.silent.as_deref().unwrap_or_default();
            text += &format!("{}: left out, {why}\n", audit.device());
        }
        for audit in &self.uncertain {
            text += &format!(
                "{audit}\n    left out: it is in no group that is known here; if no other has its data, set it by smartctl\n"
            );
        }
        for audit in &self.mended {
            text += &format!("{audit}\n");
        }
        let (mended, audited) = (self.mended.len(), words::counted(self.audited, "drive"));
        let have = if mended == 1 { "has" } else { "have" };
        text + &format!("{mended} of {audited} {have} something to set\n")
    }

    fn json(&self) -> String {
        let audits: Vec<_> = self.mended.iter().map(DriveAudit::json).collect();
        serde_json::to_string(&audits).expect("these are plain values")
    }
}

impl Fixed {
    /// Drives of which something could not be set.
    pub fn failed_count(&self) -> usize {
        self.drives.iter().filter(|it| it.fix.is_err()).count()
    }
}

impl FixedDrive {
    fn identity<'a>(&'a self, fix: &'a Fix) -> Option<Identity<'a>> {
        let DriveAudit { key, devices, .. } = &self.audit;
        // A drive without a WWID goes by the kernel's name, which may be another one's after the next start.
        if devices.contains(key) {
            return fix.serial.as_deref().map(Identity::Serial);
        }
        Some(Identity::Wwid(key))
    }

    fn text(&self) -> String {
        let device = self.audit.device();
        let fix = match &self.fix {
            Ok(fix) => fix,
            Err(error) => return format!("{device}: not set, {error}\n"),
        };
        let mut text = format!("{device}: read back: error recovery {}", fix.erc.name());
        for (device, timer) in self.audit.devices.iter().zip(&fix.timers) {
            let timer = timer.map_or("not read".to_owned(), |it| format!("{it} s"));
            write!(text, ", kernel's timer of {device} {timer}").expect("a string");
        }
        let role = self.audit.audited.role;
        text += match (role, fix.is_set) {
            (Role::Redundant, false) => "; the drive takes no limit, so the kernel waits longer",
            (Role::Alone, false) => "; the drive keeps its limit",
            (Role::Unknown, _) | (Role::Redundant | Role::Alone, true) => "",
        };
        match self.identity(fix).and_then(|identity| udev_rule(identity, role, fix)) {
            Some(rule) => text + "\n" + &rule,
            None => {
                text + "\nno rule for udev: the drive has neither a WWID nor a serial number to know it by\n"
            }
        }
    }
}

impl Show for Fixed {
    fn text(&self) -> String {
        let lines: String = self.drives.iter().map(FixedDrive::text).collect();
        let file = PathBuf::from("/etc/udev/rules.d").join("60-levelhead-erc.rules");
        let kept: &Path = &file;
        format!(
            "{lines}a power cycle resets limits: the rules above, in {}, set them again\n",
            kept.display()
        )
    }

    fn json(&self) -> String {
        let drives: Vec<_> = self.drives.iter().map(FixedDrive::text).collect();
        serde_json::to_string(&drives).expect("these are plain values")
    }
}
