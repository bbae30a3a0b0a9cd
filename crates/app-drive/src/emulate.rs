//! `levelhead drive emulate`: one emulated drive on an NBD endpoint.

use std::fmt;
use std::sync::Arc;

use levelhead_block::BlockService;
use levelhead_drive::{CacheMode, Faults, VerifyCounters};
use levelhead_host::{LoneDrive, MemberSpec};
use levelhead_report::json;
use levelhead_units::Bytes;
use serde::Serialize;

use levelhead_app::{AppError, Exported, Listen, Show, Stop};

/// What to emulate.
#[derive(Clone, Debug)]
pub struct Emulate {
    /// The drive: `emu:PATH?..`.
    pub member: String,
    /// What is wrong with it, instead of what its name says.
    pub faults: Option<Faults>,
    /// What it uses its memory for, instead of what its name says.
    pub cache: Option<CacheMode>,
    /// Whether it reads back what it writes, and what stays in its memory: keys and values, instead of what its
    /// name says.
    pub memory: Vec<MemoryKey>,
    /// Where NBD clients find it.
    pub nbd: Listen,
}

/// One key of a drive's name, and its value.
#[derive(Clone, Debug)]
pub struct MemoryKey {
    /// `verify`, `idle-wait` or `retention`.
    pub key: &'static str,
    /// As it was typed.
    pub value: String,
}

/// A drive that has begun to serve.
#[derive(Clone, Debug, Serialize)]
pub struct Emulated {
    /// The drive.
    pub drive: String,
    /// How NBD clients reach the first of its exports.
    pub uri: String,
    /// Its exports.
    pub exports: Vec<Exported>,
    /// Its size.
    pub size_bytes: u64,
    /// Sentences worth reading before it is used.
    pub remarks: Vec<String>,
}

impl Show for Emulated {
    fn text(&self) -> String {
        let Self { drive, uri: _, exports, size_bytes, remarks } = self;
        let mut text = format!("{drive}\nsize: {}\n", Bytes::new(*size_bytes).short());
        exports.iter().for_each(|export| text.push_str(&format!("{export}\n")));
        remarks.iter().for_each(|remark| text.push_str(&format!("{remark}\n")));
        text.push_str("Ctrl-C stops it");
        text
    }

    fn json(&self) -> String {
        json::pretty(self).expect("numbers and names are JSON")
    }
}

/// What a drive has read back of what was written.
#[derive(Clone, Copy, Debug)]
pub struct Verified(VerifyCounters);

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let VerifyCounters { writes, verified, superseded, unverified, waiting, .. } = self.0;
        let VerifyCounters { found, mended, .. } = self.0;
        write!(
            f,
            "{writes} writes: {verified} read back, {superseded} overwritten before, {unverified} given up, \
             {waiting} waiting; {found} were not what was written, {mended} of them repaired"
        )
    }
}

/// Serves one drive until `stop` is wished. `ready` is called once clients are welcome. Says what the drive has read back,
/// if it has.
///
/// # Errors
///
/// A drive or an endpoint that cannot be.
pub fn emulate(
    ask: &Emulate,
    stop: &Stop,
    ready: &mut dyn FnMut(&Emulated),
) -> Result<Option<Verified>, AppError> {
    let member: MemberSpec = ask.member.parse().map_err(AppError::usage)?;
    if !member.is_emulated() {
        let text = &ask.member;
        return Err(AppError::usage(format!(
            "'{text}' is not an emulated drive: expected emu:PATH?KEY=VALUE&.., as in \
             emu:a.img?profile=nearline-2tb&size=1GiB"
        )));
    }
    let member = match ask.faults {
        Some(faults) => member.with_faults(faults),
        None => member,
    };
    let member = match ask.cache {
        Some(cache) => member.with_cache(cache),
        None => member,
    };
    let member = ask.memory.iter().try_fold(member, |member, MemoryKey { key, value }| {
        let set = member.with_key(key, value);
        set.map_err(|problem| AppError::usage(format!("--{key} {value}: {problem}")))
    })?;
    let is_new = !member.path().exists();
    let drive = Arc::new(LoneDrive::open(&member).map_err(AppError::usage)?);
    let size_bytes = drive.size().bytes().get();
    let device = Arc::clone(&drive) as Arc<dyn BlockService>;
    let server = ask.nbd.bind(&device, &format!("levelhead {member}")).inspect_err(|_| {
        if is_new {
            // As far as it goes: the error that led here is the one to tell.
            drop(std::fs::remove_file(member.path()));
        }
    })?;
    let running = server.start().map_err(AppError::trouble)?;
    let exports = ask.nbd.exported(running.endpoint());
    ready(&Emulated {
        drive: ask.member.clone(),
        uri: exports[0].uri.clone(),
        exports,
        size_bytes,
        remarks: ask.nbd.warning().into_iter().collect(),
    });
    stop.wait();
    let verified = drive.verified().filter(|seen| seen.writes > 0).map(Verified);
    running.stop();
    // A connection that has just ended may still hold the drive when this program ends.
    drive.wind_up();
    Ok(verified)
}
