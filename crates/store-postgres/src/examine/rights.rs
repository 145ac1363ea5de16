//! What is there of the schema, and what this role may do with it.

use lock_spi::{Finding, Result, Severity};
use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};

use super::finding;
use crate::error::{Failure, Phase};
use crate::schema::APPLICATION;

/// What may be asked of the schema.
pub(super) struct Known {
    /// The functions that there are and that may be executed.
    executable: Vec<String>,
}

impl Known {
    pub(super) fn may_execute(&self, function: &str) -> bool {
        self.executable.iter().any(|known| known == function)
    }
}

/// Asked of the catalogue alone, which everybody may read.
const ASK: &str = "SELECT current_user::text AS role, \
     pg_catalog.has_schema_privilege(n.oid, 'USAGE') AS usage, \
     p.proname::text AS function, \
     pg_catalog.has_function_privilege(p.oid, 'EXECUTE') AS execute \
     FROM pg_catalog.pg_namespace n LEFT JOIN pg_catalog.pg_proc p ON p.pronamespace = n.oid \
     WHERE n.nspname = 'dlock'";

struct Right {
    role: String,
    usage: bool,
    function: Option<String>,
    execute: Option<bool>,
}

/// `None` when there is nothing to ask further.
pub(super) async fn look(
    connection: &mut PgConnection,
    findings: &mut Vec<Finding>,
) -> Result<Option<Known>> {
    let rows = sqlx::raw_sql(ASK).fetch_all(connection).await;
    let rights = rows.and_then(|rows| rows.iter().map(read).collect());
    let rights: Vec<Right> = rights.map_err(|error| Failure::new(Phase::Connecting, error))?;
    let (finding, known) = judge(&rights);
    findings.extend(finding);
    Ok(known)
}

fn read(row: &PgRow) -> Result<Right, sqlx::Error> {
    Ok(Right {
        role: row.try_get("role")?,
        usage: row.try_get("usage")?,
        function: row.try_get("function")?,
        execute: row.try_get("execute")?,
    })
}

fn judge(rights: &[Right]) -> (Option<Finding>, Option<Known>) {
    let exists = |name: &str| {
        rights
            .iter()
            .any(|right| right.function.as_deref() == Some(name))
    };
    if !exists("attach_1") {
        let none = finding(
            "no_schema",
            Severity::Critical,
            "there are no locks in this database: the schema dlock is missing",
            "make it, as a role that may: fencelock migrate, or run what fencelock migrate --print \
             prints",
        );
        return (Some(none), None);
    }
    let missing: Vec<_> = (APPLICATION.iter().copied())
        .filter(|name| !exists(name))
        .collect();
    if !missing.is_empty() {
        let altered = finding(
            "schema_altered",
            Severity::Critical,
            format!("the schema dlock lacks {}", missing.join(", ")),
            "find out who changed it; what fencelock migrate --print prints has the functions",
        );
        return (Some(altered), None);
    }
    let executable: Vec<_> = (rights.iter())
        .filter(|right| right.usage && right.execute == Some(true))
        .filter_map(|right| right.function.clone())
        .collect();
    let known = Known { executable };
    let denied: Vec<_> = (APPLICATION.iter().copied())
        .filter(|name| !known.may_execute(name))
        .collect();
    let role = rights.first().map_or("", |right| &right.role);
    let finding = (!denied.is_empty()).then(|| {
        finding(
            "missing_grants",
            Severity::Critical,
            format!("the role {role} may not execute {}", denied.join(", ")),
            format!(
                "as the owner of dlock, run what fencelock migrate --print-grants {role} prints"
            ),
        )
    });
    (finding, Some(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(functions: &[&str], usage: bool, execute: impl Fn(&str) -> bool) -> Vec<Right> {
        let right = |name: &&str| Right {
            role: "billing".into(),
            usage,
            function: Some((*name).into()),
            execute: Some(execute(name)),
        };
        functions.iter().map(right).collect()
    }

    #[test]
    fn a_role_lacks_what_it_may_not_execute_and_the_finding_names_it() {
        let (none, known) = judge(&rights(&APPLICATION, true, |_| true));
        assert!(none.is_none() && known.unwrap().may_execute("read_1"));
        let (some, known) = judge(&rights(&APPLICATION, true, |name| name != "revoke_1"));
        let some = some.unwrap();
        assert_eq!(some.what, "the role billing may not execute revoke_1");
        assert!(some.what_to_do.contains("--print-grants billing"));
        assert!(!known.unwrap().may_execute("revoke_1"));
        let (all, _) = judge(&rights(&APPLICATION, false, |_| true));
        assert!(all.unwrap().what.contains("attach_1"));
    }

    #[test]
    fn a_schema_that_is_missing_is_told_from_one_that_lost_something() {
        let (missing, known) = judge(&[]);
        assert!(missing.unwrap().id == "no_schema" && known.is_none());
        let (altered, known) = judge(&rights(&["attach_1", "read_1"], true, |_| true));
        assert!(altered.unwrap().id == "schema_altered" && known.is_none());
    }
}
