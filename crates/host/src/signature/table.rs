//! The table of signatures: what libblkid 2.41 knows file systems, RAID members, volumes and partition tables by, and
//! copies of them that it does not look at. Offsets are those of the formats' own descriptions.
//!
//! Of several signatures that a drive has, the first row names it. So short ones, which random data has now and then, come
//! last, and partition tables after what begins with a boot sector, too.

use super::SECTOR;
use super::place::{Place, end, start};

/// One kind of thing that a drive may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signature {
    /// In words that follow "holds".
    pub(super) what: &'static str,
    /// Any of these bytes.
    pub(super) magics: &'static [&'static [u8]],
    /// Where its header may begin.
    pub(super) places: &'static [Place],
    /// Where the magic lies in the header.
    pub(super) at: u64,
    /// Bytes from one place of the magic to the next, and their number.
    pub(super) every: (u64, u64),
    /// Bytes of the header that are erased with the magic; 0 for the sectors with the magic alone.
    pub(super) header: u64,
    /// Whether the kernel makes devices of what it describes.
    pub(super) is_partition_table: bool,
}

const fn row(
    what: &'static str,
    magics: &'static [&'static [u8]],
    places: &'static [Place],
    at: u64,
) -> Signature {
    Signature { what, magics, places, at, every: (0, 1), header: 0, is_partition_table: false }
}

const fn repeated(row: Signature, step: u64, count: u64) -> Signature {
    Signature { every: (step, count), ..row }
}

const fn table(row: Signature) -> Signature {
    Signature { is_partition_table: true, ..row }
}

const fn zfs(row: Signature) -> Signature {
    Signature { header: 256 * KIB, ..row }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

const FIRST: &[Place] = &[start(0)];
const LAST_512: &[Place] = &[end(512, 512)];

const LEVELHEAD: &str = "a drive of a levelhead array";
const MD: &str = "a member of a Linux MD array";
const LVM: &str = "an LVM physical volume";
const LUKS: &str = "a LUKS volume";
const ZFS: &str = "a member of a ZFS pool";
const BCACHE: &str = "a bcache or bcachefs device";
const UDF: &str = "an ISO 9660 or UDF file system";
const REISER: &str = "a ReiserFS file system";
const FAT: &str = "a FAT file system";
const HFS: &str = "an HFS or HFS+ file system";
const SWAP: &str = "swap space";
const DRBD: &str = "a DRBD device";
const HIGHPOINT: &str = "a member of a HighPoint RAID";
const SYSV: &str = "a System V or Xenix file system";
const OCFS: &str = "an OCFS file system";
const VMFS: &str = "a VMFS volume";
const DM: &str = "a device-mapper target";
const GPT: &str = "a GPT partition table";
const OTHER_TABLE: &str = "a partition table";

/// Four labels, two at either end, each of 256 KiB.
const ZFS_LABELS: &[Place] =
    &[start(0), start(256 * KIB), end(512 * KIB, 256 * KIB), end(256 * KIB, 256 * KIB)];

/// Sectors of 512 bytes from the end.
const PROMISE: &[Place] = &[
    end(63 * 512, 512),
    end(255 * 512, 512),
    end(256 * 512, 512),
    end(16 * 512, 512),
    end(399 * 512, 512),
    end(591 * 512, 512),
    end(675 * 512, 512),
    end(735 * 512, 512),
    end(911 * 512, 512),
    end(974 * 512, 512),
    end(991 * 512, 512),
    end(951 * 512, 512),
    end(3087 * 512, 512),
];

/// The last ten bytes of a page, whatever its size.
const PAGES: &[Place] = &[start(4_086), start(8_182), start(16_374), start(32_758), start(65_526)];

const LUKS_SECOND: &[Place] = &[
    start(16 * KIB),
    start(32 * KIB),
    start(64 * KIB),
    start(128 * KIB),
    start(256 * KIB),
    start(512 * KIB),
    start(MIB),
    start(2 * MIB),
    start(4 * MIB),
];

/// See the module.
pub(super) const TABLE: &[Signature] = &[
    // The copies of the superblock, and the two slots for the metadata.
    row(
        LEVELHEAD,
        &[b"levelhead array\0"],
        &[start(0), start(255 * SECTOR), end(SECTOR, SECTOR)],
        0,
    ),
    row(LEVELHEAD, &[b"levelhead meta\0\0"], &[start(SECTOR), start(128 * SECTOR)], 0),
    row("a levelhead file system", &[b"levelhead disk\0\0"], FIRST, 0),
    // What carries others.
    row(
        MD,
        &[&[0xFC, 0x4E, 0x2B, 0xA9], &[0xA9, 0x2B, 0x4E, 0xFC]],
        // Versions 1.1, 1.2, 1.0 and 0.90.
        &[start(0), start(4 * KIB), end(8 * KIB, 4 * KIB), end(64 * KIB, 64 * KIB)],
        0,
    ),
    // An XDR list of names and values, and a ring of uberblocks in both orders of their bytes.
    zfs(row(
        ZFS,
        &[&[1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]],
        ZFS_LABELS,
        16 * KIB,
    )),
    zfs(repeated(
        row(
            ZFS,
            &[&[0x0C, 0xB1, 0xBA, 0, 0, 0, 0, 0], &[0, 0, 0, 0, 0, 0xBA, 0xB1, 0x0C]],
            ZFS_LABELS,
            128 * KIB,
        ),
        KIB,
        128,
    )),
    repeated(row(LVM, &[b"LABELONE"], FIRST, 0), 512, 4),
    repeated(row(LVM, &[b"LVM2 001"], FIRST, 0x18), 512, 4),
    row(LUKS, &[b"LUKS\xBA\xBE"], FIRST, 0),
    row(LUKS, &[b"SKUL\xBA\xBE"], LUKS_SECOND, 0),
    row("a BitLocker volume", &[b"-FVE-FS-"], FIRST, 3),
    row(BCACHE, &[b"\xC6\x85\x73\xF6\x4E\x1A\x45\xCA\x82\x65"], &[start(4 * KIB)], 0x18),
    row(
        BCACHE,
        &[b"\xC6\x85\x73\xF6\x66\xCE\x90\xA9\xD9\x6A"],
        &[start(4 * KIB), start(2 * MIB), end(MIB, 512)],
        0x18,
    ),
    row(
        "a Ceph BlueStore device",
        &[b"bluestore block device"],
        &[start(0), start(GIB), start(10 * GIB), start(100 * GIB), start(1000 * GIB)],
        0,
    ),
    row(
        DRBD,
        &[b"\x83\x74\x02\x67", b"\x83\x74\x02\x6B", b"\x83\x74\x02\x6C", b"\x83\x74\x02\x6D"],
        &[end(4 * KIB, 4 * KIB), end(4 * KIB, 512)],
        60,
    ),
    row(DRBD, &[b"$DRBDmgr=q", b"DRBDdlh*"], FIRST, 0),
    row("a Stratis device", &[b"!Stra0tis\x86\xFF\x02^\x41rh"], &[start(512), start(9 * 512)], 4),
    row("a VDO device", &[b"dmvdo001"], FIRST, 0),
    row(DM, &[b"verity\0\0", b"integrt\0", b"SnAp"], FIRST, 0),
    row("an mpool device", &[b"mpoolDev"], FIRST, 0),
    row("an Oracle ASM disk", &[b"ORCLDISK"], FIRST, 32),
    row(VMFS, &[b"\x0D\xD0\x01\xC0"], &[start(MIB)], 0),
    row(VMFS, &[b"\x5E\xF1\xAB\x2F"], &[start(2 * MIB)], 0),
    row("a UBI device", &[b"UBI#"], FIRST, 0),
    // RAIDs of controllers, at the end of the drive.
    row(
        "a member of an Intel RAID",
        &[b"Intel Raid ISM Cfg Sig. "],
        // The last but one sector, of 512 bytes or 4 KiB.
        &[end(2 * 512, 512), end(8 * KIB, 4 * KIB)],
        0,
    ),
    row(
        "a member of a RAID in DDF format",
        &[b"\xDE\x11\xDE\x11", b"\x11\xDE\x11\xDE"],
        &[end(512, 512), end(257 * 512, 512), end(4 * KIB, 4 * KIB)],
        0,
    ),
    row("a member of a Promise RAID", &[b"Promise Technology, Inc."], PROMISE, 0),
    row("a member of an LSI MegaRAID", &[b"$XIDE$"], LAST_512, 0),
    row("a member of an NVIDIA RAID", &[b"NVIDIA  "], &[end(2 * 512, 512)], 0),
    row("a member of an Adaptec RAID", &[b"\x37\xFC\x4D\x1E"], LAST_512, 0),
    row("a member of a Silicon Medley RAID", &[b"\0\0\0\x2F"], LAST_512, 0x60),
    row(HIGHPOINT, &[b"\xF3\x16\x78\x5A", b"\xFD\x16\x78\x5A"], &[end(11 * 512, 512)], 0),
    row(HIGHPOINT, &[b"\xF0\x16\x78\x5A", b"\xFD\x16\x78\x5A"], &[start(9 * 512)], 32),
    // File systems, and swap space.
    row("an XFS file system", &[b"XFSB", b"EXFS"], FIRST, 0),
    row(
        "a btrfs file system",
        &[b"_BHRfS_M"],
        &[start(64 * KIB), start(64 * MIB), start(256 * GIB)],
        0x40,
    ),
    row("an F2FS file system", &[b"\x10\x20\xF5\xF2"], &[start(KIB), start(5 * KIB)], 0),
    row("an NTFS file system", &[b"NTFS    "], FIRST, 3),
    row("a ReFS file system", &[b"\0\0\0ReFS\0"], FIRST, 0),
    row("an exFAT file system", &[b"EXFAT   "], FIRST, 3),
    row(FAT, &[b"FAT12   ", b"FAT16   ", b"FAT     ", b"MSDOS"], FIRST, 0x36),
    row(FAT, &[b"FAT32   ", b"MSWIN"], FIRST, 0x52),
    repeated(
        row(
            UDF,
            &[b"CD001", b"BEA01", b"BOOT2", b"CDW02", b"NSR02", b"NSR03", b"TEA01"],
            &[start(32 * KIB)],
            1,
        ),
        2 * KIB,
        16,
    ),
    row(UDF, &[b"CDROM"], &[start(32 * KIB)], 9),
    row("a squashfs file system", &[b"hsqs", b"sqsh"], FIRST, 0),
    row(REISER, &[b"ReIsErFs", b"ReIsEr2Fs", b"ReIsEr3Fs"], &[start(8 * KIB), start(64 * KIB)], 52),
    row(REISER, &[b"ReIsErFs"], &[start(8 * KIB)], 20),
    row(REISER, &[b"ReIsEr4"], &[start(64 * KIB)], 0),
    row("a JFS file system", &[b"JFS1"], &[start(32 * KIB)], 0),
    row("an APFS container", &[b"NXSB"], FIRST, 32),
    row("a zonefs file system", &[b"SFOZ"], FIRST, 0),
    row("an EROFS file system", &[b"\xE2\xE1\xF5\xE0"], &[start(KIB)], 0),
    row("a romfs file system", &[b"-rom1fs-"], FIRST, 0),
    row("a cramfs file system", &[b"\x45\x3D\xCD\x28", b"\x28\xCD\x3D\x45"], FIRST, 0),
    row("a GFS file system", &[b"\x01\x16\x19\x70"], &[start(64 * KIB)], 0),
    row("a ScoutFS device", &[b"\x8B\x42\x3C\x10"], &[start(64 * KIB)], 4),
    row(OCFS, &[b"OracleCFS"], &[start(8 * KIB)], 0),
    repeated(row(OCFS, &[b"OCFSV2"], &[start(KIB)], 0), KIB, 8),
    row("a NetWare file system", &[b"SPB5"], &[start(4 * KIB)], 0),
    row("a BeFS file system", &[b"BFS1", b"1SFB"], &[start(0), start(512)], 32),
    row("a BFS file system", &[b"\xCE\xFA\xAD\x1B"], FIRST, 0),
    row("an HPFS file system", &[b"\x49\xE8\x95\xF9"], &[start(8 * KIB)], 0),
    row("a VxFS file system", &[b"\xF5\xFC\x01\xA5"], &[start(KIB)], 0),
    row("a VxFS file system", &[b"\xA5\x01\xFC\xF5"], &[start(8 * KIB)], 0),
    row("a UBIFS file system", &[b"\x31\x18\x10\x06"], FIRST, 0),
    row(
        "a UFS file system",
        &[
            b"\x54\x19\x01\x00",
            b"\x00\x01\x19\x54",
            b"\x19\x01\x54\x19",
            b"\x19\x54\x01\x19",
            b"\x12\x56\x19\x00",
            b"\x00\x19\x56\x12",
            b"\x14\x50\x09\x00",
            b"\x00\x09\x50\x14",
            b"\x95\x21\x61\x00",
            b"\x00\x61\x21\x95",
            b"\x94\x19\x23\x05",
            b"\x05\x23\x19\x94",
        ],
        &[start(0), start(8 * KIB), start(64 * KIB), start(256 * KIB)],
        0x55C,
    ),
    row(
        SYSV,
        &[b"\xFD\x18\x7E\x20", b"\x20\x7E\x18\xFD"],
        &[start(512), start(9 * KIB + 512), start(15 * KIB + 512), start(18 * KIB + 512)],
        504,
    ),
    row(SYSV, &[b"\x2B\x55\x44", b"\x44\x55\x2B"], &[start(2 * KIB)], 0),
    // The log of an XFS on a drive of its own begins somewhere in its first 256 KiB.
    repeated(row("the log of an XFS file system", &[b"\xFE\xED\xBA\xBE"], FIRST, 0), 512, 512),
    row(
        SWAP,
        &[b"SWAPSPACE2", b"SWAP-SPACE", b"S1SUSPEND", b"S2SUSPEND", b"ULSUSPEND", b"LINHIB0001"],
        PAGES,
        0,
    ),
    row(SWAP, &[b"\xED\xC3\x02\xE9\x98\x56\xE5\x0C"], FIRST, 0),
    row("an ext2, ext3 or ext4 file system", &[b"\x53\xEF"], &[start(KIB)], 0x38),
    // Partition tables.
    table(row(GPT, &[b"EFI PART"], &[start(512), start(4 * KIB)], 0)),
    table(row(GPT, &[b"EFI PART"], &[end(512, 512), end(4 * KIB, 4 * KIB)], 0)),
    table(row(OTHER_TABLE, &[b"\xC9\xC2\xD4\xC1", b"\x0B\xE5\xA9\x41"], FIRST, 0)),
    table(row(OTHER_TABLE, &[b"\x57\x45\x56\x82"], &[start(64), start(128), start(512)], 0)),
    table(row(OTHER_TABLE, &[b"\xEE\xDE\x0D\x60"], &[start(512)], 12)),
    table(row(OTHER_TABLE, &[b"\x0D\x60\xE5\xCA"], &[start(29 * 512)], 4)),
    table(row(OTHER_TABLE, &[b"\x02\x29\x57"], &[start(16_312)], 0)),
    // What is short.
    row(
        "a Minix file system",
        &[
            b"\x7F\x13",
            b"\x8F\x13",
            b"\x13\x7F",
            b"\x13\x8F",
            b"\x68\x24",
            b"\x78\x24",
            b"\x24\x68",
            b"\x24\x78",
        ],
        &[start(KIB)],
        16,
    ),
    row("a Minix file system", &[b"\x5A\x4D", b"\x4D\x5A"], &[start(KIB)], 24),
    row("a NILFS file system", &[b"\x34\x34"], &[start(KIB), end(4 * KIB, 512)], 6),
    row(HFS, &[b"BD", b"H+", b"HX"], &[start(KIB), end(KIB, 512)], 0),
    row(LVM, &[b"HM"], FIRST, 0),
    row("a FileVault volume", &[b"CS"], FIRST, 88),
    row("a member of a JMicron RAID", &[b"JM"], LAST_512, 0),
    row("a member of a VIA RAID", &[b"\x55\xAA"], LAST_512, 0),
    table(row(OTHER_TABLE, &[b"\xDA\xBE"], FIRST, 508)),
    table(row(OTHER_TABLE, &[b"ER"], FIRST, 0)),
    table(row("a partition table or a boot sector", &[b"\x55\xAA"], FIRST, 510)),
];
