use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;

use crate::fixture::{Deployment, Fixture};
use crate::scene::Scene;
use crate::suite::SCENARIOS;

/// One story about a store, and what it shows.
#[derive(Debug)]
pub struct Scenario {
    /// The contract chapter that it belongs to.
    pub chapter: &'static str,
    /// Its name: the fact that it shows.
    pub name: &'static str,
    /// The clauses of [`LockStore`](lock_spi::LockStore) that it shows.
    pub clauses: &'static [&'static str],
    /// The public bug reports that it re-enacts, by their ids in the project's case list.
    pub cases: &'static [&'static str],
    pub(crate) play: fn(Scene) -> Play,
}

/// A scenario being played.
pub type Play = Pin<Box<dyn Future<Output = Verdict>>>;

/// How a scenario ended; what it finds wrong is a panic or [`Stop::Failed`].
pub type Verdict = Result<(), Stop>;

/// Why a scenario did not come to its end.
#[derive(Debug)]
pub enum Stop {
    /// The store lacks what the scenario needs.
    NotApplicable(&'static str),
    /// An operation failed that had no reason to.
    Failed {
        /// What it answered.
        error: lock_spi::Error,
        /// Where in the scenario.
        at: &'static Location<'static>,
    },
}

impl Scenario {
    /// Plays the scenario on a fresh deployment.
    ///
    /// # Errors
    ///
    /// [`Stop`]: it does not apply, or an operation failed that had no reason to.
    ///
    /// # Panics
    ///
    /// When the store breaks the contract; polled to its end, the future panics.
    pub fn play(&self, deployment: Arc<dyn Deployment>) -> Play {
        (self.play)(Scene::new(deployment))
    }
}

impl From<lock_spi::Error> for Stop {
    #[track_caller]
    fn from(error: lock_spi::Error) -> Self {
        Self::Failed {
            error,
            at: Location::caller(),
        }
    }
}

impl From<lock_spi::Invalid> for Stop {
    #[track_caller]
    fn from(invalid: lock_spi::Invalid) -> Self {
        lock_spi::Error::from(invalid).into()
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotApplicable(lacks) => write!(f, "not applicable: the store has no {lacks}"),
            Self::Failed { error, at } => write!(f, "{at}: {error}"),
        }
    }
}

/// Plays the scenario of this name by a fixture; the body of every test of a suite.
///
/// # Panics
///
/// When the scenario fails, and when it does not apply although the fixture does not say so, or the
/// other way round.
pub fn check<F: Fixture>(name: &str) {
    let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name);
    let Some(scenario) = scenario else {
        panic!("there is no scenario {name}");
    };
    let excepted = F::NOT_APPLICABLE.contains(&name);
    match F::run(scenario) {
        Ok(()) => assert!(!excepted, "it applies, but NOT_APPLICABLE names it"),
        Err(stop @ Stop::NotApplicable(_)) if excepted => report(&stop),
        Err(stop) => panic!("{stop}"),
    }
}

/// Checks that a fixture's exceptions are scenarios; a test of every suite.
///
/// # Panics
///
/// When one is not.
pub fn check_exceptions<F: Fixture>() {
    for name in F::NOT_APPLICABLE {
        let known = SCENARIOS.iter().any(|scenario| scenario.name == *name);
        assert!(known, "NOT_APPLICABLE names {name}, which is no scenario");
    }
}

#[allow(clippy::print_stderr)] // A scenario that was left out must be seen.
fn report(stop: &Stop) {
    eprintln!("{stop}");
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    const NAME: &str = "a_grant_is_released_once";

    struct Lacking;

    impl Fixture for Lacking {
        fn run(_: &Scenario) -> Verdict {
            Err(Stop::NotApplicable("anything"))
        }
    }

    struct KnownToLack;

    impl Fixture for KnownToLack {
        const NOT_APPLICABLE: &'static [&'static str] = &[NAME];

        fn run(_: &Scenario) -> Verdict {
            Err(Stop::NotApplicable("anything"))
        }
    }

    struct SaidToLack;

    impl Fixture for SaidToLack {
        const NOT_APPLICABLE: &'static [&'static str] = &[NAME, "a_scenario_that_was_renamed"];

        fn run(_: &Scenario) -> Verdict {
            Ok(())
        }
    }

    #[test]
    fn an_exception_counts_only_where_it_is_declared() {
        check::<KnownToLack>(NAME);
        assert!(catch_unwind(|| check::<Lacking>(NAME)).is_err());
    }

    #[test]
    fn a_declared_exception_that_applies_or_names_nothing_is_a_failure() {
        assert!(catch_unwind(|| check::<SaidToLack>(NAME)).is_err());
        assert!(catch_unwind(check_exceptions::<SaidToLack>).is_err());
        check_exceptions::<KnownToLack>();
    }

    #[test]
    fn an_operation_that_failed_is_told_with_its_place() {
        let failed = || -> Verdict {
            Err(lock_spi::Error::from(
                lock_spi::Ttl::from_secs(0).unwrap_err(),
            ))?
        };
        let told = failed().unwrap_err().to_string();
        assert!(
            told.contains("scenario.rs") && told.contains("ttl"),
            "{told}"
        );
    }
}
