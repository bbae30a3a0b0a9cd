//! Figures 5, 7, 8 and 9: how much memory, whose it is, and how long to wait.

use levelhead_drive::{IdleVerify, Placing, Retention, Verify};
use levelhead_trace::Server;
use levelhead_units::{Bytes, Nanos};

use super::bed::{Bed, MEGABYTE, PAPER, figures};
use super::tables::TABLE_1;
use super::{Input, remarks};
use crate::studies::{Ask, Cell, Head, Row, Study, StudyPlan, Unit};

const BED: &str = "synthetic requests after the paper's traces (iraw:web and so on), whole, arrival times only, \
    over one \
                   iraw-15k (code-dev: iraw-10k), SPTF, 32 in the drive, 32 KiB read ahead; memory in units of 16 KiB; \
                   verification after 1 ms of idleness, SPTF, not interrupted";

pub(super) const FIG_5: Study = Study {
    name: "iraw.fig5",
    title: "Idle wait and cache space",
    source: "[IRAW08], Fig. 5",
    says: "An idle wait of up to 5 ms costs no validation.",
    bed: "as iraw.fig8 with mru-mru; waits of 0 to 20 ms",
    plan: |ask| Ok(fig_5(ask)),
    ..TABLE_1
};

pub(super) const FIG_7: Study = Study {
    name: "iraw.fig7",
    title: "Read hits against cache size and retention policy",
    source: "[IRAW08], Fig. 7",
    says: "Reads at the MRU position are imperative; writes there too leave the read hits unchanged. Beyond 10 to 12 MB \
           there are no more of them.",
    bed: BED,
    plan: |ask| Ok(fig_7(ask)),
    ..TABLE_1
};

pub(super) const FIG_8: Study = Study {
    name: "iraw.fig8",
    title: "Validation against cache size and retention policy",
    source: "[IRAW08], Fig. 8",
    says: "With writes at the MRU position the validation rate is above 90 % in most cases, 85 % of them.",
    bed: BED,
    plan: |ask| Ok(fig_8(ask)),
    ..TABLE_1
};

pub(super) const FIG_9: Study = Study {
    name: "iraw.fig9",
    title: "Memory of their own for unverified writes",
    source: "[IRAW08], Fig. 9",
    says: "2 MB of their own give up to 100 % for the majority of the traces.",
    bed: BED,
    plan: |ask| Ok(fig_9(ask)),
    ..TABLE_1
};

/// Memory sizes of Figures 7 to 9, in MB.
const SIZES: [u64; 7] = [1, 2, 4, 8, 12, 16, 24];

/// Memory sizes and idle waits of Figure 5, in MB and ms.
const SIZES_5: [u64; 4] = [2, 4, 8, 16];
const WAITS: [u64; 6] = [0, 1, 2, 5, 10, 20];

const SHARED: [Placing; 4] = [Placing::MruLru, Placing::MruMru, Placing::Stay, Placing::Adaptive];

/// An input on a drive with one policy and memory size.
struct Point {
    input: Input,
    placing: Placing,
    megabytes: u64,
}

impl Point {
    fn name(&self) -> String {
        format!("{}, {}, {} MB", self.input.name, self.placing.name(), self.megabytes)
    }

    fn cell(self) -> Cell {
        let retention = Retention::new(self.placing, Bytes::new(self.megabytes * MEGABYTE));
        Cell::new(self.name(), move |seed| {
            Ok(figures(&Bed::new(&self.input, seed)?.run(Verify::Idle(PAPER), retention)?))
        })
    }
}

/// All inputs with these policies, and these metrics of each.
fn grid(ask: &Ask, placings: &[Placing], metrics: &[&str]) -> StudyPlan {
    let mut plan = StudyPlan { remarks: remarks(ask), ..StudyPlan::default() };
    for input in Input::all(ask) {
        for &placing in placings {
            for megabytes in SIZES {
                let point = Point { input: input.clone(), placing, megabytes };
                for &metric in metrics {
                    plan.rows.push(Row::of(point.name(), metric, Unit::Percent));
                }
                plan.cells.push(point.cell());
            }
        }
    }
    plan
}

fn fig_7(ask: &Ask) -> StudyPlan {
    grid(ask, &SHARED, &["read hits"])
}

fn fig_8(ask: &Ask) -> StudyPlan {
    let mut plan = grid(ask, &SHARED, &["validated"]);
    let is_default = |name: &str| name.contains(Placing::MruLru.name());
    let cases: Vec<String> =
        plan.cells.iter().map(|cell| cell.name.clone()).filter(|name| !is_default(name)).collect();
    let head = Head::new("mru-mru, stay, adaptive", "cases above 90 %");
    let row = Row::new(head, Unit::Percent, move |seed| {
        let above = cases.iter().filter(|case| seed.get(case, "validated") > 90.0).count();
        above as f64 / cases.len() as f64 * 100.0
    });
    plan.rows.push(row.maybe_paper(ask.traces.is_empty().then_some(85.0)));
    plan
}

fn fig_9(ask: &Ask) -> StudyPlan {
    let placings = [Placing::MruLru, Placing::MruMru, Placing::Stay, Placing::Dedicated];
    grid(ask, &placings, &["read hits", "validated"])
}

fn fig_5(ask: &Ask) -> StudyPlan {
    let mut plan = StudyPlan { remarks: remarks(ask), ..StudyPlan::default() };
    let is_shown = |input: &Input| match input.server() {
        Some(Server::Web | Server::UserAcc | Server::CodeDev) | None => true,
        Some(Server::Email | Server::Sas) => false,
    };
    for input in Input::all(ask).into_iter().filter(is_shown) {
        for megabytes in SIZES_5 {
            for wait in WAITS {
                let name = format!("{}, {megabytes} MB, {wait}ms", input.name);
                plan.rows.push(Row::of(name.clone(), "validated", Unit::Percent));
                let input = input.clone();
                let how = IdleVerify { wait: Nanos::from_millis(wait), ..PAPER };
                let memory = Bytes::new(megabytes * MEGABYTE);
                let retention = Retention::new(Placing::MruMru, memory);
                plan.cells.push(Cell::new(name, move |seed| {
                    Ok(figures(&Bed::new(&input, seed)?.run(Verify::Idle(how), retention)?))
                }));
            }
        }
    }
    plan
}
