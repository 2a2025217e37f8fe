//! Plots of a run as SVG: throughput over time, latency over time, and latency by percentile.

use plotters::prelude::*;

use crate::error::BenchError;
use crate::measure::{Kind, Measured};

const SIZE: (u32, u32) = (860, 300);
pub(crate) const COLORS: [RGBColor; 8] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 96, 28),
    RGBColor(44, 140, 60),
    RGBColor(190, 40, 60),
    RGBColor(120, 85, 170),
    RGBColor(120, 80, 70),
    RGBColor(200, 90, 170),
    RGBColor(90, 90, 90),
];

/// A line with a name.
struct Line {
    name: String,
    points: Vec<(f64, f64)>,
}

pub(crate) fn drawing<E: std::error::Error + Send + Sync>(
    error: DrawingAreaErrorKind<E>,
) -> BenchError {
    BenchError::Plot(error.to_string())
}

/// Throughput over time, latency over time, and latency by percentile.
///
/// # Errors
/// [`BenchError::Plot`].
pub(crate) fn of_run(measured: &Measured) -> Result<Vec<String>, BenchError> {
    let course = |figure: &dyn Fn(&crate::measure::Window) -> f64| -> Vec<(f64, f64)> {
        let windows = measured.windows.iter();
        windows.map(|window| (window.end.as_secs_f64(), figure(window))).collect()
    };
    let throughput = [Line {
        name: "transactions/s".to_owned(),
        points: course(&crate::measure::Window::per_second),
    }];
    let latency: Vec<Line> = ["P50", "P95", "P99"]
        .into_iter()
        .enumerate()
        .map(|(index, name)| Line {
            name: name.to_owned(),
            points: course(&|window| window.latency_ms[index]),
        })
        .collect();
    Ok(vec![
        over_time("Throughput, transactions/s by second", &throughput)?,
        over_time("Latency in ms, by second", &latency)?,
        distribution(measured)?,
    ])
}

fn bounds(lines: &[Line]) -> ((f64, f64), f64) {
    let points = || lines.iter().flat_map(|line| &line.points);
    let (first, last) =
        points().fold((f64::MAX, 0.0f64), |(first, last), (x, _)| (first.min(*x), last.max(*x)));
    let top = points().map(|(_, y)| *y).fold(0.0, f64::max);
    ((first.min(last - 1e-3).max(0.0), last.max(1e-3)), if top > 0.0 { top * 1.05 } else { 1.0 })
}

fn over_time(caption: &str, lines: &[Line]) -> Result<String, BenchError> {
    let ((_, last), top) = bounds(lines);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE).map_err(drawing)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(caption, ("sans-serif", 16))
            .margin(10)
            .x_label_area_size(35)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..last, 0.0..top)
            .map_err(drawing)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc("seconds")
            .draw()
            .map_err(drawing)?;
        draw(&mut chart, lines).map_err(drawing)?;
        area.present().map_err(drawing)?;
    }
    Ok(svg)
}

/// Draws each line in its own colour, with a legend.
fn draw<'a, B, X, Y>(
    chart: &mut ChartContext<'a, B, Cartesian2d<X, Y>>,
    lines: &[Line],
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>>
where
    B: DrawingBackend + 'a,
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    for (index, line) in lines.iter().enumerate() {
        let style = COLORS[index % COLORS.len()].stroke_width(2);
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), style))?
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()
}

/// Percentiles up to the one that a single transaction represents.
fn percentiles(kind: &Kind) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let total = kind.transactions() as f64;
    let mut rarity = 1.0;
    while rarity <= total {
        let percent = 100.0 * (1.0 - 1.0 / rarity);
        points.push((rarity, kind.percentile_ms(percent).max(1e-3)));
        rarity *= 1.25;
    }
    points
}

/// Latency by percentile, both in powers of ten: the tail is as wide as the middle.
fn distribution(measured: &Measured) -> Result<String, BenchError> {
    let kinds = measured.names.iter().zip(&measured.kinds);
    let lines: Vec<Line> = kinds
        .filter(|(_, kind)| kind.transactions() > 0)
        .map(|(name, kind)| Line { name: name.clone(), points: percentiles(kind) })
        .collect();
    let ((_, last), top) = bounds(&lines);
    let bottom = lines.iter().flat_map(|line| &line.points).map(|(_, y)| *y).fold(top, f64::min);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE).map_err(drawing)?;
        let mut chart = ChartBuilder::on(&area)
            .caption("Latency in ms, by percentile", ("sans-serif", 16))
            .margin(10)
            .x_label_area_size(35)
            .y_label_area_size(70)
            .build_cartesian_2d(
                (1.0..last.max(2.0)).log_scale(),
                (bottom * 0.8..top.max(bottom * 2.0)).log_scale(),
            )
            .map_err(drawing)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc("percentile")
            .x_label_formatter(&|rarity| format!("{}", percent_label(*rarity)))
            .y_label_formatter(&|latency| crate::report::readable(*latency))
            .draw()
            .map_err(drawing)?;
        draw(&mut chart, &lines).map_err(drawing)?;
        area.present().map_err(drawing)?;
    }
    Ok(svg)
}

/// The percentile above which one of `rarity` transactions lies.
fn percent_label(rarity: f64) -> f64 {
    let percent = 100.0 * (1.0 - 1.0 / rarity);
    // As many digits as distinguish it from 100.
    let digits = 10f64.powi(rarity.log10().ceil().max(0.0) as i32);
    (percent * digits).round() / digits
}
