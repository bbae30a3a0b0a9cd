//! Where the bytes of a read lie: in place what was read, apart from it what is computed.

use levelhead_array::Policy;
use levelhead_block::Buf;
use levelhead_units::{DriveIdx, DriveSet, SECTOR_SIZE};

use crate::runtime::{Runtime, extent, settings};

/// RAID-5 of 5+1 in chunks of one sector: sector `n` of the first stripe is on drive `n`.
fn array(policy: Policy, lost: DriveSet) -> Runtime {
    let mut array =
        Runtime::new(&settings("raid5:5+1,chunk=4KiB".parse().unwrap(), 4, policy, lost), 1);
    array.write(1, extent(0, 5), &bytes());
    array.run_until_quiet();
    array.take(1).unwrap();
    array.combined = 0;
    array
}

fn bytes() -> Vec<u8> {
    (1..=5).flat_map(|sector| [sector; SECTOR_SIZE]).collect()
}

/// Reads the first sectors of the stripe: how many commands and combinations that took.
fn read(array: &mut Runtime, sectors: u64) -> (u32, u32) {
    array.read(2, extent(0, sectors));
    array.run_until_quiet();
    let (answer, buf): (_, Buf) = array.take(2).unwrap();
    assert!(answer.outcome.is_good());
    assert!(buf.as_slice() == &bytes()[..buf.as_slice().len()]);
    assert!(array.buffers.is_empty());
    (answer.cost.subs, std::mem::take(&mut array.combined))
}

#[test]
fn healthy_read_takes_no_arithmetic_and_a_degraded_one_only_for_what_is_lost() {
    let mut array = array(Policy::Normal, DriveSet::EMPTY);
    assert_eq!(read(&mut array, 5), (5, 0));
    array.lose(DriveIdx::new(2));
    assert_eq!(read(&mut array, 5), (5, 1));
}
