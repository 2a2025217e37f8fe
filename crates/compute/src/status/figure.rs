//! A number that the server tells, with the names that it goes by.

/// What kind of number it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows while the process lives.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// How a number is called where metrics are scraped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// Its name, without the `_total` of counters, with its unit last.
    pub name: &'static str,
    /// One line for people.
    pub help: &'static str,
    /// What kind of number.
    pub kind: Kind,
    /// What tells it from others of the same name.
    pub label: Option<(&'static str, &'static str)>,
    /// The metric's unit is so many of the value's; 1,000,000 where microseconds are told as seconds.
    pub divisor: u32,
}

/// A number with its names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// Its name in `SHOW STATUS`; empty if it is not shown there.
    pub name: &'static str,
    /// The number.
    pub value: u64,
    /// Its name as a metric, if it is one.
    pub metric: Option<Metric>,
}

impl Figure {
    /// A number that is only shown in `SHOW STATUS`.
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

    /// The same number, told with a label that tells it from others of the metric.
    #[must_use]
    pub const fn with_label(mut self, label: &'static str, value: &'static str) -> Figure {
        if let Some(metric) = &mut self.metric {
            metric.label = Some((label, value));
        }
        self
    }

    /// The same number, told as a metric in a unit that is so many of the value's.
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
