//! `levelhead array ..`: arrays on this machine's drives.

#![forbid(unsafe_code)]

mod check;
mod client;
mod control;
mod create;
mod drives;
mod event_json;
mod events;
mod follow;
mod health;
mod list;
mod messages;
mod metrics;
mod process;
mod repair;
mod salvage;
mod scrub_json;
mod serve;
mod service;
mod snapshot;
mod socket_path;
mod status_text;
mod upgrade;
mod verbs;
mod watch;
mod would;

pub use check::{Check, CheckedArray, check};
pub use client::{ask, status};
pub use create::{Create, MadeArray, create};
pub use drives::{Allowed, Degraded, Drives};
pub use event_json::Priority;
pub use events::Tell;
pub use follow::{Events, Heard, events};
pub use health::Health;
pub use list::{Listed, list};
pub use repair::{RepairedArray, repair_superblocks};
pub use salvage::{Salvage, SalvagedArray, salvage};
pub use serve::{Audience, Serve, Serving, kernel_help, serve};
pub use service::{Notice, Service, stop_bound};
pub use status_text::Detail;
pub use upgrade::{Upgrade, UpgradedArray, upgrade};
pub use verbs::{Make, OFFERS, Offer, ScrubWhat, Verb};
pub use watch::{Watch, watch};
pub use would::{Assemble, WouldServe, would_serve};

use std::io;
use std::sync::Arc;

use levelhead_host::{COMPARED, MemberSpec, is_same_drive};
use levelhead_nbd::{LastingClient, Recognise, Uri};

use levelhead_app::AppError;

/// Members as they were typed. Those that are NBD exports are connected to.
fn members(texts: &[String]) -> Result<Vec<MemberSpec>, AppError> {
    let connect = |parsed: Parsed| parsed.connect().map_err(AppError::usage);
    parse_all(texts)?.into_iter().map(connect).collect()
}

/// The same where exports may be away: the array may go on without them.
fn members_that_may_be_away(texts: &[String]) -> Result<Vec<MemberSpec>, AppError> {
    let connect = |(parsed, text): (Parsed, &String)| match parsed.connect() {
        Err(error) if is_away(&error) => Ok(MemberSpec::away(text, error.to_string())),
        connected => connected.map_err(AppError::usage),
    };
    parse_all(texts)?.into_iter().zip(texts).map(connect).collect()
}

/// Whether no server has answered in time, or one that does not have the export. One that does not give it to us, or is
/// none, is there.
fn is_away(error: &io::Error) -> bool {
    !matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::InvalidData
            | io::ErrorKind::Unsupported
    )
}

/// All of it is looked at before any server is asked.
fn parse_all(texts: &[String]) -> Result<Vec<Parsed>, AppError> {
    let parsed = texts.iter().map(|text| parse(text)).collect::<Result<Vec<_>, AppError>>()?;
    for (at, member) in parsed.iter().enumerate() {
        let is_same = |other: &&Parsed| match (member, other) {
            (Parsed::Export(uri), Parsed::Export(other)) => uri.is_same_export(other),
            // The host tells files and devices, whatever their names.
            (Parsed::Here(_), _) | (_, Parsed::Here(_)) => false,
        };
        if let Some(earlier) = parsed[..at].iter().position(|other| is_same(&other)) {
            let (earlier, text) = (&texts[earlier], &texts[at]);
            return Err(AppError::usage(format!("{earlier} and {text} are the same drive")));
        }
    }
    Ok(parsed)
}

/// A member of which it is known where it is.
enum Parsed {
    Here(Box<MemberSpec>),
    Export(Uri),
}

fn parse(text: &str) -> Result<Parsed, AppError> {
    if Uri::is_one(text) {
        return text.parse().map(Parsed::Export).map_err(AppError::usage);
    }
    text.parse().map(Box::new).map(Parsed::Here).map_err(AppError::usage)
}

impl Parsed {
    fn connect(self) -> io::Result<MemberSpec> {
        match self {
            Self::Here(member) => Ok(*member),
            Self::Export(uri) => {
                let recognise = Recognise { by: &COMPARED, is_same: is_same_drive };
                let client = LastingClient::open(&uri, recognise)?;
                Ok(MemberSpec::handed_in(&uri.to_string(), Arc::new(client)))
            }
        }
    }
}
