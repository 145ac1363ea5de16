//! Finds the least part of a history that still shows a disagreement, and tells it as a test.

use super::call::Call;

/// The least part of `history` that `fails`, by leaving out larger parts and then smaller ones.
pub fn shrink(history: &[Call], mut fails: impl FnMut(&[Call]) -> bool) -> Vec<Call> {
    let mut left = history.to_vec();
    let mut part = left.len().div_ceil(2);
    while part > 0 {
        let mut at = 0;
        let before = left.len();
        while at < left.len() {
            let end = left.len().min(at + part);
            let without: Vec<_> = left[..at].iter().chain(&left[end..]).copied().collect();
            match fails(&without) {
                true => left = without,
                false => at = end,
            }
        }
        // What was needed only by what is gone by now goes in another round.
        if part > 1 || left.len() == before {
            part /= 2;
        }
    }
    left
}

/// A history as a test in Rust.
#[must_use]
pub fn as_test(history: &[Call]) -> String {
    let mut test = String::from(
        "#[test]\nfn a_store_and_the_model_agree() {\n    \
         use lock_spi::Queue::*;\n    \
         use parity_tests::histories::{Call::*, Lists::*, Target::*, play, wish};\n    \
         let history = [\n",
    );
    for call in history {
        test.push_str(&format!("        {call:?},\n"));
    }
    test.push_str(
        "    ];\n    \
         // A fresh deployment, and whatever drives its futures.\n    \
         on_a_fresh_deployment(|deployment| async move {\n        \
         if let Err(disagreement) = play(deployment, &history).await {\n            \
         panic!(\"{disagreement}\");\n        }\n    });\n}\n",
    );
    test
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_what_matters() {
        let history: Vec<_> = (0..60).map(Call::Pass).collect();
        let needed = [Call::Pass(7), Call::Pass(31), Call::Pass(59)];
        let fails = |part: &[Call]| needed.iter().all(|call| part.contains(call));
        assert_eq!(shrink(&history, fails), needed);
        assert_eq!(shrink(&history, |_| true), []);
    }
}
