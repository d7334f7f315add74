//! What may be on the disk: reservations for fills in flight, committed content, and what goes to make room.
//!
//! A model only: it says which files to remove and whether a fill may start; the store does it. Content is removed in
//! order of its last access, coldest first; what is pinned or held by a reader is skipped and nothing else.
//!
//! INVARIANT: `used` is the sum of reservations, of committed content and of content whose removal was asked for and
//! not yet reported. A reservation is granted only while `used` stays within `bytes_max`, so as long as the store
//! writes no more than it reserved, the disk holds no more than that.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::digest::Digest;

/// The unit in which file systems hand out space; sizes are rounded up to it.
pub const BLOCK_BYTES: u64 = 4096;

/// When something was last read, in any unit that grows, such as milliseconds since the epoch.
pub type Tick = u64;

/// How much the disk may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Never more than this, fills in flight included.
    pub bytes_max: u64,
    /// Above this, [`Budget::trim`] removes what is cold …
    pub high_bytes: u64,
    /// … until no more than this is used.
    pub low_bytes: u64,
}

impl Limits {
    /// Starts trimming at 90 % and stops at 80 %.
    pub fn of(bytes_max: u64) -> Self {
        let percent = |share: u64| (bytes_max / 100).saturating_mul(share);
        Self { bytes_max, high_bytes: percent(90), low_bytes: percent(80) }
    }
}

/// The model of one store.
#[derive(Debug)]
pub struct Budget {
    limits: Limits,
    entries: HashMap<Digest, Entry>,
    /// Content that may go, coldest first.
    evictable: BTreeSet<(Tick, Digest)>,
    evictable_bytes: u64,
    leaving_bytes: u64,
    committed_bytes: u64,
    reserved_bytes: u64,
    pins: HashSet<Digest>,
    touched: HashSet<Digest>,
}

#[derive(Debug)]
struct Entry {
    bytes: u64,
    accessed: Tick,
    readers: u32,
    leaving: bool,
}

/// Room for one fill. Given back by [`Budget::commit`] or [`Budget::cancel`], never by being dropped.
#[must_use = "room that is neither committed nor cancelled is lost until the next start"]
#[derive(Debug, PartialEq, Eq)]
pub struct Reservation {
    bytes: u64,
}

impl Reservation {
    /// How many bytes the fill may write.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// What to do about a fill that wants to start.
#[derive(Debug, PartialEq, Eq)]
pub enum Room {
    /// Start it.
    Granted(Reservation),
    /// Remove these files first, report each by [`Budget::removed`] or [`Budget::kept`], then ask again.
    Remove(Vec<Digest>),
    /// Removals that somebody else was asked for make enough room: ask again when they are reported.
    Wait,
    /// Not even the removal of all that may go would make room: stream past the disk.
    None { wanted_bytes: u64, attainable_bytes: u64 },
}

impl Budget {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            entries: HashMap::new(),
            evictable: BTreeSet::new(),
            evictable_bytes: 0,
            leaving_bytes: 0,
            committed_bytes: 0,
            reserved_bytes: 0,
            pins: HashSet::new(),
            touched: HashSet::new(),
        }
    }

    /// Takes over content that is on the disk already, as found at start.
    ///
    /// It may be more than the limit, when that was lowered; [`Self::trim`] then says what goes. Does nothing for
    /// content that is known.
    pub fn adopt(&mut self, digest: Digest, size: u64, accessed: Tick) {
        if self.entries.contains_key(&digest) {
            return;
        }
        let bytes = cost(size);
        self.committed_bytes = self.committed_bytes.saturating_add(bytes);
        self.entries.insert(digest, Entry { bytes, accessed, readers: 0, leaving: false });
        self.settle(&digest);
    }

    /// Asks for room for a fill of `size` bytes.
    pub fn reserve(&mut self, size: u64) -> Room {
        let bytes = cost(size);
        match self.make_room(bytes) {
            Ok(()) => {
                self.reserved_bytes = self.reserved_bytes.saturating_add(bytes);
                Room::Granted(Reservation { bytes })
            }
            Err(room) => room,
        }
    }

    /// Asks that a reservation be for `size` bytes in all: for fills whose length the upstream does not say.
    ///
    /// Returns None when that is granted, or what else to do; the reservation then stays as it was.
    pub fn grow(&mut self, reservation: &mut Reservation, size: u64) -> Option<Room> {
        let more = cost(size).saturating_sub(reservation.bytes);
        match self.make_room(more) {
            Ok(()) => {
                self.reserved_bytes = self.reserved_bytes.saturating_add(more);
                reservation.bytes = reservation.bytes.saturating_add(more);
                None
            }
            Err(room) => Some(room),
        }
    }

    /// Makes a fill that is complete and right into content; what it reserved beyond `size` is free again.
    ///
    /// False when the content is there already or the fill is larger than what it reserved: then the room is given
    /// back, and the caller removes the file of the fill.
    pub fn commit(&mut self, reservation: Reservation, digest: Digest, size: u64, now: Tick) -> bool {
        let bytes = cost(size);
        let fits = bytes <= reservation.bytes && !self.entries.contains_key(&digest);
        self.cancel(reservation);
        if fits {
            self.adopt(digest, size, now);
            self.touched.insert(digest);
        }
        fits
    }

    /// Gives the room of a fill back, once its file is gone.
    pub fn cancel(&mut self, reservation: Reservation) {
        self.reserved_bytes = self.reserved_bytes.saturating_sub(reservation.bytes);
    }

    /// Notes that content is read, and keeps it from being removed until [`Self::release`].
    ///
    /// False when it is not here or on its way out: then there is nothing to read, or not for long.
    pub fn hold(&mut self, digest: &Digest, now: Tick) -> bool {
        let Some(entry) = self.entries.get(digest) else { return false };
        if entry.leaving || entry.readers == u32::MAX {
            return false;
        }
        self.unsettle(digest);
        if let Some(entry) = self.entries.get_mut(digest) {
            entry.readers += 1;
            entry.accessed = entry.accessed.max(now);
        }
        self.touched.insert(*digest);
        self.settle(digest);
        true
    }

    /// Ends one [`Self::hold`].
    pub fn release(&mut self, digest: &Digest) {
        self.unsettle(digest);
        if let Some(entry) = self.entries.get_mut(digest) {
            entry.readers = entry.readers.saturating_sub(1);
        }
        self.settle(digest);
    }

    /// Notes an access that holds nothing, such as a HEAD. An earlier time than is known changes nothing.
    pub fn touch(&mut self, digest: &Digest, now: Tick) {
        if self.hold(digest, now) {
            self.release(digest);
        }
    }

    /// The access times that changed since they were last taken, to be written down in one go.
    pub fn take_touched(&mut self) -> Vec<(Digest, Tick)> {
        let touched = std::mem::take(&mut self.touched);
        let time = |digest: Digest| self.entries.get(&digest).map(|entry| (digest, entry.accessed));
        let mut times: Vec<_> = touched.into_iter().filter_map(time).collect();
        times.sort_unstable();
        times
    }

    /// Says what is never removed to make room, whether it is here yet or not. Replaces what was said before.
    pub fn set_pins(&mut self, pins: HashSet<Digest>) {
        let before = std::mem::take(&mut self.pins);
        let changed: Vec<_> = before.symmetric_difference(&pins).copied().collect();
        for digest in &changed {
            self.unsettle_as(digest, before.contains(digest));
        }
        self.pins = pins;
        for digest in &changed {
            self.settle(digest);
        }
    }

    pub fn is_pinned(&self, digest: &Digest) -> bool {
        self.pins.contains(digest)
    }

    /// What is to be removed now because more than `high_bytes` is used: the coldest, until `low_bytes` is.
    ///
    /// Each is to be reported by [`Self::removed`] or [`Self::kept`].
    pub fn trim(&mut self) -> Vec<Digest> {
        let after = self.used_bytes().saturating_sub(self.leaving_bytes);
        if after <= self.limits.high_bytes {
            return Vec::new();
        }
        self.condemn(after.saturating_sub(self.limits.low_bytes))
    }

    /// What is to be removed because the disk is full though the model has room: the coldest, up to `bytes` of them.
    ///
    /// Each is to be reported by [`Self::removed`] or [`Self::kept`].
    pub fn relieve(&mut self, bytes: u64) -> Vec<Digest> {
        self.condemn(bytes)
    }

    /// Reports that content is gone, whether its removal was asked for or not.
    pub fn removed(&mut self, digest: &Digest) {
        self.unsettle(digest);
        if let Some(entry) = self.entries.remove(digest) {
            self.committed_bytes = self.committed_bytes.saturating_sub(entry.bytes);
            if entry.leaving {
                self.leaving_bytes = self.leaving_bytes.saturating_sub(entry.bytes);
            }
        }
        self.touched.remove(digest);
    }

    /// Reports that content could not be removed. It counts as read just now, so that others are tried before it.
    pub fn kept(&mut self, digest: &Digest, now: Tick) {
        if let Some(entry) = self.entries.get_mut(digest).filter(|entry| entry.leaving) {
            entry.leaving = false;
            entry.accessed = entry.accessed.max(now);
            self.leaving_bytes = self.leaving_bytes.saturating_sub(entry.bytes);
            self.settle(digest);
        }
    }

    /// What counts against the limit, in whole blocks.
    pub fn used_bytes(&self) -> u64 {
        self.committed_bytes.saturating_add(self.reserved_bytes)
    }

    /// What of it is held for fills in flight.
    pub fn reserved_bytes(&self) -> u64 {
        self.reserved_bytes
    }

    /// What of it is neither pinned, nor read, nor on its way out.
    pub fn evictable_bytes(&self) -> u64 {
        self.evictable_bytes
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// How many pieces of content there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn contains(&self, digest: &Digest) -> bool {
        self.entries.get(digest).is_some_and(|entry| !entry.leaving)
    }

    fn make_room(&mut self, bytes: u64) -> Result<(), Room> {
        let needed = self.used_bytes().saturating_add(bytes);
        if needed <= self.limits.bytes_max {
            return Ok(());
        }
        let over = needed.saturating_sub(self.limits.bytes_max).saturating_sub(self.leaving_bytes);
        if over == 0 {
            return Err(Room::Wait);
        }
        if over > self.evictable_bytes {
            let may_go = self.evictable_bytes.saturating_add(self.leaving_bytes);
            let fixed = self.used_bytes().saturating_sub(may_go);
            let attainable_bytes = self.limits.bytes_max.saturating_sub(fixed);
            return Err(Room::None { wanted_bytes: bytes, attainable_bytes });
        }
        Err(Room::Remove(self.condemn(over)))
    }

    /// Marks the coldest as leaving until `bytes` of them are.
    fn condemn(&mut self, bytes: u64) -> Vec<Digest> {
        let mut victims = Vec::new();
        let mut found = 0u64;
        while found < bytes
            && let Some((_, digest)) = self.evictable.first().copied()
        {
            self.unsettle(&digest);
            if let Some(entry) = self.entries.get_mut(&digest) {
                entry.leaving = true;
                found = found.saturating_add(entry.bytes);
                self.leaving_bytes = self.leaving_bytes.saturating_add(entry.bytes);
            }
            victims.push(digest);
        }
        victims
    }

    /// Puts an entry among the evictable, if it is.
    fn settle(&mut self, digest: &Digest) {
        if let Some(entry) = self.entries.get(digest)
            && entry.is_evictable(self.pins.contains(digest))
            && self.evictable.insert((entry.accessed, *digest))
        {
            self.evictable_bytes = self.evictable_bytes.saturating_add(entry.bytes);
        }
    }

    /// Takes an entry from among the evictable, before it changes.
    fn unsettle(&mut self, digest: &Digest) {
        self.unsettle_as(digest, self.pins.contains(digest));
    }

    fn unsettle_as(&mut self, digest: &Digest, pinned: bool) {
        if let Some(entry) = self.entries.get(digest)
            && entry.is_evictable(pinned)
            && self.evictable.remove(&(entry.accessed, *digest))
        {
            self.evictable_bytes = self.evictable_bytes.saturating_sub(entry.bytes);
        }
    }
}

impl Entry {
    fn is_evictable(&self, pinned: bool) -> bool {
        !pinned && !self.leaving && self.readers == 0
    }
}

/// What a file of `size` bytes takes on the disk; an empty one takes a block for its name.
fn cost(size: u64) -> u64 {
    size.max(1).checked_next_multiple_of(BLOCK_BYTES).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
