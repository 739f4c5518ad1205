//! Colours: the 16 that every terminal has, in the shades that the user has set; or none.

use ratatui_core::style::{Color, Modifier, Style};

#[allow(
    clippy::unused_self,
    reason = "whether it depends on the colour is nobody's business"
)]
impl Theme {
    /// Text.
    pub const fn plain(self) -> Style {
        Style::new()
    }

    /// Less important text.
    pub const fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// The name of a program.
    pub const fn program(self) -> Style {
        self.bold()
    }

    /// Highlighted text.
    pub const fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }
}

/// The styles of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// Without colour, letters, bold, dim and reverse show everything.
    colour: bool,
}

impl Theme {
    /// With colours, or without them.
    pub const fn new(colour: bool) -> Self {
        Self { colour }
    }

    fn paint(self, colour: Color) -> Style {
        if self.colour {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    /// The headings of the table.
    pub fn heading(self) -> Style {
        if self.colour {
            Style::new().fg(Color::Black).bg(Color::Green)
        } else {
            Style::new().add_modifier(Modifier::REVERSED)
        }
    }

    /// The heading of the column of the order.
    pub fn sorted_heading(self) -> Style {
        if self.colour {
            Style::new().fg(Color::Black).bg(Color::Cyan)
        } else {
            Style::new().add_modifier(Modifier::REVERSED.union(Modifier::BOLD))
        }
    }

    /// The row of the cursor.
    pub fn cursor(self) -> Style {
        if self.colour {
            Style::new().fg(Color::Black).bg(Color::Cyan)
        } else {
            Style::new().add_modifier(Modifier::REVERSED)
        }
    }

    /// A row that is followed.
    pub fn followed(self) -> Style {
        if self.colour {
            Style::new().fg(Color::Black).bg(Color::Yellow)
        } else {
            Style::new().add_modifier(Modifier::REVERSED.union(Modifier::BOLD))
        }
    }

    /// A marked row.
    pub fn marked(self) -> Style {
        self.paint(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// An exited process.
    pub fn ended(self) -> Style {
        self.paint(Color::Red).add_modifier(Modifier::DIM)
    }

    /// An error, and what was searched for.
    pub fn error(self) -> Style {
        self.paint(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// A running process, and time in user mode.
    pub fn user(self) -> Style {
        self.paint(Color::Green)
    }

    /// Time at low priority.
    pub fn nice(self) -> Style {
        self.paint(Color::Blue)
    }

    /// Time in the kernel.
    pub fn system(self) -> Style {
        self.paint(Color::Red)
    }

    /// Time in interrupts.
    pub fn interrupts(self) -> Style {
        self.paint(Color::Yellow)
    }

    /// Time that the hypervisor has taken.
    pub fn steal(self) -> Style {
        self.paint(Color::Cyan)
    }

    /// Time waiting for I/O; a cache.
    pub fn waiting(self) -> Style {
        self.paint(Color::DarkGray)
    }

    /// Another user, or another thread of a process.
    pub fn other(self) -> Style {
        self.paint(Color::Magenta)
    }

    /// A line of history.
    pub fn line(self) -> Style {
        self.paint(Color::Cyan)
    }

    /// The style for this share of a whole.
    pub fn level(self, share: f64) -> Style {
        self.paint(match share {
            ..0.5 => Color::Green,
            ..0.8 => Color::Yellow,
            _ => Color::Red,
        })
    }
}
