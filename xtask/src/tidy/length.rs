//! A file that is too long for one concern is two files.

use crate::tidy::Complaint;
use crate::tree::Tree;

const MOST_LINES: usize = 600;

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    tree.rust_below("")
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > MOST_LINES)
        .map(|(path, lines)| {
            let what = format!("{lines} lines, more than {MOST_LINES}: split it");
            Complaint::new(path, lines, what)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_too_many_is_found() {
        let (fits, long) = ("\n".repeat(600), "\n".repeat(601));
        let tree = Tree::from([("a.rs", fits.as_str()), ("b.rs", &long), ("c.md", &long)]);
        let complaints = check(&tree);
        assert_eq!(complaints.len(), 1);
        assert_eq!(complaints[0].path, "b.rs");
    }
}
