//! Encrypted connections with programs that others wrote: libnbd and QEMU (both by GnuTLS) as clients, nbdkit as
//! the server of ours. A program that is not installed is skipped, loudly; where the environment variable `CI`
//! is set, that is a failure.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output};
use std::sync::Arc;

use levelhead_block::Durability;
use levelhead_block::conformance::{SuiteSettings, check_service};
use levelhead_nbd::{Client, Endpoint, Server, TlsServer};
use levelhead_testkit::{is_there, noise};
use levelhead_units::Bytes;

use crate::common::{Served, export, good, memory, pki, wait_until};

const SIZE: u64 = 16 << 20;

fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap()
}

/// A server on a port of this machine.
fn over_tcp(tls: TlsServer) -> Served {
    let endpoint: Endpoint = "tcp:127.0.0.1:0".parse().unwrap();
    let server = Server::bind(&endpoint, vec![export(memory(SIZE / 4096))]).unwrap();
    Served { running: server.with_tls(tls).start().unwrap(), dir: tempfile::tempdir().unwrap() }
}

fn over_unix(tls: TlsServer) -> Served {
    Served::of(vec![export(memory(SIZE / 4096))], |server| server.with_tls(tls))
}

fn uri(served: &Served, folder: &Path) -> String {
    let uri = served.running.endpoint().tls_uri("disk");
    let sign = if uri.contains('?') { '&' } else { '?' };
    format!("{uri}{sign}tls-certificates={}", folder.display())
}

fn image(served: &Served, seed: u64) -> String {
    let path = served.dir.path().join("image");
    fs::write(&path, noise(seed, SIZE as usize)).unwrap();
    path.display().to_string()
}

#[test]
fn nbdinfo_and_nbdcopy_see_through_tls_what_there_is_and_nothing_without() {
    if !is_there("nbdinfo") || !is_there("nbdcopy") {
        return;
    }
    let certificates = pki::folder();
    let folder = certificates.path();
    for served in [over_tcp(pki::server_for_known(folder)), over_unix(pki::server(folder))] {
        let uri = uri(&served, folder);
        let info = good("nbdinfo", &[&uri]);
        for line in
            ["protocol: newstyle-fixed with TLS, using structured packets", "export-size: 16777216"]
        {
            assert!(info.contains(line), "no '{line}' in\n{info}");
        }
        let list = good("nbdinfo", &["--list", &uri]);
        assert!(list.contains("export=\"disk\""), "{list}");
        let plain = served.running.endpoint().uri("disk");
        assert!(!run("nbdinfo", &[&plain]).status.success());
        let (image, copy) = (image(&served, 1), served.dir.path().join("copy"));
        good("nbdcopy", &["--connections=4", "--requests=64", &image, &uri]);
        good("nbdcopy", &["--connections=4", &uri, &copy.display().to_string()]);
        assert!(fs::read(&copy).unwrap() == fs::read(&image).unwrap());
    }
}

#[test]
fn libnbd_without_a_certificate_is_not_let_in_where_one_is_needed() {
    if !is_there("nbdinfo") {
        return;
    }
    let certificates = pki::folder();
    let served = over_tcp(pki::server_for_known(certificates.path()));
    let alone = tempfile::tempdir().unwrap();
    fs::copy(certificates.path().join("ca-cert.pem"), alone.path().join("ca-cert.pem")).unwrap();
    assert!(!run("nbdinfo", &[&uri(&served, alone.path())]).status.success());
    good("nbdinfo", &[&uri(&served, certificates.path())]);
}

#[test]
fn qemu_img_converts_and_compares_with_tls_credentials() {
    if !is_there("qemu-img") {
        return;
    }
    let certificates = pki::folder();
    let folder = certificates.path();
    let served = over_tcp(pki::server_for_known(folder));
    let Endpoint::Tcp(addr) = served.running.endpoint() else { panic!() };
    let credentials =
        format!("tls-creds-x509,id=tls0,endpoint=client,dir={},verify-peer=on", folder.display());
    let options = format!(
        "driver=raw,file.driver=nbd,file.server.type=inet,file.server.host=127.0.0.1,\
         file.server.port={},file.export=disk,file.tls-creds=tls0",
        addr.port()
    );
    let image = image(&served, 2);
    let tls = ["--object", &credentials];
    let place = ["-n", "--target-image-opts", "-f", "raw", &image, &options];
    good("qemu-img", &[&["convert"], &tls[..], &place].concat());
    let copy = served.dir.path().join("copy").display().to_string();
    let place = ["--image-opts", "-O", "raw", &options, &copy];
    good("qemu-img", &[&["convert"], &tls[..], &place].concat());
    assert!(fs::read(&copy).unwrap() == fs::read(&image).unwrap());
}

/// nbdkit over its memory; killed at the end of the test.
struct Nbdkit(Child);

impl Drop for Nbdkit {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _waited = self.0.wait();
    }
}

#[test]
fn our_client_is_a_block_service_on_nbdkit_with_tls_and_certificates_on_both_sides() {
    if !is_there("nbdkit") {
        return;
    }
    let certificates = pki::folder();
    let folder = certificates.path();
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("nbdkit.sock");
    let child = Command::new("nbdkit")
        .args(["--foreground", "--tls=require", "--tls-verify-peer", "--unix"])
        .arg(&socket)
        .arg(format!("--tls-certificates={}", folder.display()))
        .args(["memory", "1200K"])
        .spawn();
    let _server = Nbdkit(child.unwrap());
    let uri = |folder: &Path| {
        let (socket, folder) = (socket.display(), folder.display());
        format!("nbds+unix:///?socket={socket}&tls-certificates={folder}").parse().unwrap()
    };
    let mut client = None;
    wait_until("nbdkit listens", || {
        client = Client::open(&uri(folder)).ok();
        client.is_some()
    });
    let client = Arc::new(client.unwrap());
    let settings = SuiteSettings { seed: 5, requests: 1_000, sectors_max: 33, batch_max: 16 };
    check_service(Arc::clone(&client), settings);
    client.write_at(Bytes::new(7), b"to nbdkit", Durability::Durable).unwrap();
    let mut read = [0; 9];
    Client::open(&uri(folder)).unwrap().read_at(Bytes::new(7), &mut read).unwrap();
    assert_eq!(&read, b"to nbdkit");
    // Without a certificate to show nbdkit does not let it in, and without TLS neither.
    for name in ["client-cert.pem", "client-key.pem"] {
        fs::remove_file(folder.join(name)).unwrap();
    }
    assert!(Client::open(&uri(folder)).is_err());
    assert!(Client::connect(&Endpoint::Unix(socket), "").is_err());
}
