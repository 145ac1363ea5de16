//! Times and durations as people and machines read them.

use std::time::{Duration, SystemTime};

/// A moment since the Unix epoch, to the second, in UTC.
pub(crate) fn moment(since_epoch: Duration) -> String {
    match SystemTime::UNIX_EPOCH.checked_add(since_epoch) {
        // Its end is the year 9999, past which it panics.
        Some(at) if since_epoch < Duration::from_secs(253_402_300_800) => {
            humantime::format_rfc3339_seconds(at).to_string()
        }
        _ => format!("{} s after 1970", since_epoch.as_secs()),
    }
}

/// A duration for people: nothing below a tenth of a second.
pub(crate) fn brief(duration: Duration) -> String {
    let tenths = (duration.as_millis() + 50) / 100;
    match tenths {
        0..100 => format!("{}.{} s", tenths / 10, tenths % 10),
        _ => {
            let whole = u64::try_from((tenths + 5) / 10).unwrap_or(u64::MAX);
            humantime::format_duration(Duration::from_secs(whole)).to_string()
        }
    }
}

/// Milliseconds, as far as a machine's number goes.
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What is not known is a dash.
pub(crate) fn or_dash(text: Option<impl ToString>) -> String {
    text.map_or_else(|| "-".to_owned(), |text| text.to_string())
}

/// What others have written, on one line and without what would move a terminal's cursor.
pub(crate) fn one_line(text: &str) -> String {
    let harmless = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().map(harmless).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_brief() {
        for (milliseconds, text) in [
            (0, "0.0 s"),
            (1_249, "1.2 s"),
            (9_949, "9.9 s"),
            (9_960, "10s"),
            (61_900, "1m 2s"),
            (86_400_000, "1day"),
        ] {
            assert_eq!(brief(Duration::from_millis(milliseconds)), text);
        }
    }

    #[test]
    fn a_moment_that_nobody_can_mean_does_no_harm() {
        assert_eq!(moment(Duration::ZERO), "1970-01-01T00:00:00Z");
        assert!(moment(Duration::MAX).ends_with("after 1970"));
        assert!(moment(Duration::from_secs(1 << 40)).ends_with("after 1970"));
    }

    /// What a holder shows is written by others.
    #[test]
    fn text_of_others_cannot_move_the_cursor() {
        assert_eq!(one_line("a\x1b[2Jb\nc"), "a\u{fffd}[2Jb\u{fffd}c");
    }
}
