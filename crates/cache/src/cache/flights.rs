//! Asks that many wait for and one makes.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

/// Asks under way. An ask is made by a task of its own, so it goes on whoever leaves.
#[derive(Debug)]
pub struct Flights<K, V>(Mutex<HashMap<K, watch::Receiver<Option<V>>>>);

impl<K, V> Default for Flights<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Flights<K, V> {
    /// Joins the ask for `key`, or becomes the one who has to make it, and tells everybody by the [`Landing`].
    pub fn board(self: &Arc<Self>, key: K) -> (watch::Receiver<Option<V>>, Option<Landing<K, V>>) {
        let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(receiver) = flights.get(&key) {
            return (receiver.clone(), None);
        }
        let (sender, receiver) = watch::channel(None);
        flights.insert(key.clone(), receiver.clone());
        (receiver, Some(Landing { flights: self.clone(), key, sender }))
    }
}

/// Ends an ask. Dropped without an answer, it lets the next try.
#[derive(Debug)]
pub struct Landing<K: Eq + Hash, V> {
    flights: Arc<Flights<K, V>>,
    key: K,
    sender: watch::Sender<Option<V>>,
}

impl<K: Eq + Hash, V> Landing<K, V> {
    pub fn land(self, answer: V) {
        // Those who come from now on ask anew; those who wait get this answer.
        self.clear();
        self.sender.send_replace(Some(answer));
    }

    fn clear(&self) {
        self.flights.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

impl<K: Eq + Hash, V> Drop for Landing<K, V> {
    fn drop(&mut self) {
        if self.sender.borrow().is_none() {
            self.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn many_wait_for_one_and_the_next_asks_anew() {
        let flights = Arc::new(Flights::<&str, u8>::default());
        let (mut first, landing) = flights.board("key");
        let (mut second, none) = flights.board("key");
        assert!(none.is_none());
        landing.unwrap().land(7);
        assert_eq!(*first.wait_for(Option::is_some).await.unwrap(), Some(7));
        assert_eq!(*second.wait_for(Option::is_some).await.unwrap(), Some(7));
        assert!(flights.board("key").1.is_some());
    }

    #[tokio::test]
    async fn an_ask_that_is_given_up_lets_the_next_try() {
        let flights = Arc::new(Flights::<&str, u8>::default());
        let (mut waiting, landing) = flights.board("key");
        drop(landing);
        assert!(waiting.wait_for(Option::is_some).await.is_err());
        assert!(flights.board("key").1.is_some());
    }
}
