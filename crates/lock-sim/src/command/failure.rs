//! One failure: made small, told as a story, drawn, and written down so that it can be replayed.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use lock_sim::campaign::Wrong;
use lock_sim::shrink::{Budget, minimize, story};
use lock_sim::timeline;

use crate::options::Options;
use crate::player::{Player, failure_of};
use crate::tape_file::TapeFile;

/// Plays one seed and tells what happened.
pub(crate) fn play_seed(options: &Options, seed: u64) -> Result<bool> {
    let player = Player::new(options.bug()?);
    let run = player.seed_in_full(seed);
    println!(
        "Seed {seed}, trace {:016x}, {} events.",
        run.hash,
        run.record.entries().len()
    );
    let Some(violation) = run.violations.first() else {
        let path = options.stories.join(format!("seed-{seed}.svg"));
        draw(&path, &timeline::svg(run.record.entries(), None))?;
        println!("Nothing went wrong. As a picture: {}", path.display());
        return Ok(true);
    };
    println!("{violation}");
    explain(options, player, seed, &Wrong::Broken(violation.clone()))?;
    Ok(false)
}

/// Replays a tape and tells its story.
pub(crate) fn play_tape(path: &Path) -> Result<bool> {
    let TapeFile { draws, bug } = TapeFile::read(path)?;
    let run = Player::new(bug).draws_in_full(&draws);
    let Some(violation) = run.violations.first() else {
        println!("Nothing goes wrong on this tape, trace {:016x}.", run.hash);
        return Ok(true);
    };
    println!("{}", story(run.record.entries(), violation));
    let picture = path.with_extension("svg");
    draw(
        &picture,
        &timeline::svg(run.record.entries(), Some(violation)),
    )?;
    println!("\nAs a picture: {}", picture.display());
    Ok(false)
}

/// Makes the failure of a seed small and tells its story.
pub(crate) fn explain(options: &Options, player: Player, seed: u64, wrong: &Wrong) -> Result<()> {
    let again = format!("cargo xtask sim --seed {seed}{}", player.bug_option());
    if !matches!(wrong, Wrong::Broken(_)) {
        println!("To see it again: {again}");
        return Ok(());
    }
    let Some(failure) = failure_of(&player.seed(seed)) else {
        println!("It did not happen again, which is a fault of its own.");
        return Ok(());
    };
    let before = failure.events;
    let budget = Budget {
        runs: options.shrink,
    };
    let small = minimize(failure, budget, |draws, most| {
        failure_of(&player.draws(draws, most))
    });
    let run = player.draws_in_full(&small.failure.draws);
    let story = story(run.record.entries(), &small.failure.violation);
    println!(
        "\nMade small in {} runs, from {before} events to {}:\n\n{story}\n",
        small.runs, small.failure.events
    );
    let path = options
        .stories
        .join(format!("seed-{seed}{}.json", player.suffix()));
    let file = TapeFile {
        draws: small.failure.draws,
        bug: player.bug(),
    };
    file.write(&path)?;
    let picture = path.with_extension("svg");
    let violation = Some(&small.failure.violation);
    draw(&picture, &timeline::svg(run.record.entries(), violation))?;
    println!("As a picture: {}", picture.display());
    println!("To see it again: cargo xtask sim --tape {}", path.display());
    println!("As it was before it was made small: {again}");
    Ok(())
}

fn draw(path: &Path, svg: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
    }
    fs::write(path, svg).with_context(|| format!("{}", path.display()))
}
