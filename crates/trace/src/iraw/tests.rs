//! What the made-up traces have in common with the published ones.

use std::collections::VecDeque;

use super::*;
use crate::{Kind, Period, periods};

/// About 73 GB.
const DRIVE: Sectors = Sectors::new(17_822_265);

fn workload(text: &str) -> Iraw {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn answered(text: &str, seed: u64) -> Vec<Answered> {
    workload(text).answered(DRIVE, Streams::new(seed)).unwrap()
}

fn percent(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64 * 100.0
}

#[track_caller]
fn check_near(what: &str, ours: f64, papers: f64, reach: f64) {
    assert!((ours - papers).abs() <= reach, "{what}: {ours}, {papers} is published");
}

/// `[IRAW08]`, Table 1, and what section 4 says of idle and busy periods.
#[test]
fn whole_traces_have_the_published_figures() {
    for server in Server::ALL {
        let requests = Iraw::whole(server).answered(DRIVE, Streams::new(7)).unwrap();
        let published = server.published();
        let all: Vec<Period> = periods(&requests).collect();
        let idle: Vec<f64> =
            all.iter().filter_map(|period| period.idle).map(Nanos::as_millis_f64).collect();
        let busy: f64 = all.iter().map(|period| period.busy.as_millis_f64()).sum();
        let idle_total: f64 = idle.iter().sum();
        let length = (busy + idle_total) / published.length.as_millis_f64();
        check_near(&format!("{server}, length"), length, 1.0, 0.05);
        let idle_mean = idle_total / idle.len() as f64 / published.idle_mean.as_millis_f64();
        check_near(&format!("{server}, idle interval"), idle_mean, 1.0, 0.05);
        let idle_share = idle_total / (busy + idle_total) * 100.0;
        check_near(&format!("{server}, idle"), idle_share, published.idle.get() * 100.0, 1.0);
        let reads = requests.iter().filter(|request| request.arrival.kind == Kind::Read).count();
        let reads = percent(reads, requests.len());
        check_near(&format!("{server}, reads"), reads, published.reads.get() * 100.0, 1.0);
        for (length, papers) in [(100.0, 40.0), (10.0, 90.0)] {
            let above = idle.iter().filter(|&&idle| idle > length).count();
            let what = format!("{server}, idle above {length} ms");
            check_near(&what, percent(above, idle.len()), papers, 2.0);
        }
        let long = all.iter().filter(|period| period.busy > Nanos::from_millis(100)).count();
        assert!(percent(long, all.len()) <= 1.0, "{server}: {long} busy periods above 100 ms");
    }
}

#[test]
fn requests_are_served_one_after_another_without_a_gap_in_a_busy_period() {
    let requests = answered("iraw:code-dev,length=1h", 7);
    assert!(requests.is_sorted_by_key(|request| request.arrival.at));
    assert!(requests.is_sorted_by(|a, b| a.departure < b.departure));
    assert!(requests.iter().all(|request| request.departure > request.arrival.at));
    let deep = periods(&requests).filter(|period| period.requests.len() > 4).count();
    assert!(deep > 100, "{deep} periods of more than four requests");
}

/// The storms of the SAS server, found by what they are: writes alone, in idle intervals below 5 ms.
#[test]
fn storms_have_the_lengths_and_sizes_of_their_description() {
    let requests = answered("iraw:sas", 7);
    let mut storms: Vec<u64> = Vec::new();
    let (mut run, mut writes, mut bytes) = (0_u64, 0_u64, 0_u64);
    for period in periods(&requests) {
        let inside = &requests[period.requests];
        if period.idle.is_some_and(|idle| idle < Nanos::from_millis(5)) && inside.len() == 12 {
            assert!(inside.iter().all(|request| request.arrival.kind == Kind::Write));
            run += 1;
            writes += 12;
            bytes += inside.iter().map(|one| one.arrival.extent.sectors.bytes().get()).sum::<u64>();
        } else if run > 0 {
            storms.push(run);
            run = 0;
        }
    }
    storms.sort_unstable();
    assert_eq!(storms, [968, 1034, 1100, 1166, 1232]);
    let mean = bytes as f64 / writes as f64;
    check_near("bytes of a write", mean, 8_250.0, 40.0);
}

#[test]
fn the_same_seed_gives_the_same_requests_and_a_part_is_the_beginning_of_the_whole() {
    let whole = answered("iraw:web", 7);
    assert_eq!(answered("iraw:web", 7), whole);
    assert_ne!(answered("iraw:web,length=1h", 8), answered("iraw:web,length=1h", 7));
    let hour = answered("iraw:web,length=1h", 7);
    let end = Instant::ZERO + Nanos::from_secs(3600);
    let first = whole.iter().take_while(|request| request.arrival.at < end).count();
    assert_eq!(hour, whole[..first]);
    assert!(first > 10_000, "{first}");
    let arrivals = workload("iraw:web,length=1h").generate(DRIVE, Streams::new(7)).unwrap();
    assert!(arrivals.iter().eq(hour.iter().map(|request| &request.arrival)));
}

#[test]
fn the_size_changes_places_and_nothing_else() {
    let workload = workload("iraw:code-dev,length=1h");
    let small = workload.answered(SIZE_MIN.sectors_ceil(), Streams::new(5)).unwrap();
    let large = workload.answered(DRIVE, Streams::new(5)).unwrap();
    let rest = |request: &Answered| {
        let Arrival { at, kind, extent } = request.arrival;
        (at, kind, extent.sectors, request.departure)
    };
    assert!(small.iter().map(rest).eq(large.iter().map(rest)));
    assert_ne!(small, large);
}

#[test]
fn every_extent_fits_however_small_or_large_the_drive_is() {
    for size in [SIZE_MIN.sectors_ceil(), SIZE_MIN.sectors_ceil() + Sectors::new(1), DRIVE] {
        for server in Server::ALL {
            let workload = Iraw { server, length: Some(Nanos::from_secs(1200)) };
            let arrivals = workload.generate(size, Streams::new(2)).unwrap();
            assert!(arrivals.iter().all(|arrival| arrival.extent.fits(size)), "{workload}");
        }
    }
}

#[test]
fn four_in_five_fresh_writes_go_to_a_ninth_of_the_drive_or_less() {
    // Writes of the e-mail server are fresh, but for those of storms. Spots are 3.6 of 73 GB.
    let requests = answered("iraw:email,length=8h", 7);
    let writes: Vec<u64> = requests
        .iter()
        .filter(|request| request.arrival.kind == Kind::Write)
        .map(|request| request.arrival.extent.lba.get())
        .collect();
    let part = DRIVE.get() / 1_000;
    let mut counts = vec![0_usize; 1_001];
    for lba in &writes {
        counts[(lba / part) as usize] += 1;
    }
    counts.sort_unstable_by_key(|&count| std::cmp::Reverse(count));
    let inside: usize = counts[..110].iter().sum();
    assert!(percent(inside, writes.len()) > 80.0, "{inside} of {}", writes.len());
}

#[test]
fn one_write_in_five_of_the_web_server_goes_where_a_recent_one_went() {
    let again = |text: &str| {
        let requests = answered(text, 7);
        let mut recent = VecDeque::new();
        let (mut found, mut writes) = (0, 0);
        for Answered { arrival, .. } in
            requests.iter().filter(|one| one.arrival.kind == Kind::Write)
        {
            found += usize::from(recent.contains(&arrival.extent.lba));
            writes += 1;
            recent.push_back(arrival.extent.lba);
            if recent.len() > 2_000 {
                recent.pop_front();
            }
        }
        percent(found, writes)
    };
    check_near("web", again("iraw:web,length=30min"), 20.0, 2.0);
    check_near("user-acc", again("iraw:user-acc,length=4h"), 0.0, 0.5);
}

#[test]
fn reads_go_on_return_and_are_fresh_in_the_shares_of_their_description() {
    let requests = answered("iraw:user-acc,length=3h", 7);
    let mut read: VecDeque<levelhead_units::Extent> = VecDeque::new();
    let (mut on, mut again, mut all) = (0, 0, 0);
    for Answered { arrival, .. } in requests.iter().filter(|one| one.arrival.kind == Kind::Read) {
        let is_again = read.contains(&arrival.extent);
        let follows = read.iter().any(|before| before.end() == arrival.extent.lba);
        again += usize::from(is_again);
        on += usize::from(follows && !is_again);
        all += 1;
        read.push_back(arrival.extent);
        if read.len() > 1_000 {
            read.pop_front();
        }
    }
    check_near("again", percent(again, all), 45.0, 3.0);
    check_near("on", percent(on, all), 30.0, 3.0);
}

#[test]
fn what_is_written_is_what_is_meant() {
    assert_eq!(workload("iraw:web"), Iraw::whole(Server::Web));
    let hour = workload(" iraw:user-acc , length = 1h ");
    assert_eq!(hour, Iraw { server: Server::UserAcc, length: Some(Nanos::from_secs(3600)) });
    assert_eq!(hour.to_string().parse(), Ok(hour));
}

#[test]
fn errors_name_the_key() {
    let servers = "expected web, email, user-acc, code-dev or sas";
    let refusals = [
        ("iraw:", format!("iraw: no such server '': {servers}")),
        ("iraw:mail", format!("iraw: no such server 'mail': {servers}")),
        ("iraw:web,hours=1", "hours: no such key: expected length".to_owned()),
        ("iraw:web,fast", "fast: expected key=value, the key being length".to_owned()),
        ("iraw:web,length=1h,length=2h", "length: given twice".to_owned()),
        ("iraw:web,length=8h", "length: expected more than none and at most 7h, got 8h".to_owned()),
        (
            "iraw:web,length=0s",
            "length: expected more than none and at most 7h, got 0ns".to_owned(),
        ),
    ];
    for (text, message) in refusals {
        let error = text.parse::<Iraw>().unwrap_err();
        assert_eq!(error.to_string(), format!("workload, {message}"), "{text}");
    }
    let error = workload("iraw:web").generate(Sectors::new(1 << 18), Streams::new(1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "workload, iraw: needs 3.6 GB for its 24 places of 150 MB, got 1GiB"
    );
}
