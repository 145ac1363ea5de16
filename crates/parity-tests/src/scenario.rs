use std::collections::BTreeSet;
use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;

use crate::fixture::{Deployment, Fixture};
use crate::lack::Lack;
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
    NotApplicable(Lack),
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
    let mut lacks = F::LACKS.iter();
    let lack = lacks.find(|lack| lack.scenarios().contains(&name));
    match (F::run(scenario), lack) {
        (Ok(()), None) => {}
        (Ok(()), Some(lack)) => panic!("it applies, but LACKS names {lack}"),
        (Err(Stop::NotApplicable(needed)), Some(lack)) => assert_eq!(needed, *lack),
        (Err(stop), _) => panic!("{stop}"),
    }
}

/// Tells how many scenarios apply to a fixture's store, and which do not; a test of every suite.
///
/// That those that are left out do not apply, and no others, the scenarios' own tests show.
///
/// # Panics
///
/// When it does without the same thing twice, so that the count is wrong.
pub fn check_lacks<F: Fixture>() {
    let mut applying: BTreeSet<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
    let mut left_out = 0;
    for lack in F::LACKS {
        for name in lack.scenarios() {
            report(&format!("not applicable: {name}: the store has no {lack}"));
            applying.remove(name);
            left_out += 1;
        }
    }
    assert_eq!(applying.len() + left_out, SCENARIOS.len());
    report(&format!(
        "{} of {} scenarios apply",
        applying.len(),
        SCENARIOS.len()
    ));
}

#[allow(clippy::print_stderr)] // A scenario that was left out must be seen.
fn report(line: &str) {
    eprintln!("{line}");
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    const NAME: &str = "a_grant_is_released_once";
    const FAULTY: &str = "an_abandon_overtakes_its_insert";

    struct Lacking;

    impl Fixture for Lacking {
        fn run(_: &Scenario) -> Verdict {
            Err(Stop::NotApplicable(Lack::Faults))
        }
    }

    struct KnownToLack;

    impl Fixture for KnownToLack {
        const LACKS: &'static [Lack] = &[Lack::Faults];

        fn run(_: &Scenario) -> Verdict {
            Err(Stop::NotApplicable(Lack::Faults))
        }
    }

    struct SaidToLack;

    impl Fixture for SaidToLack {
        const LACKS: &'static [Lack] = &[Lack::Faults, Lack::Faults];

        fn run(_: &Scenario) -> Verdict {
            Ok(())
        }
    }

    #[test]
    fn an_exception_counts_only_where_it_is_declared() {
        check::<KnownToLack>(FAULTY);
        check_lacks::<KnownToLack>();
        assert!(catch_unwind(|| check::<Lacking>(FAULTY)).is_err());
        assert!(catch_unwind(|| check::<KnownToLack>(NAME)).is_err());
    }

    #[test]
    fn a_declared_exception_that_applies_or_is_counted_twice_is_a_failure() {
        assert!(catch_unwind(|| check::<SaidToLack>(FAULTY)).is_err());
        assert!(catch_unwind(check_lacks::<SaidToLack>).is_err());
        check::<SaidToLack>(NAME);
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
