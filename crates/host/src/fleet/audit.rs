//! What each drive says of its error recovery, asked by `smartctl`, and how that is set.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use levelhead_fleet::smart::{Erc, Limit, Page, read_page};

use super::child::{Look, Source};

/// How long one page may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a drive is asked.
const PERIOD: Duration = Duration::from_hours(24);

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

    /// Takes answers and asks those whose turn it is. Never waits.
    pub fn advance(&mut self) {
        let now = Instant::now();
        let mut busy = 0;
        for asked in self.drives.values_mut() {
            match asked.source.look() {
                Look::Idle | Look::Waiting => {}
                Look::Answered(page) => asked.audit = Audit::Said(Box::new(read_page(&page))),
                Look::Failed { why, .. } => asked.audit = Audit::NoAnswer(why),
            }
            // One that has been killed and has not ended holds up its own drive alone.
            busy += usize::from(asked.source.is_busy() && !asked.source.is_given_up());
        }
        for asked in self.drives.values_mut().filter(|it| it.next <= now && !it.source.is_busy()) {
            if busy >= ASKED_MAX {
                break;
            }
            let mut command = Command::new(&self.program);
            command.arg("-x").arg(&asked.device);
            asked.next = now + PERIOD;
            busy += 1;
            if let Err(error) = asked.source.ask(command, PATIENCE) {
                asked.audit = Audit::NoAnswer(error);
            }
        }
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

/// What was done to a drive, as it was read back.
#[derive(Clone, Debug, PartialEq)]
pub struct Fix {
    /// Its limits afterwards.
    pub erc: Erc,
    /// Whether they are what was asked for; drives may refuse or clamp.
    pub is_set: bool,
    /// The kernel's timer afterwards, in seconds.
    pub timer: Option<u32>,
}

/// Sets the limits of a member of something redundant to 7 s and the kernel's timer to 30 s, or that to 180 s where the drive takes no
/// limit; and reads both back. `patience` is for each of the three commands.
///
/// # Errors
///
/// `smartctl` cannot be run or does not end, or the timer cannot be written.
pub fn fix_drive(
    program: &Path,
    root: &Path,
    device: &str,
    patience: Duration,
) -> Result<Fix, String> {
    let file = root.join("dev").join(device);
    let ask = |arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).arg(&file);
        wait(command, patience)
    };
    // What it claims is not believed: the page says what holds.
    ask(&["-l", &format!("scterc,{LIMIT_SET},{LIMIT_SET}")])?;
    let erc = read_page(&ask(&["-x"])?).erc;
    let limit = Limit::Tenths(LIMIT_SET);
    let is_set = erc == Erc::Limits { read: limit, write: limit };
    let timer = if is_set { TIMER_SET } else { TIMER_WITHOUT_LIMIT };
    let timeout = root.join("sys/block").join(device).join("device/timeout");
    let said = |error: std::io::Error| format!("{}: {error}", timeout.display());
    fs::write(&timeout, format!("{timer}\n")).map_err(said)?;
    let timer = fs::read_to_string(&timeout).map_err(said)?.trim().parse().ok();
    Ok(Fix { erc, is_set, timer })
}

fn wait(command: Command, patience: Duration) -> Result<String, String> {
    let mut source = Source::default();
    source.ask(command, patience)?;
    let end = Instant::now() + patience;
    loop {
        match source.look() {
            Look::Answered(text) => return Ok(text),
            Look::Failed { why, .. } => return Err(why),
            Look::Idle | Look::Waiting if Instant::now() > end => {
                return Err("smartctl does not end".to_owned());
            }
            Look::Idle | Look::Waiting => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// The rule that does the same at every start and whenever the drive is plugged in: a power cycle resets its limits.
pub fn udev_rule(key: &str, is_set: bool) -> String {
    let timer = if is_set { TIMER_SET } else { TIMER_WITHOUT_LIMIT };
    let wwid = key.replace('"', "?").replace('-', "*");
    let matched = format!(
        "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{{DEVTYPE}}==\"disk\", ATTRS{{wwid}}==\"{wwid}\""
    );
    let limit = format!(", RUN+=\"/usr/sbin/smartctl -l scterc,{LIMIT_SET},{LIMIT_SET} /dev/%k\"");
    let limit = if is_set { limit } else { String::new() };
    format!("{matched}{limit}, RUN+=\"/bin/sh -c 'echo {timer} > /sys/block/%k/device/timeout'\"\n")
}
