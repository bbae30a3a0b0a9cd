//! Certificates and keys, out of PEM files.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

/// The longest file that is read: a few hundred certificates.
const FILE_MAX: u64 = 1 << 20;

/// The rights of users that neither own a file nor are of its group: to read, and to write.
const FOR_OTHERS: u32 = 0o006;

/// What a server is known by, and which clients it lets in. Clones are the same.
#[derive(Clone, Debug)]
pub struct TlsServer(Arc<ServerConfig>);

/// Which servers a client believes, and what it is known by. Clones are the same.
#[derive(Clone, Debug)]
pub struct TlsClient(Arc<ClientConfig>);

impl TlsServer {
    /// A server with the certificate in `cert` (its own first, then those that lead to its issuer) and the
    /// private key in `key`, both PEM. With `client_ca`, clients need a certificate that one of these issued.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, that holds none of what it should, or that does not go with the others: the
    /// error names it.
    pub fn load(cert: &Path, key: &Path, client_ca: Option<&Path>) -> io::Result<Self> {
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(wrong)?;
        let builder = match client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let roots = Arc::new(roots(path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
                builder.with_client_cert_verifier(
                    verifier.build().map_err(|error| about(path, &error))?,
                )
            }
        };
        let config = builder.with_single_cert(certificates(cert)?, private_key(key)?);
        let config = config.map_err(|error| {
            let (cert, key) = (cert.display(), key.display());
            wrong(format!("certificate {cert} and key {key} cannot be used: {error}"))
        })?;
        Ok(Self(Arc::new(config)))
    }

    /// The session of one connection.
    pub(crate) fn session(&self) -> io::Result<rustls::Connection> {
        ServerConnection::new(Arc::clone(&self.0)).map(rustls::Connection::from).map_err(wrong)
    }
}

impl TlsClient {
    /// A client that believes servers whose certificate `ca-cert.pem` of this folder issued. If there is a
    /// `client-cert.pem` it shows that, with the key in `client-key.pem`.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, that holds none of what it should, or that does not go with the others: the
    /// error names it.
    pub fn load(folder: &Path) -> io::Result<Self> {
        let [ca, cert, key] = ["ca-cert.pem", "client-cert.pem", "client-key.pem"]
            .map(|name| -> PathBuf { folder.join(name) });
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots(&ca)?), provider());
        let verifier = verifier.build().map_err(|error| about(&ca, &error))?;
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(wrong)?
            .with_webpki_verifier(verifier);
        let config = if cert.exists() {
            let config = builder.with_client_auth_cert(certificates(&cert)?, private_key(&key)?);
            config.map_err(|error| {
                let (cert, key) = (cert.display(), key.display());
                wrong(format!("certificate {cert} and key {key} cannot be used: {error}"))
            })?
        } else {
            builder.with_no_client_auth()
        };
        Ok(Self(Arc::new(config)))
    }

    /// The session of one connection to a server that its certificate must call `name`.
    pub(crate) fn session(&self, name: ServerName<'static>) -> io::Result<rustls::Connection> {
        ClientConnection::new(Arc::clone(&self.0), name)
            .map(rustls::Connection::from)
            .map_err(wrong)
    }
}

/// A name or an address that a server's certificate may be for.
pub(crate) fn server_name(name: &str) -> io::Result<ServerName<'static>> {
    ServerName::try_from(name.to_owned())
        .map_err(|_| wrong(format!("'{name}' is not a name that a certificate could be for")))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn roots(path: &Path) -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| about(path, &error))?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let text = read(path, open(path)?)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| about(path, &error))?;
    if found.is_empty() {
        return Err(wrong(format!("{} holds no certificate in PEM", path.display())));
    }
    Ok(found)
}

fn private_key(path: &Path) -> io::Result<PrivateKeyDer<'static>> {
    let file = open(path)?;
    // Of the file that was opened: another one may take its name meanwhile.
    let mode = file.metadata().map_err(|error| cannot_read(path, &error))?.mode();
    let text = read(path, file)?;
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        rustls::pki_types::pem::Error::NoItemsFound => {
            wrong(format!("{} holds no private key in PEM", path.display()))
        }
        error => about(path, &error),
    })?;
    if mode & FOR_OTHERS != 0 {
        let (path, mode) = (path.display(), mode & 0o777);
        return Err(wrong(format!(
            "every user may read or replace the private key {path} (mode {mode:o}): chmod o= takes that away"
        )));
    }
    Ok(key)
}

fn open(path: &Path) -> io::Result<File> {
    File::open(path).map_err(|error| cannot_read(path, &error))
}

fn read(path: &Path, file: File) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let read = file.take(FILE_MAX + 1).read_to_end(&mut text);
    read.map_err(|error| cannot_read(path, &error))?;
    if text.len() as u64 > FILE_MAX {
        let path = path.display();
        return Err(wrong(format!(
            "{path} has more than {FILE_MAX} bytes, the limit for such a file"
        )));
    }
    Ok(text)
}

fn cannot_read(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot read {}: {error}", path.display()))
}

fn about(path: &Path, error: &dyn std::error::Error) -> io::Error {
    wrong(format!("{} cannot be used: {error}", path.display()))
}

fn wrong(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}
