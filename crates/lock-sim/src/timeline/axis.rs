use std::time::Duration;

use super::window::Window;

/// The steps between marks that people read easily, in milliseconds.
const STEPS: [u64; 15] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000,
];

/// Marks of the axis of time, at most so many.
pub(super) fn marks(window: Window, most: u64) -> Vec<(Duration, String)> {
    let length = u64::try_from(window.length().as_millis()).unwrap_or(u64::MAX);
    let fits = |step: &&u64| length / **step < most;
    let step = STEPS
        .iter()
        .find(fits)
        .copied()
        .unwrap_or(length / most + 1);
    let from = u64::try_from(window.from.as_millis()).unwrap_or(u64::MAX);
    let first = from.div_ceil(step) * step;
    let mut marks = Vec::new();
    let mut at = first;
    while Duration::from_millis(at) <= window.to {
        marks.push((Duration::from_millis(at), label(at, step)));
        at += step;
    }
    marks
}

fn label(millis: u64, step: u64) -> String {
    let (seconds, rest) = (millis / 1000, millis % 1000);
    match step {
        1_000.. => format!("{seconds} s"),
        100.. => format!("{seconds}.{} s", rest / 100),
        _ => format!("{seconds}.{rest:03} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(from: u64, to: u64) -> Vec<String> {
        let window = Window {
            from: Duration::from_millis(from),
            to: Duration::from_millis(to),
        };
        marks(window, 5)
            .into_iter()
            .map(|(_, label)| label)
            .collect()
    }

    #[test]
    fn marks_stand_at_round_times() {
        assert_eq!(labels(0, 10_000), ["0 s", "5 s", "10 s"]);
        assert_eq!(labels(1_050, 1_400), ["1.1 s", "1.2 s", "1.3 s", "1.4 s"]);
        assert_eq!(
            labels(90, 110),
            ["0.090 s", "0.095 s", "0.100 s", "0.105 s", "0.110 s"]
        );
        assert_eq!(labels(0, 3_600_000).len(), 5);
    }
}
