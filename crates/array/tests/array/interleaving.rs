//! A read of a stripe that is being rewritten never decodes a mixture of old and new symbols.
//!
//! An *effect boundary* is a moment between two ends of commands. One write and one read of the
//! same codeword are interleaved at every boundary: the read is sent after each number of ended
//! commands, before and after the write is, with its own sector failing so that it must decode, in
//! every order in which the drives can finish.

use crate::runtime::{Runtime, extent, settings};
use levelhead_array::{Policy, Spec};
use levelhead_units::{DriveIdx, DriveSet};

const OLD: u8 = 0x11;
const NEW: u8 = 0x77;

/// Ends commands in the order that `choices` says, sending the read before the end of command number
/// `boundary`. Returns the bytes read, and how many choices there were at each step.
fn interleave(
    spec: Spec,
    policy: Policy,
    missing: Option<usize>,
    boundary: usize,
    choices: &[usize],
) -> (Vec<u8>, Vec<usize>) {
    let mut run = Runtime::new(&settings(spec, 2, policy, DriveSet::EMPTY), 1);
    // A mirror's codeword has one data symbol: there two of them that are written and locked together.
    let width = run.array.layout().data_symbols().max(2) as u64;
    run.write(0, extent(0, width), &vec![OLD; width as usize * 4096]);
    run.run_until_quiet();
    run.take(0).unwrap();
    if let Some(drive) = missing {
        run.lose(DriveIdx::from_usize(drive));
    }
    // One sector changes, so that the others' old values matter; the read asks for all.
    run.write(1, extent(1, 1), &[NEW; 4096]);
    let (mut sent, mut degrees) = (false, Vec::new());
    for step in 0.. {
        if !sent && (step == boundary || run.inside.is_empty()) {
            run.read(2, extent(0, width));
            sent = true;
        }
        if run.inside.is_empty() {
            break;
        }
        degrees.push(run.inside.len());
        run.finish(choices.get(step).copied().unwrap_or(0));
    }
    assert!(run.take(1).unwrap().0.outcome.is_good());
    let (answer, buf) = run.take(2).unwrap();
    assert!(answer.outcome.is_good(), "{:?}", answer.outcome);
    (buf.as_slice().to_vec(), degrees)
}

/// Every order of up to `depth` first choices; after that the first in line finishes.
fn for_each_order(depth: usize, run: &mut dyn FnMut(&[usize]) -> Vec<usize>) -> usize {
    let mut choices: Vec<usize> = Vec::new();
    let mut count = 0;
    loop {
        let degrees = run(&choices);
        count += 1;
        let mut prefix: Vec<usize> =
            (0..degrees.len().min(depth)).map(|at| choices.get(at).copied().unwrap_or(0)).collect();
        // The next order, as an odometer whose wheels have as many digits as there were choices.
        loop {
            let Some(last) = prefix.pop() else { return count };
            if last + 1 < degrees[prefix.len()] {
                prefix.push(last + 1);
                break;
            }
        }
        choices = prefix;
    }
}

#[test]
fn a_read_at_any_boundary_of_a_write_gives_old_or_new_and_never_a_mixture() {
    let mut runs = 0;
    for text in [
        "raid5:2+1,chunk=4KiB",
        "raid6:2+2,chunk=4KiB",
        "eraid:2+1,e=2,chunk=8KiB",
        "raid1:2,chunk=8KiB",
        "raid10:3,chunk=8KiB",
    ] {
        let spec: Spec = text.parse().unwrap();
        for policy in
            ["normal", "assisted", "on-failure", "level"].map(|name| name.parse().unwrap())
        {
            for missing in (0..spec.drives()).map(Some).chain([None]) {
                for boundary in 0..8 {
                    runs += for_each_order(5, &mut |choices| {
                        let (bytes, degrees) = interleave(spec, policy, missing, boundary, choices);
                        let context = format!(
                            "{spec}, {policy}, missing {missing:?}, read at {boundary}, order {choices:?}"
                        );
                        check_bytes(&bytes, &context);
                        degrees
                    });
                }
            }
        }
    }
    assert!(runs > 2_000, "only {runs} interleavings");
}

fn check_bytes(bytes: &[u8], context: &str) {
    for (sector, content) in bytes.chunks_exact(4096).enumerate() {
        // Reads and writes of one stripe take turns: sent after the write, the read sees it.
        let expected = if sector == 1 { NEW } else { OLD };
        assert!(content.iter().all(|&byte| byte == expected), "{context}: sector {sector}");
    }
}

/// The canary: the same check on bytes decoded from a mixture.
#[test]
#[should_panic(expected = "canary: sector 0")]
fn mixture_is_caught() {
    let mixed: Vec<u8> = [OLD ^ NEW; 4096].into_iter().chain([NEW; 4096]).collect();
    check_bytes(&mixed, "canary");
}
