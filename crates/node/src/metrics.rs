//! `/metrics`: the figures of a server in the text format of OpenMetrics, which Prometheus scrapes.
//!
//! ```text
//!   Instance::figures ──► families by name ──► prometheus-client's encoder ──► text
//!        └─ the same that SHOW GLOBAL STATUS shows
//! ```
//!
//! Names begin with `firn_` and end with the unit (`_seconds`, `_bytes`); `_total` follows for
//! counters. Nothing is gathered between scrapes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use firn_compute::Instance;
use firn_compute::status::{DURATION_BOUNDS_US, DurationCounts, Figure, Kind, Metric};
use firn_wire::Connections;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::http::Reply;

/// The classes of statements whose durations are counted, in the order of their counts.
const CLASSES: [&str; 3] = ["read", "write", "other"];

/// Gathers the figures of a server for each scrape.
struct Figures {
    instance: Arc<Instance>,
    connections: Arc<Connections>,
}

impl fmt::Debug for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Figures")
    }
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let figures = self.instance.figures(&self.connections);
        for (metric, figures) in families(&figures).into_values() {
            encode_family(&mut encoder, &metric, &figures)?;
        }
        encode_durations(&mut encoder, &self.instance.totals().durations)
    }
}

/// The metrics by their names.
fn families(figures: &[Figure]) -> BTreeMap<&'static str, (Metric, Vec<Figure>)> {
    let mut families: BTreeMap<&'static str, (Metric, Vec<Figure>)> = BTreeMap::new();
    for figure in figures {
        if let Some(metric) = figure.metric {
            families.entry(metric.name).or_insert((metric, Vec::new())).1.push(*figure);
        }
    }
    families
}

/// Splits the unit off the end of a name; the encoder appends it again.
fn split_unit(name: &str) -> (&str, Option<Unit>) {
    for (suffix, unit) in [("_seconds", Unit::Seconds), ("_bytes", Unit::Bytes)] {
        if let Some(stem) = name.strip_suffix(suffix) {
            return (stem, Some(unit));
        }
    }
    (name, None)
}

fn encode_family(
    encoder: &mut DescriptorEncoder<'_>,
    metric: &Metric,
    figures: &[Figure],
) -> fmt::Result {
    let (name, unit) = split_unit(metric.name);
    let kind = match metric.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
    };
    let mut family = encoder.encode_descriptor(name, metric.help, unit.as_ref(), kind)?;
    for figure in figures {
        let Some(own) = figure.metric else { continue };
        match own.label {
            Some(label) => {
                encode_value(&mut family.encode_family(&[label])?, &own, figure.value)?;
            }
            None => encode_value(&mut family, &own, figure.value)?,
        }
    }
    Ok(())
}

fn encode_value(encoder: &mut MetricEncoder<'_>, metric: &Metric, value: u64) -> fmt::Result {
    match (metric.kind, metric.divisor) {
        (Kind::Gauge, 1) => encoder.encode_gauge(&value),
        (Kind::Gauge, divisor) => encoder.encode_gauge(&(value as f64 / f64::from(divisor))),
        (Kind::Counter, 1) => encoder.encode_counter::<NoLabelSet, _, u64>(&value, None),
        (Kind::Counter, divisor) => {
            let value = value as f64 / f64::from(divisor);
            encoder.encode_counter::<NoLabelSet, _, u64>(&value, None)
        }
    }
}

fn encode_durations(
    encoder: &mut DescriptorEncoder<'_>,
    durations: &[DurationCounts; 3],
) -> fmt::Result {
    let help = "How long statements took";
    let unit = Some(&Unit::Seconds);
    let kind = MetricType::Histogram;
    let mut family = encoder.encode_descriptor("firn_statement_duration", help, unit, kind)?;
    for (class, counts) in CLASSES.iter().zip(durations) {
        let bounds = DURATION_BOUNDS_US.iter().map(|us| *us as f64 / 1e6);
        let buckets: Vec<(f64, u64)> =
            bounds.chain([f64::INFINITY]).zip(counts.buckets.iter().copied()).collect();
        let labels = [("class", *class)];
        let (sum, count) = (counts.sum_us as f64 / 1e6, counts.buckets.iter().sum());
        let mut metric = family.encode_family(&labels)?;
        metric.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
    }
    Ok(())
}

/// The page of a server.
#[derive(Debug)]
pub struct MetricsPage {
    registry: Registry,
}

impl MetricsPage {
    pub(crate) fn new(instance: Arc<Instance>, connections: Arc<Connections>) -> MetricsPage {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Figures { instance, connections }));
        MetricsPage { registry }
    }

    /// The answer to one scrape.
    #[must_use]
    pub fn reply(&self) -> Reply {
        let mut text = String::with_capacity(32 << 10);
        match text::encode(&mut text, &self.registry) {
            Ok(()) => Reply::metrics(text),
            Err(_) => Reply::unavailable("the figures cannot be written\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_told_apart_from_names() {
        for (name, stem, unit) in [
            ("firn_lock_wait_seconds", "firn_lock_wait", "seconds"),
            ("firn_log_kept_bytes", "firn_log_kept", "bytes"),
            ("firn_commits", "firn_commits", ""),
        ] {
            let (found, found_unit) = split_unit(name);
            assert_eq!((found, found_unit.as_ref().map_or("", Unit::as_str)), (stem, unit));
        }
    }

    #[test]
    fn figures_of_one_name_are_one_family() {
        let figure =
            |value, label| Figure::counter("", value, "firn_x", "help").with_label("kind", label);
        let figures = [figure(1, "a"), Figure::shown("Only_shown", 2), figure(3, "b")];
        let families = families(&figures);
        assert_eq!(families.len(), 1);
        assert_eq!(families["firn_x"].1.len(), 2);
    }
}
