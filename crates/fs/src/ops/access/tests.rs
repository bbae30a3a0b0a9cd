use super::*;
use crate::bed::Bed;
use crate::ops::extended::CAPABILITY;
use crate::ops::values::KIND;
use crate::request::{Allocation, Answer, Attributes, Caller, Changes, Named, Setting, What};

/// A list of tags, permissions and ids.
fn value(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut value = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        value.extend(tag.to_le_bytes());
        value.extend(permissions.to_le_bytes());
        value.extend(id.to_le_bytes());
    }
    value
}

const NAMELESS: u32 = u32::MAX;

#[test]
fn list_is_read_as_it_was_written_and_goes_along_with_a_mode() {
    let bytes = value(&[
        (1, 7, NAMELESS),
        (2, 6, 1_000),
        (4, 5, NAMELESS),
        (0x10, 6, NAMELESS),
        (0x20, 1, NAMELESS),
    ]);
    let list = AccessList::decode(&bytes).unwrap();
    assert_eq!(list.encode(), bytes);
    assert_eq!((list.bits(), list.is_mode()), (0o761, false), "the mask is the group's bits");
    let changed = list.with_bits(0o640);
    assert_eq!(changed.bits(), 0o640);
    let plain = AccessList::decode(&value(&[(1, 6, 0), (4, 4, 0), (0x20, 0, 0)])).unwrap();
    assert_eq!((plain.bits(), plain.is_mode()), (0o640, true));
}

#[test]
fn list_that_makes_no_sense_is_none() {
    let whole = [(1, 7, 0), (4, 5, 0), (0x20, 1, 0)];
    assert!(AccessList::decode(&value(&whole)).is_some());
    for (why, entries) in [
        ("no owner", vec![(4, 5, 0), (0x20, 1, 0)]),
        ("two others", vec![(1, 7, 0), (4, 5, 0), (0x20, 1, 0), (0x20, 1, 0)]),
        ("a name without a mask", vec![(1, 7, 0), (2, 7, 5), (4, 5, 0), (0x20, 1, 0)]),
        ("out of order", vec![(4, 5, 0), (1, 7, 0), (0x20, 1, 0)]),
        ("no such tag", vec![(1, 7, 0), (4, 5, 0), (0x20, 1, 0), (0x40, 1, 0)]),
        ("no such permission", vec![(1, 8, 0), (4, 5, 0), (0x20, 1, 0)]),
        ("empty", vec![]),
    ] {
        assert_eq!(AccessList::decode(&value(&entries)), None, "{why}");
    }
    let mut bytes = value(&whole);
    bytes.pop();
    assert_eq!(AccessList::decode(&bytes), None);
    assert_eq!(AccessList::decode(&bytes[..3]), None);
    bytes[0] = 1;
    assert_eq!(AccessList::decode(&bytes), None);
}

/// The list of a directory: its user 1000 may read and run, and the mask lets all be.
fn one_user() -> Vec<u8> {
    value(&[(1, 7, 0), (2, 5, 1_000), (4, 5, 0), (0x10, 7, 0), (0x20, 4, 0)])
}

impl Bed {
    fn set(&mut self, inode: u64, name: &[u8], value: &[u8]) -> Answer {
        let (name, value, mode) = (name.to_vec(), value.to_vec(), Setting::Any);
        self.run(What::SetExtended { inode, name, value, mode })
    }

    fn get(&mut self, inode: u64, name: &[u8]) -> Answer {
        self.run(What::GetExtended { inode, name: name.to_vec() })
    }

    fn mode(&mut self, inode: u64) -> u32 {
        match self.run(What::GetAttributes(inode)) {
            Answer::Attributes(known) => known.mode & 0o7777,
            other => panic!("{other:?}"),
        }
    }

    fn make_in(&mut self, parent: u64, name: &[u8], mode: u32, umask: u32) -> Attributes {
        let name = Named { parent, name: name.to_vec() };
        match self.run(What::Make { name, mode, umask, device: 0 }) {
            Answer::Entry(known) => known,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn new_files_have_their_directorys_list_or_what_the_mask_leaves() {
    let mut bed = Bed::new(20_000, 1);
    let root = bed.fs.root();
    let folder = bed.make_in(root, b"folder", mode::DIRECTORY | 0o777, 0o027);
    assert_eq!(folder.mode & 0o777, 0o750, "there is no list yet");
    assert_eq!(bed.set(folder.inode, DEFAULT, &one_user()), Answer::Done);
    assert_eq!(bed.mode(folder.inode), 0o750, "a list for new files is none for the directory");

    let file = bed.make_in(folder.inode, b"file", mode::FILE | 0o664, 0o077);
    assert_eq!(file.mode & 0o777, 0o664, "the caller's mask does not count");
    let Answer::Bytes(list) = bed.get(file.inode, ACCESS) else { panic!("it has a list") };
    let expected = value(&[(1, 6, 0), (2, 5, 1_000), (4, 5, 0), (0x10, 6, 0), (0x20, 4, 0)]);
    assert_eq!(list, expected);
    assert_eq!(bed.get(file.inode, DEFAULT), Answer::Failed(Errno::NoData));

    let below = bed.make_in(folder.inode, b"below", mode::DIRECTORY | 0o755, 0);
    assert_eq!(bed.get(below.inode, DEFAULT), Answer::Bytes(one_user()));
    let name = Named { parent: folder.inode, name: b"link".to_vec() };
    let link = bed.run(What::MakeLink { name, target: b"file".to_vec() });
    let Answer::Entry(link) = link else { panic!("{link:?}") };
    assert_eq!(
        (link.mode & 0o777, bed.get(link.inode, ACCESS)),
        (0o777, Answer::Failed(Errno::NoData))
    );
}

#[test]
fn list_and_mode_go_along_with_each_other() {
    let mut bed = Bed::new(20_000, 1);
    let root = bed.fs.root();
    let file = bed.make_in(root, b"file", mode::FILE | 0o2670, 0).inode;
    assert_eq!(bed.set(file, ACCESS, &one_user()), Answer::Done);
    assert_eq!(bed.mode(file), 0o2774, "the mask is the group's bits");
    let changes = Changes { mode: Some(0o610), ..Changes::default() };
    bed.run(What::SetAttributes { inode: file, changes });
    let expected = value(&[(1, 6, 0), (2, 5, 1_000), (4, 5, 0), (0x10, 1, 0), (0x20, 0, 0)]);
    assert_eq!(bed.get(file, ACCESS), Answer::Bytes(expected));

    let plain = value(&[(1, 6, 0), (4, 4, 0), (0x20, 0, 0)]);
    assert_eq!(bed.set(file, ACCESS, &plain), Answer::Done);
    assert_eq!(bed.mode(file), 0o640);
    assert_eq!(bed.get(file, ACCESS), Answer::Failed(Errno::NoData), "the mode says as much");

    assert_eq!(bed.set(file, ACCESS, &plain[..9]), Answer::Failed(Errno::Invalid));
    assert_eq!(bed.set(file, DEFAULT, &plain), Answer::Failed(Errno::NotPermitted));
    assert_eq!(bed.run(What::ListExtended(file)), Answer::Bytes(Vec::new()));
}

#[test]
fn writing_and_giving_away_take_rights_from_a_program() {
    let (root_user, user) = (Caller { uid: 0, gid: 0 }, Caller { uid: 7, gid: 7 });
    let mut bed = Bed::new(20_000, 1);
    let root = bed.fs.root();
    let write = |inode| What::Write { inode, offset: 0, bytes: vec![1; 9], appends: false };
    let set = |inode, changes| What::SetAttributes { inode, changes };
    let cut = Changes { size: Some(3), ..Changes::default() };
    let give = Changes { uid: Some(5), ..Changes::default() };
    for (at, (caller, keeps, what)) in [
        (user, false, 0),
        (root_user, true, 0),
        (user, false, 1),
        (root_user, true, 1),
        (user, false, 2),
        (root_user, false, 2),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("program {at}");
        let inode = bed.make_in(root, name.as_bytes(), mode::FILE | 0o6755, 0).inode;
        bed.write(inode, 0, b"before");
        bed.set(inode, CAPABILITY, b"some");
        bed.set(inode, b"user.other", b"kept");
        let asked = match what {
            0 => write(inode),
            1 => set(inode, cut),
            _ => set(inode, give),
        };
        bed.run_as(caller, asked);
        let expected = if keeps { 0o6755 } else { 0o755 };
        assert_eq!(bed.mode(inode), expected, "{at}");
        assert_eq!(bed.get(inode, CAPABILITY), Answer::Failed(Errno::NoData), "{at}");
        assert_eq!(bed.get(inode, b"user.other"), Answer::Bytes(b"kept".to_vec()));
    }
}

/// Of a program with set-group-id, a file whose group may not run it, and a file without such rights: what a write leaves, and that who
/// caches attributes hears of it before the answer.
#[test]
fn rights_that_a_write_takes_are_gone_from_caches_and_the_group_may_keep_its_own() {
    let [user, of_group] = [Caller { uid: 7, gid: 7 }, Caller { uid: 7, gid: 0 }];
    let mut bed = Bed::new(20_000, 1);
    let root = bed.fs.root();
    for (at, (caller, before, after)) in [
        (user, 0o6744, 0o744),
        (user, 0o2666, 0o666),
        (of_group, 0o2666, 0o2666),
        (of_group, 0o2676, 0o676),
        (user, 0o666, 0o666),
        (Caller { uid: 0, gid: 0 }, 0o6777, 0o6777),
    ]
    .into_iter()
    .enumerate()
    {
        let write = |inode| What::Write { inode, offset: 0, bytes: vec![1; 9], appends: false };
        let how = Allocation::Extend;
        let allocate = |inode| What::Allocate { inode, offset: 0, count: 9, how };
        let ways: [(&str, &dyn Fn(u64) -> What); 2] =
            [("written", &write), ("allocated", &allocate)];
        for (name, what) in ways {
            let name = format!("{name} {at}");
            let file = bed.make_in(root, name.as_bytes(), mode::FILE | before, 0).inode;
            bed.run_as(caller, what(file));
            assert_eq!(bed.mode(file), after, "{name}");
            let invalidated = std::mem::take(&mut bed.invalidated);
            assert_eq!(invalidated == [file], before != after, "{name}: {invalidated:?}");
        }
    }
}

/// As the kernel asks for what a file handle names.
#[test]
fn dot_is_the_inode_itself_also_of_a_file() {
    let mut bed = Bed::new(20_000, 1);
    let root = bed.fs.root();
    let file = bed.make_in(root, b"file", mode::FILE | 0o644, 0).inode;
    for inode in [root, file] {
        let name = Named { parent: inode, name: b".".to_vec() };
        let Answer::Entry(found) = bed.run(What::Lookup(name)) else { panic!("it is there") };
        assert_eq!(found.inode, inode);
    }
    let above = Named { parent: file, name: b"..".to_vec() };
    assert_eq!(bed.run(What::Lookup(above)), Answer::Failed(Errno::NotDirectory));
}

#[test]
fn kind_is_an_attribute_and_only_what_there_is() {
    let mut bed = Bed::new(20_000, 1);
    let root = bed.fs.root();
    let folder = bed.make_in(root, b"folder", mode::DIRECTORY | 0o755, 0).inode;
    assert_eq!(bed.get(folder, KIND), Answer::Bytes(b"auto".to_vec()));
    assert_eq!(bed.run(What::ListExtended(folder)), Answer::Bytes(Vec::new()));
    assert_eq!(bed.set(folder, KIND, b"a"), Answer::Done);
    assert_eq!(bed.run(What::ListExtended(folder)), Answer::Bytes([KIND, &[0]].concat()));
    let file = bed.make_in(folder, b"file", mode::FILE | 0o644, 0).inode;
    assert_eq!(bed.get(file, KIND), Answer::Bytes(b"a".to_vec()), "it comes from the directory");
    for (kind, errno) in [(&b"z"[..], Errno::Invalid), (b"b", Errno::NotSupported)] {
        assert_eq!(bed.set(file, KIND, kind), Answer::Failed(errno));
    }
    let name = KIND.to_vec();
    assert_eq!(bed.run(What::RemoveExtended { inode: file, name }), Answer::Done);
    assert_eq!(bed.get(file, KIND), Answer::Bytes(b"auto".to_vec()));
}
