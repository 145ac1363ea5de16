//! What the schema says of itself.

use lock_spi::{Finding, Result, Severity};
use sqlx::Row;
use sqlx::postgres::PgConnection;

use super::finding;
use super::rights::Known;
use crate::calls::Diagnose;
use crate::client::Call;
use crate::diagnose;
use crate::error::{Failure, Phase};
use crate::schema::{WANTED, altered};

pub(super) async fn look(connection: &mut PgConnection, known: &Known) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    if known.may_execute("attach_1") {
        let (format, problem) = attach(connection).await?;
        if u32::try_from(format) != Ok(WANTED) {
            findings.push(other_format(format));
            return Ok(findings);
        }
        findings.extend(
            problem
                .filter(|what| what.contains("encoding"))
                .map(|what| {
                    finding(
                        "encoding",
                        Severity::Critical,
                        what,
                        "keep the locks in a database of the encoding UTF8",
                    )
                }),
        );
    }
    for version in altered(connection).await? {
        findings.push(finding(
            "altered_migration",
            Severity::Critical,
            format!("migration {version} was applied with another text than this build has"),
            "find out who changed it, and bring the schema back to what fencelock migrate --print \
             prints",
        ));
    }
    if known.may_execute("diagnose_1") {
        findings.extend(diagnoses(connection).await?);
    }
    Ok(findings)
}

async fn attach(connection: &mut PgConnection) -> Result<(i32, Option<String>)> {
    const ASK: &str = "SELECT format, problem FROM dlock.attach_1()";
    let row = sqlx::raw_sql(ASK).fetch_one(connection).await;
    let read = row.and_then(|row| Ok((row.try_get("format")?, row.try_get("problem")?)));
    Ok(read.map_err(|error| Failure::new(Phase::Calling, error))?)
}

async fn diagnoses(connection: &mut PgConnection) -> Result<Vec<Finding>> {
    let rows = sqlx::raw_sql(Diagnose::SQL).fetch_all(connection).await;
    let rows = rows.map_err(|error| Failure::new(Phase::Calling, error))?;
    let told = Diagnose::read(&rows).map_err(|error| Failure::new(Phase::Calling, error))?;
    Ok(told.into_iter().map(diagnose::finding).collect())
}

fn other_format(format: i32) -> Finding {
    let older = format < i32::try_from(WANTED).unwrap_or(i32::MAX);
    finding(
        "other_format",
        Severity::Critical,
        format!("the locks are of format {format}, and this build speaks {WANTED}"),
        match older {
            true => "fencelock migrate",
            false => "update this program",
        },
    )
}
