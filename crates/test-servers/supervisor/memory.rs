//! Shared memory of System V, which outlives a process that is killed.

use std::fs;

/// The ids of what this process has made and nobody uses. Empty where the system does not tell.
pub(crate) fn left_by(creator: u32) -> Vec<String> {
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    left_in(&table, &creator.to_string())
}

fn left_in(table: &str, creator: &str) -> Vec<String> {
    let mut lines = table.lines().map(|line| line.split_whitespace());
    let names: Vec<_> = lines.next().into_iter().flatten().collect();
    let column = |wanted| names.iter().position(|&name| name == wanted);
    let (Some(id), Some(made_by), Some(users)) =
        (column("shmid"), column("cpid"), column("nattch"))
    else {
        return Vec::new();
    };
    let fields = lines.map(Iterator::collect::<Vec<_>>);
    let left = fields
        .filter(|fields| fields.get(made_by) == Some(&creator) && fields.get(users) == Some(&"0"));
    left.filter_map(|fields| fields.get(id).map(|&id| id.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_process_made_or_uses_is_left_alone() {
        let table = "       key      shmid perms       size  cpid  lpid nattch   uid\n\
                     5432001  1   600   56   77   78   0   101\n\
                     5432002  2   600   56   77   78   1   101\n\
                     5432003  3   600   56   79   78   0   101\n";
        assert_eq!(left_in(table, "77"), ["1"]);
        assert!(left_in("", "77").is_empty());
    }
}
