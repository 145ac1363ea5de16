//! A program that serves the metrics of its locks to Prometheus, under the names that the alerts and
//! the dashboard in `docs/telemetry` use.
//!
//! ```sh
//! cargo run -p fencelock-cli --example prometheus -- postgres://postgres@localhost/postgres
//! curl localhost:9187/metrics
//! ```

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use fencelock::Client;
use fencelock::spi::{Runtime, TokioRuntime};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = std::env::args().nth(1).unwrap_or_else(|| "memory:".into());
    let address = SocketAddr::from(([127, 0, 0, 1], 9187));
    exporter()?.with_http_listener(address).install()?;
    let locks = Client::connect(&store).await?;
    let runtime: &dyn Runtime = &TokioRuntime::current();
    loop {
        let guard = locks.acquire("demo").await?;
        runtime.sleep(Duration::from_millis(200)).await;
        guard.release().await?;
    }
}

/// Buckets and not summaries: those of several processes can be added up.
pub(crate) fn exporter() -> Result<PrometheusBuilder, Box<dyn Error>> {
    // From a call in the same rack to the longest ttl that is usual.
    const SECONDS: [f64; 14] = [
        0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    ];
    let prometheus = PrometheusBuilder::new().with_recommended_naming(true);
    let duration = Matcher::Suffix("duration".into());
    let slack = Matcher::Suffix("slack".into());
    Ok(prometheus
        .set_buckets_for_metric(duration, &SECONDS)?
        .set_buckets_for_metric(slack, &SECONDS)?)
}
