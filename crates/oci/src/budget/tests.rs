use proptest::prelude::*;

use super::*;
use crate::digest::Algorithm;

mod oracle;

const BLOCK: u64 = BLOCK_BYTES;

fn digest(n: u8) -> Digest {
    Digest::of(Algorithm::Sha256, &[n])
}

/// A budget of `blocks` blocks with content `0..sizes.len()`, read in this order.
fn budget(blocks: u64, sizes: &[u64]) -> Budget {
    let mut budget = Budget::new(Limits::of(blocks * BLOCK));
    for (n, size) in (0u8..).zip(sizes) {
        budget.adopt(digest(n), size * BLOCK, n.into());
    }
    budget
}

fn granted(room: Room) -> Reservation {
    match room {
        Room::Granted(reservation) => reservation,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_coldest_go_first_and_no_more_than_needed() {
    let mut budget = budget(10, &[3, 3, 3]);
    budget.touch(&digest(0), 9);
    assert_eq!(budget.reserve(2 * BLOCK), Room::Remove(vec![digest(1)]));
    assert_eq!(budget.reserve(2 * BLOCK), Room::Wait);
    assert_eq!(budget.reserve(5 * BLOCK), Room::Remove(vec![digest(2)]));
    budget.removed(&digest(1));
    let reservation = granted(budget.reserve(2 * BLOCK));
    assert_eq!(budget.used_bytes(), 8 * BLOCK);
    budget.cancel(reservation);
}

#[test]
fn pinned_and_held_content_stays_and_nothing_goes_in_vain() {
    let mut budget = budget(10, &[3, 3, 3]);
    budget.set_pins(HashSet::from([digest(0), digest(9)]));
    assert!(budget.hold(&digest(1), 5));
    let none = Room::None { wanted_bytes: 5 * BLOCK, attainable_bytes: 4 * BLOCK };
    assert_eq!(budget.reserve(5 * BLOCK), none);
    assert!(budget.contains(&digest(2)));
    budget.release(&digest(1));
    assert_eq!(budget.reserve(5 * BLOCK), Room::Remove(vec![digest(2), digest(1)]));
}

#[test]
fn two_readers_hold_until_both_are_gone() {
    let mut budget = budget(4, &[3]);
    assert!(budget.hold(&digest(0), 1) && budget.hold(&digest(0), 2));
    budget.release(&digest(0));
    assert!(matches!(budget.reserve(2 * BLOCK), Room::None { .. }));
    budget.release(&digest(0));
    assert_eq!(budget.reserve(2 * BLOCK), Room::Remove(vec![digest(0)]));
    assert!(!budget.hold(&digest(0), 3), "what is on its way out cannot be held");
}

#[test]
fn fills_in_flight_count_and_give_back_what_they_did_not_need() {
    let mut budget = budget(10, &[]);
    let first = granted(budget.reserve(6 * BLOCK));
    assert!(
        matches!(budget.reserve(5 * BLOCK), Room::None { attainable_bytes, .. } if attainable_bytes == 4 * BLOCK)
    );
    assert!(budget.commit(first, digest(1), 2 * BLOCK, 1));
    assert_eq!(budget.used_bytes(), 2 * BLOCK);
    let again = granted(budget.reserve(2 * BLOCK));
    assert!(!budget.commit(again, digest(1), 2 * BLOCK, 2), "it is there already");
    let short = granted(budget.reserve(BLOCK));
    assert!(!budget.commit(short, digest(2), 2 * BLOCK, 2), "it wrote more than it reserved");
    assert_eq!((budget.used_bytes(), budget.reserved_bytes()), (2 * BLOCK, 0));
}

#[test]
fn a_fill_of_unknown_length_grows_its_room() {
    let mut budget = budget(10, &[3]);
    let mut reservation = granted(budget.reserve(0));
    assert_eq!(reservation.bytes(), BLOCK);
    assert_eq!(budget.grow(&mut reservation, 7 * BLOCK), None);
    assert_eq!(budget.grow(&mut reservation, 8 * BLOCK), Some(Room::Remove(vec![digest(0)])));
    assert_eq!(reservation.bytes(), 7 * BLOCK);
    budget.removed(&digest(0));
    assert_eq!(budget.grow(&mut reservation, 10 * BLOCK), None);
    assert!(matches!(budget.grow(&mut reservation, 11 * BLOCK), Some(Room::None { .. })));
    assert_eq!(budget.grow(&mut reservation, 1), None, "it never shrinks");
    assert!(budget.commit(reservation, digest(1), 10 * BLOCK, 1));
}

#[test]
fn trimming_starts_above_the_high_mark_and_stops_at_the_low_one() {
    let mut budget = budget(100, &[30, 30, 30]);
    assert_eq!(budget.trim(), []);
    budget.adopt(digest(3), BLOCK, 3);
    assert_eq!(budget.trim(), [digest(0)]);
    assert_eq!(budget.trim(), [], "what is leaving is not asked for twice");
    budget.removed(&digest(0));
    assert_eq!(budget.used_bytes(), 61 * BLOCK);
}

#[test]
fn a_lowered_limit_is_trimmed_to() {
    let mut budget = budget(10, &[10, 10, 10]);
    assert_eq!(budget.trim(), [digest(0), digest(1), digest(2)]);
}

#[test]
fn what_cannot_be_removed_is_tried_last_the_next_time() {
    let mut budget = budget(10, &[4, 4]);
    assert_eq!(budget.reserve(3 * BLOCK), Room::Remove(vec![digest(0)]));
    budget.kept(&digest(0), 7);
    assert_eq!(budget.used_bytes(), 8 * BLOCK);
    assert_eq!(budget.reserve(3 * BLOCK), Room::Remove(vec![digest(1)]));
}

#[test]
fn sizes_are_rounded_to_whole_blocks() {
    for (size, bytes) in
        [(0, BLOCK), (1, BLOCK), (BLOCK, BLOCK), (BLOCK + 1, 2 * BLOCK), (u64::MAX, u64::MAX)]
    {
        assert_eq!(cost(size), bytes);
    }
}

#[test]
fn access_times_are_handed_out_once_and_never_go_back() {
    let mut budget = budget(10, &[1, 1]);
    assert_eq!(budget.take_touched(), []);
    budget.touch(&digest(1), 50);
    budget.touch(&digest(1), 40);
    assert_eq!(budget.take_touched(), [(digest(1), 50)]);
    assert_eq!(budget.take_touched(), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// The oracle keeps plain lists and searches them; both must always say the same.
    #[test]
    fn the_budget_does_what_plain_lists_do(steps in oracle::steps()) {
        oracle::compare(&steps)?;
    }
}
