//! Horizontal bars of a [`Figure`] as SVG: a group for each row, a bar for each system.
//!
//! ```text
//!   title
//!   ■ Firn  ■ MariaDB                     legend
//!   read only   ▆▆▆▆▆▆▆▆▆▆▆▆ 3 379        a row: bars, each with its value
//!               ▆▆▆▆▆ 1 344
//!   read write  ▆▆▆▆▆▆▆▆▆ 1 391
//!               ▆▆▆▆▆ 741
//!               0    1    2               axis
//!   machine, commit, command              origin
//! ```

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::error::BenchError;
use crate::figure::Figure;
use crate::plot::{COLORS, drawing};
use crate::report::readable;

// All lengths are pixels.
const WIDTH: i32 = 860;
const LEFT: i32 = 185;
const RIGHT: i32 = WIDTH - 90;
const TOP: i32 = 62;
const BAR: i32 = 13;
const GAP: i32 = 10;
const AXIS: i32 = 38;
const LINE: i32 = 16;

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn = Result<(), BenchError>;

/// Draws the figure.
///
/// # Errors
/// [`BenchError::Plot`].
pub(crate) fn draw(figure: &Figure) -> Result<String, BenchError> {
    let group = BAR * figure.systems.len() as i32 + GAP;
    let bottom = TOP + group * figure.rows.len() as i32;
    let height = bottom + AXIS + LINE * figure.origin.len() as i32 + 8;
    let mut svg = String::new();
    {
        let backend = SVGBackend::with_string(&mut svg, (WIDTH as u32, height as u32));
        let area = backend.into_drawing_area();
        area.fill(&WHITE).map_err(drawing)?;
        write(&area, &figure.title, (12, 16), 17, HPos::Left)?;
        legend(&area, figure)?;
        let scale = axis(&area, figure, bottom)?;
        for (index, row) in figure.rows.iter().enumerate() {
            let top = TOP + group * index as i32;
            write(&area, &row.name, (LEFT - 10, top + (group - GAP) / 2), 13, HPos::Right)?;
            for (system, value) in row.values.iter().enumerate() {
                let top = top + BAR * system as i32;
                let end = LEFT + (figure.length(row, system) * scale).round() as i32;
                rectangle(&area, (LEFT, top), (end, top + BAR - 1), color(figure, system))?;
                write(&area, &readable(*value), (end + 6, top + BAR / 2), 11, HPos::Left)?;
            }
        }
        for (index, line) in figure.origin.iter().enumerate() {
            let y = bottom + AXIS + 6 + LINE * index as i32;
            write(&area, line, (12, y), 11, HPos::Left)?;
        }
        area.present().map_err(drawing)?;
    }
    Ok(svg)
}

/// Draws the names of the systems, and the unit at the right.
fn legend(area: &Area<'_>, figure: &Figure) -> Drawn {
    for (system, name) in figure.systems.iter().enumerate() {
        let x = LEFT + 110 * system as i32;
        rectangle(area, (x, 36), (x + 12, 48), color(figure, system))?;
        write(area, name, (x + 18, 42), 13, HPos::Left)?;
    }
    write(area, &figure.unit, (WIDTH - 12, 42), 12, HPos::Right)
}

/// Draws the axis with its grid, and returns how many pixels a length of 1 has.
fn axis(area: &Area<'_>, figure: &Figure, bottom: i32) -> Result<f64, BenchError> {
    let lengths = figure.rows.iter().flat_map(|row| {
        let systems = 0..figure.systems.len();
        systems.map(move |system| figure.length(row, system))
    });
    let longest = lengths.fold(0.0, f64::max);
    let scale = f64::from(RIGHT - LEFT) / longest;
    let step = step(longest);
    let mut tick = 0.0;
    while tick <= longest {
        let x = LEFT + (tick * scale).round() as i32;
        let grid = PathElement::new([(x, TOP - 4), (x, bottom)], BLACK.mix(0.15));
        area.draw(&grid).map_err(drawing)?;
        write(area, &readable(tick), (x, bottom + 9), 11, HPos::Center)?;
        tick += step;
    }
    if let Some(reference) = figure.reference {
        let label = format!("multiples of {}", figure.systems[reference]);
        write(area, &label, ((LEFT + RIGHT) / 2, bottom + 25), 11, HPos::Center)?;
    }
    Ok(scale)
}

/// The distance between two ticks: 1, 2 or 5 times a power of ten, for three to eight ticks.
fn step(longest: f64) -> f64 {
    let power = 10f64.powf((longest / 3.0).log10().floor());
    let steps = [5.0, 2.0, 1.0].map(|factor| factor * power);
    steps.into_iter().find(|step| longest / step >= 3.0).unwrap_or(power)
}

/// The usual systems have the same colour in every plot.
fn color(figure: &Figure, system: usize) -> RGBColor {
    let peers = ["Firn", "MariaDB", "PostgreSQL"];
    let peer = peers.iter().position(|peer| *peer == figure.systems[system]);
    COLORS[peer.unwrap_or(peers.len() + system) % COLORS.len()]
}

fn rectangle(area: &Area<'_>, from: (i32, i32), to: (i32, i32), color: RGBColor) -> Drawn {
    area.draw(&Rectangle::new([from, to], color.filled())).map_err(drawing)
}

/// Text in the given size, vertically centred at `at`.
fn write(area: &Area<'_>, text: &str, at: (i32, i32), size: i32, horizontal: HPos) -> Drawn {
    let font = ("sans-serif", size).into_font();
    let style = TextStyle::from(font).pos(Pos::new(horizontal, VPos::Center));
    area.draw(&Text::new(text.to_owned(), at, style)).map_err(drawing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_and_between_three_and_eight() {
        let steps = [2.9, 3.0, 7.0, 16.0, 42_879.0].map(step);
        assert_eq!(steps, [0.5, 1.0, 2.0, 5.0, 10_000.0]);
        for tenth in 1..10_000 {
            let longest = f64::from(tenth) / 10.0;
            let ticks = longest / step(longest);
            assert!((2.99..=8.0).contains(&ticks), "{longest}: {ticks}");
        }
    }
}
