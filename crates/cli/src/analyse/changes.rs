//! How long an answer takes to follow a change.

use std::time::Instant;

use bailey_access::{Access, Changes, Edit};

/// Takes bindings away and puts them back, spread over all that there are; seconds of each change.
pub fn measure(access: &mut Access, count: usize) -> Vec<f64> {
    let all = access.snapshot().clusters.first().map(|cluster| cluster.bindings.clone()).unwrap_or_default();
    let every = (all.len() / count.max(1)).max(1);
    let mut took = Vec::new();
    for binding in all.into_iter().step_by(every).take(count) {
        for edit in [Edit::Remove(binding.clone()), Edit::Put(binding)] {
            let changes = Changes { bindings: vec![edit], ..Changes::default() };
            let start = Instant::now();
            access.update(changes);
            took.push(start.elapsed().as_secs_f64());
        }
    }
    took
}
