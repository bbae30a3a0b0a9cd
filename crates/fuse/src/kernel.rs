//! What the kernel asks, in the core's words. Each method hands a request in, with what becomes of the answer.
//!
//! Opening and closing files is the kernel's own affair: it knows every inode until it forgets it.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileHandle, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite,
    ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use levelhead_fs::{Answer, Attributes, Caller, Changes, Listed, Named, Removed, What};
use levelhead_units::SECTOR_SIZE;

use crate::gate::{Gate, Input};
use crate::scrub;
use crate::status::{self, DAMAGED, STATUS};
use crate::sync::{self, SYNC};
use crate::translate::{self, Numbers};

/// The most bytes of a read or a write: 1 MiB.
pub(crate) const TRANSFER_MAX: u32 = 1 << 20;

/// Requests that the kernel has under way for readers and writers that do not wait.
const BACKGROUND_MAX: u16 = 64;

/// How long the kernel may keep names and attributes: no one else changes them.
const KEPT: Duration = Duration::from_secs(3600);

/// The most bytes of a name.
const NAME_MAX: u32 = 255;

/// Bytes that the core may list at a time: the least that the kernel has room for is a page.
const LISTED_MAX: usize = 3500;

/// The same with attributes, of which an entry has 128 bytes; names of 12 bytes just fit.
const LISTED_PLUS_MAX: usize = 850;

/// The type of a regular file.
const REGULAR: u32 = 0o100_000;

/// The type of a directory.
const DIRECTORY: u32 = 0o40_000;

/// Who keeps what was written and not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCache {
    /// The core: a write that was answered has room on the disk.
    Core,
    /// The kernel, which joins small writes: that the disk is full shows at a later write or at fsync.
    Kernel,
}

/// See the module.
pub(crate) struct Kernel {
    pub(crate) gate: Gate,
    pub(crate) numbers: Numbers,
    pub(crate) cache: WriteCache,
    /// Whether the kernel does without being told of what is opened.
    pub(crate) opens_itself: bool,
}

/// What the kernel is told of an answer.
type Outcome<T> = Result<T, Errno>;

/// Why an answer is not the one that belongs to the request.
fn refusal(answer: &Answer) -> Errno {
    match answer {
        Answer::Failed(errno) => translate::errno(*errno),
        Answer::Done
        | Answer::Attributes(_)
        | Answer::Entry(_)
        | Answer::Bytes(_)
        | Answer::Written(_)
        | Answer::Entries(_)
        | Answer::Offset(_)
        | Answer::Scrubbed(_)
        | Answer::Room(_)
        | Answer::Inodes(_) => Errno::EIO,
    }
}

fn done(answer: &Answer) -> Outcome<()> {
    if *answer == Answer::Done { Ok(()) } else { Err(refusal(answer)) }
}

fn bytes(answer: Answer) -> Outcome<Vec<u8>> {
    match answer {
        Answer::Bytes(bytes) => Ok(bytes),
        other => Err(refusal(&other)),
    }
}

fn end(reply: ReplyEmpty) -> impl FnOnce(Answer) + Send {
    move |answer| match done(&answer) {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

/// The value of an attribute, or its size for one that asks with no room.
fn value(size: u32, reply: ReplyXattr) -> impl FnOnce(Answer) + Send {
    move |answer| match bytes(answer) {
        Ok(value) if size == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(&value),
        Err(errno) => reply.error(errno),
    }
}

/// What the kernel is told of an inode.
struct Entry {
    attributes: fuser::FileAttr,
    generation: Generation,
}

impl Kernel {
    fn caller(request: &Request) -> Caller {
        Caller { uid: request.uid(), gid: request.gid() }
    }

    /// Who writes: one who may leave a program its rights does that as root, as the core knows it.
    fn writer(request: &Request, flags: WriteFlags) -> Caller {
        match flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID) {
            true => Self::caller(request),
            false => Caller { uid: 0, gid: 0 },
        }
    }

    fn named(&self, parent: INodeNo, name: &OsStr) -> Named {
        Named { parent: self.numbers.of_core(parent), name: name.as_bytes().to_vec() }
    }

    fn ask(&self, request: &Request, what: What, told: impl FnOnce(Answer) + Send + 'static) {
        self.ask_as(Self::caller(request), what, told);
    }

    /// Hands a request in. FU1: what panics on the way is told the driver, and the reply that is dropped then fails the
    /// request.
    fn ask_as(&self, caller: Caller, what: What, told: impl FnOnce(Answer) + Send + 'static) {
        let asked = || self.gate.ask(caller, what, Box::new(told));
        if catch_unwind(AssertUnwindSafe(asked)).is_err() {
            self.gate.send(Input::Broken);
        }
    }

    /// The same where the answer is an inode that the kernel knows then; FU3 where it is never told.
    fn ask_entry(
        &self,
        request: &Request,
        what: What,
        told: impl FnOnce(Outcome<Entry>) + Send + 'static,
    ) {
        let (numbers, gate, caller) = (self.numbers, self.gate.clone(), Self::caller(request));
        self.ask(request, what, move |answer| match answer {
            Answer::Entry(known) => match numbers.attributes(&known) {
                Some(attributes) => {
                    told(Ok(Entry { attributes, generation: translate::generation(&known) }));
                }
                None => {
                    gate.tell(caller, What::Forget { inode: known.inode, count: 1 });
                    told(Err(Errno::EIO));
                }
            },
            other => told(Err(refusal(&other))),
        });
    }

    fn ask_new(&self, request: &Request, what: What, reply: ReplyEntry) {
        self.ask_entry(request, what, move |entry| match entry {
            Ok(Entry { attributes, generation }) => reply.entry(&KEPT, &attributes, generation),
            Err(errno) => reply.error(errno),
        });
    }

    fn ask_attributes(&self, request: &Request, what: What, reply: ReplyAttr) {
        let numbers = self.numbers;
        self.ask(request, what, move |answer| match answer {
            Answer::Attributes(known) => match numbers.attributes(&known) {
                Some(attributes) => reply.attr(&KEPT, &attributes),
                None => reply.error(Errno::EIO),
            },
            other => reply.error(refusal(&other)),
        });
    }
}

/// Fills a directory's answer; an entry that no file can be is left out.
fn fill(numbers: Numbers, listed: &[Listed], mut reply: ReplyDirectory) {
    for Listed { inode, kind, name, cookie, .. } in listed {
        let Some(kind) = translate::file_type((*kind).into()) else { continue };
        if reply.add(numbers.of_kernel(*inode), *cookie, kind, OsStr::from_bytes(name)) {
            break;
        }
    }
    reply.ok();
}

/// The same with attributes; `forget` is told of each inode that the kernel had no room for, FU3.
fn fill_plus(
    numbers: Numbers,
    listed: &[Listed],
    mut reply: ReplyDirectoryPlus,
    mut forget: impl FnMut(&Attributes),
) {
    let mut is_full = false;
    for Listed { inode, kind, name, cookie, attributes } in listed {
        let told = attributes.as_ref().and_then(|known| numbers.attributes(known));
        let kind = translate::file_type((*kind).into());
        let told = told.or_else(|| Some(numbers.bare(*inode, kind?)));
        let generation = attributes.as_ref().map_or(Generation(0), translate::generation);
        if let Some(told) = told.filter(|_| !is_full) {
            let name = OsStr::from_bytes(name);
            // The directory itself and its parent are not counted by the kernel either.
            is_full = reply.add(told.ino, *cookie, name, &KEPT, &told, generation);
            if !is_full {
                continue;
            }
        }
        if let Some(known) = attributes {
            forget(known);
        }
    }
    reply.ok();
}

impl fuser::Filesystem for Kernel {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // A kernel that wants less has its way.
        let _ = config.set_max_write(TRANSFER_MAX);
        if let Err(most) = config.set_max_readahead(TRANSFER_MAX) {
            let _ = config.set_max_readahead(most);
        }
        let _ = config.set_max_background(BACKGROUND_MAX);
        let wanted = InitFlags::FUSE_DO_READDIRPLUS
            | InitFlags::FUSE_READDIRPLUS_AUTO
            | InitFlags::FUSE_PARALLEL_DIROPS
            | InitFlags::FUSE_ASYNC_DIO
            | InitFlags::FUSE_EXPORT_SUPPORT
            | InitFlags::FUSE_CACHE_SYMLINKS
            // The core takes the mask of new files into account, and takes rights from programs that are written to.
            | InitFlags::FUSE_DONT_MASK
            | InitFlags::FUSE_POSIX_ACL
            | InitFlags::FUSE_HANDLE_KILLPRIV_V2;
        for flag in wanted.iter() {
            let _ = config.add_capabilities(flag);
        }
        if self.cache == WriteCache::Kernel {
            let _ = config.add_capabilities(InitFlags::FUSE_WRITEBACK_CACHE);
        }
        self.opens_itself = config.add_capabilities(InitFlags::FUSE_NO_OPEN_SUPPORT).is_ok();
        Ok(())
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let what = What::Lookup(self.named(parent, name));
        self.ask_entry(request, what, move |entry| match entry {
            Ok(Entry { attributes, generation }) => reply.entry(&KEPT, &attributes, generation),
            // The kernel keeps that, too, until it makes the name itself.
            Err(errno) if errno.code() == Errno::ENOENT.code() => {
                reply.entry(&KEPT, &translate::absent(), Generation(0));
            }
            Err(errno) => reply.error(errno),
        });
    }

    fn forget(&self, request: &Request, inode: INodeNo, count: u64) {
        let what = What::Forget { inode: self.numbers.of_core(inode), count };
        self.ask(request, what, drop);
    }

    fn getattr(&self, request: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let what = What::GetAttributes(self.numbers.of_core(inode));
        self.ask_attributes(request, what, reply);
    }

    fn setattr(
        &self,
        request: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        // When anything was changed last is what the core says.
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let now = translate::moment(SystemTime::now());
        let (accessed, modified) = (
            accessed.map(|time| translate::asked(time, now)),
            modified.map(|time| translate::asked(time, now)),
        );
        let changes = Changes { mode, uid, gid, size, accessed, modified, kind: None };
        let what = What::SetAttributes { inode: self.numbers.of_core(inode), changes };
        self.ask_attributes(request, what, reply);
    }

    fn readlink(&self, request: &Request, inode: INodeNo, reply: ReplyData) {
        let what = What::ReadLink(self.numbers.of_core(inode));
        self.ask(request, what, move |answer| match bytes(answer) {
            Ok(target) => reply.data(&target),
            Err(errno) => reply.error(errno),
        });
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let what = What::Make { name: self.named(parent, name), mode, umask, device };
        self.ask_new(request, what, reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let mode = mode & 0o7777 | DIRECTORY;
        let what = What::Make { name: self.named(parent, name), mode, umask, device: 0 };
        self.ask_new(request, what, reply);
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let what = What::Remove { name: self.named(parent, name), what: Removed::File };
        self.ask(request, what, end(reply));
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let what = What::Remove { name: self.named(parent, name), what: Removed::Directory };
        self.ask(request, what, end(reply));
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let target = target.as_os_str().as_bytes().to_vec();
        let what = What::MakeLink { name: self.named(parent, name), target };
        self.ask_new(request, what, reply);
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let Some(mode) = translate::renaming(flags) else { return reply.error(Errno::EINVAL) };
        let (from, to) = (self.named(parent, name), self.named(new_parent, new_name));
        self.ask(request, What::Rename { from, to, mode }, end(reply));
    }

    fn link(
        &self,
        request: &Request,
        inode: INodeNo,
        parent: INodeNo,
        name: &OsStr,
        reply: ReplyEntry,
    ) {
        let inode = self.numbers.of_core(inode);
        self.ask_new(request, What::Link { inode, name: self.named(parent, name) }, reply);
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.opens_itself {
            // The kernel does not ask again, and tells of no closing either.
            true => reply.error(Errno::ENOSYS),
            false => reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE),
        }
    }

    fn read(
        &self,
        request: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        count: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let what = What::Read { inode: self.numbers.of_core(inode), offset, count };
        self.ask(request, what, move |answer| match bytes(answer) {
            Ok(read) => reply.data(&read),
            Err(errno) => reply.error(errno),
        });
    }

    fn write(
        &self,
        request: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        flags: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let inode = self.numbers.of_core(inode);
        // The kernel knows where the end is, and says it.
        let what = What::Write { inode, offset, bytes: data.to_vec(), appends: false };
        self.ask_as(Self::writer(request, flags), what, move |answer| match answer {
            Answer::Written(count) => reply.written(count),
            other => reply.error(refusal(&other)),
        });
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // What a close must see to was done by each write.
        reply.error(Errno::ENOSYS);
    }

    fn fsync(&self, request: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let what = What::Sync { inode: Some(self.numbers.of_core(inode)) };
        self.ask(request, what, end(reply));
    }

    fn fsyncdir(
        &self,
        request: &Request,
        inode: INodeNo,
        _: FileHandle,
        _: bool,
        reply: ReplyEmpty,
    ) {
        let what = What::Sync { inode: Some(self.numbers.of_core(inode)) };
        self.ask(request, what, end(reply));
    }

    fn readdir(
        &self,
        request: &Request,
        inode: INodeNo,
        _: FileHandle,
        after: u64,
        reply: ReplyDirectory,
    ) {
        let numbers = self.numbers;
        let inode = numbers.of_core(inode);
        let what = What::ReadDirectory { inode, after, room: LISTED_MAX, with_attributes: false };
        self.ask(request, what, move |answer| match answer {
            Answer::Entries(listed) => fill(numbers, &listed, reply),
            other => reply.error(refusal(&other)),
        });
    }

    fn readdirplus(
        &self,
        request: &Request,
        inode: INodeNo,
        _: FileHandle,
        after: u64,
        reply: ReplyDirectoryPlus,
    ) {
        let (numbers, gate, caller) = (self.numbers, self.gate.clone(), Self::caller(request));
        let (inode, room) = (numbers.of_core(inode), LISTED_PLUS_MAX);
        let what = What::ReadDirectory { inode, after, room, with_attributes: true };
        self.ask(request, what, move |answer| match answer {
            Answer::Entries(listed) => fill_plus(numbers, &listed, reply, |known| {
                gate.tell(caller, What::Forget { inode: known.inode, count: 1 });
            }),
            other => reply.error(refusal(&other)),
        });
    }

    fn statfs(&self, request: &Request, _: INodeNo, reply: ReplyStatfs) {
        self.ask(request, What::Room, move |answer| match answer {
            Answer::Room(room) => {
                let (size, inodes) = (SECTOR_SIZE as u32, room.inodes + room.inodes_free);
                let (all, free, more) = (room.sectors, room.free, room.inodes_free);
                reply.statfs(all, free, free, inodes, more, size, NAME_MAX, size);
            }
            other => reply.error(refusal(&other)),
        });
    }

    fn setxattr(
        &self,
        request: &Request,
        inode: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        let Some(mode) = translate::setting(flags) else { return reply.error(Errno::EINVAL) };
        let (inode, value) = (self.numbers.of_core(inode), value.to_vec());
        let name = name.as_bytes().to_vec();
        self.ask(request, What::SetExtended { inode, name, value, mode }, end(reply));
    }

    fn getxattr(
        &self,
        request: &Request,
        inode: INodeNo,
        name: &OsStr,
        size: u32,
        reply: ReplyXattr,
    ) {
        let inode = self.numbers.of_core(inode);
        if inode == self.numbers.root && name == STATUS {
            return self.gate.send(Input::Status(Box::new(value(size, reply))));
        }
        if inode == self.numbers.root && name == DAMAGED {
            let told = value(size, reply);
            return self.ask(request, What::Damaged, move |answer| told(status::damaged(answer)));
        }
        if inode == self.numbers.root && name == SYNC {
            let told = value(size, reply);
            let what = What::Sync { inode: None };
            return self.ask(request, what, move |answer| told(sync::value(answer)));
        }
        let step = name.to_str().filter(|_| inode == self.numbers.root).and_then(scrub::parse_name);
        if let Some(step) = step {
            if request.uid() != 0 {
                return reply.error(Errno::EPERM);
            }
            let told = value(size, reply);
            return self.ask(request, step.what(), move |answer| told(scrub::value(answer)));
        }
        let name = name.as_bytes().to_vec();
        self.ask(request, What::GetExtended { inode, name }, value(size, reply));
    }

    fn listxattr(&self, request: &Request, inode: INodeNo, size: u32, reply: ReplyXattr) {
        let what = What::ListExtended(self.numbers.of_core(inode));
        self.ask(request, what, value(size, reply));
    }

    fn removexattr(&self, request: &Request, inode: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let (inode, name) = (self.numbers.of_core(inode), name.as_bytes().to_vec());
        self.ask(request, What::RemoveExtended { inode, name }, end(reply));
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let mode = mode & 0o7777 | REGULAR;
        let what = What::Make { name: self.named(parent, name), mode, umask, device: 0 };
        self.ask_entry(request, what, move |entry| match entry {
            Ok(Entry { attributes, generation }) => {
                let (handle, flags) = (FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
                reply.created(&KEPT, &attributes, generation, handle, flags);
            }
            Err(errno) => reply.error(errno),
        });
    }

    fn fallocate(
        &self,
        request: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        count: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let Some(how) = translate::allocation(mode) else {
            return reply.error(Errno::EOPNOTSUPP);
        };
        let inode = self.numbers.of_core(inode);
        self.ask(request, What::Allocate { inode, offset, count, how }, end(reply));
    }

    fn lseek(
        &self,
        request: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let sought = translate::sought(whence);
        let (Some(what), Ok(offset)) = (sought, u64::try_from(offset)) else {
            return reply.error(if sought.is_some() { Errno::ENXIO } else { Errno::EINVAL });
        };
        let inode = self.numbers.of_core(inode);
        self.ask(request, What::Seek { inode, offset, what }, move |answer| match answer {
            Answer::Offset(place) => match i64::try_from(place) {
                Ok(place) => reply.offset(place),
                Err(_) => reply.error(Errno::EOVERFLOW),
            },
            other => reply.error(refusal(&other)),
        });
    }
}
