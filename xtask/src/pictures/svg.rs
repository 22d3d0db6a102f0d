//! The few shapes of SVG that the pictures need.

use std::fmt::Write;

/// The styles of text.
#[derive(Clone, Copy)]
pub(super) enum Text {
    Title,
    Strong,
    Plain,
}

/// A picture under construction. Coordinates are pixels from the upper left corner.
pub(super) struct Drawing(String);

impl Drawing {
    /// Begins a picture on white, which is readable in light and dark pages alike.
    pub(super) fn new(width: u32, height: u32, description: &str) -> Drawing {
        Drawing(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"sans-serif\" role=\"img\">\n<title>{description}</title>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        ))
    }

    /// Adds text that begins at `x` on the baseline `y`.
    pub(super) fn text(&mut self, x: u32, y: u32, style: Text, text: &str) {
        let style = match style {
            Text::Title => "font-size=\"14\" font-weight=\"bold\"",
            Text::Strong => "font-size=\"13\" font-weight=\"bold\"",
            Text::Plain => "font-size=\"12\"",
        };
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(self.0, "<text x=\"{x}\" y=\"{y}\" {style} fill=\"#1c2833\">{text}</text>");
    }

    /// Adds a filled rectangle of a width and a height.
    pub(super) fn bar(&mut self, x: u32, y: u32, (width, height): (u32, u32), fill: &str) {
        let _ = writeln!(
            self.0,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"2\" fill=\"{fill}\"/>"
        );
    }

    /// Ends the picture and returns its text.
    pub(super) fn finish(self) -> String {
        self.0 + "</svg>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let mut drawing = Drawing::new(1, 1, "");
        drawing.text(0, 0, Text::Plain, "a < b & c");
        assert!(drawing.finish().contains(">a &lt; b &amp; c</text>"));
    }
}
