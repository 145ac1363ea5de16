use std::sync::Arc;
use std::time::Duration;

use lock_spi::FencingToken;

use super::axis;
use super::bars::{Bars, Kind, Span};
use super::canvas::{Anchor, Canvas, width};
use super::rows::{Row, rows};
use super::window::Window;
use crate::check::Violation;
use crate::record::Entry;

const WIDTH: f64 = 1200.0;
/// Where time begins.
const LEFT: f64 = 190.0;
const RIGHT: f64 = WIDTH - 30.0;
const LINE: f64 = 16.0;

/// Draws a run, or the part of it that led to a violation, as SVG.
///
/// From top to bottom: what broke; the axis of time; a line for each client and lock, with dashed
/// boxes for waiting, bars with tokens for grants as they really stood, and a thick line for as long
/// as the client believed in them; then a line for each fault. What the violation is about is red.
#[must_use]
pub fn svg(entries: &[Entry], violation: Option<&Violation>) -> String {
    let window = Window::of(entries, violation);
    let bars = Bars::of(entries);
    let rows = rows(&bars, window, violation);
    let mut picture = Picture {
        canvas: Canvas::default(),
        window,
        violation,
        y: 10.0,
    };
    picture.title();
    picture.axis(rows.iter().map(Row::height).sum());
    for (number, row) in rows.iter().enumerate() {
        picture.row(row, &bars, number % 2 == 0);
    }
    picture.alarm();
    picture.legend();
    let height = picture.y + 10.0;
    picture.canvas.finish(WIDTH, height)
}

struct Picture<'a> {
    canvas: Canvas,
    window: Window,
    violation: Option<&'a Violation>,
    y: f64,
}

impl Picture<'_> {
    fn x(&self, at: Duration) -> f64 {
        LEFT + self.window.place(at) * (RIGHT - LEFT)
    }

    fn title(&mut self) {
        let Some(violation) = self.violation else {
            return;
        };
        for line in wrapped(&violation.to_string(), WIDTH - 40.0) {
            self.y += LINE;
            let at = (20.0, self.y);
            self.canvas.words("title", at, Anchor::Start, &line);
        }
        self.y += LINE / 2.0;
    }

    fn axis(&mut self, below: f64) {
        self.y += LINE;
        let top = self.y + 6.0;
        for (at, label) in axis::marks(self.window, 14) {
            let x = self.x(at);
            self.canvas.stroke("grid", (x, top), (x, top + below));
            let at = (x, self.y);
            self.canvas.words("faint", at, Anchor::Middle, &label);
        }
        self.y = top;
    }

    fn row(&mut self, row: &Row, bars: &Bars, dark: bool) {
        let (top, height) = (self.y, row.height());
        if dark {
            self.canvas
                .bar("band", (0.0, top), (LEFT - 6.0, height), "");
        }
        match row {
            Row::Lock { client, key } => {
                self.name(&format!("client {client}"), top + 17.0, "lane");
                self.name(key, top + 31.0, "faint");
                let down = bars.down.get(client).map_or(&[][..], Vec::as_slice);
                for span in down {
                    self.down(span, top, height);
                }
                let spans = bars.locks.get(&(Arc::clone(client), Arc::clone(key)));
                let mut spans: Vec<_> = spans.into_iter().flatten().collect();
                spans.sort_by_key(|span| (layer(&span.what), span.from));
                for span in spans {
                    self.span(span, top);
                }
                for (_, at) in bars.crashes.iter().filter(|(name, _)| name == client) {
                    if self.window.shows(*at, *at) {
                        let at = (self.x(*at), top + height / 2.0);
                        self.canvas.mark("crash", at, "crashes");
                    }
                }
            }
            Row::Fault(fault) => {
                self.name(fault, top + 14.0, "faint");
                for (from, to, hit) in bars.faults.get(fault).into_iter().flatten() {
                    let title = format!("{fault}: {hit}");
                    self.fault(*from, *to, top, &title);
                }
            }
        }
        self.y += height;
    }

    fn name(&mut self, name: &str, base: f64, class: &str) {
        let at = (LEFT - 12.0, base);
        let name = shortened(name, LEFT - 18.0);
        self.canvas.words(class, at, Anchor::End, &name);
    }

    /// Left edge and width of what is seen of a time.
    fn extent(&self, from: Duration, to: Duration) -> Option<(f64, f64)> {
        let shows = self.window.shows(from, to);
        let (left, right) = (self.x(from), self.x(to));
        shows.then(|| (left, (right - left).max(1.5)))
    }

    fn span(&mut self, span: &Span, top: f64) {
        let Some((left, wide)) = self.extent(span.from, span.to) else {
            return;
        };
        let time = format!(
            "{:.3} s to {:.3} s",
            span.from.as_secs_f64(),
            span.to.as_secs_f64()
        );
        match &span.what {
            Kind::Waited => {
                let title = format!("waits, {time}");
                let (at, size) = ((left, top + 12.0), (wide, 16.0));
                self.canvas.bar("waits", at, size, &title);
            }
            Kind::Stood(token) => {
                let class = if self.is_broken(*token) {
                    "broken"
                } else {
                    "holds"
                };
                let title = format!("token {token} stands, {time}");
                let (at, size) = ((left, top + 8.0), (wide, 20.0));
                self.canvas.bar(class, at, size, &title);
                let label = short(*token);
                if width(&label) + 6.0 < wide {
                    let at = (left + 4.0, top + 22.0);
                    self.canvas.words("", at, Anchor::Start, &label);
                }
            }
            Kind::Believed(_) => {
                let base = top + 33.0;
                self.canvas
                    .stroke("believes", (left, base), (left + wide, base));
            }
            Kind::Down(_) => {}
        }
    }

    fn down(&mut self, span: &Span, top: f64, height: f64) {
        if let (Some((left, wide)), Kind::Down(how)) = (self.extent(span.from, span.to), &span.what)
        {
            self.canvas.bar("down", (left, top), (wide, height), how);
        }
    }

    fn fault(&mut self, from: Duration, to: Option<Duration>, top: f64, title: &str) {
        let Some((left, wide)) = self.extent(from, to.unwrap_or(from)) else {
            return;
        };
        match to {
            Some(_) => {
                let (at, size) = ((left, top + 5.0), (wide, 10.0));
                self.canvas.bar("fault", at, size, title);
            }
            None => self.canvas.mark("fault", (left, top + 10.0), title),
        }
    }

    fn is_broken(&self, token: FencingToken) -> bool {
        let violation = self.violation;
        violation.is_some_and(|violation| violation.tokens.contains(&token))
    }

    /// The moment at which it broke.
    fn alarm(&mut self) {
        if let Some(violation) = self.violation {
            let x = self.x(violation.at);
            self.canvas.stroke("alarm", (x, 34.0), (x, self.y));
        }
    }

    fn legend(&mut self) {
        self.y += 2.0 * LINE;
        let words = "dashed: waits · bar: the grant stands, with its token · thick line: the client \
                     believes in it · grey: does not run · orange: a fault · red: what broke";
        let at = (20.0, self.y);
        self.canvas.words("faint", at, Anchor::Start, words);
    }
}

/// What lies over what.
fn layer(what: &Kind) -> u8 {
    match what {
        Kind::Waited => 0,
        Kind::Stood(_) => 1,
        Kind::Believed(_) | Kind::Down(_) => 2,
    }
}

/// A token as people compare it: its counter, after its term if it has one.
fn short(token: FencingToken) -> String {
    match token.term() {
        0 => token.counter().to_string(),
        term => format!("{term}·{}", token.counter()),
    }
}

fn shortened(words: &str, room: f64) -> String {
    if width(words) <= room {
        return words.to_owned();
    }
    let mut short = String::new();
    for letter in words.chars() {
        if width(&short) + width("…x") > room {
            break;
        }
        short.push(letter);
    }
    short + "…"
}

/// Words in lines that are no wider than this.
fn wrapped(words: &str, room: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in words.split(' ') {
        let last = lines.last_mut();
        match last {
            Some(line) if line.is_empty() => line.push_str(word),
            // Bold letters are wider.
            Some(line) if width(line) + width(word) < room * 0.85 => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{EndCause, Lane, What};
    use crate::sample::{Script, a, b};

    /// A holder stands still, its lease runs out, another is granted, and the first still believes.
    fn paused() -> Script {
        let mut script = Script::new();
        script.renew(a(), 1).grant(a(), 5, 1).believes(a(), 5);
        script.wait(3_000).renew(a(), 1).renew(b(), 2).wait(500);
        let call = script.acquire(b());
        script.wait(20).queued(b(), 7, 2).wait(1_000);
        script.add(a(), What::Paused).wait(3_000).renew(b(), 2);
        script.add(Lane::Network, What::FaultBegan("one-way partition"));
        script
            .wait(2_000)
            .add(a(), What::FaultHappened("reply lost"));
        script.add(Lane::Network, What::FaultEnded("one-way partition"));
        script.wait(1_500).renew(b(), 2).wait(3_100);
        script.ended(Lane::Server, 5, EndCause::Expired);
        script.session_ended(Lane::Server, 1, EndCause::Expired);
        script
            .wait(40)
            .granted(b(), 7, 2)
            .left(b(), 7, EndCause::Served);
        script.wait(10).answer(
            b(),
            call,
            crate::record::Answer::Granted(crate::sample::token(7)),
        );
        script
            .wait(300)
            .add(a(), What::Resumed)
            .wait(100)
            .believes(a(), 5);
        script.wait(700).release(b(), 7);
        script
    }

    /// `FENCELOCK_UPDATE=1` writes the picture anew; look at it before it is committed.
    #[test]
    fn a_story_is_drawn_as_it_was() {
        let script = paused();
        let violations = script.violations();
        assert_eq!(violations.len(), 1, "{violations:?}");
        let drawn = svg(&script.entries, violations.first());
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/timeline/paused.svg");
        if std::env::var_os("FENCELOCK_UPDATE").is_some() {
            std::fs::write(path, &drawn).unwrap();
        }
        let expected = std::fs::read_to_string(path).unwrap();
        assert_eq!(drawn, expected, "the picture has changed");
    }

    #[test]
    fn the_sentence_the_tokens_and_the_lanes_are_there() {
        let script = paused();
        let violations = script.violations();
        let drawn = svg(&script.entries, violations.first());
        for needed in [
            "INV-10 at ",
            ">client a<",
            ">client b<",
            ">5</text>",
            ">7</text>",
            ">one-way partition<",
            ">reply lost<",
            "class=\"broken\"",
            "class=\"alarm\"",
            "stands still",
            " s</text>",
        ] {
            assert!(drawn.contains(needed), "{needed}:\n{drawn}");
        }
    }

    #[test]
    fn a_run_without_a_violation_is_drawn_as_a_whole() {
        let mut script = Script::new();
        script.grant(a(), 5, 1).wait(2_000).release(a(), 5);
        script.grant(b(), 7, 2).wait(2_000).release(b(), 7);
        let drawn = svg(&script.entries, None);
        assert!(!drawn.contains("class=\"alarm\"") && !drawn.contains("class=\"broken\""));
        assert_eq!(drawn.matches("class=\"holds\"").count(), 2, "{drawn}");
    }

    #[test]
    fn long_names_and_sentences_keep_to_their_room() {
        let long = shortened(&"x".repeat(90), 100.0);
        assert!(width(&long) <= 100.0 && long.ends_with('…'), "{long}");
        let lines = wrapped(&"some words ".repeat(60), 500.0);
        assert!(
            lines.len() > 5 && lines.iter().all(|line| width(line) <= 500.0),
            "{lines:?}"
        );
    }
}
