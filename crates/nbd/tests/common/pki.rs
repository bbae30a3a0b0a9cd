//! Certificates for a test: made when it starts, with the names that nbdkit and QEMU have for them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use levelhead_nbd::TlsServer;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use tempfile::TempDir;

/// A temporary folder with what [`make`] makes.
pub(crate) fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path());
    folder
}

/// A folder with `ca-cert.pem`, `server-cert.pem`, `server-key.pem`, `client-cert.pem` and `client-key.pem`. The
/// server's certificate is for `localhost` and 127.0.0.1.
pub(crate) fn make(folder: &Path) {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.distinguished_name.push(DnType::CommonName, "test CA");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    write(folder, "ca-cert.pem", &ca.self_signed(&ca_key).unwrap().pem());
    let issuer = Issuer::new(ca, ca_key);
    for (name, names, purpose) in [
        ("server", &["localhost", "127.0.0.1"][..], ExtendedKeyUsagePurpose::ServerAuth),
        ("client", &["client"], ExtendedKeyUsagePurpose::ClientAuth),
    ] {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![purpose];
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &issuer).unwrap();
        write(folder, &format!("{name}-cert.pem"), &cert.pem());
        let file = format!("{name}-key.pem");
        write(folder, &file, &key.serialize_pem());
        fs::set_permissions(folder.join(file), fs::Permissions::from_mode(0o600)).unwrap();
    }
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).unwrap();
}

/// What a server of that folder is known by, for any client.
pub(crate) fn server(folder: &Path) -> TlsServer {
    let file = |name| folder.join(name);
    TlsServer::load(&file("server-cert.pem"), &file("server-key.pem"), None).unwrap()
}

/// The same, for clients with a certificate of the same issuer alone.
pub(crate) fn server_for_known(folder: &Path) -> TlsServer {
    let file = |name| folder.join(name);
    let (cert, key) = (file("server-cert.pem"), file("server-key.pem"));
    TlsServer::load(&cert, &key, Some(&file("ca-cert.pem"))).unwrap()
}
