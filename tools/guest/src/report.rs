//! The report that a guest writes to its second serial port: one JSON object on each line, the last of which is `end`.
//!
//! A guest can fail anywhere, so only a complete report counts: every line is valid, the last one is the only `end`,
//! and it agrees with the checks before it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum Line {
    /// The first line.
    Begin {
        /// The scenario.
        scenario: String,
        /// The kernel that runs, as in `uname -r`.
        release: String,
    },
    /// A fact, which the guest does not judge.
    Fact {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },
    /// A program that was run.
    Command {
        /// Its purpose; unique in a report.
        name: String,
        /// The program and its arguments.
        argv: Vec<String>,
        /// How it ended.
        ended: Ended,
        /// How long it took, by the guest's clock; for people.
        milliseconds: u64,
        /// Its standard output.
        stdout: String,
        /// Its standard error.
        stderr: String,
    },
    /// A check by the guest itself.
    Check {
        /// Its name.
        name: String,
        /// Whether it passed.
        passed: bool,
        /// The reason.
        detail: String,
    },
    /// The closing line.
    End {
        /// The number of checks.
        checks: usize,
        /// How many of them failed.
        failed: usize,
    },
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It exited with this status.
    Status(i32),
    /// This signal killed it.
    Signal(i32),
    /// It could not be started.
    NotStarted,
}

/// A complete report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The scenario that ran.
    pub scenario: String,
    /// The kernel's release, as in `uname -r`.
    pub release: String,
    /// Everything between the first line and the last.
    pub lines: Vec<Line>,
    /// How many checks failed.
    pub failed: usize,
}

/// Why a report is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// It is empty.
    Empty,
    /// A line is not one of a report.
    Garbled {
        /// Its number, from 1.
        number: usize,
        /// Its beginning.
        text: String,
    },
    /// The first line is not `begin`.
    NoBegin,
    /// The last line is not `end`.
    NoEnd,
    /// A `begin` or an `end` is within the report.
    Twice {
        /// The line's number, from 1.
        number: usize,
    },
    /// The closing line disagrees with the checks before it.
    Miscounted {
        /// Checks, and failed checks, according to the last line.
        stated: (usize, usize),
        /// The same according to the lines before it.
        found: (usize, usize),
    },
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "the guest reported nothing"),
            Self::Garbled { number, text } => {
                write!(f, "line {number} of the report is garbled: {text:?}")
            }
            Self::NoBegin => write!(f, "the report does not begin with its first line"),
            Self::NoEnd => write!(f, "the report has no closing line"),
            Self::Twice { number } => write!(
                f,
                "line {number} of the report begins or ends it a second time"
            ),
            Self::Miscounted { stated, found } => write!(
                f,
                "the closing line says {} checks, {} failed; the report holds {} checks, {} failed",
                stated.0, stated.1, found.0, found.1
            ),
        }
    }
}

impl std::error::Error for Broken {}

/// Splits the output of a guest into reports: each begins with a first line.
pub fn split(text: &str) -> Vec<&str> {
    let mut starts = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if at == 0 || matches!(serde_json::from_str(line), Ok(Line::Begin { .. })) {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|(&start, end)| &text[start..end])
        .collect()
}

impl Report {
    /// Parses a report. An incomplete one is an error.
    pub fn parse(text: &str) -> Result<Self, Broken> {
        let mut lines = Vec::new();
        for (index, text) in text.lines().enumerate() {
            let line = serde_json::from_str(text).map_err(|_| Broken::Garbled {
                number: index + 1,
                text: text.chars().take(80).collect(),
            })?;
            lines.push(line);
        }
        let Some(last) = lines.pop() else {
            return Err(Broken::Empty);
        };
        let Line::End { checks, failed } = last else {
            return Err(Broken::NoEnd);
        };
        if lines.is_empty() {
            return Err(Broken::NoBegin);
        }
        let Line::Begin { scenario, release } = lines.remove(0) else {
            return Err(Broken::NoBegin);
        };

        let mut found = (0, 0);
        for (index, line) in lines.iter().enumerate() {
            match line {
                Line::Begin { .. } | Line::End { .. } => {
                    return Err(Broken::Twice { number: index + 2 });
                }
                Line::Check { passed, .. } => {
                    found.0 += 1;
                    found.1 += usize::from(!passed);
                }
                Line::Fact { .. } | Line::Command { .. } => {}
            }
        }
        if found != (checks, failed) {
            return Err(Broken::Miscounted {
                stated: (checks, failed),
                found,
            });
        }
        Ok(Self {
            scenario,
            release,
            lines,
            failed,
        })
    }

    /// The value of a fact.
    pub fn fact(&self, wanted: &str) -> Option<&str> {
        self.lines.iter().find_map(|line| match line {
            Line::Fact { name, value } if name == wanted => Some(value.as_str()),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: &[Line]) -> String {
        lines
            .iter()
            .map(|line| serde_json::to_string(line).unwrap() + "\n")
            .collect()
    }

    fn begin() -> Line {
        Line::Begin {
            scenario: "survey".into(),
            release: "6.1".into(),
        }
    }

    fn check(passed: bool) -> Line {
        Line::Check {
            name: "it".into(),
            passed,
            detail: "a\nb".into(),
        }
    }

    #[test]
    fn a_whole_report_is_read() {
        let fact = Line::Fact {
            name: "cpus".into(),
            value: "2".into(),
        };
        let command = Line::Command {
            name: "doctor".into(),
            argv: vec!["/fastproc".into(), "doctor".into()],
            ended: Ended::Status(0),
            milliseconds: 5,
            stdout: "{}\n".into(),
            stderr: String::new(),
        };
        let end = Line::End {
            checks: 2,
            failed: 1,
        };
        let lines = [
            begin(),
            fact.clone(),
            command.clone(),
            check(true),
            check(false),
            end,
        ];
        let report = Report::parse(&text(&lines)).unwrap();
        assert_eq!(
            (
                report.scenario.as_str(),
                report.release.as_str(),
                report.failed
            ),
            ("survey", "6.1", 1)
        );
        assert_eq!(report.lines, [fact, command, check(true), check(false)]);
        assert_eq!(report.fact("cpus"), Some("2"));
    }

    #[test]
    fn several_reports_are_divided() {
        let end = Line::End {
            checks: 0,
            failed: 0,
        };
        let one = text(&[begin(), end]);
        let cut = &one[..one.len() - 4];
        let all = [one.as_str(), &one, cut].concat();
        assert_eq!(split(&all), [one.as_str(), &one, cut]);
        assert_eq!(split(cut), [cut]);
        assert!(split("").is_empty());
        assert_eq!(split("x\ny\n"), ["x\ny\n"]);
    }

    #[test]
    fn a_report_cut_off_anywhere_does_not_count() {
        let whole = text(&[
            begin(),
            check(true),
            Line::End {
                checks: 1,
                failed: 0,
            },
        ]);
        for length in 0..whole.len() - 1 {
            assert!(
                Report::parse(&whole[..length]).is_err(),
                "{:?}",
                &whole[..length]
            );
        }
    }

    #[test]
    fn a_report_that_contradicts_itself_does_not_count() {
        let end = |checks, failed| Line::End { checks, failed };
        let miscounted = Report::parse(&text(&[begin(), check(false), end(1, 0)]));
        assert_eq!(
            miscounted,
            Err(Broken::Miscounted {
                stated: (1, 0),
                found: (1, 1)
            })
        );
        assert_eq!(
            Report::parse(&text(&[begin(), end(0, 0), end(0, 0)])),
            Err(Broken::Twice { number: 2 })
        );
        assert_eq!(Report::parse(&text(&[end(0, 0)])), Err(Broken::NoBegin));
        assert_eq!(Report::parse(&text(&[begin()])), Err(Broken::NoEnd));
        assert_eq!(Report::parse(""), Err(Broken::Empty));
    }
}
