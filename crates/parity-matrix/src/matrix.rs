//! All places, and what was played there.

use anyhow::Result;
use parity_tests::liars::Caught;

use crate::observe::{self, Observed};
use crate::options::Options;
use crate::places::{Credentials, EtcdPlace, Place, PostgresPlace, play_all};
use crate::play::{Played, on_a_server};

/// The simulated etcd.
pub(crate) const SIMULATED: &str = "simulated etcd";
/// Where a server that is missing is a failure.
const REQUIRED: [&str; 2] = ["FENCELOCK_REQUIRE_SERVERS", "CI"];

/// What was played, and what was seen on the way.
#[derive(Debug)]
pub(crate) struct Matrix {
    pub(crate) columns: Vec<Column>,
    /// Liars that no scenario caught.
    pub(crate) escaped: Vec<&'static Caught>,
    /// What was observed where the stores may differ.
    pub(crate) observed: Vec<Observed>,
    /// What could not be observed, and why.
    pub(crate) unseen: Vec<String>,
    /// Whether all that is usual was asked for.
    asked_for_all: bool,
}

#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) played: Result<Played, Missing>,
}

/// A server that could not be had.
#[derive(Debug)]
pub(crate) struct Missing {
    pub(crate) why: String,
    pub(crate) required: bool,
}

/// Makes a place ready.
type Start = Box<dyn Fn() -> Result<Place>>;

impl Matrix {
    /// Plays everything that is asked for.
    pub(crate) fn play(options: &Options) -> Result<Self> {
        let mut columns = Vec::new();
        let mut escaped = Vec::new();
        if options.wants_place(SIMULATED) {
            let (played, liars) = play_all(SIMULATED, options);
            escaped = liars;
            columns.push(Column {
                name: SIMULATED.to_owned(),
                version: String::new(),
                played: Ok(played),
            });
        }
        for (name, start) in places(options) {
            if options.wants_place(&name) {
                columns.push(play_at(name, &start, options)?);
            }
        }
        let mut matrix = Self {
            columns,
            escaped,
            observed: Vec::new(),
            unseen: Vec::new(),
            asked_for_all: options.asks_for_all(),
        };
        if matrix.is_whole() || options.observe_only {
            (matrix.observed, matrix.unseen) = observe::all()?;
        }
        Ok(matrix)
    }

    /// Whether everything that belongs into the report was played.
    pub(crate) fn is_whole(&self) -> bool {
        self.asked_for_all && self.columns.iter().all(|column| column.played.is_ok())
    }

    pub(crate) fn falls_short(&self) -> bool {
        !self.escaped.is_empty()
            || !self.unseen.is_empty()
            || self.columns.iter().any(|column| match &column.played {
                Ok(played) => played.falls_short(),
                Err(missing) => missing.required,
            })
    }
}

fn places(options: &Options) -> Vec<(String, Start)> {
    let mut places: Vec<(String, Start)> = Vec::new();
    for (name, members) in [("etcd, one node", 1), ("etcd, three nodes", 3)] {
        let start = move || {
            let place = EtcdPlace::start(name.to_owned(), members, None)?;
            Ok(Place::Etcd(Box::new(place)))
        };
        places.push((name.to_owned(), Box::new(start)));
    }
    for (name, standby) in [("Postgres", false), ("Postgres with a standby", true)] {
        let start = move || {
            let place = PostgresPlace::start(name.to_owned(), standby)?;
            Ok(Place::Postgres(Box::new(place)))
        };
        places.push((name.to_owned(), Box::new(start)));
    }
    for program in options.etcd_bin.clone() {
        let name = format!("etcd, {}", program.display());
        let own = name.clone();
        let start = move || {
            let place = EtcdPlace::start(own.clone(), 1, Some(&program))?;
            Ok(Place::Etcd(Box::new(place)))
        };
        places.push((name, Box::new(start)));
    }
    for (number, url) in (1..).zip(options.etcd.clone()) {
        let name = format!("etcd, given {number}");
        let own = name.clone();
        let start = move || {
            let place = EtcdPlace::at(own.clone(), url.clone());
            Ok(Place::Etcd(Box::new(place)))
        };
        places.push((name, Box::new(start)));
    }
    for (number, url) in (1..).zip(options.postgres.clone()) {
        let name = format!("Postgres, given {number}");
        let own = name.clone();
        let start = move || {
            let credentials = Credentials::parse(&url)?;
            let place = PostgresPlace::at(own.clone(), credentials);
            Ok(Place::Postgres(Box::new(place)))
        };
        places.push((name, Box::new(start)));
    }
    places
}

fn play_at(name: String, start: &Start, options: &Options) -> Result<Column> {
    let place = match start() {
        Ok(place) => place,
        Err(error) => {
            let why = format!("{error:#}");
            eprintln!("\nSKIPPED: {name}: {why}\n");
            let required = REQUIRED.iter().any(|name| std::env::var_os(name).is_some());
            let missing = Missing { why, required };
            return Ok(Column {
                name,
                version: String::new(),
                played: Err(missing),
            });
        }
    };
    let version = place.version().to_owned();
    let played = real_time(async {
        let played = on_a_server(&place, options).await;
        place.clear().await?;
        anyhow::Ok(played)
    })?;
    Ok(Column {
        name,
        version,
        played: Ok(played),
    })
}

/// Drives a story on the machine's own clock.
pub(crate) fn real_time<T>(story: impl Future<Output = Result<T>>) -> Result<T> {
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    tokio.block_on(story)
}
