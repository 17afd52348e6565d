//! Divides the screen into areas.

use ratatui::layout::Rect;

/// Minimum width and height of the screen.
pub(super) const SMALLEST: (u16, u16) = (40, 8);

/// The areas of the screen, from top to bottom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Areas {
    /// Selected profiles, and the current view.
    pub title: Rect,
    /// Total of all values, and their time range.
    pub summary: Rect,
    /// Path to the zoomed frame, or the column headings.
    pub head: Rect,
    pub body: Rect,
    /// Details of the selected frame.
    pub selected: Rect,
    pub status: Rect,
}

/// Returns the areas of a screen, or `None` if the screen is too small.
pub(super) fn areas(screen: Rect) -> Option<Areas> {
    if screen.width < SMALLEST.0 || screen.height < SMALLEST.1 {
        return None;
    }
    let lines = |from: u16, height: u16| Rect {
        y: screen.y + from,
        height,
        ..screen
    };
    Some(Areas {
        title: lines(0, 1),
        summary: lines(1, 1),
        head: lines(2, 1),
        body: lines(3, screen.height - 5),
        selected: lines(screen.height - 2, 1),
        status: lines(screen.height - 1, 1),
    })
}

/// Returns a centred box of the given size, cut to the screen.
pub(super) fn middle(screen: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(screen.width), height.min(screen.height));
    Rect {
        x: screen.x + (screen.width - width) / 2,
        y: screen.y + (screen.height - height) / 2,
        width,
        height,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_has_its_parts_or_is_too_small() {
        let parts = areas(Rect::new(0, 0, 80, 24)).unwrap();
        assert_eq!((parts.body.y, parts.body.height, parts.status.y), (3, 19, 23));
        assert!(areas(Rect::new(0, 0, 40, 8)).is_some());
        assert!(areas(Rect::new(0, 0, 39, 24)).is_none() && areas(Rect::new(0, 0, 80, 7)).is_none());
        assert_eq!(middle(Rect::new(0, 0, 40, 8), 60, 4), Rect::new(0, 2, 40, 4));
    }
}
