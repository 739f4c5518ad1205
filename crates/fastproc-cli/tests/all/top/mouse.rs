//! The mouse, and the colours of the selected row.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use fastproc_testbed::{Running, wait_until};

use super::terminal::Terminal;

/// Suffixes of the names of five processes. Every test has its own, since tests run concurrently.
const ENDS: [&str; 5] = ["-a", "-b", "-c", "-d", "-e"];

struct Processes {
    prefix: String,
    _children: [Running; ENDS.len()],
}

impl Processes {
    fn start(name: &str) -> Self {
        // With a number that no other run of this test has.
        let prefix = format!("{name}{}", std::process::id());
        let start = |end| {
            let script = format!("printf {prefix}{end} > /proc/$$/comm; read _");
            let mut command = Command::new("sh");
            Running::start(command.args(["-c", &script]).stdin(Stdio::piped()))
        };
        let children = ENDS.map(start);
        Self {
            prefix,
            _children: children,
        }
    }

    /// Shows only these processes, by name.
    fn command(&self) -> Command {
        let filter = format!("comm =~ '^{}-'", self.prefix);
        Terminal::command(&[
            "--source=procfs",
            "--interval=0.1",
            "--fields=comm",
            "--sort=comm",
            "--filter",
            &filter,
        ])
    }

    fn on_a_terminal(&self, command: Command) -> Terminal {
        let mut top = Terminal::run(24, 80, command);
        top.until("all of them", |text| self.lines(text).len() == ENDS.len());
        until_chosen(self, &mut top, ENDS[0]);
        top
    }

    /// Their lines on the screen, and the suffixes of their names.
    fn lines(&self, text: &str) -> Vec<(u16, &'static str)> {
        let end = |text: &str| {
            let end = text.trim().strip_prefix(&*self.prefix)?;
            ENDS.into_iter().find(|&one| one == end)
        };
        let lines = (0..).zip(text.lines());
        lines
            .filter_map(|(line, text)| Some((line, end(text)?)))
            .collect()
    }

    fn order(&self, text: &str) -> Vec<&'static str> {
        self.lines(text).into_iter().map(|(_, end)| end).collect()
    }

    /// The selected one: it looks different from the others.
    fn chosen(&self, top: &Terminal) -> Option<&'static str> {
        let text = top.text();
        let looks = |line| {
            let cell = top.screen().cell(line, 1).expect("it is on the screen");
            (cell.inverse(), cell.bgcolor())
        };
        let plain = (false, vt100::Color::Default);
        let lines = self.lines(&text).into_iter();
        let mut chosen = lines.filter(|&(line, _)| looks(line) != plain);
        let end = chosen.next()?.1;
        // While the screen is being drawn there may be two.
        chosen.next().is_none().then_some(end)
    }
}

fn until_chosen(processes: &Processes, top: &mut Terminal, end: &str) {
    wait_until(&format!("{end} is chosen"), || {
        top.take(Duration::from_millis(20));
        processes.chosen(top) == Some(end)
    });
}

/// The sequence of a terminal for a button: the wheel has 64 and 65.
fn click(top: &mut Terminal, button: u8, line: u16) {
    top.press(&format!("\x1b[<{button};3;{}M", line + 1));
}

#[test]
fn a_click_chooses_a_row_and_a_heading_sorts_by_it() {
    let processes = Processes::start("click");
    let mut top = processes.on_a_terminal(processes.command());
    assert_eq!(
        top.screen().mouse_protocol_mode(),
        vt100::MouseProtocolMode::PressRelease
    );
    let first = processes.lines(&top.text())[0].0;
    click(&mut top, 0, first + 3);
    until_chosen(&processes, &mut top, ENDS[3]);
    // Nothing happens outside of the table: neither above, nor below its last row.
    click(&mut top, 0, 0);
    click(&mut top, 0, first + 9);
    click(&mut top, 0, first + 1);
    until_chosen(&processes, &mut top, ENDS[1]);
    click(&mut top, 0, first - 1);
    top.until("the other way round", |text| {
        processes.order(text).iter().rev().eq(ENDS.iter())
    });
    click(&mut top, 0, first - 1);
    top.until("back", |text| processes.order(text) == ENDS);
}

/// All colours on the screen, foreground and background.
fn colours(top: &Terminal) -> Vec<vt100::Color> {
    let (lines, columns) = top.screen().size();
    let cells = (0..lines).flat_map(|line| (0..columns).map(move |column| (line, column)));
    cells
        .filter_map(|(line, column)| top.screen().cell(line, column))
        .flat_map(|cell| [cell.fgcolor(), cell.bgcolor()])
        .filter(|&colour| colour != vt100::Color::Default)
        .collect()
}

#[test]
fn sixteen_colours_are_enough_and_none_if_none_are_wanted() {
    let processes = Processes::start("colour");
    let coloured = colours(&processes.on_a_terminal(processes.command()));
    assert!(!coloured.is_empty());
    for colour in coloured {
        assert!(matches!(colour, vt100::Color::Idx(0..16)), "{colour:?}");
    }
    let mut command = processes.command();
    command.env("NO_COLOR", "1");
    assert_eq!(colours(&processes.on_a_terminal(command)), []);
}
