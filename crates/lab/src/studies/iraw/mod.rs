//! The studies of `[IRAW08]`: writes that are read back and compared while the drive is idle.
//!
//! The paper's five traces were never published. The studies run on made-up ones
//! ([`levelhead_trace::Iraw`]), which are fitted to tables 1 to 3, or on traces that are given, without the
//! paper's numbers then. `docs/iraw.md` says what is fitted and what is not.

mod bed;
mod caches;
mod effects;
mod ours;
mod tables;

use std::sync::Arc;

use levelhead_stats::Streams;
use levelhead_trace::{Answered, Iraw, Server, Trace, recorded};
use levelhead_units::{Bytes, Nanos, Sectors};

use super::{Ask, Study};

pub(super) fn studies() -> Vec<Study> {
    vec![
        tables::TABLE_1,
        tables::TABLE_2,
        tables::TABLE_3,
        effects::TABLE_4,
        effects::TABLE_5,
        effects::FIG_4,
        caches::FIG_5,
        caches::FIG_7,
        caches::FIG_8,
        caches::FIG_9,
        ours::OURS,
    ]
}

/// The size of the paper's faster drive, on which made-up traces are laid.
const DRIVE: Bytes = Bytes::new(73_000_000_000);

/// How long a request takes where a trace does not say when it was answered: the paper's average.
const SERVICE: Nanos = Nanos::from_millis(5);

/// What a study runs on: one of its cases.
#[derive(Clone, Debug)]
struct Input {
    /// What rows call it: a server, or a trace's file.
    name: String,
    origin: Origin,
}

/// Where an input comes from.
#[derive(Clone, Debug)]
enum Origin {
    /// Made up after one of the paper's servers, with the seed.
    Server(Server),
    /// Given; the seed makes no difference. Without it nothing can be measured.
    Recorded(Option<Arc<Trace>>),
}

impl Input {
    /// The traces that are given, or else the paper's five servers.
    fn all(ask: &Ask) -> Vec<Self> {
        if ask.traces.is_empty() {
            let made_up = |server: Server| Self {
                name: server.name().to_owned(),
                origin: Origin::Server(server),
            };
            return Server::ALL.map(made_up).to_vec();
        }
        let given = ask.traces.iter().map(|one| Self {
            name: one.name.clone(),
            origin: Origin::Recorded(one.trace.clone()),
        });
        given.collect()
    }

    /// The paper's server, if it is made up after one.
    fn server(&self) -> Option<Server> {
        match self.origin {
            Origin::Server(server) => Some(server),
            Origin::Recorded(_) => None,
        }
    }

    /// Its requests with the times at which they were answered.
    fn answered(&self, seed: u64) -> Result<Vec<Answered>, String> {
        match &self.origin {
            Origin::Server(server) => {
                let size: Sectors = DRIVE.sectors_floor();
                let workload = Iraw::whole(*server);
                workload.answered(size, Streams::new(seed)).map_err(|error| error.to_string())
            }
            Origin::Recorded(trace) => {
                let trace = trace.as_ref().ok_or("there is only a name of this trace")?;
                Ok(recorded(trace, SERVICE))
            }
        }
    }
}

/// The sentence that belongs to every result.
fn remarks(ask: &Ask) -> Vec<String> {
    if ask.traces.is_empty() {
        return vec![
            "The paper's traces were never published: these are synthetic and fitted to tables 1 to 3."
                .to_owned(),
        ];
    }
    vec![
        "Of each trace the device with the most requests is taken. Departures are the recorded ones, where \
         the format has them (msr, systor17); else requests are served one after another, 5 ms each."
            .to_owned(),
    ]
}
