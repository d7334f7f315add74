//! The same rules said with lists that are searched from end to end.

use super::*;

const MAX: u64 = 16 * BLOCK;

#[derive(Clone, Debug)]
pub enum Step {
    Adopt(u8, u64, Tick),
    Reserve(u64),
    Grow(usize, u64),
    Commit(usize, u8, u64, Tick),
    Cancel(usize),
    Hold(u8, Tick),
    Release(u8),
    Touch(u8, Tick),
    Pin(Vec<u8>),
    Trim,
    Removed(usize),
    Kept(usize, Tick),
    Vanished(u8),
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = 0u8..12;
    let size = prop_oneof![0..MAX / 3, 0..2 * MAX];
    let time = 0u64..40;
    let step = prop_oneof![
        1 => (name.clone(), size.clone(), time.clone()).prop_map(|(n, s, t)| Step::Adopt(n, s, t)),
        6 => size.clone().prop_map(Step::Reserve),
        1 => (0usize..4, size.clone()).prop_map(|(r, s)| Step::Grow(r, s)),
        4 => (0usize..4, name.clone(), size, time.clone()).prop_map(|(r, n, s, t)| Step::Commit(r, n, s, t)),
        1 => (0usize..4).prop_map(Step::Cancel),
        3 => (name.clone(), time.clone()).prop_map(|(n, t)| Step::Hold(n, t)),
        3 => name.clone().prop_map(Step::Release),
        2 => (name.clone(), time.clone()).prop_map(|(n, t)| Step::Touch(n, t)),
        1 => prop::collection::vec(name.clone(), 0..3).prop_map(Step::Pin),
        1 => Just(Step::Trim),
        6 => (0usize..4).prop_map(Step::Removed),
        1 => (0usize..4, time).prop_map(|(n, t)| Step::Kept(n, t)),
        1 => name.prop_map(Step::Vanished),
    ];
    prop::collection::vec(step, 0..60)
}

#[derive(Clone, Debug)]
struct Piece {
    name: Digest,
    bytes: u64,
    accessed: Tick,
    readers: u32,
    leaving: bool,
}

#[derive(Default)]
struct Lists {
    pieces: Vec<Piece>,
    reserved: Vec<u64>,
    pins: Vec<Digest>,
    /// Whether content that is larger than the limit was adopted at some time.
    adopted_too_much: bool,
}

impl Lists {
    fn used(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes).sum::<u64>() + self.reserved.iter().sum::<u64>()
    }

    fn leaving(&self) -> u64 {
        self.pieces.iter().filter(|piece| piece.leaving).map(|piece| piece.bytes).sum()
    }

    fn cold(&self) -> Vec<Piece> {
        let free = |piece: &&Piece| !piece.leaving && piece.readers == 0 && !self.pins.contains(&piece.name);
        let mut cold: Vec<_> = self.pieces.iter().filter(free).cloned().collect();
        cold.sort_by_key(|piece| (piece.accessed, piece.name));
        cold
    }

    fn of(&mut self, name: Digest) -> Option<&mut Piece> {
        self.pieces.iter_mut().find(|piece| piece.name == name)
    }

    fn condemn(&mut self, bytes: u64) -> Vec<Digest> {
        let mut victims = Vec::new();
        let mut sum = 0;
        for piece in self.cold() {
            if sum >= bytes {
                break;
            }
            sum += piece.bytes;
            victims.push(piece.name);
            self.of(piece.name).unwrap().leaving = true;
        }
        victims
    }

    /// The answer for `bytes` more, by its kind: granted, remove these, wait, none.
    fn room(&mut self, bytes: u64) -> Answer {
        let after = self.used() + bytes;
        if after <= MAX {
            return Answer::Granted;
        }
        if after - self.leaving() <= MAX {
            return Answer::Wait;
        }
        let over = after - MAX - self.leaving();
        if self.cold().iter().map(|piece| piece.bytes).sum::<u64>() < over {
            return Answer::None;
        }
        Answer::Remove(self.condemn(over))
    }

    fn adopt(&mut self, name: Digest, size: u64, accessed: Tick) {
        if self.of(name).is_none() {
            self.pieces.push(Piece { name, bytes: cost(size), accessed, readers: 0, leaving: false });
        }
    }

    fn read(&mut self, name: Digest, now: Tick, readers: u32) -> bool {
        match self.of(name) {
            Some(piece) if !piece.leaving => {
                piece.readers += readers;
                piece.accessed = piece.accessed.max(now);
                true
            }
            _ => false,
        }
    }
}

#[derive(Debug, PartialEq)]
enum Answer {
    Granted,
    Remove(Vec<Digest>),
    Wait,
    None,
}

fn answer(room: &Room) -> Answer {
    match room {
        Room::Granted(_) => Answer::Granted,
        Room::Remove(victims) => Answer::Remove(victims.clone()),
        Room::Wait => Answer::Wait,
        Room::None { .. } => Answer::None,
    }
}

pub fn compare(steps: &[Step]) -> Result<(), TestCaseError> {
    let mut budget = Budget::new(Limits::of(MAX));
    let mut lists = Lists::default();
    let mut open: Vec<Reservation> = Vec::new();
    for step in steps {
        apply(step, &mut budget, &mut lists, &mut open)?;
        prop_assert_eq!(budget.used_bytes(), lists.used(), "after {:?}", step);
        let cold = lists.cold();
        prop_assert_eq!(budget.evictable_bytes(), cold.iter().map(|piece| piece.bytes).sum::<u64>());
        let order: Vec<_> = budget.evictable.iter().map(|(_, name)| *name).collect();
        prop_assert_eq!(order, cold.iter().map(|piece| piece.name).collect::<Vec<_>>());
        prop_assert_eq!(budget.len(), lists.pieces.len());
        prop_assert_eq!(budget.leaving_bytes, lists.leaving());
        prop_assert!(budget.used_bytes() <= MAX || lists.adopted_too_much, "over the limit after {:?}", step);
    }
    Ok(())
}

fn apply(
    step: &Step,
    budget: &mut Budget,
    lists: &mut Lists,
    open: &mut Vec<Reservation>,
) -> Result<(), TestCaseError> {
    let leaving: Vec<_> = lists.pieces.iter().filter(|piece| piece.leaving).map(|piece| piece.name).collect();
    match step {
        Step::Adopt(name, size, time) => {
            budget.adopt(digest(*name), *size, *time);
            lists.adopt(digest(*name), *size, *time);
            lists.adopted_too_much |= lists.used() > MAX;
        }
        Step::Reserve(size) => {
            let room = budget.reserve(*size);
            prop_assert_eq!(answer(&room), lists.room(cost(*size)));
            if let Room::Granted(reservation) = room {
                lists.reserved.push(reservation.bytes());
                open.push(reservation);
            }
        }
        Step::Grow(n, size) if *n < open.len() => {
            let more = cost(*size).saturating_sub(open[*n].bytes());
            let room = budget.grow(&mut open[*n], *size);
            let expected = lists.room(more);
            prop_assert_eq!(room.as_ref().map_or(Answer::Granted, answer), expected);
            lists.reserved[*n] = open[*n].bytes();
        }
        Step::Commit(n, name, size, time) if *n < open.len() => {
            let bytes = lists.reserved.remove(*n);
            let fits = cost(*size) <= bytes && lists.of(digest(*name)).is_none();
            prop_assert_eq!(budget.commit(open.remove(*n), digest(*name), *size, *time), fits);
            if fits {
                lists.adopt(digest(*name), *size, *time);
            }
        }
        Step::Cancel(n) if *n < open.len() => {
            lists.reserved.remove(*n);
            budget.cancel(open.remove(*n));
        }
        Step::Hold(name, time) => {
            prop_assert_eq!(budget.hold(&digest(*name), *time), lists.read(digest(*name), *time, 1));
        }
        Step::Release(name) => {
            budget.release(&digest(*name));
            if let Some(piece) = lists.of(digest(*name)) {
                piece.readers = piece.readers.saturating_sub(1);
            }
        }
        Step::Touch(name, time) => {
            budget.touch(&digest(*name), *time);
            lists.read(digest(*name), *time, 0);
        }
        Step::Pin(names) => {
            let pins: HashSet<_> = names.iter().map(|name| digest(*name)).collect();
            lists.pins = pins.iter().copied().collect();
            budget.set_pins(pins);
        }
        Step::Trim => {
            let after = lists.used() - lists.leaving();
            let limits = budget.limits();
            let victims =
                if after > limits.high_bytes { lists.condemn(after - limits.low_bytes) } else { Vec::new() };
            prop_assert_eq!(budget.trim(), victims);
        }
        Step::Removed(n) if *n < leaving.len() => {
            budget.removed(&leaving[*n]);
            lists.pieces.retain(|piece| piece.name != leaving[*n]);
        }
        Step::Kept(n, time) if *n < leaving.len() => {
            budget.kept(&leaving[*n], *time);
            let piece = lists.of(leaving[*n]).unwrap();
            piece.leaving = false;
            piece.accessed = piece.accessed.max(*time);
        }
        Step::Vanished(name) => {
            budget.removed(&digest(*name));
            lists.pieces.retain(|piece| piece.name != digest(*name));
        }
        _ => {}
    }
    Ok(())
}
