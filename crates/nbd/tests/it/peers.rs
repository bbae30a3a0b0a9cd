//! The server against clients that others wrote: libnbd (`nbdinfo`, `nbdcopy`), QEMU (`qemu-img`,
//! `qemu-io`) and fio, all on 64 MiB in memory. A tool that is not installed is skipped, loudly;
//! where the environment variable `CI` is set, that is a failure.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use levelhead_block::conformance::{SuiteSettings, check_service};
use levelhead_nbd::{Access, Client, Endpoint, Export};
use levelhead_testkit::{PYTHON, is_there, python_has};
use levelhead_units::Bytes;

use crate::common::{self, Served, export, good, memory, wait_until};

const SIZE: u64 = 64 << 20;

fn served() -> Served {
    Served::over(memory(SIZE / 4096))
}

fn uri(served: &Served) -> String {
    served.running.endpoint().uri("disk")
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A file of random bytes with runs of zeroes, as big as the export.
fn image(served: &Served, seed: u64) -> PathBuf {
    let path = served.dir.path().join("image");
    fs::write(&path, levelhead_testkit::image(seed, SIZE as usize)).unwrap();
    path
}

fn content(served: &Served) -> Vec<u8> {
    let mut bytes = vec![0; SIZE as usize];
    let client = Client::connect(served.running.endpoint(), "").unwrap();
    client.read_at(Bytes::new(0), &mut bytes).unwrap();
    bytes
}

#[test]
fn nbdinfo_prints_what_the_export_is_like() {
    if !is_there("nbdinfo") {
        return;
    }
    let served = served();
    let uri = uri(&served);
    let info = good("nbdinfo", &[&uri]);
    for line in [
        "protocol: newstyle-fixed without TLS, using structured packets",
        "export=\"disk\"",
        "description: for a test",
        "export-size: 67108864 (64M)",
        "base:allocation",
        "is_read_only: false",
        "can_cache: true",
        "can_df: true",
        "can_fast_zero: true",
        "can_flush: true",
        "can_fua: true",
        "can_multi_conn: true",
        "can_trim: true",
        "can_zero: true",
        "block_size_minimum: 1",
        "block_size_preferred: 4096",
        "block_size_maximum: 33554432",
    ] {
        assert!(info.contains(line), "no '{line}' in\n{info}");
    }
    assert_eq!(good("nbdinfo", &["--size", &uri]), "67108864\n");
    let map = good("nbdinfo", &["--map", &uri]);
    let fields: Vec<&str> = map.split_whitespace().collect();
    assert_eq!(fields, ["0", "67108864", "0", "data"]);
}

#[test]
fn nbdinfo_lists_every_export() {
    if !is_there("nbdinfo") {
        return;
    }
    let (name, access) = ("a b".to_owned(), Access::ReadOnly);
    let second = Export { name, access, ..export(memory(3)) };
    let served = Served::new(vec![export(memory(2)), second]);
    let list = good("nbdinfo", &["--list", &served.running.endpoint().uri("")]);
    for line in ["export=\"disk\"", "export-size: 8192", "export=\"a b\"", "export-size: 12288"] {
        assert!(list.contains(line), "no '{line}' in\n{list}");
    }
    good("nbdinfo", &["--is", "read-only", &served.running.endpoint().uri("a b")]);
}

#[test]
fn nbdcopy_gets_out_what_it_put_in() {
    if !is_there("nbdcopy") {
        return;
    }
    let served = served();
    let (uri, image) = (uri(&served), image(&served, 1));
    let copy = served.dir.path().join("copy");
    // Over what was there before, and with its zeroes sent as zeroes.
    for options in [&["--connections=4", "--requests=64"][..], &["--allocated", "--flush"]] {
        good("nbdcopy", &[options, &[text(&image), &uri]].concat());
        good("nbdcopy", &[options, &[&uri, text(&copy)]].concat());
        assert!(fs::read(&copy).unwrap() == fs::read(&image).unwrap(), "{options:?}");
        assert!(content(&served) == fs::read(&image).unwrap(), "{options:?}");
    }
}

#[test]
fn qemu_img_converts_and_finds_both_sides_equal() {
    if !is_there("qemu-img") {
        return;
    }
    let served = served();
    let (uri, image) = (uri(&served), image(&served, 2));
    let image = text(&image);
    let info = good("qemu-img", &["info", &uri]);
    assert!(info.contains("virtual size: 64 MiB (67108864 bytes)"), "{info}");
    good("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", "-W", image, &uri]);
    good("qemu-img", &["compare", "-f", "raw", "-F", "raw", image, &uri]);
    assert!(content(&served) == fs::read(image).unwrap());
    let copy = served.dir.path().join("copy");
    good("qemu-img", &["convert", "-f", "raw", "-O", "qcow2", &uri, text(&copy)]);
    good("qemu-img", &["compare", "-f", "raw", "-F", "qcow2", &uri, text(&copy)]);
}

#[test]
fn qemu_io_reads_the_patterns_it_wrote() {
    if !is_there("qemu-io") {
        return;
    }
    let served = served();
    let commands = [
        "write -P 0x11 0 1M",
        "write -P 0x22 512 512",
        "write -f -P 0x33 4608 1024",
        "write -z 7k 9k",
        "write -z -u 100k 64k",
        "discard 200k 64k",
        "flush",
        "aio_write -P 0x44 2M 256k",
        "aio_write -P 0x55 2560k 256k",
        "aio_flush",
        "read -P 0x11 0 512",
        "read -P 0x22 512 512",
        "read -P 0x11 1024 3584",
        "read -P 0x33 4608 1024",
        "read -P 0 7k 9k",
        "read -P 0x11 16k 84k",
        "read -P 0 100k 64k",
        "read -P 0x44 2M 256k",
        "read -P 0x55 2560k 256k",
    ];
    let mut arguments = vec!["-f", "raw"];
    arguments.extend(commands.iter().flat_map(|command| ["-c", command]));
    let uri = uri(&served);
    arguments.push(&uri);
    let out = good("qemu-io", &arguments);
    assert!(!out.contains("failed"), "{out}");
}

const FIO: [&str; 6] = [
    "--name=verify",
    "--ioengine=nbd",
    "--verify=crc32c",
    "--verify_fatal=1",
    "--verify_state_save=0",
    "--randseed=7",
];

#[test]
fn fio_verifies_what_it_wrote() {
    if !is_there("fio") {
        return;
    }
    // Sectors, half kilobytes that share sectors, and a length that fits nothing.
    for (bs, size) in [("4k", "64m"), ("512", "4m"), ("1536", "6m")] {
        let served = served();
        let uri = format!("--uri={}", uri(&served));
        let (block, size) = (format!("--bs={bs}"), format!("--size={size}"));
        good("fio", &[&FIO[..], &["--rw=randrw", "--iodepth=16", &uri, &block, &size]].concat());
    }
}

#[test]
fn fio_jobs_on_connections_of_their_own_verify_too() {
    if !is_there("fio") {
        return;
    }
    let served = served();
    let uri = format!("--uri={}", uri(&served));
    let jobs = ["--numjobs=4", "--thread", "--size=4m", "--offset_increment=4m", "--bs=1k"];
    good("fio", &[&FIO[..], &jobs, &["--rw=randwrite", "--iodepth=8", &uri]].concat());
}

/// What libnbd sends once it is told to check nothing: each is answered with the error that other servers have for
/// it, and the connection is as good as before.
const UNCHECKED: &str = r#"
import errno, nbd, sys
h = nbd.NBD()
h.set_strict_mode(0)
h.set_uri_allow_local_file(True)
h.connect_uri(sys.argv[1])
size = h.get_size()
byte = bytearray(b"x")
def fails(error, call):
    try:
        call()
    except nbd.Error as e:
        assert e.errnum == error, (call, e)
    else:
        assert False, call
write = {"disk": lambda error: error, "look": lambda error: errno.EPERM}[sys.argv[2]]
for _ in range(2):
    fails(errno.EINVAL, lambda: h.pread(512, size))
    fails(errno.EINVAL, lambda: h.pread(0, 0))
    fails(errno.EINVAL, lambda: h.pread((32 << 20) + 512, 0))
    fails(errno.EINVAL, lambda: h.pread(512, 0, 1 << 15))
    fails(write(errno.ENOSPC), lambda: h.pwrite(byte, size))
    fails(write(errno.ENOSPC), lambda: h.zero(512, size))
    fails(write(errno.EINVAL), lambda: h.trim(512, size))
    fails(write(errno.EINVAL), lambda: h.trim(0, 0))
    fails(errno.EINVAL, lambda: h.cache(512, size))
    fails(errno.EINVAL, lambda: h.flush(nbd.CMD_FLAG_NO_HOLE))
    if sys.argv[2] == "disk":
        h.pwrite(byte, size - 1, nbd.CMD_FLAG_FUA)
    assert len(h.pread(1, size - 1)) == 1
h.shutdown()
"#;

#[test]
fn libnbd_that_checks_nothing_gets_errors_and_goes_on() {
    if !python_has("nbd", "python3-libnbd") {
        return;
    }
    let service = memory(SIZE / 4096);
    let (name, access) = ("look".to_owned(), Access::ReadOnly);
    let look = Export { name, access, ..export(Arc::clone(&service)) };
    let served = Served::new(vec![export(service), look]);
    for name in ["disk", "look"] {
        let uri = served.running.endpoint().uri(name);
        good(PYTHON, &["-c", UNCHECKED, &uri, name]);
    }
    let certificates = common::pki::folder();
    let tls = common::pki::server(certificates.path());
    let served = Served::of(vec![export(memory(SIZE / 4096))], |server| server.with_tls(tls));
    let uri = served.running.endpoint().tls_uri("disk");
    let uri = format!("{uri}&tls-certificates={}", certificates.path().display());
    good(PYTHON, &["-c", UNCHECKED, &uri, "disk"]);
}

/// The other way round: our client on a server that others wrote.
#[test]
fn client_on_qemu_nbd_is_a_block_service() {
    if !is_there("qemu-nbd") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (image, socket) = (dir.path().join("image"), dir.path().join("qemu.sock"));
    fs::File::create(&image).unwrap().set_len(512 * 4096).unwrap();
    let mut server = Command::new("qemu-nbd")
        .args(["--format=raw", "--discard=unmap", "--export-name=disk", "--persistent", "--socket"])
        .args([&socket, &image])
        .spawn()
        .unwrap();
    let mut client = None;
    wait_until("qemu-nbd listens", || {
        client = Client::connect(&Endpoint::Unix(socket.clone()), "disk").ok();
        client.is_some()
    });
    let client = Arc::new(client.unwrap());
    let settings = SuiteSettings { seed: 5, requests: 1_000, sectors_max: 33, batch_max: 16 };
    let result = catch_unwind(AssertUnwindSafe(|| check_service(Arc::clone(&client), settings)));
    server.kill().unwrap();
    server.wait().unwrap();
    if let Err(panic) = result {
        resume_unwind(panic);
    }
    let mut byte = [0];
    wait_until("the loss is noticed", || client.read_at(Bytes::new(0), &mut byte).is_err());
}
