//! What each drive says of its error recovery, asked by `smartctl`, and how that is set.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use levelhead_fleet::erc::Role;
use levelhead_fleet::smart::{Erc, Limit, Page, read_page};

use super::child::{Look, Source};

/// How long one page may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a drive is asked.
const PERIOD: Duration = Duration::from_hours(24);

/// The same of one that slept when it was asked.
const PERIOD_ASLEEP: Duration = Duration::from_hours(1);

/// Drives that are asked at a time: each answer may wait for the heads.
const ASKED_MAX: usize = 2;

/// What is set: tenths of a second, and seconds of the kernel's timer.
const LIMIT_SET: u16 = 70;
const TIMER_SET: u32 = 30;
const TIMER_WITHOUT_LIMIT: u32 = 180;

/// What is known of one drive.
#[derive(Clone, Debug, PartialEq)]
pub enum Audit {
    /// It was not asked yet.
    NotAsked,
    /// What it said.
    Said(Box<Page>),
    /// It did not answer in time, or `smartctl` could not be run.
    NoAnswer(String),
}

/// Asks each drive once a day, a few at a time and never one that still owes an answer.
#[derive(Debug)]
pub struct Auditor {
    program: PathBuf,
    drives: BTreeMap<String, Asked>,
}

#[derive(Debug)]
struct Asked {
    device: PathBuf,
    source: Source,
    audit: Audit,
    next: Instant,
}

impl Auditor {
    /// By this `smartctl`; no drive yet.
    pub fn new(program: PathBuf) -> Self {
        Self { program, drives: BTreeMap::new() }
    }

    /// These are the drives now: keys with the files of their devices.
    pub fn handle_drives(&mut self, drives: impl IntoIterator<Item = (String, PathBuf)>) {
        let mut olds = std::mem::take(&mut self.drives);
        for (key, device) in drives {
            let now = Instant::now();
            let new = Asked {
                device: PathBuf::new(),
                source: Source::default(),
                audit: Audit::NotAsked,
                next: now,
            };
            let old = olds.remove(&key).unwrap_or(new);
            self.drives.insert(key, Asked { device, ..old });
        }
    }

    /// Takes answers and asks those whose turn it is. Never waits. Returns whether a drive has answered or failed to.
    pub fn advance(&mut self) -> bool {
        let now = Instant::now();
        let (mut busy, mut has_answered) = (0, false);
        for asked in self.drives.values_mut() {
            match asked.source.look() {
                Look::Idle | Look::Waiting => {}
                Look::Answered(page) if is_asleep(&page) => {
                    asked.next = now + PERIOD_ASLEEP;
                    // What it said when it was awake still holds.
                    if !matches!(asked.audit, Audit::Said(_)) {
                        asked.audit = Audit::NoAnswer("it sleeps".to_owned());
                    }
                    has_answered = true;
                }
                Look::Answered(page) => {
                    asked.audit = Audit::Said(Box::new(read_page(&page)));
                    has_answered = true;
                }
                Look::Failed { why, .. } => {
                    asked.audit = Audit::NoAnswer(why);
                    has_answered = true;
                }
            }
            // One that has been killed and has not ended holds up its own drive alone.
            busy += usize::from(asked.source.is_busy() && !asked.source.is_given_up());
        }
        for asked in self.drives.values_mut().filter(|it| it.next <= now && !it.source.is_busy()) {
            if busy >= ASKED_MAX {
                break;
            }
            let mut command = Command::new(&self.program);
            // A drive that sleeps is not woken for this: it says nothing then.
            command.arg("-x").arg(&asked.device).args(["-n", "standby"]);
            asked.next = now + PERIOD;
            busy += 1;
            if let Err(error) = asked.source.ask(command, PATIENCE) {
                asked.audit = Audit::NoAnswer(error);
                has_answered = true;
            }
        }
        has_answered
    }

    /// Whether it should be called soon: a drive is being asked, or one is due that was not asked yet.
    pub fn is_waiting(&self) -> bool {
        let now = Instant::now();
        let is_asked = |it: &Asked| it.source.is_busy() && !it.source.is_given_up();
        self.drives.values().any(|it| is_asked(it) || it.next <= now && !it.source.is_busy())
    }

    /// What each drive has said.
    pub fn audits(&self) -> impl Iterator<Item = (&str, &Audit)> {
        self.drives.iter().map(|(key, asked)| (key.as_str(), &asked.audit))
    }

    /// Whether every drive has answered or failed to.
    pub fn is_done(&self) -> bool {
        self.drives.values().all(|it| it.audit != Audit::NotAsked)
    }
}

/// Whether `smartctl -n standby` has left the drive alone: `Device is in STANDBY mode, exit(2)`.
fn is_asleep(page: &str) -> bool {
    page.lines().any(|line| line.starts_with("Device is in ") && line.contains(" mode, exit("))
}

/// A drive whose error recovery is to suit its role.
#[derive(Clone, Copy, Debug)]
pub struct FixAsk<'a> {
    /// This `smartctl`.
    pub program: &'a Path,
    /// Everything of the host's is below it.
    pub root: &'a Path,
    /// The kernel's names of the paths to the drive, one at least.
    pub devices: &'a [String],
    /// What stands behind it.
    pub role: Role,
    /// How long each command may take.
    pub patience: Duration,
}

/// What was done to a drive, as it was read back.
#[derive(Clone, Debug, PartialEq)]
pub struct Fix {
    /// Its limits afterwards.
    pub erc: Erc,
    /// Whether they are what was asked for; drives may refuse or clamp.
    pub is_set: bool,
    /// The kernel's timer of each path afterwards, in seconds; nothing where it could not be read.
    pub timers: Vec<Option<u32>>,
    /// Its serial number, if it said that.
    pub serial: Option<String>,
}

/// Tenths of a second that a drive of this role may try; 0 is for as long as it likes.
const fn tenths(role: Role) -> u16 {
    match role {
        Role::Redundant => LIMIT_SET,
        Role::Alone | Role::Unknown => 0,
    }
}

/// The least that the kernel's timer has to be.
fn timer_min(role: Role, is_set: bool) -> u32 {
    match role {
        Role::Redundant if is_set => TIMER_SET,
        Role::Redundant | Role::Alone | Role::Unknown => TIMER_WITHOUT_LIMIT,
    }
}

/// Sets the limits of a member of something redundant to 7 s and the kernel's timer to 30 s at least, or that to 180 s where the
/// drive takes no limit; switches the limits of a drive that is alone on its data off, with 180 s; and reads both back.
///
/// # Errors
///
/// `smartctl` cannot be run or does not end, or a timer cannot be written.
pub fn fix_drive(ask: &FixAsk<'_>) -> Result<Fix, String> {
    let FixAsk { program, root, devices, role, patience } = *ask;
    let device = devices.first().ok_or("the drive has no path")?;
    let file = root.join("dev").join(device);
    let smartctl = |arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).arg(&file);
        wait(command, patience)
    };
    let tenths = tenths(role);
    // What it claims is not believed: the page says what holds.
    smartctl(&["-l", &format!("scterc,{tenths},{tenths}")])?;
    let page = read_page(&smartctl(&["-x"])?);
    let limit = if tenths == 0 { Limit::Off } else { Limit::Tenths(tenths) };
    let is_set = page.erc == Erc::Limits { read: limit, write: limit };
    let timer_min = timer_min(role, is_set);
    let timers = devices.iter().map(|device| set_timer(root, device, timer_min));
    let timers = timers.collect::<Result<_, _>>()?;
    Ok(Fix { erc: page.erc, is_set, timers, serial: page.serial })
}

/// A timer that is longer already stays as it is.
fn set_timer(root: &Path, device: &str, timer_min: u32) -> Result<Option<u32>, String> {
    let file = root.join("sys/block").join(device).join("device/timeout");
    let said = |error: std::io::Error| format!("{}: {error}", file.display());
    let read = || fs::read_to_string(&file).map_err(said).map(|text| text.trim().parse().ok());
    if read()?.is_some_and(|timer: u32| timer >= timer_min) {
        return read();
    }
    fs::write(&file, format!("{timer_min}\n")).map_err(said)?;
    read()
}

fn wait(command: Command, patience: Duration) -> Result<String, String> {
    let mut source = Source::default();
    source.ask(command, patience)?;
    let end = Instant::now() + patience;
    loop {
        match source.look() {
            Look::Answered(text) => return Ok(text),
            Look::Failed { why, .. } => return Err(format!("smartctl: {why}")),
            Look::Idle | Look::Waiting if Instant::now() > end => {
                return Err("smartctl does not end".to_owned());
            }
            Look::Idle | Look::Waiting => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// How udev knows a drive again.
#[derive(Clone, Copy, Debug)]
pub enum Identity<'a> {
    /// By its WWID.
    Wwid(&'a str),
    /// By its serial number.
    Serial(&'a str),
}

/// Letters and digits that an identity needs to tell one drive from others.
const TELLING_MIN: usize = 4;

/// The rule that does the same at every start and whenever the drive is plugged in: a power cycle resets its limits. None where what
/// the drive says of itself has too few letters and digits to tell it from others.
///
/// A drive says what it likes, and the rule runs programs for every drive that it matches: letters, digits, dots and underscores stand
/// for themselves, and everything else is one character of whatever kind.
pub fn udev_rule(identity: Identity<'_>, role: Role, fix: &Fix) -> Option<String> {
    let pattern = |text: &str| -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        text.chars().map(|c| if is_plain(c) { c } else { '?' }).collect()
    };
    let (Identity::Wwid(text) | Identity::Serial(text)) = identity;
    if text.chars().filter(char::is_ascii_alphanumeric).count() < TELLING_MIN {
        return None;
    }
    let matched = match identity {
        // Keys have a dash for the blanks of a WWID, however many.
        Identity::Wwid(wwid) => format!("ATTRS{{wwid}}==\"{}\"", pattern(wwid).replace('-', "*")),
        Identity::Serial(serial) => format!("ENV{{ID_SERIAL_SHORT}}==\"{}\"", pattern(serial)),
    };
    let is_set = fix.is_set;
    let longest = fix.timers.iter().flatten().copied().max().unwrap_or(0);
    let (tenths, timer) = (tenths(role), timer_min(role, is_set).max(longest));
    let limit = format!(", RUN+=\"/usr/sbin/smartctl -l scterc,{tenths},{tenths} /dev/%k\"");
    let limit = if is_set { limit } else { String::new() };
    Some(format!(
        "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{{DEVTYPE}}==\"disk\", {matched}{limit}, \
         RUN+=\"/bin/sh -c 'echo {timer} > /sys/block/%k/device/timeout'\"\n"
    ))
}
