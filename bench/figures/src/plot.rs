//! Plots: for each workload of a figure a line per system along the axis, or bars if it is measured in only one place.
//! The median round counts; whiskers reach from the fastest round to the slowest.

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::Error;
use crate::paper::{Figure, Shown};
use crate::point::Points;

const SIZE: (u32, u32) = (720, 360);
/// A figure with more workloads has no picture.
const WORKLOADS_MAX: usize = 12;
const COLUMNS_MAX: usize = 3;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A place, the value of the median round, and the least and the greatest value.
type Shape = (f64, f64, [f64; 2]);

/// A system's values.
struct Series {
    system: &'static str,
    shown: Vec<Shape>,
}

/// Returns all plots of a figure, as SVG, one after the other.
pub(crate) fn plots(figure: &Figure, points: &Points) -> Result<String, Error> {
    let mut svg = String::new();
    for (workload, series) in workloads(figure, points) {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        plot(&area, figure, workload, &series)?;
        area.present().map_err(|error| error.to_string())?;
    }
    Ok(svg)
}

/// Returns all plots of a figure in one picture; `None` without measurements, and if there are too many.
pub(crate) fn all_in_one(figure: &Figure, points: &Points) -> Result<Option<String>, Error> {
    let (workloads, mut svg) = (workloads(figure, points), String::new());
    if workloads.is_empty() || workloads.len() > WORKLOADS_MAX {
        return Ok(None);
    }
    let columns = workloads.len().min(COLUMNS_MAX);
    let rows = workloads.len().div_ceil(columns);
    {
        let size = (480 * columns as u32, 320 * rows as u32);
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&WHITE).map_err(|error| error.to_string())?;
        for ((workload, series), part) in workloads.iter().zip(area.split_evenly((rows, columns))) {
            plot(&part, figure, workload, series)?;
        }
        // The parts share the picture, which ends once.
        area.present().map_err(|error| error.to_string())?;
    }
    Ok(Some(svg))
}

/// Returns the workloads of which something was measured.
fn workloads(figure: &Figure, points: &Points) -> Vec<(&'static str, Vec<Series>)> {
    let of = |workload| figure.systems.iter().map(|system| series(figure, points, workload, system)).collect();
    let all = figure.workloads.iter().map(|workload| (*workload, of(workload)));
    all.filter(|(_, series): &(_, Vec<Series>)| greatest(series) > 0.0).collect()
}

fn series(figure: &Figure, points: &Points, workload: &str, system: &'static str) -> Series {
    let shown = |ns: f64| match figure.shown {
        Shown::Latency | Shown::Bytes => ns,
        Shown::Rate => 1e3 / ns,
    };
    let at = figure.at.iter().filter_map(|at| {
        let (least, most) = points.range_ns(workload, system, *at)?;
        let [one, other] = [shown(least), shown(most)];
        Some((*at, shown(points.median_ns(workload, system, *at)?), [one.min(other), one.max(other)]))
    });
    Series { system, shown: at.collect() }
}

fn greatest(series: &[Series]) -> f64 {
    series.iter().flat_map(|series| &series.shown).map(|(_, _, [_, most])| *most).fold(0.0, f64::max)
}

fn plot(area: &Area<'_>, figure: &Figure, workload: &str, series: &[Series]) -> Result<(), Error> {
    draw(area, figure, workload, series).map_err(|error| error.to_string().into())
}

fn draw(area: &Area<'_>, figure: &Figure, workload: &str, series: &[Series]) -> Result<(), Box<dyn std::error::Error>> {
    let unit = match figure.shown {
        Shown::Latency => "ns per operation",
        Shown::Bytes => "bytes per pair",
        Shown::Rate => "million operations per second",
    };
    let (first, last) = (figure.at[0], figure.at[figure.at.len() - 1]);
    let is_one = first == last;
    let margin = if is_one { 0.5 } else { (last - first) / 8.0 };
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{workload}: {unit}"), ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(56)
        .build_cartesian_2d(first - margin..last + margin, 0.0..greatest(series) * 1.1)?;
    chart.configure_mesh().x_desc(figure.axis).x_labels(6).y_labels(6).light_line_style(WHITE).draw()?;
    let whisker = (last - first + 2.0 * margin) / 120.0;
    for (number, Series { system, shown }) in series.iter().enumerate().filter(|(_, series)| !series.shown.is_empty()) {
        let colour = Palette99::pick(number).to_rgba();
        // With only one place the systems are next to each other.
        let width = 2.0 * margin / series.len() as f64;
        let aside = if is_one { (number as f64 + 0.5) * width - margin } else { 0.0 };
        let moved: Vec<_> = shown.iter().map(|&(x, y, ends)| (x + aside, y, ends)).collect();
        let bars = moved.iter().filter(|_| is_one);
        let bars =
            bars.map(|(x, y, _)| Rectangle::new([(x - width / 3.0, 0.0), (x + width / 3.0, *y)], colour.filled()));
        chart.draw_series(bars)?;
        let line: Vec<_> = moved.iter().map(|&(x, y, _)| (x, y)).collect();
        let legend = move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(3));
        if figure.is_model {
            let dashed = DashedLineSeries::new(line.iter().copied(), 6, 4, colour.stroke_width(2));
            chart.draw_series(dashed)?.label(*system).legend(legend);
        } else {
            chart
                .draw_series(LineSeries::new(line.iter().copied(), colour.stroke_width(2)))?
                .label(*system)
                .legend(legend);
        }
        for &(x, y, [least, most]) in &moved {
            let colour = if is_one { BLACK.to_rgba() } else { colour };
            let ends = [least, most].map(|end| PathElement::new([(x - whisker, end), (x + whisker, end)], colour));
            chart.draw_series(ends)?;
            chart.draw_series([PathElement::new([(x, least), (x, most)], colour)])?;
            chart.draw_series([Circle::new((x, y), 3, colour.filled())])?;
        }
    }
    let legend = SeriesLabelPosition::UpperRight;
    chart.configure_series_labels().position(legend).background_style(WHITE.mix(0.7)).border_style(BLACK).draw()?;
    Ok(())
}
