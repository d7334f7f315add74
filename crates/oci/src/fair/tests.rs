use super::*;

/// Serves `count` wishes; says how many of each party.
fn serve(queue: &mut Fair<char>, parties: &mut HashMap<Ticket, char>, count: usize) -> String {
    let mut served = String::new();
    for _ in 0..count {
        let Some(ticket) = queue.first() else { break };
        queue.served(ticket);
        served.push(parties.remove(&ticket).unwrap());
    }
    served
}

fn enter(queue: &mut Fair<char>, parties: &mut HashMap<Ticket, char>, party: char, count: usize, cost: u64) {
    for _ in 0..count {
        parties.insert(queue.enter(party, cost), party);
    }
}

#[test]
fn one_that_comes_late_and_wants_little_does_not_wait_for_one_that_wants_much() {
    let (mut queue, mut parties) = (Fair::default(), HashMap::new());
    enter(&mut queue, &mut parties, 'a', 1000, 1);
    assert_eq!(serve(&mut queue, &mut parties, 100).len(), 100);
    enter(&mut queue, &mut parties, 'b', 3, 1);
    let served = serve(&mut queue, &mut parties, 7);
    assert_eq!(served.matches('b').count(), 3, "{served}");
}

#[test]
fn shares_are_of_what_wishes_cost() {
    let (mut queue, mut parties) = (Fair::default(), HashMap::new());
    enter(&mut queue, &mut parties, 'a', 100, 10);
    enter(&mut queue, &mut parties, 'b', 100, 5);
    let served = serve(&mut queue, &mut parties, 60);
    let count = |party| served.matches(party).count();
    assert!((19..=21).contains(&count('a')) && (39..=41).contains(&count('b')), "{served}");
}

#[test]
fn what_was_not_used_while_away_is_not_owed_later() {
    let (mut queue, mut parties) = (Fair::default(), HashMap::new());
    enter(&mut queue, &mut parties, 'a', 200, 1);
    serve(&mut queue, &mut parties, 100);
    enter(&mut queue, &mut parties, 'b', 100, 1);
    let served = serve(&mut queue, &mut parties, 50);
    assert!(served.matches('a').count() >= 24, "{served}");
}

#[test]
fn who_leaves_is_passed_over_and_parties_are_forgotten() {
    let mut queue = Fair::default();
    let first = queue.enter('a', 1);
    let second = queue.enter('b', 1);
    queue.left(first);
    assert_eq!((queue.first(), queue.len()), (Some(second), 1));
    queue.served(second);
    let third = queue.enter('c', 1);
    queue.served(third);
    for _ in 0..3 {
        let ticket = queue.enter('c', 1);
        queue.served(ticket);
    }
    assert!(queue.is_empty() && queue.after.len() == 1);
}

#[test]
fn a_rate_is_kept_over_time_and_waits_are_told() {
    let at = |millis| Duration::from_millis(millis);
    let mut rate = Rate::new(10.0, 5.0);
    assert_eq!(rate.take(at(0), 5.0), Ok(()));
    assert_eq!(rate.take(at(0), 1.0), Err(at(100)));
    assert_eq!(rate.take(at(100), 1.0), Ok(()));
    // More than the burst is owed.
    assert_eq!(rate.take(at(10_000), 20.0), Ok(()));
    assert_eq!(rate.take(at(10_000), 1.0), Err(at(1600)));
    // A clock that is set back gives nothing.
    assert!(rate.take(at(5_000), 1.0).is_err());
}
