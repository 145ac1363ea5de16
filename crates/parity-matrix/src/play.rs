//! Plays scenarios and histories at one place.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use indicatif::ProgressBar;
use lock_spi::{Runtime, TokioRuntime};
use parity_tests::histories::{self, Mix, as_test, draw};
use parity_tests::{Lack, SCENARIOS, Scenario, Stop, Verdict};

use crate::known_bugs::{KnownBug, known};
use crate::options::Options;
use crate::places::Place;
use crate::{panics, progress};

/// A scenario that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(240);

/// What became of a scenario.
#[derive(Debug)]
pub(crate) enum Outcome {
    Passed,
    /// The store lacks what it needs.
    Excluded(Lack),
    /// It fails, and is known to on this version of the server.
    Known(&'static KnownBug),
    Failed(String),
}

/// All that was played at one place.
#[derive(Debug, Default)]
pub(crate) struct Played {
    pub(crate) scenarios: Vec<(&'static Scenario, Outcome)>,
    pub(crate) histories: u64,
    /// Histories on which store and model do not agree, as one reads them.
    pub(crate) disagreements: Vec<String>,
}

impl Outcome {
    pub(crate) fn of(verdict: Result<Verdict, String>) -> Self {
        match verdict {
            Ok(Ok(())) => Self::Passed,
            Ok(Err(Stop::NotApplicable(lacks))) => Self::Excluded(lacks),
            Ok(Err(stop)) => Self::Failed(stop.to_string()),
            Err(panic) => Self::Failed(panic),
        }
    }

    fn explained(self, place: &Place, scenario: &str) -> Self {
        match known(place.bugs(), place.version(), scenario) {
            Some(bug) if matches!(self, Self::Failed(_)) => Self::Known(bug),
            _ => self,
        }
    }
}

impl Played {
    pub(crate) fn count(&self, wanted: impl Fn(&Outcome) -> bool) -> usize {
        let outcomes = self.scenarios.iter().map(|(_, outcome)| outcome);
        outcomes.filter(|outcome| wanted(outcome)).count()
    }

    pub(crate) fn falls_short(&self) -> bool {
        !self.disagreements.is_empty()
            || self.count(|outcome| matches!(outcome, Outcome::Failed(_))) > 0
    }
}

/// Plays everything on a real server.
pub(crate) async fn on_a_server(place: &Place, options: &Options) -> Played {
    let wanted: Vec<_> = wanted(options).collect();
    let length = wanted.len() as u64 + options.real_histories;
    let bar = progress::bar(place.name(), length);
    let mut played = Played::default();
    // A place that cannot be played on is told once, and not by each scenario.
    let plays = stream::iter(wanted).map(async |scenario: &'static Scenario| {
        let outcome = play(place, scenario).await;
        bar.inc(1);
        (scenario, outcome.explained(place, scenario.name))
    });
    played.scenarios = plays.buffer_unordered(options.jobs).collect().await;
    played.scenarios.sort_by_key(|(scenario, _)| {
        SCENARIOS
            .iter()
            .position(|known| known.name == scenario.name)
    });
    if options.scenario.is_empty() {
        play_histories(place, options, &bar, &mut played).await;
    }
    let failed = played.count(|outcome| matches!(outcome, Outcome::Failed(_)));
    let disagree = played.disagreements.len();
    progress::done(&bar, format!("{failed} failed, {disagree} disagree"));
    played
}

pub(crate) fn wanted(options: &Options) -> impl Iterator<Item = &'static Scenario> {
    let wanted = |scenario: &&Scenario| options.wants_scenario(scenario.name);
    SCENARIOS.iter().filter(wanted)
}

async fn play(place: &Place, scenario: &Scenario) -> Outcome {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
    let story = async {
        let deployment = match place.deployment().await {
            Ok(deployment) => deployment,
            Err(error) => panic!("no deployment: {error:#}"),
        };
        scenario.play(deployment).await
    };
    tokio::select! {
        biased;
        verdict = panics::caught_in(story) => Outcome::of(verdict),
        () = runtime.sleep(LIMIT) => Outcome::Failed(format!("it hangs for {LIMIT:?}")),
    }
}

async fn play_histories(place: &Place, options: &Options, bar: &ProgressBar, played: &mut Played) {
    let plays = stream::iter(0..options.real_histories).map(async |seed| {
        let history = draw(seed, Mix::Timeless);
        let story = async {
            match place.shared_deployment().await {
                Ok(deployment) => histories::play(deployment, &history).await,
                Err(error) => panic!("no deployment: {error:#}"),
            }
        };
        bar.inc(1);
        match panics::caught_in(story).await {
            Ok(Ok(())) => None,
            Ok(Err(disagreement)) => {
                let test = as_test(&history[..=disagreement.at]);
                Some(format!("seed {seed}: {disagreement}\n{test}"))
            }
            Err(panic) => Some(format!("seed {seed}: {panic}")),
        }
    });
    let told: Vec<_> = plays.buffer_unordered(options.jobs).collect().await;
    played.histories = options.real_histories;
    played.disagreements = told.into_iter().flatten().collect();
}
