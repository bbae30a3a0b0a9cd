//! The lines that help and man pages show.

use levelhead_terminal::examples::Example;

pub(crate) const EXAMPLES: &[Example] = &[
    (
        "A load of 8 requests a second over six drives of which one is ten times slower, with two policies",
        "levelhead-lab replay --synthetic interval=125ms,count=10000 --array raid6:4+2 --slow 1=10 --policy normal,level",
    ),
    (
        "A trace, with a page of figures",
        "levelhead-lab replay hm_1.csv --array raid5:5+1 --report page.html",
    ),
    ("The studies that there are", "levelhead-lab study list"),
    (
        "One of them, in a minute or so and with wider intervals",
        "levelhead-lab study run eraid.fig5 --quick",
    ),
    (
        "Combine what three machines have computed",
        "levelhead-lab study merge one.json two.json three.json",
    ),
    (
        "The least redundancy for a target",
        "levelhead-lab plan code --failure-rate 1e-3 --target 1e-6 --length 1023",
    ),
    (
        "Of a disk with 90 % sequential, 8 % random and 2 % mutable files",
        "levelhead-lab plan redundancy --capacities 90:8:2 --target 1e-6 --failure-rate 1e-3",
    ),
    ("Of a read of 10,000 sectors", "levelhead-lab plan tail --sectors 10000 --failure-rate 5e-3"),
    (
        "For a request of five drives' data out of six",
        "levelhead-lab plan mode --wanted 5 --drives 6 --failure-rate 1%",
    ),
    ("For the files of a folder", "levelhead-lab plan overhead --scan /srv/media"),
    ("For a trace, on one drive model", "levelhead-lab plan idle hm_1.csv --drive nearline-2tb"),
    (
        "For an array's checksums",
        "levelhead-lab plan checksums raid5:5+1 --drive nearline-18tb --working-set 200GB",
    ),
    ("A drive model's numbers", "levelhead-lab drive model nearline-2tb"),
    (
        "Measure a profile of a disk, which is only read",
        "levelhead-lab drive measure /dev/sdb -o my.toml",
    ),
    (
        "A list of operations on files, with a code and without",
        "levelhead-lab fs replay my.list --drive nearline-2tb --retry-rate 0.5%",
    ),
    (
        "A fleet like that of the field study",
        "levelhead-lab fleet generate --groups 100 --hours 720 -o fleet.parquet",
    ),
    (
        "Turn what watch has recorded into an hours table",
        "levelhead-lab fleet import watch.csv -o fleet.parquet",
    ),
    (
        "Ask Prometheus for a day, a value every five minutes",
        "levelhead-lab fleet import http://metrics.example.org:9090 -o day.csv --members members.csv --query disk_read_seconds \
         --start 2026-01-01T00:00:00Z --end 2026-01-02T00:00:00Z --step 5m",
    ),
    (
        "All tables and figures for your fleet",
        "levelhead-lab fleet analyze fleet.parquet --report report",
    ),
    ("Summarise one month", "levelhead-lab fleet map january.parquet -o january.sum"),
    ("Combine months", "levelhead-lab fleet reduce january.sum february.sum"),
    ("A query for a SQL engine", "levelhead-lab fleet sql tails"),
    ("Which drives are slow beside their group", "levelhead-lab fleet detect cluster_A.parquet"),
    ("The code's parameters", "levelhead-lab ecc code"),
    ("Failure rates at two bit error rates", "levelhead-lab ecc simulate --ber 0.0175,0.0185"),
    ("A drive's retry table", "levelhead-lab ecc table --failure-rate 1e-2 -o my.table"),
    (
        "An encoder and a decoder of 246 data and 9 redundant symbols",
        "levelhead-lab rtl emit --code 9,246 -o engine",
    ),
    ("One minute with failing drives, beside what virtual time says", "levelhead-lab demo"),
    ("Completions for bash", "levelhead-lab completions bash"),
    ("The man pages", "levelhead-lab man man1"),
];
