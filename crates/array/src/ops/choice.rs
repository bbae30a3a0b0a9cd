//! What a read asks its policy, and what the policy is shown: each drive as it is, and the read's share of it.

use levelhead_erasure::SymbolSet;
use levelhead_units::{DriveSet, Instant};

use crate::core::Core;
use crate::ops::fetch::{Codeword, Fetch};
use crate::policy::cost::Costs;
use crate::policy::tau::Share;
use crate::policy::{Plan, Policy, View, level};

/// Chooses the plan. Where redundancy is not valid yet there is nothing to choose.
pub(crate) fn plan(core: &mut Core, now: Instant, fetch: &Fetch, policy: Policy) -> Plan {
    let synced = fetch.codewords.iter().all(|word| word.row.stripe < core.synced);
    if core.code.is_none() || !synced {
        return Plan::NORMAL;
    }
    let among = among(core, fetch);
    let mut shares = core.shares.take();
    if policy.looks_at_drives() {
        let data = core.layout.data_symbols();
        for idx in among.iter() {
            shares.push(Share { idx, drive: core.drives.view(now, idx), wanted: 0 });
        }
        for word in &fetch.codewords {
            for symbol in needed(word, data).iter() {
                let drive = core.layout.cell(word.row, symbol).drive;
                if let Some(share) = shares.iter_mut().find(|share| share.idx == drive) {
                    share.wanted += 1;
                }
            }
        }
    }
    let plan = policy.decide(&view_of(core, among, &shares));
    core.drives.note_views(&shares);
    core.drives.note_extra(&shares, plan.extra);
    core.shares.give_back(shares);
    core.drives.note_aside(plan.aside);
    plan
}

/// Which drives a read under way does without.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slow {
    /// Drives that are not waited for where retries would do: those of `aside` that sit out or are silent, and all that
    /// take longer.
    pub(crate) firm: DriveSet,
    pub(crate) aside: DriveSet,
    /// Of how many others the rest of a codeword is asked before retries are made.
    pub(crate) rest_max: usize,
}

/// The drives that `level` does without at this moment in a read that asked `asked` first.
pub(crate) fn slow_now(core: &mut Core, now: Instant, fetch: &Fetch, asked: DriveSet) -> Slow {
    let among = among(core, fetch);
    let mut shares = core.shares.take();
    // Of a mirror one copy is requested, also where several were asked for.
    let wanted = if core.layout.spec().is_mirror() { requested(core, fetch) } else { asked };
    for idx in among.iter() {
        let wanted = u32::from(wanted.contains(idx));
        shares.push(Share { idx, drive: core.drives.view(now, idx), wanted });
    }
    let view = view_of(core, among, &shares);
    let aside = level::slow(&view);
    let costs = Costs::of(&view, aside);
    let rest_max = costs.rest_max();
    let is_dear = |share: &&Share| share.drive.wait() > costs.again();
    let dear: DriveSet = shares.iter().filter(is_dear).map(|share| share.idx).collect();
    let firm = view.sat_out.or(view.by_hand).and(aside).or(dear);
    core.shares.give_back(shares);
    core.drives.note_aside(aside);
    Slow { firm, aside, rest_max }
}

/// The drives that a decision about a read looks at: all that are there, or those with copies of what is read.
fn among(core: &Core, fetch: &Fetch) -> DriveSet {
    let present = core.drives.present_data();
    if !core.layout.spec().is_mirror() {
        return present;
    }
    let groups = fetch.codewords.iter().map(|word| core.layout.group(word.row.stripe));
    groups.fold(DriveSet::EMPTY, DriveSet::or).and(present)
}

/// The drives with requested data.
fn requested(core: &Core, fetch: &Fetch) -> DriveSet {
    let drives = |word: &Codeword| {
        let row = word.row;
        word.subject.iter().map(|symbol| core.layout.cell(row, symbol).drive).collect()
    };
    fetch.codewords.iter().map(drives).fold(DriveSet::EMPTY, DriveSet::or)
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
