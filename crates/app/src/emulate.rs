//! `levelhead drive emulate`: one emulated drive on an NBD endpoint.

use std::sync::Arc;

use levelhead_block::BlockService;
use levelhead_drive::{CacheMode, Faults};
use levelhead_host::{LoneDrive, MemberSpec};
use levelhead_nbd::{Access, Endpoint, Export, Server};
use levelhead_report::json;
use levelhead_units::Bytes;
use serde::Serialize;

use crate::{AppError, Show, Stop, uri};

/// What to emulate.
#[derive(Clone, Debug)]
pub struct Emulate {
    /// The drive: `emu:PATH?..`.
    pub member: String,
    /// What is wrong with it, instead of what its name says.
    pub faults: Option<Faults>,
    /// What it uses its memory for, instead of what its name says.
    pub cache: Option<CacheMode>,
    /// Where NBD clients find it.
    pub nbd: Endpoint,
    /// The name of the export.
    pub export: String,
}

/// A drive that has begun to serve.
#[derive(Clone, Debug, Serialize)]
pub struct Emulated {
    /// The drive.
    pub drive: String,
    /// How NBD clients reach it.
    pub uri: String,
    /// Its size.
    pub size_bytes: u64,
}

impl Show for Emulated {
    fn text(&self) -> String {
        let Self { drive, uri, size_bytes } = self;
        format!("{drive}\nsize: {}\nnbd: {uri}\nCtrl-C stops it", Bytes::new(*size_bytes).short())
    }

    fn json(&self) -> String {
        json::pretty(self).expect("numbers and names are JSON")
    }
}

/// Serves one drive until `stop` is wished. `ready` is called once clients are welcome.
pub fn emulate(
    ask: &Emulate,
    stop: &Stop,
    ready: &mut dyn FnMut(&Emulated),
) -> Result<(), AppError> {
    let member: MemberSpec = ask.member.parse().map_err(AppError::usage)?;
    if !member.is_emulated() {
        let text = &ask.member;
        return Err(AppError::usage(format!(
            "'{text}' is no emulated drive: expected emu:PATH?KEY=VALUE&.., as in \
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
    let is_new = !member.path().exists();
    let drive = Arc::new(LoneDrive::open(&member).map_err(AppError::usage)?);
    let size = drive.size();
    let export = Export {
        name: ask.export.clone(),
        description: format!("levelhead {member}"),
        service: drive,
        access: Access::ReadWrite,
    };
    let server = Server::bind(&ask.nbd, vec![export]).map_err(|error| {
        if is_new {
            // As far as it goes: the error that led here is the one to tell.
            drop(std::fs::remove_file(member.path()));
        }
        AppError::usage(error)
    })?;
    let running = server.start();
    let uri = uri(running.endpoint(), &ask.export);
    ready(&Emulated { drive: ask.member.clone(), uri, size_bytes: size.bytes().get() });
    stop.wait();
    running.stop();
    Ok(())
}
