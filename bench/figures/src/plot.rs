//! Plots: for each workload of a figure a line per system along the axis, or bars if it is measured in only one place.

use plotters::prelude::*;

use crate::Error;
use crate::paper::{Figure, Shown};
use crate::point::Points;

const SIZE: (u32, u32) = (720, 360);

/// A system's points: place and value.
struct Series {
    system: &'static str,
    shown: Vec<(f64, f64)>,
}

/// Returns all plots of a figure, as SVG.
pub(crate) fn plots(figure: &Figure, points: &Points) -> Result<String, Error> {
    let mut svg = String::new();
    for workload in figure.workloads {
        let series: Vec<_> = figure.systems.iter().map(|system| series(figure, points, workload, system)).collect();
        let most = series.iter().flat_map(|series| &series.shown).map(|(_, y)| *y).fold(0.0, f64::max);
        if most > 0.0 {
            plot(&mut svg, figure, workload, &series, most).map_err(|error| error.to_string())?;
        }
    }
    Ok(svg)
}

fn series(figure: &Figure, points: &Points, workload: &str, system: &'static str) -> Series {
    let shown = |ns: f64| match figure.shown {
        Shown::Latency | Shown::Bytes => ns,
        Shown::Rate => 1e3 / ns,
    };
    let at = figure.at.iter().filter_map(|at| Some((*at, shown(points.median_ns(workload, system, *at)?))));
    Series { system, shown: at.collect() }
}

fn plot(
    svg: &mut String,
    figure: &Figure,
    workload: &str,
    series: &[Series],
    most: f64,
) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    let unit = match figure.shown {
        Shown::Latency => "ns per operation",
        Shown::Bytes => "bytes per pair",
        Shown::Rate => "million operations per second",
    };
    let (first, last) = (figure.at[0], figure.at[figure.at.len() - 1]);
    let margin = if first == last { 0.5 } else { (last - first) / 8.0 };
    let mut chart = ChartBuilder::on(&area)
        .caption(format!("{workload}: {unit}"), ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(56)
        .build_cartesian_2d(first - margin..last + margin, 0.0..most * 1.1)?;
    chart.configure_mesh().x_desc(figure.axis).y_labels(8).light_line_style(WHITE).draw()?;
    for (number, Series { system, shown }) in series.iter().enumerate() {
        let colour = Palette99::pick(number).to_rgba();
        // With only one place the systems are next to each other.
        let width = 2.0 * margin / series.len() as f64;
        let beside = if first == last { (number as f64 + 0.5) * width - margin } else { 0.0 };
        let moved: Vec<_> = shown.iter().map(|(x, y)| (x + beside, *y)).collect();
        let bars = moved.iter().filter(|_| first == last);
        let bars = bars.map(|(x, y)| Rectangle::new([(x - width / 3.0, 0.0), (x + width / 3.0, *y)], colour.filled()));
        chart.draw_series(bars)?;
        chart
            .draw_series(LineSeries::new(moved.iter().copied(), colour.stroke_width(2)))?
            .label(*system)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(3)));
        chart.draw_series(moved.iter().map(|at| Circle::new(*at, 3, colour.filled())))?;
    }
    chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK).draw()?;
    area.present()?;
    Ok(())
}
