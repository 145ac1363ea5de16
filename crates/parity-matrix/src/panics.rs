//! What scenarios find wrong they panic with. It is kept for the report instead of printed.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt;

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// From now on a panic prints nothing.
pub(crate) fn keep_quiet() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        LAST.with(|last| *last.borrow_mut() = text);
    }));
}

/// What `story` answers, or what it panicked with.
pub(crate) fn caught<T>(story: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(story)).map_err(|_| last())
}

/// What `story` answers, or what it panicked with.
pub(crate) async fn caught_in<T>(story: impl Future<Output = T>) -> Result<T, String> {
    let answer = AssertUnwindSafe(story).catch_unwind().await;
    answer.map_err(|_| last())
}

fn last() -> String {
    LAST.with(|last| last.borrow().clone())
}
