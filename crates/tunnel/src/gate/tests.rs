#![allow(clippy::unwrap_used, reason = "a test may stop")]

use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;

const NOW: Duration = Duration::from_secs(100);

fn v4(c: u8, d: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(192, 0, c, d))
}

fn limits() -> Limits {
    Limits { prefix_rate: 10.0, prefix_open: 4, lane_rate: 5.0, lane_open: 3, open: 6 }
}

#[test]
fn neighbours_share_a_limit_and_others_do_not() {
    let mut gate = Gate::new(Limits { open: 100, prefix_open: 100, ..limits() });
    for host in 0..10 {
        assert!(gate.knock(v4(1, host), true, Policy::Off, NOW).is_ok());
    }
    assert_eq!(gate.knock(v4(1, 99), true, Policy::Off, NOW), Err(Refusal::Prefix));
    assert!(gate.knock(v4(2, 1), true, Policy::Off, NOW).is_ok());
    let later = NOW + Duration::from_millis(100);
    assert!(gate.knock(v4(1, 99), true, Policy::Off, later).is_ok());
    assert_eq!(gate.knock(v4(1, 99), true, Policy::Off, later), Err(Refusal::Prefix));
}

#[test]
fn strangers_never_take_the_places_of_known_addresses() {
    let mut gate = Gate::new(limits());
    let passes: Vec<_> =
        (0..3).map(|prefix| gate.knock(v4(prefix, 1), false, Policy::Prefer, NOW).unwrap()).collect();
    assert!(passes.iter().all(|pass| pass.is_stranger()));
    assert_eq!(gate.knock(v4(9, 1), false, Policy::Prefer, NOW), Err(Refusal::Lane));
    let known = gate.knock(v4(9, 1), true, Policy::Prefer, NOW).unwrap();
    assert!(!known.is_stranger());
    for pass in passes {
        gate.leave(pass);
    }
    // Places are free again, and the rate still holds.
    assert!(gate.knock(v4(4, 1), false, Policy::Strict, NOW).is_ok());
    assert!(gate.knock(v4(5, 1), false, Policy::Strict, NOW).is_ok());
    assert_eq!(gate.knock(v4(6, 1), false, Policy::Strict, NOW), Err(Refusal::Lane));
    assert!(gate.knock(v4(6, 1), false, Policy::Off, NOW).is_ok());
}

#[test]
fn handshakes_under_way_are_bounded_and_given_back() {
    let mut gate = Gate::new(limits());
    let mut passes: Vec<_> =
        (0..6).map(|prefix| gate.knock(v4(prefix, 1), true, Policy::Off, NOW).unwrap()).collect();
    assert_eq!(gate.knock(v4(7, 1), true, Policy::Off, NOW), Err(Refusal::Full));
    gate.leave(passes.pop().unwrap());
    assert!(gate.knock(v4(7, 1), true, Policy::Off, NOW).is_ok());
}

#[test]
fn a_sweep_of_addresses_costs_a_bounded_table() {
    let mut gate = Gate::new(Limits { open: usize::MAX, ..limits() });
    for site in 0..3 * PREFIXES_MAX as u64 {
        let [.., a, b] = site.to_be_bytes();
        let from = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, u16::from_be_bytes([a, b]), 0, 0, 0, 0, 1));
        let now = NOW + Duration::from_millis(site);
        let pass = gate.knock(from, true, Policy::Off, now).unwrap();
        gate.leave(pass);
        assert!(gate.prefixes.len() <= PREFIXES_MAX);
    }
    assert_eq!(gate.open(), 0);
}

#[test]
fn an_address_has_one_prefix_in_both_spellings() {
    let mapped = Ipv4Addr::new(192, 0, 2, 7).to_ipv6_mapped();
    assert_eq!(prefix(IpAddr::V6(mapped)), prefix(v4(2, 200)));
}
