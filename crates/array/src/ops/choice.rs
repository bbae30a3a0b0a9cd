//! What a read asks its policy, and what the policy is shown: each drive as it is, and the read's share of it.

use levelhead_erasure::SymbolSet;
use levelhead_units::{DriveSet, Instant};

use crate::core::Core;
use crate::ops::fetch::{Codeword, Fetch};
use crate::policy::tau::Share;
use crate::policy::{First, Plan, Policy, View};
use crate::shape::Cell;

/// Chooses the plan of a read that begins at `begin`. Where redundancy is not valid yet there is nothing to choose.
pub(crate) fn plan(
    core: &mut Core,
    now: Instant,
    fetch: &Fetch,
    begin: Cell,
    policy: Policy,
) -> Plan {
    let synced = fetch.codewords.iter().all(|word| word.row.stripe < core.holdings.synced());
    if core.code().is_none() || !synced {
        return Plan::NORMAL;
    }
    let among = among(core, fetch);
    let mut shares = core.reads.shares.take();
    if policy.looks_at_drives() {
        let data = core.layout().data_symbols();
        for idx in among.iter() {
            shares.push(Share { idx, drive: core.drives.view(now, idx), wanted: 0 });
        }
        for word in &fetch.codewords {
            for symbol in needed(word, data).iter() {
                let drive = core.layout().cell(word.row, symbol).drive;
                if let Some(share) = shares.iter_mut().find(|share| share.idx == drive) {
                    share.wanted += 1;
                }
            }
        }
    }
    let view = view_of(core, among, &shares);
    let mut plan = policy.decide(&View { follows: follows(core, begin), ..view });
    let data = core.layout().data_symbols();
    let has_half = || fetch.codewords.iter().any(|word| is_half(needed(word, data), data));
    if plan.first == First::GroupOfHalf && !has_half() {
        (plan.first, plan.extra) = (First::Wanted, 0);
    }
    core.drives.note_views(&shares);
    core.drives.note_extra(&shares, plan.extra);
    core.reads.shares.give_back(shares);
    core.drives.note_aside(plan.aside);
    plan
}

/// The drives that a decision about a read looks at: all that are there, or those with copies of what is read.
fn among(core: &Core, fetch: &Fetch) -> DriveSet {
    let present = core.drives.present_data();
    if !core.layout().spec().is_mirror() {
        return present;
    }
    let groups = fetch.codewords.iter().map(|word| core.layout().group(word.row.stripe));
    groups.fold(DriveSet::EMPTY, DriveSet::or).and(present)
}

/// Whether what is read first, at `begin`, lies close to where its drive's last command ends, and that drive has something
/// to do: that command may not have been done yet.
fn follows(core: &Core, begin: Cell) -> bool {
    core.drives.queue_len(begin.drive) > 0 && core.drives.is_near(begin.drive, begin.lba)
}

/// Whether at least half of a codeword's data is to be read.
pub(crate) fn is_half(wanted: SymbolSet, data: usize) -> bool {
    2 * wanted.len() >= data
}

/// What a decision is made from. A mirror's reads have to do with the drives that hold what they read, and with no
/// others.
fn view_of<'a>(core: &Core, among: DriveSet, shares: &'a [Share]) -> View<'a> {
    let all = View { shares, ..core.drives.overview() };
    if all.mirror.is_none() {
        return all;
    }
    let others = shares.iter().filter(|share| share.wanted == 0).count();
    let [sat_out, by_hand] = [all.sat_out, all.by_hand].map(|drives| drives.and(among));
    View { spare: others, sat_out, by_hand, ..all }
}

/// The symbols that must be read to give what is wanted: the wanted symbols themselves or, if some of them are on
/// lost drives, as many symbols as suffice to compute these, if there are that many.
pub(crate) fn needed(word: &Codeword, data: usize) -> SymbolSet {
    let own = word.subject.and(word.usable);
    if own == word.subject || word.usable.len() < data {
        return own.minus(word.have);
    }
    let first = own.or(word.have);
    let others = word.usable.minus(first);
    let all: SymbolSet = first.iter().chain(others.iter()).take(data.max(first.len())).collect();
    all.minus(word.have)
}
