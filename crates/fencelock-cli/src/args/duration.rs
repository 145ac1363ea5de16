use std::time::Duration;

/// Reads `15s`, `1500ms`, `2h 30m` or `0`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    humantime::parse_duration(text)
        .map_err(|error| format!("{error}; durations look like 15s, 1500ms, 2h30m or 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_and_zero_needs_none() {
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert_eq!(duration("1500ms"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2h 30m"), Ok(Duration::from_secs(9000)));
        for wrong in ["15", "-1s", "soon", ""] {
            let refused = duration(wrong).unwrap_err();
            assert!(refused.contains("look like 15s"), "{wrong}: {refused}");
        }
    }
}
