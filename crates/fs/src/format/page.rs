//! The page that says what every byte is, `docs/formats/filesystem.md`, and the code, held to each other: for each row of its tables the
//! bytes that change with the field are those of the row, and no others.

use std::collections::BTreeSet;

use levelhead_units::{Lba, SECTOR_SIZE, Sectors};

use super::entry::Entry;
use super::extent::{CodingExtent, Window};
use super::inode::{FileKind, Form, INLINE, INODE, INODES, Inode, Moment};
use super::ladder::Ladder;
use super::node::{Node, Pair};
use super::record::{About, Descriptor, ENTRIES, RecordEntry};
use super::superblock::FORCED_RUNGS_MAX;
use super::superblock::Superblock;
use super::unit::{BODY, HEAD, Head, Kind, Sector};
use crate::geometry::{self, BITS, Geometry, GroupIdx, SUMS};
use crate::sums::sum_of;

const PAGE: &str = include_str!("../../../../docs/formats/filesystem.md");

/// A number of which every byte differs from that of 0.
const FULL: u64 = 0x0102_0304_0506_0708;

/// A row of a table: the places of a field's bytes, and what it says of them.
#[derive(Debug)]
struct Row {
    places: Vec<usize>,
    field: String,
}

/// The rows of the table below a heading, or below a text; of the first column each number begins a field.
fn table(page: &str, after: &str) -> Vec<Row> {
    let (_, rest) = page.split_once(after).unwrap_or_else(|| panic!("the page has no '{after}'"));
    let rows = rest.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    rows.take_while(|line| line.starts_with('|')).map(row).collect()
}

fn row(line: &str) -> Row {
    let columns: Vec<&str> = line.trim_matches('|').splitn(3, '|').map(str::trim).collect();
    let [offsets, bytes, field] = columns[..] else { panic!("three columns: {line}") };
    let count: usize = bytes.trim_end_matches(" each").parse().unwrap_or(0);
    let offsets = offsets.split(", ").map(|offset| offset.parse::<usize>().expect("an offset"));
    let places = offsets.flat_map(|offset| offset..offset + count).collect();
    Row { places, field: field.to_owned() }
}

/// Where two encodings differ.
fn differing(one: &[u8], other: &[u8]) -> Vec<usize> {
    (0..one.len()).filter(|&at| one[at] != other[at]).collect()
}

/// The bytes that a field changes, and how its row begins.
struct Probe {
    field: &'static str,
    places: Vec<usize>,
}

/// Each row has its probe, in the same order, and the same bytes.
fn compare(rows: &[Row], probes: &[Probe]) -> Result<(), String> {
    if rows.len() != probes.len() {
        return Err(format!("{} rows, {} fields", rows.len(), probes.len()));
    }
    let mut seen = BTreeSet::new();
    for (row, probe) in rows.iter().zip(probes) {
        if !row.field.starts_with(probe.field) {
            return Err(format!("'{}' is not '{}'", row.field, probe.field));
        }
        if row.places != probe.places {
            return Err(format!("{}: {:?}, not {:?}", row.field, row.places, probe.places));
        }
        if !row.places.iter().all(|&place| seen.insert(place)) {
            return Err(format!("{} has bytes of another field", row.field));
        }
    }
    Ok(())
}

/// The tables of the page that have offsets, by what stands before them.
fn tables(page: &str) -> Result<(), String> {
    compare(&table(page, "## Superblock"), &superblock())
        .and_then(|()| compare(&table(page, "## Head of a unit"), &head()))
        .and_then(|()| compare(&table(page, "## Inodes"), &inode()))
        .and_then(|()| compare(&table(page, "## Trees"), &node()))
        .and_then(|()| compare(&table(page, "## Windows and coding extents"), &window()))
        .and_then(|()| compare(&table(page, "## Journal"), &descriptor()))
}

fn one_superblock() -> Superblock {
    Superblock {
        identity: [0; 16],
        generation: 0,
        is_clean: false,
        read_only: 0,
        incompatible: 0,
        geometry: Geometry { sectors: 0, group_sectors: 0, copies: 0 },
        interleave: 0,
        ladder: Ladder::without_redundancy(1).unwrap(),
        forced: None,
        summary: Lba::ZERO,
        root: 0,
        orphans: 0,
        damaged: 0,
        spare: 0,
        units: 0,
        created: 0,
        record: 0,
        label: String::new(),
    }
}

fn superblock() -> Vec<Probe> {
    const SUM: usize = SECTOR_SIZE - 4;
    let base = one_superblock().encode();
    let probe = |field, change: &dyn Fn(&mut Superblock)| {
        let mut superblock = one_superblock();
        change(&mut superblock);
        Probe { field, places: differing(&base[..SUM], &superblock.encode()[..SUM]) }
    };
    let constant = |field, of: std::ops::Range<usize>, bytes: &[u8]| {
        assert_eq!(base[of.clone()], *bytes, "{field}");
        Probe { field, places: of.collect() }
    };
    // Bits of features that are not known make what follows the page another matter; of compatible ones nothing is kept.
    let right = real_superblock().encode();
    let mut compatible: Vec<usize> = (16..96).filter(|&at| may_have_more(&right, at)).collect();
    let read_only = probe("read-only compatible", &|one| one.read_only = FULL);
    compatible.retain(|at| !read_only.places.contains(at));
    let all = "x".repeat(super::superblock::LABEL_MAX);
    let sum = crc32c::crc32c(&base[..SUM]).to_le_bytes();
    assert_eq!(base[SUM..], sum);
    let rungs: Vec<u16> = (0x0102..0x0142).collect();
    let ladder = |one: &mut Superblock| one.ladder = Ladder::new(&rungs).unwrap();
    let mut rungs_and_ladder = probe("ladder", &ladder).places;
    let count = rungs_and_ladder.remove(0);
    let forced = |one: &mut Superblock| one.forced = Ladder::new(&rungs[..FORCED_RUNGS_MAX]);
    let mut forced_rungs_and_ladder = probe("ladder of B", &forced).places;
    let forced_count = forced_rungs_and_ladder.remove(0);
    vec![
        constant("magic", 0..16, b"levelhead disk\0\0"),
        constant("version", 16..20, &[1, 0, 0, 0]),
        probe("1 if everything is in its place", &|one| one.is_clean = true),
        Probe { field: "compatible features", places: compatible },
        read_only,
        probe("incompatible features", &|one| one.incompatible = FULL),
        probe("generation", &|one| one.generation = FULL),
        probe("identity", &|one| one.identity = [1; 16]),
        probe("sectors that are used", &|one| one.geometry.sectors = FULL),
        probe("sectors of a group", &|one| one.geometry.group_sectors = FULL),
        probe("copies of a unit", &|one| one.geometry.copies = 1),
        probe("the most codewords that are woven", &|one| one.interleave = 1),
        Probe { field: "rungs of the ladder", places: vec![count] },
        Probe { field: "rungs of kind B's ladder", places: vec![forced_count] },
        probe("lead of the first unit of the summary", &|one| one.summary = Lba::new(FULL)),
        probe("inode of the root", &|one| one.root = FULL),
        probe("inode whose tree names the inodes that no", &|one| one.orphans = FULL),
        probe("inode whose tree names files with sectors", &|one| one.damaged = FULL),
        probe("when it was made", &|one| one.created = FULL as i64),
        probe("name of the first record", &|one| one.record = FULL),
        probe("inode whose tree names the units of inodes that have", &|one| one.spare = FULL),
        probe("inode whose tree names all units", &|one| one.units = FULL),
        probe("label", &|one| one.label = all.clone()),
        Probe { field: "ladder: 64 numbers of 2 bytes", places: rungs_and_ladder },
        Probe { field: "kind B's ladder: 8 numbers of 2 bytes", places: forced_rungs_and_ladder },
        Probe { field: "CRC-32C of the bytes before", places: (SUM..SECTOR_SIZE).collect() },
    ]
}

/// One that is read.
fn real_superblock() -> Superblock {
    let wishes = crate::made::wishes(5_000, 3);
    crate::make::make(&wishes).unwrap().superblock
}

/// Whether a bit in this byte says that there may be bytes which no row names.
fn may_have_more(right: &Sector, at: usize) -> bool {
    let mut sector = *right;
    (sector[at], sector[400]) = (sector[at] ^ 0x80, 1);
    let sum = crc32c::crc32c(&sector[..SECTOR_SIZE - 4]);
    sector[SECTOR_SIZE - 4..].copy_from_slice(&sum.to_le_bytes());
    Superblock::decode(&sector).is_ok()
}

fn head() -> Vec<Probe> {
    let one = Head { kind: Kind::Bitmap, filesystem: 0, lba: Lba::ZERO, generation: 0, owner: 0 };
    let sealed = |head: Head| {
        let mut sector = [0; SECTOR_SIZE];
        head.seal(&mut sector);
        sector
    };
    let base = sealed(one);
    let sum = 60..64;
    let probe = |field, head: Head| {
        let places = differing(&base, &sealed(head));
        Probe { field, places: places.into_iter().filter(|at| !sum.contains(at)).collect() }
    };
    assert_eq!(base[..4], *b"LHfs");
    let mut without = base;
    without[sum.clone()].fill(0);
    assert_eq!(base[sum.clone()], crc32c::crc32c(&without).to_le_bytes());
    vec![
        Probe { field: "magic: `LHfs`", places: (0..4).collect() },
        probe("kind", Head { kind: Kind::Sums, ..one }),
        probe("the filesystem", Head { filesystem: FULL, ..one }),
        probe("lead of the unit", Head { lba: Lba::new(FULL), ..one }),
        probe("name of the transaction", Head { generation: FULL, ..one }),
        probe("inode that it belongs to", Head { owner: FULL, ..one }),
        Probe { field: "CRC-32C of the whole sector", places: sum.collect() },
    ]
}

fn inode() -> Vec<Probe> {
    let none = Moment { seconds: 0, nanos: 0 };
    let full = Moment { seconds: FULL as i64, nanos: 0x0102_0304 };
    let encoded = |change: &dyn Fn(&mut Inode)| {
        let mut inode = Inode::new(0, none);
        change(&mut inode);
        let mut bytes = [0; INODE];
        inode.encode(&mut bytes);
        bytes
    };
    let base = encoded(&|_| {});
    let probe = |field, change: &dyn Fn(&mut Inode)| Probe {
        field,
        places: differing(&base, &encoded(change)),
    };
    let word = 0x0102_0304;
    // The four moments in the order in which the row names them.
    let moments: [&dyn Fn(&mut Inode); 4] = [
        &|one| one.accessed = full,
        &|one| one.modified = full,
        &|one| one.changed = full,
        &|one| one.created = full,
    ];
    let moments = moments.iter().flat_map(|change| differing(&base, &encoded(change))).collect();
    vec![
        probe("type and permissions", &|one| one.mode = word),
        probe("names", &|one| one.links = word),
        probe("owner", &|one| one.uid = word),
        probe("group of owners", &|one| one.gid = word),
        probe("bytes; of a directory", &|one| one.size = FULL),
        probe("sectors that its coding extents take", &|one| one.sectors = FULL),
        Probe { field: "read, content changed, changed, made: signed seconds", places: moments },
        probe("generation", &|one| one.generation = word),
        probe("kind: 0 auto, 1 A, 2 B, 3 mutable", &|one| one.kind = FileKind::A),
        probe("what the last field is: 0 the root", &|one| one.form = Form::Content),
        probe("number of a device", &|one| one.device = word),
        probe("lead of the unit with extended", &|one| one.attributes = Lba::new(FULL)),
        probe("of a directory its parent", &|one| one.parent = FULL),
        probe("root of the tree, or content", &|one| one.inline = [1; INLINE]),
    ]
}

fn node() -> Vec<Probe> {
    let encoded = |node: &Node| {
        let mut bytes = [0; BODY];
        node.encode(&mut bytes);
        bytes
    };
    let pairs = (0..300).map(|key| Pair { key, value: Vec::new() }).collect();
    let many = Node { depth: 0, pairs };
    let one = Node { depth: 0, pairs: vec![Pair { key: FULL, value: b"value".to_vec() }] };
    let (bytes, bytes_of_many) = (encoded(&one), encoded(&many));
    assert_eq!(bytes[6..14], FULL.to_le_bytes());
    assert_eq!(bytes[14..16], 5_u16.to_le_bytes());
    assert_eq!(bytes[16..21], *b"value");
    assert!(bytes[21..].iter().all(|&byte| byte == 0));
    let number = |field, value: u16| {
        let has_it = |at: &usize| bytes_of_many[*at..*at + 2] == value.to_le_bytes();
        let at = (0..6).find(has_it).expect("it is in the beginning");
        Probe { field, places: vec![at, at + 1] }
    };
    let deep = Node { depth: 3, ..one.clone() };
    vec![
        Probe { field: "depth, 0 of a leaf", places: differing(&bytes, &encoded(&deep)) },
        number("number of its pairs", 300),
        number("bytes that it takes", many.size() as u16),
        Probe { field: "pairs in ascending order of their keys: key (8)", places: Vec::new() },
    ]
}

fn window() -> Vec<Probe> {
    let (lba, kind) = (Lba::ZERO, FileKind::Auto);
    let extent = CodingExtent { lba, data: 0, redundant: 0, depth: 0, kind };
    let one = Window { extent, skip: 0, count: 0 };
    let base = one.encode();
    let probe = |field, window: Window| Probe { field, places: differing(&base, &window.encode()) };
    let of = |extent: CodingExtent| Window { extent, ..one };
    let word = 0x0102_0304;
    vec![
        probe(
            "first sector of the coding extent",
            of(CodingExtent { lba: Lba::new(FULL), ..extent }),
        ),
        probe("its data sectors", of(CodingExtent { data: word, ..extent })),
        probe("redundant symbols of each codeword", of(CodingExtent { redundant: 1, ..extent })),
        probe("codewords that are woven: its depth", of(CodingExtent { depth: 1, ..extent })),
        probe("kind, as in the inode", of(CodingExtent { kind: FileKind::Mutable, ..extent })),
        probe("pages before the first one", Window { skip: word, ..one }),
        probe("pages of the window", Window { count: word, ..one }),
    ]
}

/// Of a descriptor of several sectors the fields are at the same places in each.
fn descriptor() -> Vec<Probe> {
    let entry = RecordEntry { about: About::Unit, lba: Lba::ZERO, sum: 0, shape: [0; 2] };
    let entries = vec![entry];
    let one = Descriptor { filesystem: 0, record: 0, oldest: 0, oldest_at: 0, entries };
    let body = |descriptor: &Descriptor, part: usize| {
        let places: Vec<Lba> = (0..descriptor.sectors()).map(|_| Lba::ZERO).collect();
        descriptor.encode(&places)[part][HEAD..].to_vec()
    };
    let base = body(&one, 0);
    let probe = |field, descriptor: Descriptor| Probe {
        field,
        places: differing(&base, &body(&descriptor, 0)),
    };
    // As many as make every number of the beginning differ in its first byte; it has four, whatever their values.
    let many = Descriptor { entries: vec![entry; 5 * ENTRIES], ..one.clone() };
    let begin = |part| body(&many, part)[..64].to_vec();
    let number = |field, value: u32, part| {
        let has_it = |at: &usize| begin(part)[*at..*at + 4] == value.to_le_bytes();
        let at: Vec<usize> = (16..61).step_by(4).filter(has_it).collect();
        assert_eq!(at.len(), 1, "{field}: {at:?}");
        Probe { field, places: (at[0]..at[0] + 4).collect() }
    };
    let full = RecordEntry {
        about: About::Stale,
        lba: Lba::new(FULL & 0xFFFF_FFFF_FFFF),
        sum: 0x0102_0304,
        shape: [1, 2],
    };
    let changed = differing(&base, &body(&Descriptor { entries: vec![full], ..one.clone() }, 0));
    // The seventh byte of a place is always zero so far; an entry without payload makes the record shorter.
    let of_entry: Vec<usize> = changed.into_iter().filter(|&at| at >= 64).collect();
    assert_eq!(of_entry, [64, 65, 66, 67, 68, 69, 71, 72, 73, 74, 75, 76, 77]);
    assert_eq!(body(&many, 0)[64 + 16 + 7], About::Unit as u8, "the next one follows");
    vec![
        probe("name of the record", Descriptor { record: FULL, ..one.clone() }),
        probe("oldest record that counts", Descriptor { oldest: FULL, ..one.clone() }),
        probe("where that begins, or 0", Descriptor { oldest_at: 0x0102_0304, ..one.clone() }),
        number("entries of all sectors of the descriptor", 5 * ENTRIES as u32, 0),
        number("which sector of the descriptor this is", 4, 4),
        number("sectors of the descriptor", 5, 0),
        number("sectors of the whole record", many.record_sectors(), 0),
        Probe {
            field: "entries: place (7 bytes), what it is about (1), number (4), two bytes",
            places: (64..80).collect(),
        },
    ]
}

#[test]
fn every_row_of_the_page_has_the_bytes_of_its_field() {
    assert_eq!(tables(PAGE), Ok(()));
}

/// A row with another offset or length is noticed, whichever it is.
#[test]
fn change_of_any_row_is_noticed() {
    assert_eq!(tables(PAGE), Ok(()));
    let rows: Vec<&str> = PAGE
        .lines()
        .filter(|line| line.starts_with("| ") && line.as_bytes()[2].is_ascii_digit())
        .collect();
    assert_eq!(rows.len(), 26 + 7 + 14 + 4 + 7 + 8);
    for row in rows {
        let columns: Vec<&str> = row.splitn(4, '|').collect();
        let first = columns[1].trim().split(", ").next().unwrap();
        let offset: usize = first.parse().unwrap();
        let moved = row.replacen(first, &(offset + 1).to_string(), 1);
        let mut wrong = vec![moved];
        if let Ok(bytes) = columns[2].trim().trim_end_matches(" each").parse::<usize>() {
            let longer = columns[2].replacen(&bytes.to_string(), &(bytes + 1).to_string(), 1);
            wrong.push(format!("|{}|{longer}|{}", columns[1], columns[3]));
        } else {
            // What follows the pairs' first byte is said in words.
            wrong.clear();
        }
        for wrong in wrong {
            assert!(tables(&PAGE.replacen(row, &wrong, 1)).is_err(), "{row} as {wrong}");
        }
    }
}

/// Numbers that stand in the text.
#[test]
fn text_of_the_page_has_the_numbers_of_the_code() {
    let wrapped = PAGE.split_whitespace().collect::<Vec<_>>().join(" ");
    let thousands = |number: u64| format!("{},{:03}", number / 1_000, number % 1_000);
    for text in [
        format!("A sector has {SECTOR_SIZE} bytes"),
        format!("sectors: {} (1 GiB), or a quarter", thousands(geometry::GROUP_SECTORS)),
        format!(
            "at least four groups; the smallest disk has {} sectors",
            thousands(Geometry::SECTORS_MIN.get())
        ),
        format!(
            "fewer than {} sectors, or fewer than twice",
            thousands(geometry::GROUP_SECTORS_MIN)
        ),
        format!("in `c` copies, from 1 to {}", geometry::COPIES_MAX),
        format!("`ceil(G / {BITS})` bitmaps and then `ceil(G / {SUMS})` sectors of sums"),
        format!("The body is the {} bytes behind it", thousands(BODY as u64)),
        format!("A unit has eight, of {INODE} bytes each"),
        format!("as its entries need, {ENTRIES} in each"),
        format!("kind: {}", kinds()),
        format!("{} a unit, its bytes are in the payload", About::Unit as u8),
        format!("{} a sector of a file, its bytes", About::Data as u8),
        format!("{} a place that was freed", About::Revoked as u8),
        format!("{} a redundant sector of the payload", About::Redundant as u8),
        format!("{} a coding extent whose redundancy", About::Stale as u8),
        format!("{} a page of a file whose sectors are in no record yet", About::Page as u8),
        format!("{} whose the page of the entry before is", About::Owner as u8),
        format!("{} a page has left its place", About::Dropped as u8),
        format!(
            "{} a coding extent whose redundancy is what it should be again",
            About::Settled as u8
        ),
        format!("plus 0 to {} for names with the same hash", thousands(super::entry::TWINS - 1)),
        "Sectors 0 and 1, and 2 and 3 of the journal are places of marks".to_owned(),
    ] {
        assert!(wrapped.contains(&text), "the page does not say: {text}");
    }
    assert_eq!((INODES, crate::engine::RECORDS), (8, 4));
    assert_eq!(format!("{:?}", FileKind::ALL), "[Auto, A, B, Mutable]");
    assert_eq!(FileKind::ALL.map(|kind| kind as u8), [0, 1, 2, 3]);
}

fn kinds() -> String {
    let kinds = [
        (Kind::Bitmap, "bitmap"),
        (Kind::Sums, "sums"),
        (Kind::Summary, "summary"),
        (Kind::Inodes, "inodes"),
        (Kind::Node, "node of a tree"),
        (Kind::Attributes, "extended attributes"),
        (Kind::Record, "descriptor of a record"),
    ];
    kinds.map(|(kind, name)| format!("{} {name}", kind as u8)).join(", ")
}

/// "Where everything lies", computed once more as the page says it.
#[test]
fn places_are_where_the_page_says() {
    for (sectors, copies) in [(4_096, 1), (5_000, 2), (70_000, 3), (1 << 20, 4), (5 << 18, 3)] {
        let of = Geometry::of_disk(Sectors::new(sectors), copies).unwrap();
        let (group, n) = (of.group_sectors, of.groups());
        let aside = u64::from(copies - 1).max(1);
        let fixed = group.div_ceil(32_256) + group.div_ceil(1_008);
        let free = if copies == 1 { 1 + fixed * aside } else { 1 + fixed * (aside + 1) };
        assert_eq!((of.fixed_units(), of.fixed_end()), (fixed, free));
        let first = |of: &Geometry, at: u64| of.group(GroupIdx(at)).lba;
        let places = [0, n / 2, n - 1].map(|at| first(&of, at));
        assert_eq!(of.superblocks(), places);
        for at in [0, 1, n - 1] {
            let fellow = first(&of, (at + n / 2) % n);
            let last =
                [0, 1, fixed - 1].map(|unit| (unit, 1 + unit * aside, 1 + fixed * aside + unit));
            for (lead, far) in
                last.map(|(_, lead, far)| (lead, far)).into_iter().chain([(free, free)])
            {
                let lead = first(&of, at) + Sectors::new(lead);
                let mut expected: Vec<Lba> =
                    (0..aside).map(|near| lead + Sectors::new(near)).collect();
                if copies > 1 {
                    expected.push(fellow + Sectors::new(far));
                }
                assert_eq!(of.copies_of(lead), expected, "{sectors} sectors, {copies} copies");
            }
        }
        let wanted = (of.sectors / 64).clamp(256, 32_768);
        let journal = of.journal();
        assert_eq!(journal.lba, first(&of, n / 2) + Sectors::new(free));
        assert_eq!(journal.sectors.get(), wanted.min((group - free) / 2));
    }
}

#[test]
fn sums_keys_and_entries_are_what_the_page_says() {
    let bytes = [7; SECTOR_SIZE];
    let all = [&FULL.to_le_bytes()[..], &99_u64.to_le_bytes(), &bytes].concat();
    assert_eq!(sum_of(FULL, Lba::new(99), &bytes), crc32c::crc32c(&all));
    let entry = Entry { inode: FULL, kind: 4, name: b"name".to_vec() };
    assert_eq!(entry.encode(), [&FULL.to_le_bytes()[..], &[4], b"name"].concat());
    // The hash of a name, in the page's words.
    let mix = |mut hash: u64| {
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^ (hash >> 33)
    };
    let mut hash = FULL ^ 0x9e37_79b9_7f4a_7c15;
    assert!(PAGE.contains("9e3779b97f4a7c15"));
    for (word, bits) in [(*b"a long n", 64_u64), (*b"ame\0\0\0\0\0", 24)] {
        hash = mix(hash ^ u64::from_le_bytes(word) ^ ((bits / 8) << 56));
    }
    let key = (mix(hash) / 2) / 4_096 * 4_096;
    assert_eq!(super::entry::key_of(b"a long name", FULL), key);
}
