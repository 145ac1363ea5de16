//! Nothing speaks of the machine or the way of working that it was written on.

use crate::tidy::Complaint;
use crate::tree::Tree;

/// Folders that exist on one machine and not on the next.
const MACHINE_FOLDERS: &[&str] = &["farm", "home", "root", "tmp", "work"];
const TEXTS: &[&str] = &[".md", ".rs", ".toml", ".yml", ".sh"];

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let texts = tree.files().filter(|(path, _)| {
        path.starts_with(".ci/") || TEXTS.iter().any(|ending| path.ends_with(ending))
    });
    for (path, text) in texts {
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(found) = fault(line) {
                let what = format!("{found} means nothing to a reader elsewhere");
                complaints.push(Complaint::new(path, number, what));
            }
        }
    }
    complaints
}

fn fault(line: &str) -> Option<String> {
    let folder = MACHINE_FOLDERS
        .iter()
        .map(|name| format!("/{name}/"))
        .find(|folder| {
            line.match_indices(folder.as_str())
                .any(|(at, _)| begins_a_path(&line[..at]))
        });
    folder.or_else(|| issue_number(line))
}

/// Whether a `/` after these words is the root of the machine and not a folder below another.
fn begins_a_path(before: &str) -> bool {
    !before.ends_with(|c: char| c.is_alphanumeric() || "._-*/".contains(c))
}

fn issue_number(line: &str) -> Option<String> {
    let lower = line.to_lowercase();
    let after_word = lower
        .match_indices("issue ")
        .map(|(at, word)| at + word.len());
    after_word
        .filter_map(|at| {
            let digits: String = lower[at..]
                .trim_start_matches('#')
                .chars()
                .take_while(char::is_ascii_digit)
                .collect();
            (!digits.is_empty()).then(|| format!("issue {digits}"))
        })
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_machine_are_found() {
        for folder in MACHINE_FOLDERS {
            let text = format!("fine\nsee /{folder}/notes");
            let complaints = check(&Tree::from([("docs/a.md", text.as_str())]));
            assert_eq!(complaints.len(), 1, "{folder}");
            assert_eq!(complaints[0].line, 2);
        }
    }

    #[test]
    fn numbers_of_tasks_are_found() {
        let text = format!("// as said in issue #{}", 12);
        assert_eq!(check(&Tree::from([("a.rs", text.as_str())])).len(), 1);
    }

    #[test]
    fn folders_of_the_project_and_plain_words_are_fine() {
        let text = "crates/work/src, a/tmp/b, an issue with numbers, target/tmp/";
        assert_eq!(check(&Tree::from([("a.md", text)])), []);
    }
}
