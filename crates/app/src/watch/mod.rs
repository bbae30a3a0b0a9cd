//! `levelhead watch`: which drives of this host are slow, said as it runs.
//!
//! One thread samples every [`PERIOD`] and decides. What may hang is asked by children that it looks at between samples; a scrape is
//! answered from what it has left in [`Board`], so no scrape waits for it.

mod metrics;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use levelhead_fleet::erc::{self, Cdl, Role};
use levelhead_fleet::watch::{DriveVerdict, Group, MakeDetector, Member, Saved, Watch};
use levelhead_host::fleet::{Audit, Auditor, Look, Sampler, Source, Survey};
use levelhead_metrics::{Address, Family, Server};

use crate::{AppError, Stop};

/// Between two samples.
const PERIOD: Duration = Duration::from_secs(15);

/// Between two surveys, and how long one may take.
const SURVEY_PERIOD: Duration = Duration::from_secs(60);
const SURVEY_PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks at children while one is open.
const LOOK: Duration = Duration::from_millis(250);

/// Samples between two writes of the state file.
const SAVE_EVERY: u64 = 20;

/// What is asked for.
pub struct Ask {
    /// Everything of the host's is below it.
    pub root: PathBuf,
    /// What writes the survey of a root to its output: a program and its arguments.
    pub surveyor: Vec<PathBuf>,
    /// Whether `zpool` is asked.
    pub zpool: Option<PathBuf>,
    /// Asks drives for their pages; none is asked without it.
    pub smartctl: Option<PathBuf>,
    /// The operator's groups instead of those that are found.
    pub groups: Option<PathBuf>,
    /// Where the state is kept.
    pub state: PathBuf,
    /// Takes a line of each drive's window.
    pub record: Option<PathBuf>,
    /// Where metrics are to be had.
    pub metrics: Option<Address>,
    /// Is run for each event, with its line as the only argument.
    pub on_event: Option<PathBuf>,
    /// The rule.
    pub detector: MakeDetector,
}

/// A drive with what its audit goes by, and what that found.
#[derive(Clone, Debug)]
pub struct Audited {
    /// The kernel's name.
    pub device: String,
    /// What is known of it.
    pub audited: erc::Audited,
    /// What does not suit its role.
    pub findings: Vec<erc::Finding>,
}

/// Where the metrics of the last sample are left.
type Board = Arc<Mutex<Vec<Family>>>;

/// Watches until it is to stop; each sentence that is to be said is told.
///
/// # Errors
///
/// The state or the groups cannot be read, the metrics' address cannot be had, or a file cannot be written.
pub fn watch(
    ask: Ask,
    stop: &Stop,
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<DriveVerdict>, AppError> {
    let server = ask.metrics.map(Server::bind).transpose().map_err(AppError::usage)?;
    let board = Board::default();
    let shown = Arc::clone(&board);
    let source = Box::new(move || shown.lock().unwrap_or_else(PoisonError::into_inner).clone());
    let running =
        server.map(|server| server.start(source)).transpose().map_err(AppError::trouble)?;
    let mut keeper = Keeper::new(ask, board)?;
    let mut next = Instant::now();
    let mut count = 0;
    while !stop.is_wished() {
        keeper.look(tell);
        if Instant::now() >= next {
            next += PERIOD;
            keeper.sample(tell)?;
            count += 1;
            if count % SAVE_EVERY == 0 {
                keeper.save()?;
            }
        }
        let pause = if keeper.is_waiting() { LOOK } else { PERIOD };
        stop.wait_until(next.min(Instant::now() + pause));
    }
    drop(running);
    keeper.save()?;
    Ok(keeper.watch.verdicts())
}

struct Keeper {
    watch: Watch,
    sampler: Sampler,
    auditor: Option<Auditor>,
    survey: Survey,
    surveyor: Source,
    zpool: Source,
    survey_next: Instant,
    groups: Option<String>,
    /// The beginning of the window that was recorded last.
    recorded: i64,
    /// Programs that were run for events and have not ended.
    programs: Vec<std::process::Child>,
    files: Files,
    board: Board,
}

struct Files {
    root: PathBuf,
    surveyor: Vec<PathBuf>,
    zpool: Option<PathBuf>,
    state: PathBuf,
    record: Option<PathBuf>,
    on_event: Option<PathBuf>,
}

/// Programs of events at a time.
const PROGRAMS_MAX: usize = 8;

impl Keeper {
    fn new(ask: Ask, board: Board) -> Result<Self, AppError> {
        let said = |path: &Path, error: &dyn std::fmt::Display| {
            AppError::usage(format!("{}: {error}", path.display()))
        };
        let saved = match fs::read(&ask.state) {
            Ok(bytes) => Saved::decode(&bytes).map_err(|error| said(&ask.state, &error))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Saved::default(),
            Err(error) => return Err(said(&ask.state, &error)),
        };
        let groups = ask
            .groups
            .map(|path| fs::read_to_string(&path).map_err(|error| said(&path, &error)))
            .transpose()?;
        Ok(Self {
            watch: Watch::new(ask.detector, saved),
            sampler: Sampler::new(&ask.root),
            auditor: ask.smartctl.map(Auditor::new),
            survey: Survey::default(),
            surveyor: Source::default(),
            zpool: Source::default(),
            survey_next: Instant::now(),
            groups,
            recorded: i64::MIN,
            programs: Vec::new(),
            files: Files {
                root: ask.root,
                surveyor: ask.surveyor,
                zpool: ask.zpool,
                state: ask.state,
                record: ask.record,
                on_event: ask.on_event,
            },
            board,
        })
    }

    /// Whether a child is to be looked at soon.
    fn is_waiting(&self) -> bool {
        let open = |source: &Source| source.is_busy() && !source.is_given_up();
        open(&self.surveyor)
            || open(&self.zpool)
            || self.auditor.as_ref().is_some_and(|it| !it.is_done())
    }

    /// Takes what children have answered, and asks anew. Never waits.
    fn look(&mut self, tell: &mut dyn FnMut(&str)) {
        if Instant::now() >= self.survey_next {
            self.survey_next = Instant::now() + SURVEY_PERIOD;
            if let [program, arguments @ ..] = &*self.files.surveyor {
                let mut command = Command::new(program);
                command.args(arguments).arg(&self.files.root);
                if let Err(error) = self.surveyor.ask(command, SURVEY_PATIENCE) {
                    tell(&error);
                }
            }
            if let Some(zpool) = &self.files.zpool {
                let mut command = Command::new(zpool);
                command.args(["status", "-P", "-L", "-j"]);
                // A host without ZFS has no such program.
                drop(self.zpool.ask(command, SURVEY_PATIENCE));
            }
        }
        let found = match self.surveyor.look() {
            Look::Answered(text) if Survey::is_whole(&text) => Survey::parse(&text),
            // Groups that it did not come to are as they were.
            Look::Answered(part) | Look::Failed { part, .. } => Survey::parse(&part).map(|found| {
                let mut survey = self.survey.clone();
                survey.merge(found);
                survey
            }),
            Look::Idle | Look::Waiting => None,
        };
        let mut is_new = false;
        if let Some(mut found) = found {
            let pools =
                self.survey.groups.iter().filter(|it| it.kind == levelhead_host::fleet::Kind::Zfs);
            found.merge(Survey { groups: pools.cloned().collect(), ..Survey::default() });
            self.survey = found;
            is_new = true;
        }
        if let Look::Answered(status) = self.zpool.look() {
            is_new |= self.survey.add_pools(&status).is_ok();
        }
        if is_new {
            self.take_survey(tell);
        }
        if let Some(auditor) = &mut self.auditor {
            auditor.advance();
        }
    }

    fn take_survey(&mut self, tell: &mut dyn FnMut(&str)) {
        let survey = &mut self.survey;
        if let Some(groups) = &self.groups
            && let Err(error) = survey.take_groups(groups)
        {
            tell(&error);
        }
        let member = |key: &String| {
            let drive = survey.drives.get(key);
            let device = drive.and_then(|it| it.devices.first()).unwrap_or(key).clone();
            Member {
                key: key.clone(),
                device,
                model: drive.map(|it| it.model.clone()).unwrap_or_default(),
            }
        };
        let group = |it: &levelhead_host::fleet::SurveyedGroup| Group {
            name: it.name.clone(),
            members: it.members.iter().map(member).collect(),
            is_rebuilding: it.is_rebuilding,
        };
        let groups: Vec<_> = survey.groups.iter().map(group).collect();
        self.watch.handle_groups(&groups);
        let drives = survey.drives.values().map(|it| (it.key.clone(), it.devices.clone()));
        self.sampler.handle_drives(drives);
        if let Some(auditor) = &mut self.auditor {
            let dev = self.files.root.join("dev");
            let device = |it: &levelhead_host::fleet::SurveyedDrive| {
                Some((it.key.clone(), dev.join(it.devices.first()?)))
            };
            auditor.handle_drives(survey.drives.values().filter_map(device));
        }
    }

    fn sample(&mut self, tell: &mut dyn FnMut(&str)) -> Result<(), AppError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let sample = self.sampler.sample();
        self.watch.handle_sample(i64::try_from(now).unwrap_or(i64::MAX), &sample);
        self.programs.retain_mut(|it| matches!(it.try_wait(), Ok(None)));
        while let Some(event) = self.watch.poll() {
            let line = event.now.to_string();
            tell(&line);
            if let Some(program) =
                self.files.on_event.as_ref().filter(|_| self.programs.len() < PROGRAMS_MAX)
            {
                match Command::new(program).arg(&line).spawn() {
                    Ok(child) => self.programs.push(child),
                    Err(error) => tell(&format!("{}: {error}", program.display())),
                }
            }
        }
        let (verdicts, tails, audited) =
            (self.watch.verdicts(), self.watch.tails(), self.audited());
        let shown = metrics::Shown { verdicts: &verdicts, tails: &tails, audited: &audited };
        *self.board.lock().unwrap_or_else(PoisonError::into_inner) = shown.families();
        self.record()
    }

    /// Each drive with its role: a member of something redundant, or alone on its data.
    fn audited(&self) -> Vec<Audited> {
        let Some(auditor) = &self.auditor else { return Vec::new() };
        let audited = |(key, audit): (&str, &Audit)| {
            let drive = self.survey.drives.get(key)?;
            let is_member = self
                .survey
                .groups
                .iter()
                .any(|it| it.is_redundant && it.members.iter().any(|it| it == key));
            let page = match audit {
                Audit::Said(page) => (**page).clone(),
                Audit::NotAsked | Audit::NoAnswer(_) => levelhead_fleet::smart::Page::default(),
            };
            let audited = erc::Audited {
                role: if is_member { Role::Redundant } else { Role::Alone },
                erc: page.erc,
                timer: drive.timer,
                cdl: match drive.cdl {
                    None => Cdl::None,
                    Some(false) => Cdl::Off,
                    Some(true) => Cdl::On,
                },
                write_cache: page.write_cache,
                smr: page.smr,
            };
            let findings = erc::audit(&audited);
            Some(Audited { device: drive.devices.first()?.clone(), audited, findings })
        };
        auditor.audits().filter_map(audited).collect()
    }

    fn record(&mut self) -> Result<(), AppError> {
        let Some(path) = &self.files.record else { return Ok(()) };
        let rows: Vec<_> =
            self.watch.last_window().into_iter().filter(|it| it.at > self.recorded).collect();
        let Some(last) = rows.iter().map(|it| it.at).max() else { return Ok(()) };
        self.recorded = last;
        let said =
            |error: std::io::Error| AppError::trouble(format!("{}: {error}", path.display()));
        let mut file = fs::OpenOptions::new().create(true).append(true).open(path).map_err(said)?;
        let mut text = String::new();
        if file.metadata().map_err(said)?.len() == 0 {
            text.push_str("ts,group,drive,latency_us,load\n");
        }
        let plain = |text: &str| text.replace([',', '"', '\n'], "_");
        for row in rows {
            text += &format!(
                "{},{},{},{},{}\n",
                row.at,
                plain(&row.group),
                plain(&row.key),
                row.latency_us,
                row.load
            );
        }
        file.write_all(text.as_bytes()).map_err(said)
    }

    /// In one step: a crash leaves the old state or the new one.
    fn save(&self) -> Result<(), AppError> {
        let said = |error: std::io::Error| {
            AppError::trouble(format!("{}: {error}", self.files.state.display()))
        };
        let new = self.files.state.with_extension("new");
        fs::write(&new, self.watch.save().encode()).map_err(said)?;
        fs::rename(&new, &self.files.state).map_err(said)
    }
}
