//! The ratios as a picture.

use anyhow::{Result, anyhow};
use plotters::prelude::{
    BLACK, ChartBuilder, Color, IntoDrawingArea, IntoFont, PathElement, RGBColor, Rectangle,
    SVGBackend, SeriesLabelPosition, TextStyle, WHITE,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::arms::Keys;
use crate::backend::Kind;
use crate::suite::Outcome;

const SIZE: (u32, u32) = (900, 460);
/// Colours that people with any kind of eyes tell apart.
const COLOURS: [RGBColor; 7] = [
    RGBColor(120, 120, 120),
    RGBColor(86, 180, 233),
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(230, 159, 0),
    RGBColor(204, 121, 167),
];
/// The part of a group's width that its bars fill.
const FILLED: f64 = 0.84;

/// The height of the picture above the highest bar, with room for the legend.
const HEADROOM: f64 = 1.4;

/// The ratio of every arm to what the server itself costs, for each number of tasks, as an SVG document: a bar for the
/// median, a line from least to greatest.
pub(crate) fn svg<K: Kind>(outcomes: &[Outcome<K>]) -> Result<String> {
    let groups: Vec<_> = outcomes
        .iter()
        .filter(|outcome| outcome.suite.keys == Keys::Distinct)
        .collect();
    let mut text = String::new();
    draw(&mut text, &groups).map_err(|error| anyhow!("the chart cannot be drawn: {error}"))?;
    Ok(text)
}

fn draw<K: Kind>(
    text: &mut String,
    groups: &[&Outcome<K>],
) -> Result<(), Box<dyn std::error::Error>> {
    let (kinds, comparison) = (K::value_variants(), K::COMPARISON);
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let ratios = |&kind: &K| {
        groups
            .iter()
            .map(move |group| group.ratio(kind, comparison.limit))
    };
    let all = kinds.iter().flat_map(ratios).flatten();
    let top = all.map(|spread| spread.greatest).fold(1.0, f64::max) * HEADROOM;
    let width = f64::from(u32::try_from(groups.len().max(1))?);
    let mut chart = ChartBuilder::on(&root)
        .margin(12)
        .caption(comparison.caption, ("sans-serif", 20).into_font())
        .x_label_area_size(30)
        .y_label_area_size(48)
        .build_cartesian_2d(0.0..width, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .y_label_formatter(&|ratio| format!("{ratio:.1}"))
        .draw()?;
    let centred = TextStyle::from(("sans-serif", 15)).pos(Pos::new(HPos::Center, VPos::Top));
    for (number, group) in (0_u32..).zip(groups) {
        let (x, y) = chart.backend_coord(&(f64::from(number) + 0.5, 0.0));
        root.draw_text(&group.suite.to_string(), &centred, (x, y + 8))?;
    }
    let bar = FILLED / f64::from(u32::try_from(kinds.len())?);
    for (number, (kind, colour)) in (0_u32..).zip(kinds.iter().zip(COLOURS)) {
        let mut shapes = Vec::new();
        let mut lines = Vec::new();
        for (group, spread) in (0_u32..).zip(ratios(kind)) {
            let Some(spread) = spread else { continue };
            let left = f64::from(group) + (1.0 - FILLED) / 2.0 + f64::from(number) * bar;
            let (right, middle) = (left + bar * 0.92, left + bar * 0.46);
            shapes.push(Rectangle::new(
                [(left, 0.0), (right, spread.median)],
                colour.filled(),
            ));
            let ends = [(middle, spread.least), (middle, spread.greatest)];
            lines.push(PathElement::new(ends, BLACK));
        }
        chart
            .draw_series(shapes)?
            .label(kind.name())
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled()));
        chart.draw_series(lines)?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.9))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::sample;
    use crate::{etcd, postgres};

    fn every_arm_has_its_bars_and_its_name<K: Kind>() {
        let rates: &[f64] = &[100.0, 120.0];
        let outcome = || {
            let mut outcome = sample::<K, 0>([]);
            for &kind in K::value_variants() {
                outcome.measured.extend(sample([(kind, rates)]).measured);
            }
            outcome
        };
        let picture = svg(&[outcome(), outcome()]).unwrap();
        assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
        assert_eq!(picture.matches("distinct keys, 16 tasks").count(), 2);
        assert!(K::value_variants().len() <= COLOURS.len());
        for (kind, RGBColor(red, green, blue)) in K::value_variants().iter().zip(COLOURS) {
            let filled = format!("fill=\"#{red:02X}{green:02X}{blue:02X}\"");
            // Two bars, and one in the legend.
            assert_eq!(picture.matches(&filled).count(), 3, "{}", kind.name());
        }
    }

    #[test]
    fn every_arm_has_a_bar_for_each_number_of_tasks_and_a_name() {
        every_arm_has_its_bars_and_its_name::<etcd::Kind>();
        every_arm_has_its_bars_and_its_name::<postgres::Kind>();
    }

    #[test]
    fn nothing_measured_is_an_empty_picture_and_no_error() {
        assert!(svg::<etcd::Kind>(&[]).is_ok());
    }
}
