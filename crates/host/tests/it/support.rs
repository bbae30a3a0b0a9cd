//! Drives in a temporary folder, and arrays over them.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use levelhead_array::assembly::Found;
use levelhead_array::metadata::{Inscription, Metadata};
use levelhead_array::reserve::Division;
use levelhead_array::{HostOrder, Patience, Policy};
use levelhead_block::adapter::Waiting;
use levelhead_block::{
    BlockDevice, BlockService, Buf, Durability, Effort, Outcome, Reply, Request,
};
use levelhead_erasure::{Kernel, Measured};
use levelhead_host::{
    ArrayHandle, AssembleOptions, Assembled, Bound, CreateOptions, Created, FastFail, HostError,
    Io, Journaling, MemberSpec, ServeOptions, assemble, create,
};
use levelhead_testkit::extent;
use levelhead_testkit::profiles::FAST;
use levelhead_units::{Bytes, Extent, SECTOR_SIZE, Sectors};
use tempfile::TempDir;

/// What is reserved at each end of a drive.
const END: u64 = 256;

/// The size of a drive with `data` sectors of data, in sectors.
pub(crate) fn size_for(data: u64) -> u64 {
    let spec = "raid5:2+1,chunk=4KiB".parse().unwrap();
    let holds = |size: &u64| {
        let division = Division::of(&spec, Sectors::new(*size));
        division.is_some_and(|division| division.drive_size.get() >= data)
    };
    (data..).find(holds).unwrap()
}

/// A folder with drives in it.
pub(crate) struct Shelf {
    dir: TempDir,
}

impl Shelf {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("fast.toml"), FAST).unwrap();
        Self { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A file with room for `data` sectors of data, none of which is zero.
    pub(crate) fn file(&self, name: &str, data: u64) -> MemberSpec {
        let path = self.path(name);
        let size = size_for(data);
        let mut bytes = vec![0; size as usize * SECTOR_SIZE];
        bytes[END as usize * SECTOR_SIZE..(size - END) as usize * SECTOR_SIZE].fill(0x5A);
        fs::write(&path, bytes).unwrap();
        self.named(name)
    }

    /// A member that is a file here.
    pub(crate) fn named(&self, name: &str) -> MemberSpec {
        self.path(name).display().to_string().parse().unwrap()
    }

    /// `count` files, `0.img` and so on.
    pub(crate) fn files(&self, count: usize, data: u64) -> Vec<MemberSpec> {
        (0..count).map(|at| self.file(&format!("{at}.img"), data)).collect()
    }

    /// `count` emulated drives whose files do not exist yet.
    pub(crate) fn emulated(&self, count: usize, data: u64, options: &str) -> Vec<MemberSpec> {
        let profile = self.path("fast.toml").display().to_string();
        let size = Bytes::new(size_for(data) * SECTOR_SIZE as u64);
        let member = |at: usize| {
            let path = self.path(&format!("emu{at}.img")).display().to_string();
            format!("emu:{path}?profile={profile}&size={size}&{options}").parse().unwrap()
        };
        (0..count).map(member).collect()
    }

    /// Every file and its bytes.
    pub(crate) fn content(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(self.dir.path()).unwrap();
        let mut content: Vec<(PathBuf, Vec<u8>)> = entries
            .map(|entry| {
                let path = entry.unwrap().path();
                let bytes = fs::read(&path).unwrap();
                (path, bytes)
            })
            .collect();
        content.sort();
        content
    }

    /// Copies of drives as they are at this moment, as a crash would leave them.
    pub(crate) fn snapshot(&self, members: &[MemberSpec], prefix: &str) -> Vec<MemberSpec> {
        let copy = |member: &MemberSpec| {
            let name = member.path().file_name().unwrap().to_str().unwrap();
            let name = format!("{prefix}-{name}");
            fs::copy(member.path(), self.path(&name)).unwrap();
            self.named(&name)
        };
        members.iter().map(copy).collect()
    }

    /// Overwrites sectors of a file behind everybody's back.
    pub(crate) fn scribble(&self, member: &MemberSpec, lba: u64, sectors: u64, byte: u8) {
        let mut bytes = fs::read(member.path()).unwrap();
        bytes[lba as usize * SECTOR_SIZE..][..sectors as usize * SECTOR_SIZE].fill(byte);
        fs::write(member.path(), bytes).unwrap();
    }
}

/// What a file holds as a drive of an array.
pub(crate) fn found_on(member: &MemberSpec) -> Found {
    let bytes = fs::read(member.path()).unwrap();
    let read = |extent: Extent| {
        let [start, end] = [extent.lba, extent.end()].map(|lba| lba.get() as usize * SECTOR_SIZE);
        Some(bytes.get(start..end)?.to_vec())
    };
    Found::read(Sectors::new((bytes.len() / SECTOR_SIZE) as u64), read)
}

/// Gives a drive the next metadata, with a change, as its array would.
pub(crate) fn record(member: &MemberSpec, change: impl FnOnce(&mut Metadata)) {
    let word = found_on(member).word().unwrap();
    let mut metadata = Arc::unwrap_or_clone(word.metadata.unwrap());
    metadata.generation = metadata.generation.plus(1);
    change(&mut metadata);
    let own = &word.superblock.own;
    let holder = metadata.members[own.drive.as_usize()].id;
    let encoded = Inscription { metadata: Arc::new(metadata), holder }.encode();
    let slot = own.slots()[1 - word.held.unwrap().slot].lba.get() as usize * SECTOR_SIZE;
    let mut bytes = fs::read(member.path()).unwrap();
    bytes[slot..slot + encoded.len()].copy_from_slice(&encoded);
    fs::write(member.path(), bytes).unwrap();
}

/// The files of a shelf hold something.
pub(crate) const CLEAN: CreateOptions =
    CreateOptions { assume_clean: true, dry_run: false, force: true, journal: Journaling::None };
pub(crate) const UNKNOWN: CreateOptions = CreateOptions { assume_clean: false, ..CLEAN };

pub(crate) fn make(spec: &str, members: &[MemberSpec], options: CreateOptions) -> Created {
    create(spec.parse().unwrap(), &members.into(), options).unwrap()
}

pub(crate) fn gather(members: &[MemberSpec]) -> Result<Assembled, HostError> {
    assemble(members, AssembleOptions { force: false, degraded: true })
}

pub(crate) fn options(policy: &str) -> ServeOptions {
    let policy: Policy = policy.parse().unwrap();
    let order = HostOrder::Elevator;
    ServeOptions {
        policy,
        window: 4,
        order,
        io: Io::Best,
        arithmetic: Measured::none(Kernel::best(), &[]),
        bound: Bound::DEFAULT,
        seed: 1,
        patience: Patience::DEFAULT,
        on_event: None,
        verify: None,
        fast_fail: FastFail::Command,
    }
}

pub(crate) fn serve(members: &[MemberSpec], policy: &str) -> ArrayHandle {
    gather(members).unwrap().serve(options(policy)).unwrap()
}

/// A client that waits.
pub(crate) struct Client(Waiting<ArrayHandle>);

impl Client {
    pub(crate) fn new(array: &ArrayHandle) -> Self {
        Self(Waiting::new(Arc::new(array.clone())))
    }

    pub(crate) fn device(&mut self) -> &mut impl BlockDevice {
        &mut self.0
    }

    pub(crate) fn run(&mut self, request: Request) -> Reply {
        self.0.run(vec![request]).pop().unwrap()
    }

    pub(crate) fn write(&mut self, lba: u64, buf: Buf) -> Outcome {
        let extent = extent(lba, buf.sectors().get());
        self.run(Request::write(extent, Durability::Cached, buf)).outcome
    }

    pub(crate) fn read(&mut self, lba: u64, sectors: u64) -> Reply {
        self.run(Request::read(extent(lba, sectors), Effort::Full))
    }
}

/// Bytes that depend on the seed.
pub(crate) fn noise(seed: u64, sectors: u64) -> Buf {
    Buf::copy_of(&levelhead_testkit::noise(seed, sectors as usize * SECTOR_SIZE))
}

/// Fills the whole array with noise; returns it.
pub(crate) fn fill(array: &ArrayHandle, seed: u64) -> Buf {
    let sectors = array.size().get();
    let outcome = Client::new(array).write(0, noise(seed, sectors));
    assert!(outcome.is_good(), "{outcome:?}");
    noise(seed, sectors)
}

/// The whole array holds these bytes.
pub(crate) fn check_content(array: &ArrayHandle, expected: &Buf) {
    let reply = Client::new(array).read(0, array.size().get());
    assert!(reply.outcome.is_good(), "{:?}", reply.outcome);
    let content = reply.data.into_buf();
    let pairs = content.as_slice().chunks(SECTOR_SIZE).zip(expected.as_slice().chunks(SECTOR_SIZE));
    for (sector, (got, expected)) in pairs.enumerate() {
        assert!(got == expected, "sector {sector} of the array");
    }
}
