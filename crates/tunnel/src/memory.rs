//! How much may be held for readers that do not read.
//!
//! Windows of HTTP/2 promise memory before it is needed, to each stream alike. Whoever holds most without moving is ended
//! once the sum is over its bound.

/// Bounds in bytes of what is received and not yet passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Of the process.
    pub process: usize,
    /// Of one cluster.
    pub cluster: usize,
}

impl Memory {
    /// For a gateway of many clusters.
    pub const GATEWAY: Self = Self { process: 1 << 30, cluster: 128 << 20 };
    /// For an agent: 32 readers that stand still with all that a window holds.
    pub const AGENT: Self = Self { process: 64 << 20, cluster: 64 << 20 };

    /// Picks the streams to end so that the bounds hold: those first that hold most.
    ///
    /// Only what has not moved since it was last looked at is ended, so a reader that is merely slow is spared.
    pub fn shed<C: Eq + Clone, S: Copy>(&self, held: &[Held<C, S>]) -> Vec<S> {
        let mut shed = Vec::new();
        let mut stalled: Vec<_> = held.iter().filter(|held| !held.moved && held.bytes > 0).collect();
        stalled.sort_by_key(|held| std::cmp::Reverse(held.bytes));
        let mut process: usize = held.iter().map(|held| held.bytes).sum();
        let mut gone: Vec<(&C, usize)> = Vec::new();
        for candidate in stalled {
            let freed =
                gone.iter().filter(|(cluster, _)| *cluster == &candidate.cluster).map(|(_, bytes)| bytes);
            let of_cluster: usize =
                held.iter().filter(|held| held.cluster == candidate.cluster).map(|held| held.bytes).sum();
            let of_cluster = of_cluster.saturating_sub(freed.sum());
            if process > self.process || of_cluster > self.cluster {
                process -= candidate.bytes;
                gone.push((&candidate.cluster, candidate.bytes));
                shed.push(candidate.stream);
            }
        }
        shed
    }
}

/// What is held for one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held<C, S> {
    /// Whose it is.
    pub cluster: C,
    /// Which it is.
    pub stream: S,
    /// Received and not passed on.
    pub bytes: usize,
    /// Whether anything was passed on since the last look.
    pub moved: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(cluster: u8, stream: u8, bytes: usize, moved: bool) -> Held<u8, u8> {
        Held { cluster, stream, bytes, moved }
    }

    #[test]
    fn those_that_hold_most_and_do_not_move_are_ended_until_it_fits() {
        let memory = Memory { process: 100, cluster: 60 };
        assert!(memory.shed(&[held(0, 0, 50, false), held(1, 1, 50, false)]).is_empty());
        let over =
            [held(0, 0, 40, false), held(0, 1, 30, false), held(1, 2, 20, false), held(1, 3, 20, true)];
        assert_eq!(memory.shed(&over), [0]);
        let all_over = [held(0, 0, 50, true), held(1, 1, 40, false), held(2, 2, 45, false)];
        assert_eq!(memory.shed(&all_over), [2]);
        assert!(memory.shed(&[held(0, 0, 500, true)]).is_empty(), "who moves is spared");
    }
}
