//! All known bugs: how soon each is caught, and in how short a story.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use lock_sim::bugs::{Fate, KNOWN, Known};
use lock_sim::campaign::{Catches, catches};
use lock_sim::shrink::{Budget, minimize, story};

use crate::options::Options;
use crate::player::{Player, failure_of};
use crate::{progress, table};

/// Stories that are written down: of so many times that a bug was caught.
const STORIES: usize = 1;

/// What is known of a bug in the end.
#[derive(Clone, Debug)]
pub(crate) struct Findings {
    pub(crate) known: &'static Known,
    pub(crate) catches: Catches,
    /// How many events the stories of some catches have, the shortest first.
    pub(crate) events: Vec<usize>,
}

impl Findings {
    /// Whether it fared as it should.
    pub(crate) fn is_as_expected(&self) -> bool {
        match self.known.fate {
            Fate::Caught => self.catches.missed == 0,
            Fate::Withstood => self.catches.caught.is_empty(),
        }
    }
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let bar = progress::bar(None);
    let found = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(known) = KNOWN.get(next.fetch_add(1, Ordering::Relaxed)) {
            let findings = look_for(known, options, &|| bar.inc(1));
            // Also where nobody sees the bar.
            bar.suspend(|| println!("{}", table::line(&findings)));
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.push(findings);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..NonZero::get(options.jobs()) {
            scope.spawn(work);
        }
        work();
    });
    bar.finish_and_clear();
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let place = |known: &Known| KNOWN.iter().position(|other| other == known);
    found.sort_by_key(|findings| place(findings.known));
    table::write(&options.table, &found)?;
    println!("Written to {}.", options.table.display());
    let mut passed = true;
    for findings in found.iter().filter(|findings| !findings.is_as_expected()) {
        passed = false;
        println!("Not as expected: {}", table::line(findings));
    }
    Ok(passed)
}

fn look_for(known: &'static Known, options: &Options, tick: &dyn Fn()) -> Findings {
    let player = Player::new(Some(known.bug));
    let (times, limit) = match known.fate {
        Fate::Caught => (options.times, options.limit),
        Fate::Withstood => (1, options.limit),
    };
    let catches = catches(times, limit, |seed| {
        tick();
        player.play(seed)
    });
    let stories = catches.caught.iter().take(STORIES);
    let mut events: Vec<_> = stories
        .filter_map(|catch| {
            let failure = failure_of(&player.seed(catch.seed))?;
            let budget = Budget {
                runs: options.shrink,
            };
            let small = minimize(failure, budget, |draws, most| {
                tick();
                failure_of(&player.draws(draws, most))
            });
            let run = player.draws_in_full(&small.failure.draws);
            let story = story(run.record.entries(), &small.failure.violation);
            Some(story.events.len() + story.left_out)
        })
        .collect();
    events.sort_unstable();
    Findings {
        known,
        catches,
        events,
    }
}
