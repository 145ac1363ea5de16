//! What a case finds out about the schema. A fault that is planted into it has to be found out by a
//! case, so that cases answer instead of panicking.

use std::future::Future;

use super::server::Database;

/// What is wrong, if anything is.
pub(crate) type Verdict = Result<(), String>;

/// Ends a case unless the condition holds.
macro_rules! holds {
    ($condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err(format!($($what)+));
        }
    };
}
pub(crate) use holds;

/// Makes a test of each case.
macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        mod cases {
            $(
                #[test]
                fn $case() {
                    crate::sql::support::passes(super::$case);
                }
            )+
        }
    };
}
pub(crate) use cases;

/// Waits for a future of a test.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}

/// Runs a case on the schema as it is.
pub(crate) fn passes(case: impl AsyncFn(&Database) -> Verdict) {
    let database = Database::new();
    let verdict = block_on(case(&database));
    assert_eq!(verdict, Ok(()));
}
