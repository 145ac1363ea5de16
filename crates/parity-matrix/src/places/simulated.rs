//! The etcd store on a simulated etcd, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use etcd_mock::{Expiry, MockStore, Options as MockOptions};
use lock_spi::Namespace;
use parity_tests::histories::{self, Mix, as_test, draw, shrink};
use parity_tests::liars::{Caught, LIES, LyingDeployment};
use parity_tests::{SCENARIOS, Scenario, Verdict};
use sim_runtime::{Weather, World};

use crate::deployment::EtcdDeployment;
use crate::options::Options;
use crate::play::{Outcome, Played, wanted};
use crate::{panics, progress};

/// So many interleavings of each scenario are played in each kind of weather and expiry.
const SEEDS: u64 = 12;

/// Plays a story on a fresh simulated etcd. The seed decides the interleaving, the speed of the
/// network, and whether leases end in time or when the server looks for them.
pub(crate) fn embedded<T>(seed: u64, story: impl AsyncFnOnce(EtcdDeployment<MockStore>) -> T) -> T {
    let world = Arc::new(World::new(seed));
    let expiry = match seed % 4 {
        0 | 1 => Expiry::Exact,
        _ => Expiry::Scanned,
    };
    let calm = Weather::calm();
    let weather = match seed % 2 {
        0 => calm,
        _ => Weather {
            delay: Duration::from_millis(1)..Duration::from_millis(30),
            ..calm
        },
    };
    let server = MockStore::in_step_with_options(
        world.runtime("server"),
        MockOptions::embedded().with_expiry(expiry),
    );
    let deployment = EtcdDeployment {
        runtime: world.runtime("scenario"),
        server,
        // Invariant: short, and of letters.
        namespace: Namespace::new("parity").expect("a namespace"),
        weather,
        process: Box::new({
            let world = Arc::clone(&world);
            move || world.runtime("node")
        }),
    };
    world.block_on(story(deployment))
}

/// Plays every scenario and every history, and sees every liar caught; answers with those that were
/// not, too.
pub(crate) fn play_all(name: &str, options: &Options) -> (Played, Vec<&'static Caught>) {
    let scenarios: Vec<_> = wanted(options).collect();
    let histories = match options.scenario.is_empty() {
        true => options.histories,
        false => 0,
    };
    let length = scenarios.len() as u64 + 2 * histories + LIES.len() as u64;
    let bar = progress::bar(name, length);
    let mut played = Played::default();
    for scenario in scenarios {
        let outcome = Outcome::of(panics::caught(|| {
            (0..SEEDS).try_for_each(|seed| play(scenario, None, seed))
        }));
        played.scenarios.push((scenario, outcome));
        bar.inc(1);
    }
    for (mix, seed) in [Mix::Timeless, Mix::Timed]
        .into_iter()
        .flat_map(|mix| (0..histories).map(move |seed| (mix, seed)))
    {
        played.disagreements.extend(disagreement(mix, seed));
        played.histories += 1;
        bar.inc(1);
    }
    let escaped = LIES.iter().filter(|caught| {
        bar.inc(1);
        !is_caught(caught)
    });
    let escaped: Vec<_> = escaped.collect();
    let failed = played.count(|outcome| matches!(outcome, Outcome::Failed(_)));
    let disagree = played.disagreements.len();
    progress::done(
        &bar,
        format!(
            "{failed} failed, {disagree} disagree, {} liars escaped",
            escaped.len()
        ),
    );
    (played, escaped)
}

fn play(scenario: &Scenario, lie: Option<parity_tests::liars::Lie>, seed: u64) -> Verdict {
    embedded(seed, async |deployment| {
        let deployment = LyingDeployment::new(deployment, lie);
        scenario.play(Arc::new(deployment)).await
    })
}

fn is_caught(caught: &Caught) -> bool {
    let scenario = SCENARIOS.iter().find(|known| known.name == caught.scenario);
    scenario.is_some_and(|scenario| {
        let verdict = panics::caught(|| play(scenario, Some(caught.lie), 0));
        matches!(Outcome::of(verdict), Outcome::Failed(_))
    })
}

fn disagreement(mix: Mix, seed: u64) -> Option<String> {
    let play = |history: &[histories::Call]| {
        embedded(seed, async |deployment| {
            histories::play(Arc::new(deployment), history).await
        })
    };
    let history = draw(seed, mix);
    let disagreement = play(&history).err()?;
    let least = shrink(&history, |part| play(part).is_err());
    Some(format!("seed {seed}: {disagreement}\n{}", as_test(&least)))
}
