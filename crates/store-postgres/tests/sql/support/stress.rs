//! Many callers at once who do everything that can be done to a few keys, with numbers that are
//! slow to come. The order of the grants is recorded by the server under the row lock of the key,
//! where nothing can come between.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use futures_util::FutureExt;
use futures_util::future::join_all;

use super::caller::{Caller, id};
use super::server::Database;
use super::verdict::Verdict;

/// What has to be there before a slowed schema.
pub(crate) const SLOWED: &str = "
CREATE FUNCTION public.slow_nextval() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  v bigint := nextval('dlock.fencing_token_seq');
BEGIN
  PERFORM pg_sleep(random() * 0.01);
  RETURN v;
END $$;
";

/// Draws numbers slowly.
pub(crate) const SLOW: (&str, &str) = (
    "greatest((p_term << 44) + nextval('dlock.fencing_token_seq'), p_above + 1)",
    "greatest((p_term << 44) + public.slow_nextval(), p_above + 1)",
);

const RECORDER: &str = "
CREATE TABLE public.history (
  n bigserial PRIMARY KEY, kind text, lock_key text, token bigint, attempt uuid,
  twice boolean, barged boolean);
CREATE TABLE public.given_up (attempt uuid, n bigint);
CREATE FUNCTION public.record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.held AND NEW.token <> OLD.token THEN
    INSERT INTO public.history (kind, lock_key, token, attempt, twice, barged)
    SELECT 'grant', NEW.lock_key, NEW.token, NEW.attempt,
           OLD.held AND OLD.expires_at > clock_timestamp() AND EXISTS (
             SELECT FROM dlock.sessions s
              WHERE s.session = OLD.session AND s.incarnation = OLD.incarnation
                AND s.closed_at IS NULL),
           EXISTS (
             SELECT FROM dlock.places p
              WHERE p.lock_key = NEW.lock_key AND p.attempt <> NEW.attempt
                AND p.ticket < coalesce(
                      (SELECT w.ticket FROM dlock.waiters w
                        WHERE w.lock_key = NEW.lock_key AND w.attempt = NEW.attempt),
                      9223372036854775807));
  ELSIF NEW.floor IS DISTINCT FROM OLD.floor THEN
    INSERT INTO public.history (kind, lock_key, token)
    VALUES ('floor', NEW.lock_key, NEW.floor);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER record AFTER UPDATE ON dlock.locks FOR EACH ROW EXECUTE FUNCTION public.record();
";

/// What must not be found, and how it is looked for.
const VIOLATIONS: [(&str, &str); 6] = [
    (
        "tokens went backwards",
        "SELECT count(*) FROM (
           SELECT token, lag(token) OVER (PARTITION BY lock_key ORDER BY n) AS before
             FROM public.history WHERE kind = 'grant') h
          WHERE token <= before",
    ),
    (
        "tokens at or below the floor",
        "SELECT count(*) FROM public.history g WHERE g.kind = 'grant' AND g.token <= (
           SELECT max(f.token) FROM public.history f
            WHERE f.kind = 'floor' AND f.lock_key = g.lock_key AND f.n < g.n)",
    ),
    (
        "grants beside a living one",
        "SELECT count(*) FROM public.history WHERE twice",
    ),
    (
        "grants past somebody in line",
        "SELECT count(*) FROM public.history WHERE barged",
    ),
    (
        "attempts granted twice",
        "SELECT count(*) FROM (
           SELECT FROM public.history WHERE kind = 'grant' GROUP BY attempt HAVING count(*) > 1) h",
    ),
    (
        "attempts granted after they were given up",
        "SELECT count(*) FROM public.history h JOIN public.given_up u USING (attempt)
          WHERE h.n > u.n",
    ),
];

/// Callers at once.
const CALLERS: u64 = 8;
/// Keys.
const KEYS: u64 = 3;
/// So many grants are made.
const GRANTS: u32 = 500;

/// Makes [`GRANTS`] grants in a database whose numbers are [slow](SLOW), and judges them.
pub(crate) async fn stress(database: &Database, seed: u64) -> Verdict {
    database.psql(RECORDER);
    let granted = AtomicU32::new(0);
    let mut workers = Vec::new();
    for number in 1..=CALLERS {
        workers.push(Worker {
            own: database.connect().await,
            other: database.connect().await,
            draws: Draws(seed.wrapping_mul(1_000).wrapping_add(number)),
            session: i64::try_from(number * 1_000_000).unwrap(),
            attempt: u128::from(number) << 64,
            granted: &granted,
            complaints: Vec::new(),
        });
    }
    let mut reaper = database.connect().await;
    let ended = AtomicBool::new(false);
    let reaping = async {
        let mut after: Option<String> = None;
        while !ended.load(Ordering::Relaxed) {
            (_, after) = reaper.reap(10, after.as_deref()).await;
            reaper.run("SELECT pg_sleep(0.01)").await;
        }
    };
    let working = async {
        // A call that fails, as by a deadlock, ends its worker.
        let works = workers
            .into_iter()
            .map(|worker| AssertUnwindSafe(worker.work()).catch_unwind());
        let complaints = join_all(works).await;
        ended.store(true, Ordering::Relaxed);
        complaints
    };
    let (complaints, ()) = tokio::join!(biased; working, reaping);
    let failed = |_| vec!["a call failed".to_owned()];
    let complaints = complaints
        .into_iter()
        .flat_map(|worker| worker.unwrap_or_else(failed));
    judge(&mut reaper, complaints.collect()).await
}

/// Makes [`GRANTS`] grants by batches alone, in a database whose numbers are [slow](SLOW), and judges
/// them.
pub(crate) async fn stress_batches(database: &Database) -> Verdict {
    database.psql(RECORDER);
    let granted = AtomicU32::new(0);
    let mut workers = Vec::new();
    for number in 1..=CALLERS {
        let mut caller = database.connect().await;
        let session = i64::try_from(number).unwrap();
        caller.open(session).await;
        workers.push(take_all(caller, session, &granted));
    }
    join_all(workers).await;
    judge(&mut database.connect().await, Vec::new()).await
}

/// Takes all keys that are free at once and gives them back at once.
async fn take_all(mut caller: Caller, session: i64, granted: &AtomicU32) {
    let keys: Vec<_> = (0..KEYS).map(|number| format!("key {number}")).collect();
    let mut attempt = u128::from(session.unsigned_abs()) << 64;
    while granted.load(Ordering::Relaxed) < GRANTS {
        let wish = |key| {
            attempt += 1;
            (key, session, attempt)
        };
        let wishes: Vec<_> = keys.iter().map(String::as_str).map(wish).collect();
        // It waits for a moment where somebody makes the same rows.
        let Ok((tokens, _)) = caller.insert_many(&wishes).await else {
            continue;
        };
        let grants: Vec<_> = tokens
            .iter()
            .map(|(place, token)| (keys[*place].as_str(), *token))
            .collect();
        let made = u32::try_from(grants.len()).unwrap();
        granted.fetch_add(made, Ordering::Relaxed);
        let ended = caller.release_many(&grants, true).await.unwrap();
        for (place, (key, token)) in grants.iter().enumerate() {
            // Somebody looked at its row just then.
            if !ended.contains_key(&place) {
                caller.release(key, *token).await;
            }
        }
    }
}

async fn judge(caller: &mut Caller, mut complaints: Vec<String>) -> Verdict {
    for (what, query) in VIOLATIONS {
        let count: i64 = caller.value(query).await;
        if count > 0 {
            complaints.push(format!("{count} {what}"));
        }
    }
    let grants: i64 = caller
        .value("SELECT count(*) FROM public.history WHERE kind = 'grant'")
        .await;
    if grants < i64::from(GRANTS) {
        complaints.push(format!("only {grants} grants were recorded"));
    }
    if complaints.is_empty() {
        Ok(())
    } else {
        Err(complaints.join(", "))
    }
}

/// Draws by SplitMix64: the same ones for the same seed.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// A session, one after the other, and what is done under it.
struct Worker<'a> {
    own: Caller,
    /// For what comes beside a call of its own.
    other: Caller,
    draws: Draws,
    session: i64,
    attempt: u128,
    granted: &'a AtomicU32,
    complaints: Vec<String>,
}

impl Worker<'_> {
    async fn work(mut self) -> Vec<String> {
        self.open_next().await;
        while self.granted.load(Ordering::Relaxed) < GRANTS {
            let key = format!("key {}", self.draws.below(KEYS));
            self.attempt += 1;
            match self.draws.below(100) {
                0..70 => self.acquire(&key).await,
                70..86 => self.give_up_in_flight(&key).await,
                86..93 => {
                    let wish = self.attempt;
                    self.own.revoke(&key, None, wish).await;
                }
                93..96 => {
                    self.own.close(self.session).await;
                    self.open_next().await;
                }
                _ => {
                    self.own.keep_alive(self.session, &[]).await;
                }
            }
        }
        self.complaints
    }

    /// Opens another session; some live for a second only, and nobody renews them.
    async fn open_next(&mut self) {
        self.session += 1;
        let ttl_ms = if self.draws.below(2) == 0 {
            1_000
        } else {
            60_000
        };
        self.own.open_for(self.session, ttl_ms).await;
    }

    /// Takes a lock, perhaps by waiting in line, and gives it back, if it does not forget to.
    async fn acquire(&mut self, key: &str) {
        if self.draws.below(2) == 0 && self.acquire_in_a_batch(key).await {
            return;
        }
        let queue = self.draws.below(2) == 0;
        for _ in 0..30 {
            let insert = self
                .own
                .try_insert(key, self.session, self.attempt, queue)
                .await;
            let insert = insert.unwrap();
            match (insert.outcome.as_str(), insert.token) {
                ("granted", Some(token)) => return self.hold(key, token).await,
                ("queued" | "again", _) => self.pause().await,
                ("session_gone", _) => return self.open_next().await,
                _ => return,
            }
        }
        self.own.abandon(key, self.session, self.attempt).await;
    }

    /// As a store does that is asked for several keys at once. What the batch leaves alone is asked
    /// for by itself.
    async fn acquire_in_a_batch(&mut self, key: &str) -> bool {
        let other = format!("key {}", self.draws.below(KEYS));
        let beside = self.attempt | 1 << 63;
        let wishes = [
            (key, self.session, self.attempt),
            (&other, self.session, beside),
        ];
        // It waits for nobody's row, but for a moment where somebody makes a new one.
        let Ok((tokens, _)) = self.own.insert_many(&wishes).await else {
            return false;
        };
        if let Some(&token) = tokens.get(&1) {
            self.granted.fetch_add(1, Ordering::Relaxed);
            let ended = self.own.release_many(&[(&other, token)], true).await;
            if ended.unwrap_or_default().is_empty() {
                self.own.release(&other, token).await;
            }
        }
        match tokens.get(&0) {
            Some(&token) => {
                self.hold(key, token).await;
                true
            }
            None => false,
        }
    }

    async fn hold(&mut self, key: &str, token: i64) {
        self.granted.fetch_add(1, Ordering::Relaxed);
        self.pause().await;
        match self.draws.below(20) {
            0 => {
                // Forgotten: its session ends it.
                self.own.close(self.session).await;
                self.open_next().await;
            }
            1..4 => {
                self.own.keep_alive(self.session, &[(key, token)]).await;
                self.own.extend(key, token).await;
                self.own.release(key, token).await;
            }
            settled => {
                self.own
                    .release_settled(key, token, settled.is_multiple_of(2))
                    .await;
            }
        }
    }

    /// Gives an attempt up while its insert is on the way, and has a copy of that come late.
    async fn give_up_in_flight(&mut self, key: &str) {
        let (session, attempt) = (self.session, self.attempt);
        let queue = self.draws.below(2) == 0;
        let given_up = format!(
            "INSERT INTO public.given_up
             SELECT '{}', coalesce(max(n), 0) FROM public.history",
            id(attempt)
        );
        let millis = self.draws.below(8);
        let delay = format!("SELECT pg_sleep(0.00{millis})");
        let other = &mut self.other;
        let (insert, ()) = tokio::join!(
            biased;
            self.own.try_insert(key, session, attempt, queue),
            async {
                other.run(&delay).await;
                other.abandon(key, session, attempt).await;
                other.run(&given_up).await;
            }
        );
        if insert.unwrap().outcome == "granted" {
            self.granted.fetch_add(1, Ordering::Relaxed);
        }
        let late = self
            .own
            .try_insert(key, session, attempt, queue)
            .await
            .unwrap();
        if !["ended", "session_gone", "again"].contains(&late.outcome.as_str()) {
            self.complaints.push(format!("late: {}", late.outcome));
        }
    }

    async fn pause(&mut self) {
        let millis = self.draws.below(4);
        self.own
            .run(&format!("SELECT pg_sleep(0.00{millis})"))
            .await;
    }
}
