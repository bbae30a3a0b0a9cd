//! What the benchmark of the drive does, counted. How long it takes is nobody's business here.

use bench::drive::{Workload, chosen};

/// Events a request, times a thousand.
#[track_caller]
fn check(workload: Workload, requests: u64, expected: std::ops::RangeInclusive<u64>) {
    let mut marks = 0;
    let counts = workload.run(requests, &mut || marks += 1);
    assert_eq!(counts.requests, requests);
    assert_eq!(marks, 2);
    let per_request = counts.events * 1000 / requests;
    eprintln!("{}: {per_request} events a thousand requests", workload.name());
    assert!(expected.contains(&per_request), "{}: {per_request}", workload.name());
}

#[test]
fn a_drive_has_two_events_a_request_however_many_there_are() {
    for requests in [1_000, 10_000, 100_000] {
        // It comes, and it ends.
        check(Workload::Low, requests, 2_000..=2_000);
        check(Workload::Ecc, requests, 2_000..=2_000);
        check(Workload::Sptf32, requests, 2_000..=2_000);
    }
}

#[test]
fn an_array_has_an_event_an_arrival_and_one_a_command_of_its_drives() {
    // 8 KiB at any sector: 1.5 drives on average, and 8 ms of a second's look at their health.
    check(Workload::ArrayHour8k, 2_000, 2_480..=2_530);
    check(Workload::ArrayHour40k, 2_000, 6_000..=6_600);
}

#[test]
fn workloads_are_known_by_name_and_others_are_refused() {
    assert_eq!(chosen(&[]).unwrap(), Workload::ALL);
    assert_eq!(chosen(&["random-4k-low".to_owned()]).unwrap(), [Workload::Low]);
    let error = chosen(&["random".to_owned()]).unwrap_err();
    assert!(error.starts_with("there is no workload random: expected random-4k-low"), "{error}");
}
