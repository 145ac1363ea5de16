//! Histories on the embedded store and on the plain one agree with the model, and one that does not
//! is shrunk to what matters.

#[path = "../../store-etcd/tests/deployment/mod.rs"]
mod deployment;
mod embedded;

use std::sync::Arc;

use parity_tests::Deployment;
use parity_tests::histories::{Call, Disagreement, Mix, as_test, draw, play, shrink};
use parity_tests::liars::{LIES, Lie, LyingDeployment};

use crate::embedded::embedded;

/// So many of each kind are played.
const SEEDS: u64 = 2_000;

fn agrees(seed: u64, history: &[Call], lie: Option<Lie>) -> Result<(), Box<Disagreement>> {
    embedded(seed, |deployment| {
        play(Arc::new(LyingDeployment::new(deployment, lie)), history)
    })
}

fn on_a_fresh_deployment<S: Future>(story: impl FnOnce(Arc<dyn Deployment>) -> S) -> S::Output {
    embedded(0, |deployment| story(Arc::new(deployment)))
}

/// Plays the histories of all seeds; of the first that shows a disagreement, the least part.
fn all_agree(mix: Mix) {
    for seed in 0..SEEDS {
        let history = draw(seed, mix);
        if let Err(disagreement) = agrees(seed, &history, None) {
            let least = shrink(&history, |part| agrees(seed, part, None).is_err());
            panic!("seed {seed}: {disagreement}\n{}", as_test(&least));
        }
    }
}

#[test]
fn timeless_histories_agree_with_the_model() {
    all_agree(Mix::Timeless);
}

#[test]
fn histories_in_which_time_passes_agree_with_the_model() {
    all_agree(Mix::Timed);
}

/// Lies that no history can show: its calls come one after the other and are answered, its keys and
/// payloads are plain, no session changes hands, and nobody recovers the store.
const BEYOND_HISTORIES: &[Lie] = &[
    Lie::StopsWhenDropped,
    Lie::TakesSilenceForLoss,
    Lie::TakesSilenceForAnEnd,
    Lie::TakesSilenceForHeld,
    Lie::TakesSilenceForNotHeld,
    Lie::ClaimsNoEffect,
    Lie::RevivesLateInserts,
    Lie::EmptiesAdoptedSessions,
    Lie::AdoptsWhatIsGone,
    Lie::AdoptsOnce,
    Lie::LeavesATraceOfWaiting,
    Lie::ExtendsOneAtATime,
    Lie::LeavesATraceOfReading,
    Lie::LosesPayloads,
    Lie::FoldsCase,
    Lie::ListsByPathSegment,
    Lie::IgnoresTerms,
    Lie::OpensWhileClosed,
    Lie::RecoversAgain,
];

/// The first disagreement that a lie leads to, shrunk.
fn least_history_that_shows(lie: Lie) -> Option<Vec<Call>> {
    let disagrees = |seed, history: &[Call]| agrees(seed, history, Some(lie)).is_err();
    (0..200).find_map(|seed| {
        let history = draw(seed, Mix::Timed);
        disagrees(seed, &history).then(|| shrink(&history, |part| disagrees(seed, part)))
    })
}

#[test]
fn a_lie_shows_and_is_shrunk_to_ten_calls_at_most() {
    let mut unseen = Vec::new();
    for caught in LIES {
        match least_history_that_shows(caught.lie) {
            Some(least) => {
                let told = as_test(&least);
                assert!(least.len() <= 10, "{:?}:\n{told}", caught.lie);
            }
            None => unseen.push(caught.lie),
        }
    }
    assert_eq!(unseen, BEYOND_HISTORIES);
}

/// What is printed can be pasted: here it is.
mod pasted {
    use super::*;

    #[test]
    fn a_store_and_the_model_agree() {
        use lock_spi::Queue::*;
        use parity_tests::histories::{Call::*, Lists::*, Target::*, play, wish};
        let history = [
            Open(0),
            Insert(wish(0, 1, 2), Join),
            Keep(0, Everything),
            Revoke(1, 0, Whoever),
            Release(wish(0, 1, 2), 1),
        ];
        // A fresh deployment, and whatever drives its futures.
        on_a_fresh_deployment(|deployment| async move {
            if let Err(disagreement) = play(deployment, &history).await {
                panic!("{disagreement}");
            }
        });
    }

    #[test]
    fn it_is_printed_as_it_stands_here() {
        use lock_spi::Queue;
        use parity_tests::histories::{Lists, Target, wish};
        let history = [
            Call::Open(0),
            Call::Insert(wish(0, 1, 2), Queue::Join),
            Call::Keep(0, Lists::Everything),
            Call::Revoke(1, 0, Target::Whoever),
            Call::Release(wish(0, 1, 2), 1),
        ];
        let indented: Vec<_> = include_str!("histories.rs")
            .lines()
            .map(str::trim)
            .collect();
        let here = indented.join("\n");
        let printed = as_test(&history);
        let printed: Vec<_> = printed.lines().map(str::trim).collect();
        assert!(here.contains(&printed.join("\n")), "{printed:#?}");
    }
}
