//! The names in the alerts and the dashboard are those that a program serves, and those of the
//! contract.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::Path;

use fencelock::spi::names::metric;
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::Value;

#[allow(dead_code, reason = "its main is for people")]
#[path = "../examples/prometheus.rs"]
mod program;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path);
    fs::read_to_string(path).unwrap()
}

/// The names of series in an expression of Prometheus.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("lock_")).collect()
}

/// Every series that the program of the example serves, by what the contract calls its kind.
fn served() -> Result<BTreeSet<String>, Box<dyn Error>> {
    let builder: PrometheusBuilder = program::exporter()?;
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    metrics::with_local_recorder(&recorder, || {
        metric::describe();
        let contract = read("docs/contract.md");
        for name in metric::ALL {
            match kind(&contract, name) {
                Kind::Counter => metrics::counter!(name).increment(1),
                Kind::Gauge => metrics::gauge!(name).set(1.0),
                Kind::Histogram => metrics::histogram!(name).record(0.1),
            }
        }
    });
    let text = handle.render();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let series = lines.filter_map(|line| line.split(['{', ' ']).next());
    let series = series.filter(|name| !name.is_empty());
    Ok(series.map(str::to_owned).collect())
}

enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// What the table of the contract says of a metric.
fn kind(contract: &str, name: &str) -> Kind {
    let plain = name.strip_suffix(".duration");
    let quoted = format!("`{}`", plain.unwrap_or(name));
    let rows = contract.lines().filter(|line| line.starts_with('|'));
    let row = rows.clone().find(|row| row.contains(&quoted));
    let row = row.unwrap_or_else(|| panic!("{name} is not in the contract's table"));
    match plain {
        Some(_) => Kind::Histogram,
        None if row.contains("| counter |") => Kind::Counter,
        None if row.contains("| gauge |") => Kind::Gauge,
        None if row.contains("| histogram") => Kind::Histogram,
        None => panic!("no kind in {row}"),
    }
}

#[test]
fn every_name_in_the_alerts_is_served() {
    let alerts = read("docs/telemetry/alerts.yaml");
    let (named, served) = (names(&alerts), served().unwrap());
    assert!(named.len() > 5, "{named:?}");
    for name in named {
        assert!(served.contains(name), "{name} is not among {served:#?}");
    }
}

#[test]
fn every_name_in_the_dashboard_is_served_and_every_metric_is_in_it() {
    let dashboard = read("docs/telemetry/dashboard.json");
    let document: Value = serde_json::from_str(&dashboard).unwrap();
    let (named, served) = (names(&dashboard), served().unwrap());
    for name in &named {
        assert!(served.contains(*name), "{name} is not among {served:#?}");
    }
    for metric in metric::ALL {
        let name = metric.replace('.', "_");
        let shown = named.iter().any(|series| series.starts_with(&name));
        assert!(shown, "{metric} is not shown");
    }
    let panels = document["panels"].as_array().unwrap();
    assert!(panels.iter().all(|panel| panel["description"].is_string()));
}

/// The other way round: a metric of the table that nobody makes would be waited for in vain.
#[test]
fn every_metric_of_the_contract_has_a_name_in_the_code() {
    let contract = read("docs/contract.md");
    let (_, rest) = contract.split_once("## C4 Observability").unwrap();
    let (table, _) = rest.split_once("\n## ").unwrap();
    let quoted = table.split('`').skip(1).step_by(2);
    let metrics: BTreeSet<_> = quoted.filter(|text| text.starts_with("lock.")).collect();
    assert_eq!(metrics.len(), 11, "{metrics:?}");
    for name in metrics {
        assert!(metric::ALL.contains(&name), "{name}");
    }
}
