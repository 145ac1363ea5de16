//! Waiting for what comes about by itself.

use std::time::Duration;

use crate::live::ways::runtime;

/// Generous: it is about whether, not about when.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks again and again until there is an answer.
pub(crate) async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let runtime = runtime();
    let deadline = runtime.now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(runtime.now() < deadline, "in vain: {what}");
        runtime.sleep(Duration::from_millis(20)).await;
    }
}
