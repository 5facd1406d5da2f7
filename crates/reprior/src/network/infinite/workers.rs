//! Work shared out between threads; what each piece gives does not depend on who did it.

use std::sync::{Mutex, PoisonError};

/// Does `work` for every task, on at most `threads` threads of which the caller's is one. Tasks are handed out in their
/// order, each thread's with the one `state` that it made.
pub(super) fn for_each<T: Send, S>(
    threads: usize,
    tasks: impl ExactSizeIterator<Item = T> + Send,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, T) + Sync,
) {
    let helpers = threads.min(tasks.len()).saturating_sub(1);
    let tasks = Mutex::new(tasks);
    let worker = || {
        let mut state = state();
        loop {
            let task = tasks.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(task) = task else { break };
            work(&mut state, task);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..helpers {
            scope.spawn(worker);
        }
        worker();
    });
}
