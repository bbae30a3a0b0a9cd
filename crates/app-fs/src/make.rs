//! `levelhead fs mkfs`.
//!
//! Everything is checked first; where anything is wrong, nothing has changed.

use std::sync::Arc;
use std::time::SystemTime;

use levelhead_block::adapter::Waiting;
use levelhead_block::{BlockDevice, Buf, Command, Durability, Request};
use levelhead_fs::format::superblock::{INTERLEAVE_MAX, LABEL_MAX, Superblock};
use levelhead_fs::geometry::{COPIES_MAX, Geometry, GroupIdx};
use levelhead_fs::{CannotMake, Moment, Wishes, Written};
use levelhead_host::{LoneDrive, MemberSpec, check_empty, draw_identity, erase_signatures};
use levelhead_planner::Code;
use levelhead_report::json;
use levelhead_units::{Bytes, Extent, SECTOR_SIZE, Sectors};
use serde::Serialize;

use super::code::{Chosen, CodeWish, Redundancy, choose, forced};
use super::points;
use super::target::Target;
use levelhead_app::{AppError, Show};

/// What to make.
#[derive(Clone, Debug)]
pub struct MakeFilesystem {
    /// A file, a block device or an emulated drive.
    pub target: String,
    /// The size, instead of all of the target; of a file that is made its own.
    pub size: Option<Bytes>,
    /// The code of the longest groups.
    pub code: CodeWish,
    /// What shorter groups get.
    pub redundancy: Redundancy,
    /// Copies of each sector of metadata.
    pub metadata_copies: u8,
    /// Groups of a file that are woven.
    pub interleave: u8,
    /// Whether the drive makes use of zeroes at the end of a sector.
    pub zero_forcing: bool,
    /// A name for people.
    pub label: String,
    /// Take what holds something.
    pub force: bool,
}

/// What was made.
#[derive(Clone, Debug)]
pub struct MadeFilesystem {
    target: String,
    device: Bytes,
    usable: Bytes,
    written: Bytes,
    code: Code,
    metadata_copies: u8,
}

/// Makes a filesystem.
///
/// # Errors
///
/// The target is mounted, holds something, is too small or cannot be written, or there is no such code.
pub fn make_filesystem(ask: &MakeFilesystem) -> Result<MadeFilesystem, AppError> {
    let member = Target::parse(&ask.target)?;
    let Chosen { code, ladder, failure_rate } = choose(ask.code, ask.redundancy)?;
    let forced = ask.zero_forcing.then(|| forced(failure_rate, ask.redundancy)).transpose()?;
    let wanted = ask.size.map(|size| whole(&member, size)).transpose()?;
    let is_there = member.path().exists();
    points::check_unmounted(&member)?;
    let size = size(&member, wanted, is_there)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let wishes = Wishes {
        size,
        copies: ask.metadata_copies,
        ladder,
        interleave: ask.interleave,
        forced,
        identity: draw_identity().map_err(AppError::trouble)?,
        label: ask.label.clone(),
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        now: Moment { seconds: now.as_secs() as i64, nanos: now.subsec_nanos() },
    };
    let made = levelhead_fs::make(&wishes).map_err(|why| cannot(&member, size, &why))?;
    let empty = check_empty(&member);
    let holds_something = empty.is_err();
    if !ask.force {
        empty.map_err(AppError::usage)?;
    }
    if is_there && holds_something {
        // What is there stays where the disk does not store.
        Disk::open(&member)?.flush()?;
        erase_signatures(&member).map_err(AppError::trouble)?;
    }
    let file = NewFile::create(&member, size, is_there)?;
    let mut disk = Disk::open(&member)?;
    disk.write(&made.first)?;
    disk.flush()?;
    disk.write(&made.last)?;
    disk.flush()?;
    file.keep();
    Ok(MadeFilesystem {
        target: member.to_string(),
        device: size.bytes(),
        usable: usable(&made.superblock),
        written: Sectors::new(disk.written).bytes(),
        code,
        metadata_copies: ask.metadata_copies,
    })
}

/// The sectors of 4 KiB that a size has room for.
fn whole(member: &MemberSpec, size: Bytes) -> Result<Sectors, AppError> {
    match size.get() / SECTOR_SIZE as u64 {
        0 => Err(AppError::usage(format!("{member}: expected a size of 4KiB or more, got {size}"))),
        sectors => Ok(Sectors::new(sectors)),
    }
}

/// The sectors that the filesystem gets.
fn size(member: &MemberSpec, wanted: Option<Sectors>, is_there: bool) -> Result<Sectors, AppError> {
    let has = match (is_there, wanted.or(member.size_wanted())) {
        (true, _) => {
            let drive = LoneDrive::open(member).map_err(AppError::usage)?;
            if drive.is_read_only() {
                let sentence = format!("{member} is read-only: the kernel takes no writes for it");
                return Err(AppError::usage(sentence));
            }
            levelhead_block::BlockService::size(&drive)
        }
        (false, Some(wanted)) => wanted,
        (false, None) => {
            return Err(AppError::usage(format!(
                "{member} does not exist: with --size a file is made"
            )));
        }
    };
    match wanted {
        Some(wanted) if wanted > has => Err(AppError::usage(format!(
            "{member} has {}, which is less than --size {}",
            has.bytes(),
            wanted.bytes()
        ))),
        Some(wanted) => Ok(wanted),
        None => Ok(has),
    }
}

fn cannot(member: &MemberSpec, size: Sectors, why: &CannotMake) -> AppError {
    AppError::usage(match why {
        CannotMake::TooSmall => format!(
            "{member} has {}, a filesystem needs at least {}",
            size.bytes(),
            Geometry::SECTORS_MIN.bytes()
        ),
        CannotMake::Copies => format!("metadata has from 1 to {COPIES_MAX} copies"),
        CannotMake::Interleave => format!("from 1 to {INTERLEAVE_MAX} groups can be woven"),
        CannotMake::Forced => "files of kind B have no such code".to_owned(),
        CannotMake::Label => format!("a label has at most {LABEL_MAX} bytes and no zero byte"),
    })
}

/// A file that is removed unless all went well.
struct NewFile<'a>(Option<&'a MemberSpec>);

impl<'a> NewFile<'a> {
    fn create(member: &'a MemberSpec, size: Sectors, is_there: bool) -> Result<Self, AppError> {
        if is_there {
            return Ok(Self(None));
        }
        let shown = member.path().display();
        let blame = |error| AppError::usage(format!("cannot create {shown}: {error}"));
        let file = std::fs::File::create_new(member.path()).map_err(blame)?;
        let new = Self(Some(member));
        file.set_len(size.bytes().get()).map_err(blame)?;
        Ok(new)
    }

    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        if let Some(member) = self.0 {
            // The error that led here is the one to tell.
            drop(std::fs::remove_file(member.path()));
        }
    }
}

/// What is written to.
struct Disk {
    device: Waiting<LoneDrive>,
    name: String,
    written: u64,
}

impl Disk {
    fn open(member: &MemberSpec) -> Result<Self, AppError> {
        let drive = Arc::new(LoneDrive::open(member).map_err(AppError::usage)?);
        Ok(Self { device: Waiting::new(drive), name: member.to_string(), written: 0 })
    }

    fn write(&mut self, all: &[Written]) -> Result<(), AppError> {
        let request = |Written { lba, bytes }: &Written| {
            let extent = Extent::new(*lba, Sectors::new(1));
            Request::write(extent, Durability::Cached, Buf::copy_of(&bytes[..]))
        };
        self.run(all.iter().map(request).collect())?;
        self.written += all.len() as u64;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), AppError> {
        self.run(vec![Request::bare(Command::Flush)])
    }

    fn run(&mut self, batch: Vec<Request>) -> Result<(), AppError> {
        match self.device.run(batch).into_iter().find(|reply| !reply.outcome.is_good()) {
            None => Ok(()),
            Some(reply) => {
                let reason = reply.reason.unwrap_or_else(|| format!("{:?}", reply.outcome));
                Err(AppError::trouble(format!("cannot write {}: {reason}", self.name)))
            }
        }
    }
}

/// What files can have, their redundancy taken off.
fn usable(superblock: &Superblock) -> Bytes {
    let Superblock { geometry, ladder, .. } = superblock;
    let fixed: u64 = (0..geometry.groups())
        .map(|group| geometry.fixed_end().min(geometry.group(GroupIdx(group)).sectors.get()))
        .sum();
    let free = geometry.sectors.saturating_sub(fixed + geometry.journal().sectors.get());
    let (data, redundant) = (u64::from(ladder.data_max()), u64::from(ladder.redundant_max()));
    Sectors::new(free / (data + redundant) * data).bytes()
}

#[derive(Serialize)]
struct Json<'a> {
    target: &'a str,
    device_bytes: u64,
    usable_bytes: u64,
    written_bytes: u64,
    code: String,
    metadata_copies: u8,
}

impl Show for MadeFilesystem {
    fn text(&self) -> String {
        let Self { target, device, usable, written, code, metadata_copies } = self;
        format!(
            "made a filesystem on {target}\nsize: {}\nfor files: {}\nwritten: {}\ncode: {code} (redundant,data)\n\
             copies of metadata: {metadata_copies}\n",
            device.short(),
            usable.short(),
            written.short()
        )
    }

    fn json(&self) -> String {
        let Self { target, device, usable, written, code, metadata_copies } = self;
        json::pretty(&Json {
            target,
            device_bytes: device.get(),
            usable_bytes: usable.get(),
            written_bytes: written.get(),
            code: code.to_string(),
            metadata_copies: *metadata_copies,
        })
        .expect("plain values")
    }
}
