//! Options of every command that serves a device over NBD.

use clap::Args;
use levelhead_app::{ExportName, Listen};
use levelhead_nbd::{Access, CONNECTIONS_MAX, Endpoint, SOCKET_MODE};
use levelhead_units::Nanos;

use crate::values::{self, Mode};

#[derive(Args)]
pub(crate) struct ListenArgs {
    /// Where NBD clients find it: unix:PATH, a path ending in .sock, tcp:PORT on this machine, or
    /// tcp:ADDRESS:PORT
    #[arg(long)]
    nbd: Endpoint,
    /// The name of an export, and ,ro behind it if nothing may be written through it; more of them are
    /// more names of the same device, and the first is the one for clients that name none
    #[arg(long, value_name = "NAME[,ro]", default_value = "")]
    export: Vec<ExportName>,
    /// Let clients read and not write, through whichever export
    #[arg(long)]
    read_only: bool,
    /// Who may use a Unix socket: its file's mode, as chmod takes it; 660 lets its group in, too
    #[arg(long, value_name = "MODE", default_value_t = Mode(SOCKET_MODE), value_parser = values::mode)]
    socket_mode: Mode,
    /// Connections at a time, 1 to 1024; further clients are turned away
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = CONNECTIONS_MAX,
        value_parser = values::connections,
        allow_negative_numbers = true
    )]
    max_connections: usize,
    /// How long a client may take for its handshake before it is disconnected; 100ms to 10min
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::handshake)]
    handshake_limit: Nanos,
}

impl From<ListenArgs> for Listen {
    fn from(args: ListenArgs) -> Self {
        Self {
            endpoint: args.nbd,
            exports: args.export,
            access: if args.read_only { Access::ReadOnly } else { Access::ReadWrite },
            socket_mode: args.socket_mode.0,
            connections_max: args.max_connections,
            handshake_max: args.handshake_limit,
        }
    }
}
