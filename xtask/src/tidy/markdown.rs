//! As much of Markdown as the checks of documents need.

/// What a document points at.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// What stands in backticks, by line; blocks of code are left out.
    pub(super) codes: Vec<(usize, String)>,
    /// The anchors of the headings.
    pub(super) headings: Vec<String>,
    /// The links in the text.
    pub(super) links: Vec<Link>,
}

/// A link.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) line: usize,
    pub(super) target: String,
}

impl Document {
    /// Reads a document line by line.
    pub(super) fn parse(text: &str) -> Self {
        let mut document = Self::default();
        let mut in_block = false;
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim_start().starts_with("```") {
                in_block = !in_block;
            } else if !in_block {
                document.read(number, line);
            }
        }
        document
    }

    fn read(&mut self, number: usize, line: &str) {
        if line.starts_with('#') {
            let heading = line.trim_start_matches('#').trim();
            self.headings.push(anchor(heading));
        }
        let mut words = String::new();
        for (at, part) in line.split('`').enumerate() {
            if at % 2 == 0 {
                words.push_str(part);
            } else {
                self.codes.push((number, part.trim().to_owned()));
            }
        }
        for (at, opening) in words.match_indices("](") {
            let rest = &words[at + opening.len()..];
            let target = rest.split(')').next().unwrap_or_default().to_owned();
            self.links.push(Link {
                line: number,
                target,
            });
        }
    }
}

/// The anchor that a heading has where documents are shown.
fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_links_and_headings_are_told_apart_from_blocks() {
        let text =
            "# Why `fencing`, then?\n[a `b`](c.md#d) `e` `f`\n```rust\nlet `g` = [h](i);\n```";
        let document = Document::parse(text);
        let codes: Vec<_> = document.codes.iter().map(|(_, code)| code).collect();
        assert_eq!(codes, ["fencing", "b", "e", "f"]);
        assert_eq!(document.headings, ["why-fencing-then"]);
        assert_eq!(document.links.len(), 1);
        assert_eq!(
            (document.links[0].line, document.links[0].target.as_str()),
            (2, "c.md#d")
        );
    }
}
