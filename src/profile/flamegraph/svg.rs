//! A flame graph as a self-contained SVG file: root on top, no script, no external font or style.
//!
//! Frames are coloured by package. A frame's title, which viewers show as a tooltip, contains the name, the total and
//! the self value (each with its percentage of the whole graph), the file with the line, and the binary. All names are
//! escaped. Frames narrower than 0.3 pixels are not drawn.

use std::fmt::Write;

use crate::flamegraph::{Block, FlameGraph, OTHER};
use crate::{format, package};

/// Height of a frame in pixels.
const ROW_HEIGHT: usize = 18;
/// Height of the heading in pixels.
const HEADING: usize = 40;
/// Space at the left and the right, in pixels.
const MARGIN: f64 = 8.0;
/// Width of a character of the 12 px monospace font in pixels, rounded up.
const CHARACTER: f64 = 7.3;
/// Minimum width of a frame in pixels. Narrower frames are not drawn.
const MIN_FRAME_WIDTH: f64 = 0.3;
/// Maximum number of bytes of a name or path. Longer texts are truncated, because each frame has its own copy.
const MAX_NAME_BYTES: usize = 4096;

/// Title, unit and size of the drawing.
#[derive(Debug, Clone)]
pub struct SvgOptions<'a> {
    /// Heading of the drawing; may be empty.
    pub title: &'a str,
    /// Unit of the values, as the profile type names it.
    pub unit: &'a str,
    /// Width of the picture in pixels.
    pub width: u32,
}

impl Default for SvgOptions<'_> {
    fn default() -> Self {
        Self {
            title: "",
            unit: "",
            width: 1200,
        }
    }
}

/// Draws a flame graph as one SVG document.
pub fn svg(graph: &FlameGraph, options: &SvgOptions<'_>) -> String {
    let width = f64::from(options.width.max(100));
    let height = HEADING + graph.levels.len() * ROW_HEIGHT + MARGIN as usize;
    let scale = (width - 2.0 * MARGIN) / graph.total.max(1) as f64;
    let mut out = String::new();
    // Writing into a String cannot fail.
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} \
         {height}\" \
         font-family=\"ui-monospace,Menlo,Consolas,monospace\" font-size=\"12\" data-total=\"{}\" data-unit=\"{}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"24\" font-size=\"15\" font-family=\"system-ui,sans-serif\" \
             fill=\"#1b1f24\">{}{}{}</text>\n",
        graph.total,
        escape(options.unit),
        escape(options.title),
        if options.title.is_empty() { "" } else { ": " },
        escape(&format::value(graph.total, options.unit)),
    );
    for depth in 0..graph.levels.len() {
        for block in graph.blocks(depth) {
            let frame_width = block.total as f64 * scale;
            if frame_width >= MIN_FRAME_WIDTH {
                frame(
                    &mut out,
                    graph,
                    &block,
                    depth,
                    MARGIN + block.x as f64 * scale,
                    frame_width,
                    options,
                );
            }
        }
    }
    out.push_str("</svg>\n");
    out
}

fn frame(
    out: &mut String,
    graph: &FlameGraph,
    block: &Block<'_>,
    depth: usize,
    x: f64,
    frame_width: f64,
    options: &SvgOptions<'_>,
) {
    let y = HEADING + depth * ROW_HEIGHT;
    let value = |value| {
        let text = format::value(value, options.unit);
        format!("{text} ({})", format::share(value, graph.total))
    };
    let [name, file, mapping] = [block.name, block.file, block.mapping].map(start);
    let mut title = format!("{name}\ntotal {}, self {}", value(block.total), value(block.own));
    match (file, block.line) {
        ("", _) => {}
        (file, 0) => title.push_str(&format!("\n{file}")),
        (file, line) => title.push_str(&format!("\n{file}:{line}")),
    }
    if !mapping.is_empty() {
        title.push_str(&format!("\n{mapping}"));
    }
    // A gap of half a pixel separates neighbours, except after very narrow frames.
    let drawn = if frame_width > 2.0 {
        frame_width - 0.5
    } else {
        frame_width
    };
    let _ = write!(
        out,
        "<g><title>{}</title><rect x=\"{x:.2}\" y=\"{y}\" width=\"{drawn:.2}\" height=\"{}\" rx=\"1\" fill=\"{}\"/>",
        escape(&title),
        ROW_HEIGHT - 1,
        fill(block, depth),
    );
    let room = ((frame_width - 6.0) / CHARACTER).max(0.0) as usize;
    if room >= 3 {
        let _ = write!(
            out,
            "<text x=\"{:.2}\" y=\"{}\" fill=\"#1b1f24\">{}</text>",
            x + 3.0,
            y + 13,
            escape(&clip(name, room)),
        );
    }
    out.push_str("</g>\n");
}

/// Returns the colour of a block: the hue of its package at a lightness that suits dark text. The root, folded nodes
/// and blocks without a package are grey. Blocks of runtimes are almost grey.
fn fill(block: &Block<'_>, depth: usize) -> String {
    let package = package::package(block.name, block.file, block.mapping);
    if depth == 0 || (block.name == OTHER && block.file.is_empty()) || package.is_empty() {
        return "#d8dce2".to_owned();
    }
    let hue = package::hue(package);
    if package::is_runtime(package) {
        format!("hsl({hue},15%,82%)")
    } else {
        format!("hsl({hue},65%,76%)")
    }
}

/// Returns the first [`MAX_NAME_BYTES`] bytes of a text.
fn start(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_NAME_BYTES)).unwrap_or_default()
}

/// Shortens a text to `room` characters. If a name has slashes, the part after the last slash is kept, because it says
/// more than the start.
fn clip(text: &str, room: usize) -> String {
    let length = text.chars().count();
    if length <= room {
        return text.to_owned();
    }
    let last_part = text.rsplit('/').next().unwrap_or(text);
    let last_part_length = last_part.chars().count();
    if last_part_length <= room {
        return last_part.to_owned();
    }
    let prefix: String = last_part.chars().take(room.saturating_sub(2)).collect();
    format!("{prefix}..")
}

/// Escapes markup, and replaces characters that XML does not allow at all.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flamegraph::{FrameRef, Tree};

    fn drawn(name: &str, title: &str) -> String {
        let mut tree = Tree::by_file();
        let frame = FrameRef {
            function: name,
            file: "/src/main.go",
            line: 12,
            mapping: "/bin/app",
        };
        tree.insert([frame], 1_500_000_000);
        tree.insert([], 500_000_000);
        let options = SvgOptions {
            title,
            unit: "nanoseconds",
            width: 800,
        };
        svg(&tree.to_flamegraph(0), &options)
    }

    #[test]
    fn a_frame_has_its_name_and_a_title_with_everything_known() {
        let svg = drawn("main.work", "CPU");
        for part in [
            "<title>main.work\ntotal 1.5 s (75.00%), self 1.5 s (75.00%)\n/src/main.go:12\n/bin/app</title>",
            ">main.work</text>",
            ">CPU: 2 s</text>",
            // 75% of 784 pixels, to the right of the 25% of stacks without frames.
            "x=\"204.00\" y=\"58\" width=\"587.50\"",
            &format!("hsl({},65%,76%)", package::hue("main")),
        ] {
            assert!(svg.contains(part), "{part} is missing in {svg}");
        }
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn names_cannot_break_out_of_the_markup() {
        let markup = "</title><script>alert('x')</script>\"&\u{0}\u{1b}";
        let svg = drawn(markup, markup);
        assert!(!svg.contains("<script") && !svg.contains('\u{0}') && !svg.contains('\u{1b}'));
        assert!(svg.contains("&lt;/title&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot;&amp;"));
    }

    #[test]
    fn long_names_are_clipped_to_their_frame() {
        assert_eq!(clip("github.com/acme/shop.Add", 30), "github.com/acme/shop.Add");
        assert_eq!(clip("github.com/acme/shop.Add", 10), "shop.Add");
        assert_eq!(clip("github.com/acme/shop.Add", 6), "shop..");
        // Thousands of frames may have the same name.
        let svg = drawn(&"Z".repeat(3 * MAX_NAME_BYTES), "");
        assert!((MAX_NAME_BYTES..2 * MAX_NAME_BYTES).contains(&svg.matches('Z').count()));
    }

    #[test]
    fn an_empty_graph_is_a_picture_too() {
        let svg = svg(&Tree::by_name().to_flamegraph(0), &SvgOptions::default());
        assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN"));
    }
}
