//! A member of an array as people name it: `a.img`, `/dev/sdb`, or an emulated drive,
//! `emu:a.img?profile=nearline-2tb&retry-rate=2%&size=1GiB`.
//!
//! | key | meaning | when it is left out |
//! |---|---|---|
//! | `profile` | make of the drive: one that comes with the program, or a file that describes one | `nearline-2tb` |
//! | `retry-rate`, `rotations`, `slowdown` .. | how it misbehaves: the keys of [`Faults`] | it does not |
//! | `cache` | what it uses its memory for: `off`, `read` or `write-back` | `off`; `read` where another key needs memory |
//! | `verify` | whether it reads back what it has written: `off`, `raw` (within the command) or `idle` | `off` |
//! | `idle-wait` | how long it idles before it does so; after `verify=idle`, as are the next two | 1ms |
//! | `verify-start` | when the arm sets out for that: `late` or `at-once` | `late` |
//! | `verify-sums` | memory for checksums of writes whose bytes have made room | none |
//! | `retention` | what stays in its memory: `mru-lru:SIZE`, `mru-mru`, `stay`, `adaptive` or `dedicated` | as the make does; with `verify=idle`, `mru-mru` |
//! | `size` | size of the file, which is created where there is none | as it is |
//! | `seed` | of everything left to chance | 0 |

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use levelhead_block::BlockService;
use levelhead_drive::{CacheMode, Faults, Retention, Scheduler, Settings, Verify};
use levelhead_stats::Streams;
use levelhead_units::{Bytes, Sectors};

use crate::devices::erc;
use crate::emulated::Model;
use crate::error::{HostError, fail};
use crate::far::Far;
use crate::medium::{Identity, Medium, Transfer, identify};
use crate::opened::Opened;
use crate::profiles::load_profile;
use crate::retry_tables::load_retry_table;

const PREFIX: &str = "emu:";
const PROFILE_DEFAULT: &str = "nearline-2tb";

/// The names of all keys, for messages.
fn keys() -> String {
    format!("profile, cache, {}, retention, size, seed, {}", Verify::KEYS, Faults::KEYS)
}

/// The share of the time waited that is subtracted from a command's positioning time when the drive chooses
/// the next one: of commands close to the arm an old one is served first, and the wait has a bound.
const AGE_WEIGHT: f64 = 0.01;

/// Which file or device, and what it is to be.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberSpec {
    path: PathBuf,
    emulation: Option<Emulation>,
    /// What answers for it, if it has no path.
    far: Option<Far>,
    /// Why it cannot be had now, in one sentence, where that is known.
    away: Option<String>,
}

/// A drive's model in front of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Emulation {
    profile: String,
    cache: Option<CacheMode>,
    retention: Option<Retention>,
    verify: Verify,
    faults: Faults,
    size: Option<Sectors>,
    seed: u64,
}

impl MemberSpec {
    /// A member that `service` answers for, under a name of the caller's: an export of another machine, perhaps.
    /// It is to refuse what it cannot do now and may do later.
    pub fn handed_in(name: &str, service: Arc<dyn BlockService>) -> Self {
        Self { far: Some(Far(service)), ..Self::at(Path::new(name)) }
    }

    /// A member of which the caller knows why it cannot be had now, in a sentence that names it: an export whose server is
    /// away, perhaps. An array can only be assembled without it.
    pub fn away(name: &str, sentence: String) -> Self {
        Self { away: Some(sentence), ..Self::at(Path::new(name)) }
    }

    /// The file or device, or the name of what was handed in.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a model of a drive stands in front of it.
    pub fn is_emulated(&self) -> bool {
        self.emulation.is_some()
    }

    /// Whether a service answers for it, of which other programs may have another.
    pub(crate) fn is_far(&self) -> bool {
        self.far.is_some()
    }

    /// The same with other faults, which have been checked; a real drive has its own.
    #[must_use]
    pub fn with_faults(mut self, faults: Faults) -> Self {
        if let Some(emulation) = &mut self.emulation {
            emulation.faults = faults;
        }
        self
    }

    /// The same with its memory used like that; a real drive decides itself.
    #[must_use]
    pub fn with_cache(mut self, cache: CacheMode) -> Self {
        if let Some(emulation) = &mut self.emulation {
            emulation.cache = Some(cache);
        }
        self
    }

    /// The same with one key of its name changed; a real drive has none.
    ///
    /// # Errors
    ///
    /// A key or value that cannot be.
    pub fn with_key(mut self, key: &str, value: &str) -> Result<Self, String> {
        if let Some(emulation) = &mut self.emulation {
            emulation.set(key, value)?;
        }
        Ok(self)
    }

    /// The same name as a process in another folder needs it: with its paths made absolute.
    ///
    /// # Errors
    ///
    /// The folder of this process cannot be had, or its name is no text.
    pub fn absolute(text: &str) -> Result<String, HostError> {
        let Some(rest) = text.strip_prefix(PREFIX) else { return absolute(text) };
        let (path, options) = rest.split_once('?').map_or((rest, None), |(a, b)| (a, Some(b)));
        let path = absolute(path)?;
        let Some(options) = options else { return Ok(format!("{PREFIX}{path}")) };
        let option = |option: &str| match option.split_once('=') {
            // Names of what comes with the program are names elsewhere, too.
            Some((key @ ("profile" | "ecc"), value)) if Path::new(value).is_file() => {
                Ok(format!("{key}={}", absolute(value)?))
            }
            Some(_) | None => Ok(option.to_owned()),
        };
        let options: Result<Vec<String>, HostError> = options.split('&').map(option).collect();
        Ok(format!("{PREFIX}{path}?{}", options?.join("&")))
    }

    /// Whether a name means the same file or device in every folder.
    pub fn is_absolute(text: &str) -> bool {
        let path = text.strip_prefix(PREFIX).unwrap_or(text);
        let path = path.split_once('?').map_or(path, |(path, _)| path);
        Path::new(path).is_absolute()
    }

    /// The size of the file that may be created.
    pub fn size_wanted(&self) -> Option<Sectors> {
        self.emulation.as_ref()?.size
    }

    /// The model for a file of `size` sectors, as drive `name` of its array; `None` for a real
    /// drive.
    pub(crate) fn model(
        &self,
        size: Sectors,
        window: u32,
        name: &str,
    ) -> Result<Option<Model>, HostError> {
        let Some(emulation) = &self.emulation else { return Ok(None) };
        let Emulation { profile, retention, verify, faults, seed, .. } = emulation;
        let settings = Settings {
            queue_depth: window,
            scheduler: Scheduler::Sptf { age_weight: AGE_WEIGHT },
            cache: emulation.cache_mode(),
            retention: *retention,
            verify: *verify,
            faults: *faults,
            size: Some(size),
        };
        let profile = load_profile(profile).map_err(|error| self.blame(error))?;
        let (streams, name) = (Streams::new(*seed), name.to_owned());
        let model = Model { profile, settings, streams, name };
        // Whatever is wrong with it shows here and not later.
        model.drive().map_err(|error| self.blame(error))?;
        Ok(Some(model))
    }

    /// Opens it to be written, and checks it against what was said about it.
    pub(crate) fn open(&self) -> Result<Opened, HostError> {
        match (&self.far, &self.away) {
            (Some(far), _) => Ok(Opened::Far(far.clone())),
            (None, Some(sentence)) => fail(sentence.as_str()),
            (None, None) => {
                let medium = self.open_medium()?;
                if medium.is_read_only() {
                    let sentence =
                        format!("{self} is read-only: the kernel takes no writes for it");
                    return Err(HostError::read_only(sentence));
                }
                Ok(medium.into())
            }
        }
    }

    /// The same to read it only, while no other program changes it; what is in front of an emulated drive does not
    /// matter.
    pub(crate) fn open_unchanging(&self) -> Result<Opened, HostError> {
        match (&self.far, &self.away) {
            (Some(far), _) => Ok(Opened::Far(far.clone())),
            (None, Some(sentence)) => fail(sentence.as_str()),
            (None, None) => {
                self.own_limit_back(Medium::open_unchanging(&self.path)?).map(Opened::from)
            }
        }
    }

    /// A file or device under this path.
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), emulation: None, far: None, away: None }
    }

    /// What tells it from another name of the same drive; nothing if its name does.
    pub(crate) fn identify(&self) -> Result<Option<Identity>, HostError> {
        match (&self.far, &self.away) {
            (None, None) => identify(&self.path),
            (_, _) => Ok(None),
        }
    }

    /// Whether both are the same drive, under one name or two.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        // What cannot be looked at has its name only.
        match (self.identify(), other.identify()) {
            (Ok(Some(identity)), Ok(Some(other))) => identity == other,
            (_, _) => self.path == other.path,
        }
    }

    /// Why there is nothing under its name, in one sentence; nothing if something is there.
    pub(crate) fn absence(&self) -> Result<Option<String>, HostError> {
        if self.far.is_some() {
            return Ok(None);
        }
        if self.away.is_some() {
            return Ok(self.away.clone());
        }
        let is_there = self.identify()?.is_some();
        Ok((!is_there).then(|| format!("{self} does not exist")))
    }

    /// Opens the file or device exclusively and checks it against what was said about it.
    pub(crate) fn open_medium(&self) -> Result<Medium, HostError> {
        let medium = Medium::open(&self.path, self.transfer())?;
        self.check_size(medium.size())?;
        self.own_limit_back(medium)
    }

    /// The same, but a device can still be mounted.
    pub(crate) fn open_medium_to_mount(&self) -> Result<Medium, HostError> {
        let medium = Medium::open_to_mount(&self.path, self.transfer())?;
        self.check_size(medium.size())?;
        self.own_limit_back(medium)
    }

    /// What an earlier run has changed of a drive that is open now is put back, before the first read.
    fn own_limit_back(&self, medium: Medium) -> Result<Medium, HostError> {
        erc::put_back(&self.path).map(|()| medium)
    }

    fn transfer(&self) -> Transfer {
        match self.emulation {
            // The model's own time is what counts; the machine's disk is not to add to it.
            Some(_) => Transfer::Cached,
            None => Transfer::Direct,
        }
    }

    /// Whether there is a folder in which a file can be made under its name.
    pub(crate) fn check_place(&self) -> Result<(), HostError> {
        let path = self.path.display();
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        match folder.filter(|folder| !folder.is_dir()) {
            None => Ok(()),
            Some(folder) => {
                fail(format!("cannot create {path}: {} is not a folder", folder.display()))
            }
        }
    }

    /// Whether a file of `size` sectors can be this member.
    pub(crate) fn check_size(&self, size: Sectors) -> Result<(), HostError> {
        if let Some(wanted) = self.size_wanted()
            && wanted != size
        {
            let (path, has, wanted) = (self.path.display(), size.bytes(), wanted.bytes());
            return fail(format!("{path} has {has}, which is not size={wanted}"));
        }
        self.model(size, 1, "check").map(drop)
    }

    fn blame(&self, error: impl fmt::Display) -> HostError {
        HostError::new(format!("{PREFIX}{}: {error}", self.path.display()))
    }
}

/// An empty path is left for others to refuse.
fn absolute(path: &str) -> Result<String, HostError> {
    if path.is_empty() {
        return Ok(String::new());
    }
    let whole = std::path::absolute(path)
        .map_err(|error| HostError::new(format!("cannot make {path} absolute: {error}")))?;
    let whole = whole.into_os_string().into_string();
    whole.map_err(|_| {
        HostError::new(format!("cannot make {path} absolute: the name of this folder is not UTF-8"))
    })
}

impl FromStr for MemberSpec {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let Some(rest) = text.strip_prefix(PREFIX) else {
            if text.is_empty() {
                return fail("a member of an array is a path, got nothing");
            }
            return Ok(Self::at(Path::new(text)));
        };
        let (path, options) = rest.split_once('?').unwrap_or((rest, ""));
        if path.is_empty() {
            return fail(format!("'{text}' names no file: expected emu:PATH?KEY=VALUE&KEY=VALUE"));
        }
        let mut emulation = Emulation {
            profile: PROFILE_DEFAULT.to_owned(),
            cache: None,
            retention: None,
            verify: Verify::Off,
            faults: Faults::NONE,
            size: None,
            seed: 0,
        };
        let mut stated = Vec::new();
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let Some((key, value)) = option.split_once('=') else {
                let keys = keys();
                return fail(format!("'{option}' in '{text}': expected KEY=VALUE with {keys}"));
            };
            emulation
                .set(key, value)
                .map_err(|problem| HostError::new(format!("'{option}' in '{text}': {problem}")))?;
            stated.push(key);
        }
        let member = Self { emulation: Some(emulation), ..Self::at(Path::new(path)) };
        let faults = member.emulation.as_ref().map_or(Faults::NONE, |emulation| emulation.faults);
        faults.check_stated(&stated).map_err(|error| member.blame(error))?;
        Ok(member)
    }
}

impl Emulation {
    /// What was asked for, or what the other keys need.
    fn cache_mode(&self) -> CacheMode {
        let needs_memory = self.retention.is_some() || matches!(self.verify, Verify::Idle(_));
        self.cache.unwrap_or(if needs_memory { CacheMode::Read } else { CacheMode::Off })
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "profile" => value.clone_into(&mut self.profile),
            "cache" => self.cache = Some(value.parse()?),
            "retention" => self.retention = Some(value.parse()?),
            _ if Verify::KEYS.split(", ").any(|known| known == key) => {
                self.verify.set(key, value)?;
            }
            "size" => {
                let size: Bytes = parse(value)?;
                let sectors = size.sectors_exact().filter(|&sectors| sectors > Sectors::ZERO);
                let whole = || format!("a size is a whole number of 4KiB sectors, got {size}");
                self.size = Some(sectors.ok_or_else(whole)?);
            }
            "seed" => self.seed = number(value)?,
            "ecc" => {
                let ecc = load_retry_table(value).map_err(|error| error.to_string())?;
                self.faults.ecc = Some(ecc);
            }
            _ if Faults::KEYS.split(", ").any(|known| known == key) => {
                self.faults.set(key, value).map_err(|error| error.to_string())?;
            }
            _ => return Err(format!("expected {}", keys())),
        }
        Ok(())
    }
}

fn parse<T: FromStr<Err: fmt::Display>>(value: &str) -> Result<T, String> {
    value.parse().map_err(|error: T::Err| error.to_string())
}

fn number<T: FromStr>(value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("expected a number, got '{value}'"))
}

impl fmt::Display for MemberSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = if self.is_emulated() { PREFIX } else { "" };
        write!(f, "{prefix}{}", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use levelhead_drive::{IdleVerify, Placing, Profile, Rotations, Stalls};
    use levelhead_units::{Nanos, Ratio};
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn every_key_is_read() {
        let text = "emu:d/a.img?profile=nearline-2tb&retry-rate=2%&rotations=4&adjacency=2&\
                    hard-rate=0.5%&slowdown=10&stalls=10min/5s&size=1GiB&seed=7&cache=read&\
                    verify=idle&idle-wait=5ms&retention=stay:1MiB";
        let member: MemberSpec = text.parse().unwrap();
        let faults = Faults {
            retry_rate: Ratio::new(0.02).unwrap(),
            adjacency: 2.0,
            rotations: Rotations::Fixed(4),
            hard_rate: Ratio::new(0.005).unwrap(),
            slowdown: 10.0,
            stalls: Some(Stalls { gap: Nanos::from_secs(600), duration: Nanos::from_secs(5) }),
            ..Faults::NONE
        };
        let size = Some(Sectors::new(262_144));
        let (profile, cache) = ("nearline-2tb".into(), Some(CacheMode::Read));
        let retention = Some(Retention::new(Placing::Stay, Bytes::new(1 << 20)));
        let verify =
            Verify::Idle(IdleVerify { wait: Nanos::from_millis(5), ..IdleVerify::DEFAULT });
        let emulation = Emulation { profile, cache, retention, verify, faults, size, seed: 7 };
        let path = Path::new("d/a.img");
        assert_eq!(member, MemberSpec { emulation: Some(emulation), ..MemberSpec::at(path) });
        assert_eq!(member.to_string(), "emu:d/a.img");
        let other: Faults = "death=3s".parse().unwrap();
        let changed = member.clone().with_faults(other);
        assert_eq!(changed.emulation.as_ref().unwrap().faults, other);
        let written_back = changed.clone().with_cache(CacheMode::WriteBack);
        assert_eq!(written_back.emulation.unwrap().cache, Some(CacheMode::WriteBack));
        assert_eq!((changed.path, member.emulation.unwrap().faults), (member.path, faults));
    }

    #[test]
    fn name_is_made_absolute_with_all_its_paths_and_stays_one_drive() {
        let here = std::env::current_dir().unwrap();
        let here = here.display();
        for (text, expected) in [
            ("a.img", format!("{here}/a.img")),
            ("./d/a.img", format!("{here}/d/a.img")),
            ("/dev/sdb", "/dev/sdb".to_owned()),
            ("emu:a.img", format!("emu:{here}/a.img")),
            (
                "emu:a.img?size=1MiB&profile=Cargo.toml&retry-rate=2%",
                format!("emu:{here}/a.img?size=1MiB&profile={here}/Cargo.toml&retry-rate=2%"),
            ),
            ("emu:/a?profile=nearline-2tb", "emu:/a?profile=nearline-2tb".to_owned()),
            ("", String::new()),
        ] {
            assert_eq!(MemberSpec::absolute(text).unwrap(), expected, "{text}");
            assert_eq!(MemberSpec::is_absolute(&expected), !text.is_empty(), "{text}");
        }
        for relative in ["a.img", "emu:a.img?size=1MiB", "../dev/sdb", ""] {
            assert!(!MemberSpec::is_absolute(relative), "{relative}");
        }
    }

    #[test]
    fn path_alone_is_a_real_drive() {
        let member: MemberSpec = "/dev/sdb".parse().unwrap();
        assert_eq!(member, MemberSpec::at(Path::new("/dev/sdb")));
        assert_eq!(member.model(Sectors::new(9), 4, "drive/0").unwrap().map(|_| ()), None);
    }

    #[test]
    fn nonsense_is_refused_with_the_part_that_is_wrong() {
        for (text, expected) in [
            ("", "a member of an array is a path, got nothing"),
            ("emu:", "'emu:' names no file: expected emu:PATH?KEY=VALUE&KEY=VALUE"),
            ("emu:a?fast", "'fast' in 'emu:a?fast': expected KEY=VALUE with {KEYS}"),
            ("emu:a?rpm=3", "'rpm=3' in 'emu:a?rpm=3': expected {KEYS}"),
            (
                "emu:a?retry-rate=2",
                "'retry-rate=2' in 'emu:a?retry-rate=2': '2' is not a percentage from 0% to 100%: expected a number and %, as in 2%",
            ),
            ("emu:a?seed=-1", "'seed=-1' in 'emu:a?seed=-1': expected a number, got '-1'"),
            (
                "emu:a?size=5kB",
                "'size=5kB' in 'emu:a?size=5kB': a size is a whole number of 4KiB sectors, got 5000B",
            ),
            (
                "emu:a?cache=on",
                "'cache=on' in 'emu:a?cache=on': 'on' is not a drive cache: expected off, read or write-back",
            ),
            (
                "emu:a?idle-wait=1ms",
                "'idle-wait=1ms' in 'emu:a?idle-wait=1ms': idle-wait needs verify=idle before it",
            ),
            ("emu:a?slowdown=0", "emu:a: a drive is slowed down 1 to 1000 times, not 0 times"),
            ("emu:a?slowdown=nan", "emu:a: a drive is slowed down 1 to 1000 times, not NaN times"),
        ] {
            let expected = expected.replace("{KEYS}", &keys());
            assert_eq!(text.parse::<MemberSpec>().unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn file_must_fit_what_was_said_about_it() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("a.img");
        Medium::create(&path, Sectors::new(4)).unwrap();
        let path = path.display();
        let check = |options: &str, expected: &str| {
            let member: MemberSpec = format!("emu:{path}?{options}").parse().unwrap();
            assert_eq!(member.open().unwrap_err().to_string(), expected);
        };
        check("size=1MiB", &format!("{path} has 16KiB, which is not size=1MiB"));
        let names = Profile::names().join(", ");
        let expected = format!(
            "'fast' is not a drive profile: expected one of {names}, or the path of a TOML file"
        );
        check("profile=fast", &format!("emu:{path}: {expected}"));
        let own = dir.path().join("own.toml");
        std::fs::write(&own, "name = 3").unwrap();
        let member: MemberSpec = format!("emu:{path}?profile={}", own.display()).parse().unwrap();
        let error = member.open().unwrap_err().to_string();
        assert!(error.contains("own.toml: drive profile: "), "{error}");
    }
}
