//! What a recovery could not bring back is told, sector by sector as clients count them, and what is nowhere is damaged from
//! then on.

use levelhead_units::{Extent, Lba, Sectors};

use super::decision::Decision;
use crate::action::Action;
use crate::core::Core;
use crate::event::{ArrayEvent, Event};
use crate::journal::verdict::Source;
use crate::shape::{Cell, Layout};

impl Decision {
    /// Tells what is lost: the decision is made, and is on the rings next.
    pub(super) fn tell(&self, core: &mut Core) {
        let lost = self.verdict().finals.iter().filter(|(_, last)| last.source == Source::Lost);
        let nowhere: Vec<Cell> = lost.map(|(&cell, _)| cell).collect();
        // These were perhaps answered: all of what they changed is as it was.
        let cells: Vec<Cell> = nowhere.iter().copied().chain(self.undone()).collect();
        core.counters.journal_unrecovered += cells.len() as u64;
        let mut sectors: Vec<Lba> =
            cells.into_iter().filter_map(|cell| sector_of(core.layout(), cell)).collect();
        sectors.sort_unstable();
        sectors.dedup();
        for run in sectors.chunk_by(|&left, &right| left + Sectors::new(1) == right) {
            let extent = Extent::new(run[0], Sectors::new(run.len() as u64));
            core.out.push(Action::Event(Event::Array(ArrayEvent::Unrecovered { extent })));
        }
        list(core, &nowhere);
    }
}

/// Puts what is nowhere onto the list of damaged sectors, so that what is in its place is not taken for it, with what
/// is redundant of its codeword: that counts what is nowhere.
fn list(core: &mut Core, nowhere: &[Cell]) {
    let layout = core.layout();
    let is_mirror = layout.spec().is_mirror();
    let mut cells: Vec<Cell> = nowhere.to_vec();
    for &cell in nowhere.iter().filter(|_| !is_mirror) {
        let (row, _) = layout.symbol(cell);
        let redundant = layout.data_symbols()..layout.symbols();
        cells.extend(redundant.map(|symbol| layout.cell(row, symbol)));
    }
    cells.sort_unstable();
    cells.dedup();
    cells.into_iter().for_each(|cell| core.list_damaged(cell));
}

/// The client's sector that a sector of a drive holds, or holds a copy of.
fn sector_of(layout: &Layout, cell: Cell) -> Option<Lba> {
    let (row, symbol) = layout.symbol(cell);
    let symbol = if layout.spec().is_mirror() { 0 } else { symbol };
    (symbol < layout.data_symbols()).then(|| layout.sector(row, symbol))
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;
    use crate::journal::verdict::Final;
    use crate::log::rules::Rules;
    use crate::settings::Settings;
    use crate::shape::Row;

    #[test]
    fn what_nothing_gives_is_counted_told_as_clients_count_it_and_listed() {
        let settings = Settings::of_test("raid5:3+1,chunk=4KiB".parse().unwrap());
        let mut core = Core::new(&settings, Streams::new(1));
        let mut decision = Decision::new(1, Rules::ALL);
        let row = Row { stripe: 2, row: 0 };
        // Two of its data symbols, and what is redundant.
        for symbol in [0, 1, 3] {
            let last = Final { id: 5, source: Source::Lost };
            decision.verdict_mut().finals.insert(core.layout().cell(row, symbol), last);
        }
        decision.tell(&mut core);
        assert_eq!(core.counters.journal_unrecovered, 3);
        let told = std::iter::from_fn(|| core.out.pop()).find_map(|action| match action {
            Action::Event(Event::Array(ArrayEvent::Unrecovered { extent })) => Some(extent),
            _ => None,
        });
        assert_eq!(told, Some(Extent::new(core.layout().sector(row, 0), Sectors::new(2))));
        assert_eq!(core.meta.damaged().sectors(), Sectors::new(3));
    }

    /// Redundancy counts data that is nowhere, so it is listed with it; copies of a mirror stand alone.
    #[test]
    fn redundancy_of_what_is_nowhere_is_listed_with_it() {
        for (text, count) in [("raid6:3+2,chunk=4KiB", 3), ("raid1:3,chunk=4KiB", 1)] {
            let mut core = Core::new(&Settings::of_test(text.parse().unwrap()), Streams::new(1));
            let cell = core.layout().cell(Row { stripe: 2, row: 0 }, 0);
            list(&mut core, &[cell]);
            assert_eq!(core.meta.damaged().sectors(), Sectors::new(count), "{text}");
        }
    }
}
