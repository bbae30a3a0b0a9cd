use std::time::SystemTime;

use levelhead_array::superblock::Uuid;
use levelhead_array::{
    DriveEvent, DriveFound, Flaw, Promise, ResyncProgress, ScrubProgress, ScrubState,
};
use levelhead_host::LostMember;
use levelhead_units::{Extent, Instant, Lba, Sectors};
use serde_json::{Value, json};

use super::*;

fn told(event: Event, lost: Option<LostMember>) -> NumberedEvent {
    let (at, time) = (Instant::from_nanos(1_234_567_890), SystemTime::UNIX_EPOCH);
    let found = match event {
        Event::Array(ArrayEvent::ScrubDone(_)) => vec![
            DriveFound { drive: DriveIdx::new(1), unreadable: 0, wrong: 2, unrepaired: 0 },
            DriveFound { drive: DriveIdx::new(2), unreadable: 1, wrong: 0, unrepaired: 3 },
        ],
        _ => Vec::new(),
    };
    let array = Uuid([0xab; 16]);
    NumberedEvent { array, number: 7, at, time, event, lost, found }
}

/// Every shape of an event, its priority, its own fields, and its sentence.
fn all() -> Vec<(NumberedEvent, Priority, Value, &'static str)> {
    let drive = DriveIdx::new(2);
    let drives: DriveSet = [1, 2].map(DriveIdx::new).into_iter().collect();
    let figures = Figures {
        median: Nanos::from_micros(20_250),
        cohort_median: Nanos::from_millis(4),
        cohort_mad: Nanos::from_micros(500),
        samples: 32,
    };
    let standing =
        |kind, figures| Event::Standing(DriveEvent { at: Instant::ZERO, drive, kind, figures });
    let lost = |why, reason: Option<&str>| {
        let (name, reason) = (Some("d2.img".to_owned()), reason.map(str::to_owned));
        told(Event::Lost { drive, why, is_copied: false }, Some(LostMember { name, reason }))
    };
    let stopped = |why, reason: Option<&str>| {
        let (name, reason) = (Some("d2.img".to_owned()), reason.map(str::to_owned));
        let event = Event::Array(ArrayEvent::CopyStopped { drive, why });
        told(event, Some(LostMember { name, reason }))
    };
    let array = |event| told(Event::Array(event), None);
    let progress = ResyncProgress { synced: 10, stripes: 30 };
    let rebuild =
        RebuildProgress { drive, front: 10, mark: 5, stripes: 30, regions: None, is_copied: false };
    let copied = RebuildProgress { regions: Some(0), is_copied: true, ..rebuild };
    let assembled =
        |absent, forced, unsynced| array(ArrayEvent::Assembled { absent, forced, unsynced });
    let none = DriveSet::EMPTY;
    let found = ScrubFound { unreadable: 1, wrong: 2, unrepaired: 3, unlocated: 4 };
    let scrub =
        ScrubProgress { state: ScrubState::Done, to: 30, stripes: 30, found, unreported: 5 };
    let extent = Extent::new(Lba::new(1_000), Sectors::new(3));
    use Priority::{Error, Info, Notice, Warning};
    vec![
        (
            told(standing(EventKind::SatOut, figures), None),
            Warning,
            json!({ "drive": 2, "median_ms": 20.25, "cohort_median_ms": 4.0,
                    "cohort_mad_ms": 0.5, "samples": 32 }),
            "drive 2 avoided at 1.2 s: its last 32 commands took 20.2 ms (median), the drives' \
             4.0 ms (deviation 0.5 ms)",
        ),
        (
            told(standing(EventKind::Heard, Figures::default()), None),
            Notice,
            json!({ "drive": 2, "median_ms": 0.0, "cohort_median_ms": 0.0,
                    "cohort_mad_ms": 0.0, "samples": 0 }),
            "drive 2 responsive at 1.2 s: it has completed a command again",
        ),
        (
            told(standing(EventKind::Heard, figures), None),
            Notice,
            json!({ "drive": 2, "median_ms": 20.25, "cohort_median_ms": 4.0,
                    "cohort_mad_ms": 0.5, "samples": 32 }),
            "drive 2 responsive at 1.2 s: it has completed a command again",
        ),
        (
            told(standing(EventKind::Silent, figures), None),
            Warning,
            json!({ "drive": 2, "median_ms": 20.25, "cohort_median_ms": 4.0,
                    "cohort_mad_ms": 0.5, "samples": 32 }),
            "drive 2 unresponsive at 1.2 s: nothing has completed for long although I/O is outstanding",
        ),
        (
            lost(Why::Failed, Some("no room")),
            Warning,
            json!({ "drive": 2, "why": "failed", "member": "d2.img", "reason": "no room" }),
            "drive 2, d2.img, has failed: no room",
        ),
        (
            lost(Why::Silent, Some("it says nothing")),
            Warning,
            json!({ "drive": 2, "why": "silent", "member": "d2.img",
                    "reason": "it says nothing" }),
            "drive 2, d2.img, has failed: it says nothing",
        ),
        (
            lost(Why::ByHand, None),
            Notice,
            json!({ "drive": 2, "why": "by-hand", "member": "d2.img", "reason": null }),
            "drive 2, d2.img, failed by an operator",
        ),
        (
            told(
                Event::Released { drive },
                Some(LostMember { name: Some("d2.img".to_owned()), reason: None }),
            ),
            Info,
            json!({ "drive": 2, "member": "d2.img" }),
            "drive 2, d2.img, is closed: other programs can use it",
        ),
        (
            array(ArrayEvent::Damaged {
                drive,
                extent: Extent { sectors: Sectors::new(1), ..extent },
            }),
            Error,
            json!({ "drive": 2, "first_sector": 1000, "sectors": 1 }),
            "sector 1000 of drive 2 is damaged: neither the drive nor redundancy returns it",
        ),
        (
            array(ArrayEvent::Damaged { drive, extent }),
            Error,
            json!({ "drive": 2, "first_sector": 1000, "sectors": 3 }),
            "3 sectors from 1000 on of drive 2 are damaged: neither the drive nor redundancy returns them",
        ),
        (
            array(ArrayEvent::DamagedRead { drive, extent }),
            Error,
            json!({ "drive": 2, "first_sector": 1000, "sectors": 3 }),
            "a client read unrecoverable data: 3 sectors from 1000 on of drive 2 are \
             damaged until they are written",
        ),
        (
            array(ArrayEvent::Corrupt { drive, extent }),
            Warning,
            json!({ "drive": 2, "first_sector": 1000, "sectors": 3 }),
            "drive 2 returned 3 sectors from 1000 on with a wrong checksum: redundancy is used",
        ),
        (
            array(ArrayEvent::Repaired {
                drive,
                extent,
                fault: Fault::Unreadable,
                is_repaired: true,
            }),
            Notice,
            json!({ "drive": 2, "first_sector": 1000, "sectors": 3, "fault": "unreadable" }),
            "3 sectors from 1000 on of drive 2 could not be read and were repaired",
        ),
        (
            array(ArrayEvent::Repaired { drive, extent, fault: Fault::Wrong, is_repaired: false }),
            Error,
            json!({ "drive": 2, "first_sector": 1000, "sectors": 3, "fault": "wrong" }),
            "3 sectors from 1000 on of drive 2 held other data than was written and could not be repaired",
        ),
        (
            array(ArrayEvent::WriteFlawed {
                drive,
                extent,
                flaw: Flaw::Lost,
                promise: Promise::Medium,
            }),
            Warning,
            json!({ "drive": 2, "first_sector": 1000, "sectors": 3, "promise": "medium" }),
            "3 sectors from 1000 on of drive 2 do not hold the data that was written there",
        ),
        (
            array(ArrayEvent::WriteMended {
                drive,
                extent,
                promise: Promise::Interface,
                is_mended: true,
            }),
            Notice,
            json!({ "drive": 2, "first_sector": 1000, "sectors": 3, "promise": "interface" }),
            "3 sectors from 1000 on of drive 2 were not stored, and were repaired",
        ),
        (
            array(ArrayEvent::Unlocated { stripe: 7, first_sector: 112, sectors: 1 }),
            Error,
            json!({ "stripe": 7, "first_sector": 112, "sectors": 1 }),
            "stripe 7 does not match at sector 112, and the wrong drive cannot be located: nothing was changed",
        ),
        (
            array(ArrayEvent::Unlocated { stripe: 7, first_sector: 112, sectors: 40 }),
            Error,
            json!({ "stripe": 7, "first_sector": 112, "sectors": 40 }),
            "40 sectors from 112 on of the drives, from stripe 7 on, do not match, and the wrong drive cannot be \
             located: nothing was changed",
        ),
        (
            array(ArrayEvent::RecordLost { drive, is_kept: true }),
            Error,
            json!({ "drive": 2, "kept": true }),
            "drive 2 does not store the array's metadata, and the array needs it",
        ),
        (
            array(ArrayEvent::Fenced),
            Error,
            json!({}),
            "another server has opened the array: this one gives up all drives",
        ),
        (
            array(ArrayEvent::WentBack { drive }),
            Warning,
            json!({ "drive": 2 }),
            "drive 2 has less than was stored on it, an earlier copy perhaps, and was failed",
        ),
        (
            array(ArrayEvent::ReadErrors { drive, errors: 33, is_kept: false }),
            Warning,
            json!({ "drive": 2, "errors": 33, "kept": false }),
            "drive 2 had 33 read errors lately, and was failed",
        ),
        (
            array(ArrayEvent::ReadErrors { drive, errors: 33, is_kept: true }),
            Warning,
            json!({ "drive": 2, "errors": 33, "kept": true }),
            "drive 2 had 33 read errors lately, and the array needs it",
        ),
        (
            array(ArrayEvent::ScrubDone(scrub)),
            Error,
            json!({ "state": "done", "scrubbed_stripes": 30, "stripes": 30, "unreadable": 1,
                    "wrong": 2, "unrepaired": 3, "unlocated": 4, "unreported": 5, "drives": [
                        { "drive": 1, "unreadable": 0, "wrong": 2, "unrepaired": 0 },
                        { "drive": 2, "unreadable": 1, "wrong": 0, "unrepaired": 3 },
                    ] }),
            "scrub: done, 30 of 30 stripes; repaired 1 sector that could not be read and 2 that \
             were wrong; 3 sectors could not be repaired; 4 codewords do not match their redundancy: nothing tells which drive is \
             wrong, and nothing was changed; \
             drive 1: 2 wrong; drive 2: 1 unreadable, 3 not repaired; 5 runs of sectors had no event of their own",
        ),
        (
            array(ArrayEvent::ScrubBegun(ScrubProgress {
                state: ScrubState::Running,
                to: 0,
                found: ScrubFound::default(),
                unreported: 0,
                ..scrub
            })),
            Info,
            json!({ "state": "running", "scrubbed_stripes": 0, "stripes": 30, "unreadable": 0,
                    "wrong": 0, "unrepaired": 0, "unlocated": 0, "unreported": 0, "drives": [] }),
            "scrub from stripe 0 of 30 on",
        ),
        (
            array(ArrayEvent::Failed { lost: drives, survives: 1 }),
            Error,
            json!({ "lost": [1, 2], "survives": 1 }),
            "the array has failed: drives 1,2 are missing or failed, it survives the loss of 1 drive",
        ),
        (
            assembled(none, Forced::No, 0),
            Info,
            json!({ "absent": [], "forced": false, "unsynced_stripes": 0 }),
            "the array is served with all its drives",
        ),
        (
            assembled(none, Forced::No, 9),
            Notice,
            json!({ "absent": [], "forced": false, "unsynced_stripes": 9 }),
            "the array is served with all its drives, redundancy of 9 stripes is not valid yet",
        ),
        (
            assembled(drives, Forced::Yes, 9),
            Warning,
            json!({ "absent": [1, 2], "forced": true, "unsynced_stripes": 9 }),
            "the array is served without drives 1,2, by force, redundancy of 9 stripes is not \
             valid yet",
        ),
        (
            array(ArrayEvent::ResyncBegun(progress)),
            Info,
            json!({ "synced_stripes": 10, "stripes": 30 }),
            "resync from stripe 10 of 30 on",
        ),
        (
            array(ArrayEvent::ResyncStuck(progress)),
            Warning,
            json!({ "synced_stripes": 10, "stripes": 30 }),
            "resync stopped at stripe 10 of 30: a drive is missing or failed, or data cannot be read",
        ),
        (array(ArrayEvent::ResyncDone), Info, json!({}), "all redundancy is valid"),
        (
            array(ArrayEvent::Unrecovered { extent: Extent::new(Lba::new(8), Sectors::new(3)) }),
            Error,
            json!({ "first_sector": 8, "sectors": 3 }),
            "3 sectors from 8 on may hold older data than was written last before the crash: the journal could \
             not recover it",
        ),
        (
            array(ArrayEvent::RebuildBegun(rebuild)),
            Notice,
            json!({ "drive": 2, "done_stripes": 10, "stripes": 30, "missed_regions": null }),
            "drive 2 is rebuilding from stripe 10 of 30 on",
        ),
        (
            array(ArrayEvent::RebuildStopped(rebuild)),
            Warning,
            json!({ "drive": 2, "done_stripes": 10, "stripes": 30, "missed_regions": null }),
            "drive 2 failed again: 10 of 30 stripes were rebuilt",
        ),
        (
            array(ArrayEvent::RebuildDone { drive, is_copied: false }),
            Notice,
            json!({ "drive": 2 }),
            "drive 2 is rebuilt",
        ),
        (
            array(ArrayEvent::RebuildBegun(copied)),
            Notice,
            json!({ "drive": 2, "done_stripes": 10, "stripes": 30, "missed_regions": 0 }),
            "replacing drive 2: 0 regions to write to the new drive",
        ),
        (
            array(ArrayEvent::RebuildBegun(RebuildProgress { is_copied: false, ..copied })),
            Notice,
            json!({ "drive": 2, "done_stripes": 10, "stripes": 30, "missed_regions": 0 }),
            "drive 2 is back: partial resync of 0 regions",
        ),
        (
            array(ArrayEvent::RebuildDone { drive, is_copied: true }),
            Notice,
            json!({ "drive": 2 }),
            "drive 2 is replaced: the new drive holds all of its data",
        ),
        (
            told(
                Event::Lost { drive, why: Why::ByHand, is_copied: true },
                Some(LostMember { name: Some("d2.img".to_owned()), reason: None }),
            ),
            Notice,
            json!({ "drive": 2, "why": "replaced", "member": "d2.img", "reason": null }),
            "drive 2, d2.img, gives its slot to the new drive that holds its copy",
        ),
        (
            array(ArrayEvent::CopyBegun(CopyProgress { drive, left: 9, regions: 9 })),
            Notice,
            json!({ "drive": 2, "left_regions": 9, "regions": 9 }),
            "replacing drive 2: 9 regions to copy to the new drive",
        ),
        (
            array(ArrayEvent::CopyDone(CopyProgress { drive, left: 1, regions: 9 })),
            Notice,
            json!({ "drive": 2, "left_regions": 1, "regions": 9 }),
            "drive 2 replaced by the new drive: 1 of 9 regions left to copy",
        ),
        (
            stopped(CopyEnd::Failed, Some("Input/output error")),
            Warning,
            json!({
                "drive": 2, "because": "failed", "member": "d2.img", "reason": "Input/output error"
            }),
            "the new drive, d2.img, does not replace drive 2: it did not store what was written to it: \
             Input/output error",
        ),
        (
            array(ArrayEvent::CopyStopped { drive, why: CopyEnd::TooSlow }),
            Warning,
            json!({ "drive": 2, "because": "too-slow", "member": null, "reason": null }),
            "the new drive does not replace drive 2: clients write faster than it takes the writes",
        ),
        (
            array(ArrayEvent::CopyStopped { drive, why: CopyEnd::Ending }),
            Notice,
            json!({ "drive": 2, "because": "ending", "member": null, "reason": null }),
            "the new drive does not replace drive 2: the array is stopping",
        ),
        (
            array(ArrayEvent::Stopped(Ending::Clean)),
            Info,
            json!({}),
            "the array was stopped cleanly",
        ),
        (
            array(ArrayEvent::Stopped(Ending::Failed)),
            Error,
            json!({}),
            "the array has stopped: more drives are missing or failed than it survives",
        ),
        (
            array(ArrayEvent::Stopped(Ending::Unsafe { silent: drives })),
            Error,
            json!({ "silent": [1, 2] }),
            "the array was not stopped cleanly: drives 1,2 do not answer",
        ),
    ]
}

#[test]
fn every_event_has_its_fields_its_sentence_and_its_priority() {
    for (told, priority, own, sentence) in all() {
        assert_eq!(Priority::from(told.event), priority, "{told:?}");
        let event = EventJson::from(&told);
        assert_eq!(event.sentence(), sentence);
        let (name, time) = (told.event.name(), "1970-01-01T00:00:00Z");
        let severity = severity(told.event).name();
        let mut expected = json!({
            "number": 7, "event": name, "severity": severity, "array": Uuid([0xab; 16]).to_string(),
            "time": time, "at_seconds": 1.235
        });
        expected.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        assert_eq!(serde_json::to_value(&event).unwrap(), expected);
    }
}

/// An alert that wakes somebody up does not do so for what an operator asked for.
#[test]
fn severity_distinguishes_what_was_asked_for_from_what_failed() {
    let drive = DriveIdx::new(2);
    let standing = |kind| {
        let (at, figures) = (Instant::ZERO, Figures::default());
        Event::Standing(DriveEvent { at, drive, kind, figures })
    };
    let lost = |why, is_copied| Event::Lost { drive, why, is_copied };
    let array = Event::Array;
    let rebuild = |is_copied| RebuildProgress {
        drive,
        front: 0,
        mark: 0,
        stripes: 9,
        regions: Some(1),
        is_copied,
    };
    let copy = CopyProgress { drive, left: 0, regions: 9 };
    let scrub = |wrong| {
        let found = ScrubFound { wrong, ..ScrubFound::default() };
        ScrubProgress { state: ScrubState::Done, to: 9, stripes: 9, found, unreported: 0 }
    };
    let assembled =
        |absent, unsynced| array(ArrayEvent::Assembled { absent, forced: Forced::No, unsynced });
    let extent = Extent::new(Lba::new(1), Sectors::new(1));
    let repaired =
        |fault, is_repaired| array(ArrayEvent::Repaired { drive, extent, fault, is_repaired });
    let all = [
        // A live replacement of a good drive, from its beginning to its end.
        ("planned", array(ArrayEvent::CopyBegun(copy))),
        ("planned", lost(Why::ByHand, true)),
        ("planned", array(ArrayEvent::CopyDone(copy))),
        ("planned", array(ArrayEvent::RebuildBegun(rebuild(true)))),
        ("planned", array(ArrayEvent::RebuildDone { drive, is_copied: true })),
        ("planned", Event::Released { drive }),
        ("planned", lost(Why::ByHand, false)),
        ("planned", standing(EventKind::SatOutByHand)),
        ("planned", standing(EventKind::AdmittedByHand)),
        ("planned", array(ArrayEvent::ScrubBegun(scrub(0)))),
        ("planned", array(ArrayEvent::ScrubDone(scrub(0)))),
        ("planned", array(ArrayEvent::Stopped(Ending::Clean))),
        ("planned", assembled(DriveSet::EMPTY, 9)),
        ("info", array(ArrayEvent::ResyncDone)),
        ("recovered", array(ArrayEvent::RebuildBegun(rebuild(false)))),
        ("recovered", array(ArrayEvent::RebuildDone { drive, is_copied: false })),
        ("recovered", standing(EventKind::Heard)),
        ("recovered", standing(EventKind::Admitted)),
        ("recovered", repaired(Fault::Unreadable, true)),
        ("degraded", lost(Why::Failed, false)),
        ("degraded", lost(Why::Silent, false)),
        ("degraded", standing(EventKind::SatOut)),
        ("degraded", array(ArrayEvent::RebuildStopped(rebuild(true)))),
        ("degraded", array(ArrayEvent::CopyStopped { drive, why: CopyEnd::Failed })),
        ("degraded", array(ArrayEvent::ScrubDone(scrub(1)))),
        ("degraded", repaired(Fault::Wrong, true)),
        ("degraded", assembled(DriveSet::EMPTY.with(drive), 0)),
        ("failed", repaired(Fault::Wrong, false)),
        ("failed", array(ArrayEvent::Failed { lost: DriveSet::EMPTY, survives: 1 })),
        ("failed", array(ArrayEvent::Stopped(Ending::Failed))),
    ];
    for (expected, event) in all {
        assert_eq!(severity(event).name(), expected, "{event:?}");
    }
}

#[test]
fn severities_are_on_the_page_for_users() {
    let page = include_str!("../../../../docs/control.md");
    let (_, rows) = page.split_once("| `severity` | meaning |").unwrap();
    let rows = rows.lines().skip(2).map_while(|row| row.strip_prefix("| `")?.split('`').next());
    let all = [
        Severity::Planned,
        Severity::Info,
        Severity::Recovered,
        Severity::Degraded,
        Severity::Failed,
    ];
    assert_eq!(rows.collect::<Vec<_>>(), all.map(Severity::name));
}

#[test]
fn names_of_all_events_are_known_and_on_the_page_for_users() {
    let page = include_str!("../../../../docs/control.md");
    let (_, rows) = page.split_once("| `event` | what happened |").unwrap();
    let named: Vec<&str> = rows
        .lines()
        .skip(2)
        .map_while(|row| row.strip_prefix('|')?.split('|').next())
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    assert_eq!(named, EVENTS);
    assert!(all().iter().all(|(told, ..)| EVENTS.contains(&told.event.name())));
}

#[test]
fn client_reads_each_event_as_the_array_wrote_it() {
    for (told, _, _, sentence) in all() {
        let line = serde_json::to_string(&EventJson::from(&told)).unwrap();
        let read: EventJson = serde_json::from_str(&line).unwrap();
        assert_eq!(read.sentence(), sentence);
        assert_eq!(serde_json::to_string(&read).unwrap(), line);
    }
    let later = r#"{"number": 1, "event": "moved", "at_seconds": 0.0, "where": "up"}"#;
    let read: EventJson = serde_json::from_str(later).unwrap();
    assert_eq!(read.sentence(), "moved", "an event that is not known here is at least named");
    let broken = r#"{"number": "one", "event": "stopped", "at_seconds": 0.0}"#;
    assert!(serde_json::from_str::<EventJson>(broken).is_err());
}
