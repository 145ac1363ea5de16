/// The height of letters.
pub(super) const LETTERS: f64 = 11.0;
/// How wide a letter is at most, on average.
const LETTER_WIDTH: f64 = 6.4;

/// Writes SVG. What is written is escaped here and nowhere else.
#[derive(Debug, Default)]
pub(super) struct Canvas {
    body: String,
    labels: Vec<Label>,
}

/// The room that words take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Label {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) base: f64,
}

/// Which end of the words is at the given place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Label {
    pub(super) fn new(x: f64, base: f64, anchor: Anchor, words: &str) -> Self {
        let width = width(words);
        let left = match anchor {
            Anchor::Start => x,
            Anchor::Middle => x - width / 2.0,
            Anchor::End => x - width,
        };
        Self {
            left,
            right: left + width,
            base,
        }
    }

    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let apart = self.right <= other.left || other.right <= self.left;
        !apart && (self.base - other.base).abs() < LETTERS
    }
}

/// How wide words are, at most.
pub(super) fn width(words: &str) -> f64 {
    let letters = u32::try_from(words.chars().count()).unwrap_or(u32::MAX);
    f64::from(letters) * LETTER_WIDTH
}

impl Canvas {
    /// A bar, with words for whoever points at it.
    pub(super) fn bar(&mut self, class: &str, at: (f64, f64), size: (f64, f64), title: &str) {
        let ((x, y), (width, height)) = (at, size);
        let title = escaped(title);
        self.line(format_args!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"><title>{title}</title></rect>"#
        ));
    }

    /// A straight line.
    pub(super) fn stroke(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.line(format_args!(
            r#"<line class="{class}" x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}"/>"#,
            from.0, from.1, to.0, to.1
        ));
    }

    /// A small diamond: something that happened at one moment.
    pub(super) fn mark(&mut self, class: &str, at: (f64, f64), title: &str) {
        let (x, y) = at;
        let title = escaped(title);
        self.line(format_args!(
            r#"<path class="{class}" d="M{:.1} {y:.1}l5 -6l5 6l-5 6z"><title>{title}</title></path>"#,
            x - 5.0
        ));
    }

    /// Words, unless there are others in their place. Answers whether there was room.
    pub(super) fn words(
        &mut self,
        class: &str,
        at: (f64, f64),
        anchor: Anchor,
        words: &str,
    ) -> bool {
        let label = Label::new(at.0, at.1, anchor, words);
        if self.labels.iter().any(|other| other.overlaps(&label)) {
            return false;
        }
        self.labels.push(label);
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let words = escaped(words);
        self.line(format_args!(
            r#"<text class="{class}" x="{:.1}" y="{:.1}" text-anchor="{anchor}">{words}</text>"#,
            at.0, at.1
        ));
        true
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        self.body.push_str(&line.to_string());
        self.body.push('\n');
    }

    /// All of it, in a picture of this size.
    pub(super) fn finish(self, width: f64, height: f64) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             width=\"{width:.0}\" height=\"{height:.0}\">\n<style>{STYLE}</style>\n\
             <rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n{}</svg>\n",
            self.body
        )
    }
}

fn escaped(words: &str) -> String {
    words
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

const STYLE: &str = "
text{font:11px 'DejaVu Sans',Verdana,sans-serif;fill:#222}
.paper{fill:#fff}
.band{fill:#f5f6f8}
.grid{stroke:#d9dce1;stroke-width:1}
.faint{fill:#666}
.waits{fill:none;stroke:#8a93a3;stroke-dasharray:3 2}
.holds{fill:#9ecae9;stroke:#3b7fb3}
.ghost{fill:#e3e3e3;stroke:#999}
.broken{fill:#f7b6b2;stroke:#c5221f;stroke-width:2}
.believes{stroke:#12395b;stroke-width:3}
.down{fill:#555;opacity:.35}
.fault{fill:#f0a202;stroke:#9a6700}
.crash{fill:#222}
.alarm{stroke:#c5221f;stroke-width:2}
.title{fill:#c5221f;font-weight:bold}
.lane{font-weight:bold}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_written_where_there_is_room() {
        let mut canvas = Canvas::default();
        assert!(canvas.words("", (0.0, 20.0), Anchor::Start, "first"));
        assert!(!canvas.words("", (20.0, 20.0), Anchor::Start, "over it"));
        assert!(!canvas.words("", (50.0, 25.0), Anchor::End, "half over it"));
        assert!(canvas.words("", (60.0, 20.0), Anchor::Start, "beside it"));
        assert!(canvas.words("", (0.0, 40.0), Anchor::Start, "below it"));
        let svg = canvas.finish(100.0, 100.0);
        assert_eq!(svg.matches("<text").count(), 3);
    }

    #[test]
    fn what_is_written_cannot_end_the_picture() {
        let mut canvas = Canvas::default();
        canvas.words("", (0.0, 20.0), Anchor::Start, "</text><b>\"&");
        let svg = canvas.finish(100.0, 100.0);
        assert!(svg.contains("&lt;/text&gt;&lt;b&gt;&quot;&amp;"), "{svg}");
    }
}
