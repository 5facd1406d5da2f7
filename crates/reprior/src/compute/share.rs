//! Work shared out between threads that live as long as it lasts; for phases shorter than a thread's start there is
//! [`Team`](super::Team).

use std::sync::{Mutex, PoisonError};

/// Has every task worked on, in their order, by one thread for each of `states`, of which the caller's is the first: no more
/// threads than tasks. Which thread does what is left open: what a task gives must not depend on the state.
pub(crate) fn share<S: Send, T: Send>(
    states: impl IntoIterator<Item = S>,
    tasks: impl ExactSizeIterator<Item = T> + Send,
    work: impl Fn(&mut S, T) + Sync,
) {
    let helpers = tasks.len().saturating_sub(1);
    let tasks = Mutex::new(tasks);
    let serve = |mut state: S| {
        loop {
            let task = tasks.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(task) = task else { break };
            work(&mut state, task);
        }
    };
    let mut states = states.into_iter();
    let Some(own) = states.next() else { return };
    std::thread::scope(|scope| {
        for state in states.take(helpers) {
            let serve = &serve;
            scope.spawn(move || serve(state));
        }
        serve(own);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_is_worked_on_once() {
        let mut workers = vec![Vec::new(); 3];
        share(workers.iter_mut(), 0..20, |worker, task| worker.push(task));
        let mut all = workers.concat();
        all.sort_unstable();
        assert_eq!(all, (0..20).collect::<Vec<i32>>());
        let mut squares = vec![0; 7];
        share([(), ()], squares.iter_mut().enumerate(), |(), (at, out)| {
            *out = at * at
        });
        assert_eq!(squares, [0, 1, 4, 9, 16, 25, 36]);
    }
}
