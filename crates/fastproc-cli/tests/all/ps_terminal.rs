//! The screen that `fastproc ps` leaves on a terminal.

use std::process::Command;

use fastproc_testbed::gate;

/// The screen of a terminal, as far as tables need it.
struct Screen {
    lines: Vec<Vec<char>>,
    at: (usize, usize),
    columns: usize,
    /// Lines that were longer than the width.
    wrapped: usize,
}

impl Screen {
    fn new(columns: usize) -> Self {
        Self {
            lines: vec![Vec::new()],
            at: (0, 0),
            columns,
            wrapped: 0,
        }
    }

    fn show(&mut self, text: &str) {
        let mut rest = text.chars();
        while let Some(character) = rest.next() {
            match character {
                '\r' => self.at.1 = 0,
                '\n' => self.at.0 += 1,
                '\x1b' => {
                    assert_eq!(rest.next(), Some('['), "{text:?}");
                    let end = |c: &char| c.is_ascii_alphabetic();
                    let mut sequence: String = rest.by_ref().take_while(|c| !end(c)).collect();
                    // take_while has consumed the letter as well: find it in the text.
                    let taken = text.len() - rest.as_str().len();
                    sequence.push(text[..taken].chars().next_back().expect("a letter"));
                    self.control(&sequence);
                }
                _ => self.put(character),
            }
            while self.lines.len() <= self.at.0 {
                self.lines.push(Vec::new());
            }
        }
    }

    fn control(&mut self, sequence: &str) {
        let (row, column) = self.at;
        match sequence {
            "K" => self.lines[row].truncate(column),
            "J" => {
                self.lines[row].truncate(column);
                self.lines.truncate(row + 1);
            }
            "?2026h" | "?2026l" => {}
            _ if sequence.ends_with('m') => {}
            _ if sequence.ends_with('A') => {
                let up: usize = sequence[..sequence.len() - 1].parse().expect("a number");
                self.at.0 = row.checked_sub(up).expect("not above what was drawn");
            }
            other => panic!("unexpected: {other:?}"),
        }
    }

    fn put(&mut self, character: char) {
        let (row, column) = self.at;
        if column >= self.columns {
            self.wrapped += 1;
        }
        let line = &mut self.lines[row];
        line.resize(line.len().max(column + 1), ' ');
        line[column] = character;
        self.at.1 += 1;
    }

    fn text(&self) -> Vec<String> {
        let lines = self
            .lines
            .iter()
            .map(|line| line.iter().collect::<String>());
        lines.map(|line| line.trim_end().to_owned()).collect()
    }
}

/// Runs the command on a terminal of this size. `None`: script(1), which makes one, is not installed.
///
/// The source is `/proc`: loading programs takes longer.
fn on_terminal(lines: usize, columns: usize, arguments: &str) -> Option<Screen> {
    let command = format!(
        "stty rows {lines} cols {columns}; {} ps --source procfs {arguments}",
        env!("CARGO_BIN_EXE_fastproc")
    );
    let output = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .env("TERM", "xterm")
        .env_remove("COLUMNS")
        .env_remove("NO_COLOR")
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            gate::skipped(&format!("script(1) makes the terminal: {error}"));
            return None;
        }
    };
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{text}");
    let mut screen = Screen::new(columns);
    screen.show(&text);
    Some(screen)
}

#[test]
fn an_interval_is_drawn_in_place() {
    let Some(screen) = on_terminal(16, 80, "--interval 0.05 --count 4") else {
        return;
    };
    let text = screen.text();
    let headings = text.iter().filter(|line| line.contains("%CPU")).count();
    assert_eq!(headings, 1, "{text:#?}");
    // The table, an empty line, the summary, and the line of the cursor: no more than fit on the terminal.
    assert!(text.len() <= 16, "{text:#?}");
    let summary = text
        .iter()
        .position(|line| line.starts_with("fastproc: read "));
    let summary = summary.expect("there is a summary");
    assert_eq!(text[summary - 1], "");
    assert_eq!(summary, text.len() - 2, "{text:#?}");
    assert_eq!(screen.wrapped, 0);
    let quiet =
        on_terminal(16, 80, "--interval 0.05 --count 2 --quiet --top 3").expect("as before");
    assert_eq!(quiet.text().len(), 5, "{:#?}", quiet.text());
}

#[test]
fn a_table_never_wraps() {
    for columns in [200, 100, 80, 60, 44, 30, 16, 8, 1] {
        for arguments in [
            "--quiet",
            "--quiet --tree",
            "--quiet --threads",
            "--quiet --interval 0.02 --count 2",
            "--quiet --interval 0.02 --count 2 --fields user,lstart,cmdline,pid",
        ] {
            let Some(screen) = on_terminal(10, columns, arguments) else {
                return;
            };
            assert_eq!(
                screen.wrapped,
                0,
                "{columns} columns, {arguments}: {:#?}",
                screen.text()
            );
        }
    }
    let narrow = on_terminal(10, 44, "--quiet").expect("as before").text();
    let heading: Vec<_> = narrow[0].split_whitespace().collect();
    assert_eq!(heading.first(), Some(&"PID"), "{narrow:#?}");
    assert_eq!(heading.last(), Some(&"COMM"), "{narrow:#?}");
    assert!(
        heading.contains(&"%CPU") && !heading.contains(&"TIME"),
        "{narrow:#?}"
    );
    let wide = on_terminal(10, 200, "--quiet").expect("as before").text();
    assert_eq!(wide[0].split_whitespace().count(), 11, "{wide:#?}");
}
