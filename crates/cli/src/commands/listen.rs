//! Options of every command that serves a device over NBD.

use std::path::PathBuf;

use clap::Args;
use levelhead_app::{AppError, ExportName, Listen, TlsFiles};
use levelhead_nbd::{Access, CONNECTIONS_MAX, Endpoint, SOCKET_MODE};
use levelhead_units::Nanos;

use crate::values::{self, Mode};

#[derive(Args)]
pub(crate) struct ListenArgs {
    /// Address for NBD clients: unix:PATH, a path ending in .sock, tcp:PORT on this machine, or
    /// tcp:ADDRESS:PORT
    #[arg(long)]
    nbd: Endpoint,
    /// Name of an export, with ,ro for a read-only one; may be given more than once, and the
    /// first one is the default export
    #[arg(long, value_name = "NAME[,ro]", default_value = "")]
    export: Vec<ExportName>,
    /// Make all exports read-only
    #[arg(long)]
    read_only: bool,
    /// Mode of a Unix socket's file, as chmod takes it: 660 also admits its group
    #[arg(long, value_name = "MODE", default_value_t = Mode(SOCKET_MODE), value_parser = values::mode)]
    socket_mode: Mode,
    /// Maximum number of clients, 1 to 1024; further ones are refused
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = CONNECTIONS_MAX,
        value_parser = values::connections,
        allow_negative_numbers = true
    )]
    max_connections: usize,
    /// Time limit of a client's handshake, 100ms to 10min
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::handshake)]
    handshake_limit: Nanos,
    /// Require TLS with this certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "tls_certificates")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Require TLS with server-cert.pem and server-key.pem of this folder, as nbdkit and QEMU name them
    #[arg(long, value_name = "DIR")]
    tls_certificates: Option<PathBuf>,
    /// Admit only clients with a certificate of an issuer in this PEM file
    #[arg(long, value_name = "FILE")]
    tls_client_ca: Option<PathBuf>,
}

impl ListenArgs {
    /// What was asked for.
    pub(crate) fn listen(self) -> Result<Listen, AppError> {
        Ok(Listen {
            tls: self.tls()?,
            endpoint: self.nbd,
            exports: self.export,
            access: if self.read_only { Access::ReadOnly } else { Access::ReadWrite },
            socket_mode: self.socket_mode.0,
            connections_max: self.max_connections,
            handshake_max: self.handshake_limit,
        })
    }

    fn tls(&self) -> Result<Option<TlsFiles>, AppError> {
        let client_ca = self.tls_client_ca.clone();
        let files = match (&self.tls_certificates, &self.tls_cert, &self.tls_key) {
            (Some(folder), _, _) => (folder.join("server-cert.pem"), folder.join("server-key.pem")),
            (None, Some(cert), Some(key)) => (cert.clone(), key.clone()),
            (None, ..) if client_ca.is_some() => {
                return Err(AppError::usage(
                    "--tls-client-ca needs a certificate of the server: --tls-cert and --tls-key, or \
                     --tls-certificates",
                ));
            }
            (None, ..) => return Ok(None),
        };
        let (cert, key) = files;
        Ok(Some(TlsFiles { cert, key, client_ca }))
    }
}
