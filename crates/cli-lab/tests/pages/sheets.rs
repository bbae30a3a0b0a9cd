//! Which pages there are, how each comes to be, and how closely it is looked at.

use std::fs;
use std::path::PathBuf;

use crate::support::{Shelf, levelhead};
use crate::{WAYS, Way};

/// A page, and how it comes to be.
#[derive(Clone, Debug)]
pub(crate) struct Sheet {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) made: Made,
    pub(crate) care: Care,
    pub(crate) looks: Looks,
}

/// How a page comes to be.
#[derive(Clone, Debug)]
pub(crate) enum Made {
    /// Commands write it, one after the other.
    Run(Vec<Run>),
    /// It is this text, with made-up numbers.
    Up(String),
    /// It is there.
    Before,
}

/// A command that is run to its end.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    args: Vec<String>,
    /// The file that gets what it prints, if one does.
    out: Option<PathBuf>,
}

impl Run {
    fn new(args: &[&str]) -> Self {
        Self { args: args.iter().map(|&arg| arg.to_owned()).collect(), out: None }
    }

    fn into(self, path: &str) -> Self {
        Self { out: Some(path.into()), ..self }
    }
}

impl Sheet {
    /// Makes the page.
    pub(crate) fn make(&self) {
        match &self.made {
            Made::Run(runs) => {
                for Run { args, out } in runs {
                    let printed = levelhead(args).good();
                    if let Some(out) = out {
                        fs::write(out, printed).unwrap();
                    }
                }
            }
            Made::Up(html) => fs::write(&self.path, html).unwrap(),
            Made::Before => {}
        }
    }
}

/// How closely a page is looked at. What is common to all has to be seen on some only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Care {
    /// In each way.
    Full,
    /// In two ways, and not all figures are asked.
    Brief,
    /// One of many versions of a page, each with a fault in it.
    Faulty,
}

impl Care {
    /// Of more controls than this not all are gone through by the tabulator; of more figures not all
    /// are asked.
    pub(crate) const fn limits(self) -> [u64; 2] {
        match self {
            Self::Full => [60, 6],
            Self::Faulty => [60, 3],
            Self::Brief => [12, 1],
        }
    }

    pub(crate) const fn ways(self) -> &'static [Way] {
        match self {
            Self::Full => &WAYS,
            Self::Brief | Self::Faulty => WAYS.split_at(2).0,
        }
    }
}

/// Whether figures look the same each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looks {
    /// As they were kept.
    Kept,
    /// They show what was measured on this machine just now.
    Vary,
}

/// Studies that are run: a short run takes less than three seconds of two processors. The pages of all others have made-up numbers.
const SHORT: [&str; 24] = [
    "eraid.fig3",
    "fleet.table1",
    "fleet.table3",
    "fleet.fig2",
    "fleet.fig4",
    "fleet.fig5",
    "fleet.fig6",
    "fleet.fig7",
    "fleet.fig8",
    "fleet.fig9",
    "fleet.fig10",
    "fleet.fig11",
    "fleet.detect",
    "iraw.table1",
    "iraw.table2",
    "iraw.table3",
    "lec.table1",
    "lec.table2",
    "lec.fig4",
    "sdhdd.sec31",
    "sdhdd.table2",
    "sdhdd.fig6",
    "sdhdd.retry",
    "sdhdd.wander",
];

/// Every page: those of a command each, then those of studies and the demo.
pub(crate) fn sheets(shelf: &Shelf) -> Vec<Sheet> {
    let mut sheets = Vec::new();
    let mut add = |name: &str, path: String, runs: Vec<Run>, care: Care, looks: Looks| {
        let (name, path) = (name.to_owned(), PathBuf::from(path));
        sheets.push(Sheet { name, path, made: Made::Run(runs), care, looks });
    };
    // The longest first, so that none is left for one browser while the other has nothing to do.
    let page = shelf.path("demo-run.html");
    let demo = Run::new(&["demo", "--seconds", "1", "--report", &page]);
    add("demo-run", page, vec![demo], Care::Brief, Looks::Vary);
    let mut made_up = Vec::new();
    for specimen in levelhead_app_lab::specimens::specimens() {
        let name = specimen.name;
        if !SHORT.contains(&name.as_str()) {
            made_up.push((name, specimen.html));
            continue;
        }
        let folder = shelf.path(&name);
        let run = ["study", "run", &name, "--quick", "--report", &folder];
        let care = if name == "sdhdd.sec31" { Care::Full } else { Care::Brief };
        let page = format!("{folder}/{name}.html");
        add(&name, page, vec![Run::new(&run)], care, Looks::Kept);
    }
    let mut write = |name: &str, args: &[&str]| {
        let page = shelf.path(&format!("{name}.html"));
        let run = Run::new(&[args, &["--report", &page]].concat());
        add(name, page, vec![run], Care::Full, Looks::Kept);
    };
    let load = ["replay", "--quiet", "--synthetic"];
    let troubles = ["--retry-rate", "2%", "--slow", "2=4"];
    let policies = ["--policy", "normal,assisted,pro-active,level"];
    write("replay", &[&load[..], &["count=1500,reads=80%"], &troubles, &policies].concat());
    let closed = ["count=800", "--policy", "normal,level", "--closed-loop", "32"];
    write("replay-closed", &[&load[..], &closed, &troubles].concat());
    let much =
        ["interval=100us,count=4000", "--array", "raid0:2", "--slow", "0=20", "--policy", "normal"];
    write("replay-overloaded", &[&load[..], &much].concat());
    write("drive-model", &["drive", "model", "nearline-2tb"]);
    let idle = ["--synthetic", "interval=20ms,count=300,reads=70%", "--cache", "64KiB,1MiB"];
    for (name, args) in [
        ("plan-code", &["code", "--failure-rate", "1e-3", "--correlation", "2"][..]),
        ("plan-redundancy", &["redundancy"]),
        ("plan-redundancy-mix", &["redundancy", "--capacities", "50:40:10", "--target", "1e-6"]),
        ("plan-tail", &["tail", "--sectors", "16", "--queue-depth", "8", "--forced-rate", "5e-6"]),
        ("plan-mode", &["mode"]),
        ("plan-overhead", &["overhead"]),
        ("plan-idle", &[&["idle"][..], &idle].concat()),
    ] {
        write(name, &[&["plan"], args].concat());
    }
    let (folder, hours) = (shelf.path("fleet"), shelf.path("hours.csv"));
    let generate = ["fleet", "generate", "--hours", "60", "--groups", "40", "-o", &hours];
    let analyze = ["fleet", "analyze", &hours, "--report", &folder];
    let runs = [&generate[..], &analyze].map(Run::new);
    add("fleet", format!("{folder}/fleet.html"), runs.into(), Care::Full, Looks::Kept);
    // Two halves of a table, each summed up for itself.
    let (folder, whole) = (shelf.path("fleet-reduce"), shelf.path("whole.csv"));
    levelhead(&["fleet", "generate", "--hours", "60", "--groups", "40", "-o", &whole]).good();
    let sums = halves(&fs::read_to_string(whole).unwrap()).map(|half| {
        let [hours, sum] = ["csv", "sum"].map(|kind| shelf.path(&format!("{}.{kind}", half.name)));
        fs::write(&hours, half.text).unwrap();
        (Run::new(&["fleet", "map", &hours, "-o", &sum]), sum)
    });
    let [(map_first, first), (map_second, second)] = sums;
    let reduce = Run::new(&["fleet", "reduce", &first, &second, "--report", &folder]);
    let runs = vec![map_first, map_second, reduce];
    add("fleet-reduce", format!("{folder}/fleet.html"), runs, Care::Brief, Looks::Kept);
    // A study in two parts.
    let (study, folder) = ("sdhdd.retry", shelf.path("study-merge"));
    let parts = ["1/2", "2/2"].map(|shard| {
        let part = shelf.path(&format!("part-{}", &shard[..1]));
        let run = ["study", "run", study, "--quick", "--json", "--shard", shard];
        (Run::new(&run).into(&part), part)
    });
    let [(run_first, first), (run_second, second)] = parts;
    let merge = Run::new(&["study", "merge", &first, &second, "--report", &folder]);
    let runs = vec![run_first, run_second, merge];
    add("study-merge", format!("{folder}/{study}.html"), runs, Care::Brief, Looks::Kept);
    sheets.extend(made_up.into_iter().map(|(name, html)| {
        let path = PathBuf::from(shelf.path(&format!("{name}.html")));
        Sheet { name, path, made: Made::Up(html), care: Care::Brief, looks: Looks::Kept }
    }));
    sheets
}

/// Half an hours table.
struct Half {
    name: &'static str,
    text: String,
}

/// The lines of an hours table, whose first column is the hour: those of the first 30 hours, and the others.
fn halves(table: &str) -> [Half; 2] {
    let (header, rows) = table.split_once('\n').unwrap();
    let hour = |row: &str| row.split_once(',').unwrap().0.parse::<u32>().unwrap();
    let (early, late): (Vec<&str>, Vec<&str>) = rows.lines().partition(|row| hour(row) < 30);
    assert!(!early.is_empty() && !late.is_empty(), "a half without rows");
    let half =
        |name, rows: Vec<&str>| Half { name, text: format!("{header}\n{}\n", rows.join("\n")) };
    [half("early", early), half("late", late)]
}
