//! The lines that help and man pages show.

use levelhead_terminal::examples::Example;

pub(crate) const EXAMPLES: &[Example] = &[
    (
        "Six disks, of which two may fail at a time",
        "levelhead array create raid6 /dev/sdb /dev/sdc /dev/sdd /dev/sde /dev/sdf /dev/sdg",
    ),
    (
        "Three emulated drives, to try things",
        "levelhead array create raid5 'emu:a.img?size=1GiB' 'emu:b.img?size=1GiB' 'emu:c.img?size=1GiB'",
    ),
    ("The arrays whose members are among these devices", "levelhead array list /dev/sdb /dev/sdc"),
    (
        "What serve would do with these drives",
        "levelhead array assemble /dev/sdb /dev/sdc /dev/sdd",
    ),
    ("Read and compare all of an array that is not served", "levelhead array check --scan /dev"),
    (
        "Copy what can still be read of an array that has lost too many drives",
        "levelhead array salvage /dev/sdb /dev/sdc --to rescued.img",
    ),
    (
        "Bring superblocks back that a partition table has overwritten",
        "levelhead array repair-superblock /dev/sdb /dev/sdc /dev/sdd",
    ),
    (
        "Convert an array of an earlier build, so that this one can serve it",
        "levelhead array upgrade /dev/sdb /dev/sdc /dev/sdd",
    ),
    (
        "Serve an array on a Unix socket, with metrics for Prometheus",
        "levelhead array serve /dev/sdb /dev/sdc /dev/sdd --nbd unix:/run/array.sock --metrics 9469",
    ),
    (
        "Its state in a few lines; any of its drives names an array",
        "levelhead array status /dev/sdb",
    ),
    (
        "For scripts: exit code 1 where it is degraded, 3 where it has failed",
        "levelhead array status /dev/sdb --check",
    ),
    ("What has happened, and what happens from now on", "levelhead array events /dev/sdb --follow"),
    ("Read and compare everything, beside what clients ask", "levelhead array scrub /dev/sdb"),
    ("How far that is", "levelhead array scrub /dev/sdb status"),
    ("Use drive 3 no more", "levelhead array fail /dev/sdb 3"),
    ("Close it, so that it can be pulled", "levelhead array remove /dev/sdb 3"),
    (
        "Read from drive 2 only where nothing else has the data",
        "levelhead array sit-out /dev/sdb 2",
    ),
    ("Read from it again", "levelhead array admit /dev/sdb 2"),
    (
        "Put a new disk into the place of drive 3, failed or not",
        "levelhead array replace /dev/sdb 3 /dev/sdx",
    ),
    ("A disk for the next drive that fails", "levelhead array add-spare /dev/sdb /dev/sdy"),
    ("Take it back", "levelhead array remove-spare /dev/sdb /dev/sdy"),
    (
        "Rebuild at 50 MB a second at least, whatever clients ask",
        "levelhead array rebuild /dev/sdb --min-rate 50MB",
    ),
    ("Stop it cleanly", "levelhead array stop /dev/sdb"),
    ("A filesystem on a whole disk", "levelhead fs mkfs /dev/sdb"),
    ("Mount it", "levelhead fs mount /dev/sdb /mnt/shelf"),
    ("Unmount it; all is on the disk when it returns", "levelhead fs umount /mnt/shelf"),
    ("Make everything durable that was written", "levelhead fs sync /mnt/shelf"),
    ("Its state, mounted or not", "levelhead fs status /mnt/shelf"),
    (
        "Give the new files of a folder a layout of their own",
        "levelhead fs set /mnt/shelf/photos kind=a",
    ),
    ("What the disk holds of one file", "levelhead fs inspect /dev/sdb --path photos/1.jpg"),
    (
        "Read everything once and repair bad sectors, at 50 MB a second at most",
        "levelhead fs scrub /mnt/shelf --rate 50MB",
    ),
    (
        "Check a filesystem that is not mounted, and repair it",
        "levelhead fs check /dev/sdb --repair",
    ),
    (
        "Damage a copy, to see how it is repaired",
        "levelhead fs damage shelf.img --seed 1 --per-group 9",
    ),
    ("One look at this host's drives", "levelhead watch --once"),
    ("Watch until Ctrl-C, with metrics for Prometheus", "levelhead watch --metrics 9470"),
    (
        "A modelled disk, of whose reads 2 % fail at first, served over NBD",
        "levelhead drive emulate 'emu:d.img?size=1GiB&retry-rate=2%' --nbd d.sock",
    ),
    ("What a drive can do, and what it reports", "levelhead drive probe /dev/sdb"),
    ("One minute with failing drives", "levelhead demo"),
    ("Completions for bash", "levelhead completions bash"),
    ("The man pages", "levelhead man man1"),
];
