//! A number that the server reports, with its names.

/// The kind of number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows while the process lives.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// The names of a number in scraped metrics.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// Its name, without the `_total` of counters, with its unit last.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
    pub kind: Kind,
    /// The label that distinguishes it from others with the same name.
    pub label: Option<(&'static str, &'static str)>,
    /// How many of the value's units make one of the metric's; 1,000,000 if microseconds are
    /// reported as seconds.
    pub divisor: u32,
}

/// A number with its names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// Its name in `SHOW STATUS`; empty if it is not shown there.
    pub name: &'static str,
    pub value: u64,
    /// Its name as a metric, if it is one.
    pub metric: Option<Metric>,
}

impl Figure {
    /// A number that only `SHOW STATUS` shows.
    #[must_use]
    pub const fn shown(name: &'static str, value: u64) -> Figure {
        Figure { name, value, metric: None }
    }

    /// A number that grows.
    #[must_use]
    pub const fn counter(
        name: &'static str,
        value: u64,
        metric: &'static str,
        help: &'static str,
    ) -> Figure {
        Figure { name, value, metric: counter(metric, help) }
    }

    /// A number that goes up and down.
    #[must_use]
    pub const fn gauge(
        name: &'static str,
        value: u64,
        metric: &'static str,
        help: &'static str,
    ) -> Figure {
        let metric = Metric { name: metric, help, kind: Kind::Gauge, label: None, divisor: 1 };
        Figure { name, value, metric: Some(metric) }
    }

    /// The same number, with a label that distinguishes it from others of the metric.
    #[must_use]
    pub const fn with_label(mut self, label: &'static str, value: &'static str) -> Figure {
        if let Some(metric) = &mut self.metric {
            metric.label = Some((label, value));
        }
        self
    }

    /// The same number, with a metric unit of this many of the value's.
    #[must_use]
    pub const fn divided(mut self, divisor: u32) -> Figure {
        if let Some(metric) = &mut self.metric {
            metric.divisor = divisor;
        }
        self
    }
}

/// The metric of a number that grows.
pub(super) const fn counter(name: &'static str, help: &'static str) -> Option<Metric> {
    Some(Metric { name, help, kind: Kind::Counter, label: None, divisor: 1 })
}

/// The metric of one of several numbers that grow.
pub(super) const fn labelled(
    name: &'static str,
    label: &'static str,
    value: &'static str,
    help: &'static str,
) -> Option<Metric> {
    Some(Metric { name, help, kind: Kind::Counter, label: Some((label, value)), divisor: 1 })
}
