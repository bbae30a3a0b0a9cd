//! The prediction and the run are about the same thing. What the clock decides is not compared here.

use std::sync::mpsc;

use levelhead_array::{Content, Policy, RequestId};
use levelhead_block::{BlockService, Command, Effort, Request};
use levelhead_lab::{World, WorldSettings, timed};
use levelhead_units::{Extent, Sectors};

use super::*;

/// The whole demo but for its runs.
fn prepared(seed: u64) -> (Bed, Workload) {
    let length = Duration::from_secs(12);
    let ask = Demo { seed, length, folder: None, report: None };
    let bed = Bed::make(&ask).unwrap();
    let workload = Workload::draw(bed.size(), Streams::new(seed), length);
    (bed, workload)
}

/// The same array in virtual time.
fn settings(bed: &VirtualBed) -> WorldSettings {
    WorldSettings {
        spec: bed.spec,
        policy: bed.policy,
        window: bed.window,
        order: bed.order,
        content: Content::Absent,
        profile: std::sync::Arc::clone(&bed.models[0].profile),
        drives: bed.models.iter().map(|model| model.settings).collect(),
        area: Some(bed.area.clone()),
        journal: None,
        seed: bed.seed,
    }
}

fn predicted(bed: &VirtualBed, workload: &Workload, shape: Shape) -> Prediction {
    let carry_out = |run: &VirtualRun<'_>| {
        let load = match run.load {
            Load::Open(arrivals) => timed::Load::Open(arrivals),
            Load::Closed { extents, outstanding } => timed::Load::Closed { extents, outstanding },
        };
        let timed = timed::run(&settings(run.bed), load, run.start, run.length).unwrap();
        Ok(Ran { latencies: timed.latencies, unfinished: timed.unfinished })
    };
    predict::run(&carry_out, bed, workload, shape).unwrap()
}

/// What each read costs: under `on-failure` one sub-request a drive with data, and the rest of the
/// group where any of them failed, whichever is the first to answer.
type Costs = Vec<u64>;

/// Drives whose failures show in what reads cost.
fn failing() -> Scenario {
    let (name, policy, shape) = ("retries", Policy::OnFailure, Shape::Closed);
    Scenario { name, policy, trouble: Trouble::Retries, shape }
}

/// What reading these one after the other costs an array over emulated drives.
fn costs_in_real_time(bed: &Bed, extents: &[Extent]) -> Costs {
    let scenario = failing();
    let array = bed.serve(&bed.emulated(scenario.trouble).unwrap(), scenario.policy).unwrap();
    let mut before = 0;
    let cost = |&extent: &Extent| {
        let (sender, ended) = mpsc::channel();
        let request = Request::read(extent, Effort::Full);
        array.submit(request, Box::new(move |reply| sender.send(reply.outcome).unwrap()));
        assert!(ended.recv().unwrap().is_good());
        let subs = array.status().unwrap().counters.subrequests;
        subs - std::mem::replace(&mut before, subs)
    };
    let costs = extents.iter().map(cost).collect();
    array.stop().unwrap();
    costs
}

/// The same in virtual time.
fn costs_in_virtual_time(bed: &Bed, extents: &[Extent]) -> Costs {
    let mut world = World::new(&settings(&bed.modelled(&failing()).unwrap())).unwrap();
    assert_eq!(world.size(), bed.size());
    let mut cost = |(&extent, name)| {
        let command = Command::Read { extent, effort: Effort::Full };
        world.submit(world.now(), RequestId(name), command, None);
        loop {
            match world.take_answers().pop() {
                Some((_, answer)) => return u64::from(answer.cost.subs),
                None => world.step(),
            }
        }
    };
    extents.iter().zip(1..).map(&mut cost).collect()
}

#[test]
fn emulated_drives_fail_the_same_sectors_as_those_in_virtual_time() {
    let (bed, workload) = prepared(7);
    // Two chunks each: what fails there shows in four more sub-requests.
    let part = |extent: &Extent| Extent::new(extent.lba, Sectors::new(4));
    let extents: Vec<Extent> = workload.extents()[..100].iter().map(part).collect();
    let real = costs_in_real_time(&bed, &extents);
    assert_eq!(real, costs_in_virtual_time(&bed, &extents));
    let (other, _) = prepared(8);
    assert_ne!(real, costs_in_virtual_time(&other, &extents), "it is the seed that decides");
}

#[test]
fn prediction_is_a_function_of_the_seed() {
    let (bed, workload) = prepared(3);
    let (again, same) = prepared(3);
    for scenario in scenarios() {
        let once = predicted(&bed.modelled(&scenario).unwrap(), &workload, scenario.shape);
        let twice = predicted(&again.modelled(&scenario).unwrap(), &same, scenario.shape);
        assert_eq!(once, twice, "{} {}", scenario.name, scenario.policy);
    }
}

#[test]
fn prediction_counts_every_read_that_the_run_sends() {
    let (bed, workload) = prepared(3);
    let healthy = &scenarios()[0];
    let predicted = predicted(&bed.modelled(healthy).unwrap(), &workload, Shape::Open);
    let sent = workload.arrivals().len();
    assert!(predicted.runs.iter().all(|run| run.count == sent as u64));
    assert_eq!(predicted.all.latencies.len(), sent * predict::BEGINNINGS as usize);
    // Each is due in its turn, at one of the places.
    let turns = workload.extents().iter().cycle();
    assert!(workload.arrivals().iter().zip(turns).all(|((_, extent), turn)| extent == turn));
    assert!(workload.arrivals().is_sorted_by(|(left, _), (right, _)| left < right));
}
