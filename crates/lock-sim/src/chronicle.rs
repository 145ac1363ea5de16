//! Where everything that happens is written down, and judged at once.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use sim_runtime::Processes;

use crate::check::{Bounds, Checkers, Violation};
use crate::record::{CallId, Entry, FaultName, Lane, Record, What};

/// A handle to the record of one run.
#[derive(Clone, Debug)]
pub(crate) struct Chronicle(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    processes: Processes,
    book: Mutex<Book>,
}

#[derive(Debug)]
struct Book {
    record: Record,
    checkers: Checkers,
    /// On whose behalf the cluster is at work.
    actor: Lane,
    calls: u64,
    entries: u64,
    most_entries: u64,
    /// Of whoever waits for the run to be over early.
    alarmed: Option<Waker>,
}

impl Book {
    /// What comes now is of no interest any more.
    fn is_over(&self) -> bool {
        !self.checkers.violations().is_empty() || self.entries > self.most_entries
    }
}

impl Chronicle {
    pub(crate) fn new(
        processes: Processes,
        bounds: Bounds,
        record: Record,
        most_entries: Option<u64>,
    ) -> Self {
        let book = Book {
            record,
            checkers: Checkers::new(bounds),
            actor: Lane::Server,
            calls: 0,
            entries: 0,
            most_entries: most_entries.unwrap_or(u64::MAX),
            alarmed: None,
        };
        Self(Arc::new(Inner {
            processes,
            book: Mutex::new(book),
        }))
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn processes(&self) -> &Processes {
        &self.0.processes
    }

    /// Writes down what happens now.
    pub(crate) fn note(&self, lane: &Lane, what: What) {
        let entry = Entry {
            at: self.0.processes.elapsed(),
            lane: lane.clone(),
            what,
        };
        let mut book = self.book();
        book.entries += 1;
        book.checkers.observe(&entry);
        book.record.push(entry);
        Self::alarm(book);
    }

    /// Wakes whoever waits for the run to be over early, if it is.
    fn alarm(mut book: MutexGuard<'_, Book>) {
        if !book.is_over() {
            return;
        }
        let alarmed = book.alarmed.take();
        // Not under the lock: a waker may be the last to hold something that writes down its end.
        drop(book);
        if let Some(waker) = alarmed {
            waker.wake();
        }
    }

    /// Resolves when something has gone wrong, or more was written down than is wanted.
    pub(crate) async fn over(&self) {
        std::future::poll_fn(|context| {
            let mut book = self.book();
            if book.is_over() {
                return Poll::Ready(());
            }
            let before = book.alarmed.replace(context.waker().clone());
            drop(book);
            drop(before);
            Poll::Pending
        })
        .await;
    }

    pub(crate) fn happened(&self, lane: &Lane, fault: FaultName) {
        self.note(lane, What::FaultHappened(fault));
    }

    /// A name for a call that no other has.
    pub(crate) fn name_call(&self) -> CallId {
        let mut book = self.book();
        book.calls += 1;
        CallId(book.calls)
    }

    /// On whose behalf the cluster is at work.
    pub(crate) fn actor(&self) -> Lane {
        self.book().actor.clone()
    }

    /// Polls `work` on behalf of somebody.
    pub(crate) async fn on_behalf<T>(&self, lane: &Lane, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        std::future::poll_fn(move |context| {
            let before = std::mem::replace(&mut self.book().actor, lane.clone());
            let polled: Poll<T> = work.as_mut().poll(context);
            self.book().actor = before;
            polled
        })
        .await
    }

    /// Adds what was found wrong elsewhere.
    pub(crate) fn add(&self, violation: Violation) {
        let mut book = self.book();
        book.checkers.add(violation);
        Self::alarm(book);
    }

    /// Judges what is left, and hands everything over.
    pub(crate) fn close(&self) -> (Record, Checkers) {
        let mut book = self.book();
        book.checkers.finish();
        let bounds = book.checkers.bounds();
        (
            std::mem::take(&mut book.record),
            std::mem::replace(&mut book.checkers, Checkers::new(bounds)),
        )
    }

    /// How much was written down so far.
    pub(crate) fn entries(&self) -> u64 {
        self.book().entries
    }
}
