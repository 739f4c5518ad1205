//! Joins the lines of help texts to paragraphs, so that they fit a terminal of any width, and man pages.

use std::fmt;

/// The longest line of a text in the sources.
const WIDTH: usize = 100;

/// Joins lines that only the width of the sources has parted: those with the same indentation where the next word did not fit.
pub fn join(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut before: Option<&str> = None;
    for line in text.lines() {
        if before.is_some_and(|before| is_continued(before, line)) {
            joined += " ";
            joined += line.trim_start();
        } else {
            if before.is_some() {
                joined += "\n";
            }
            joined += line;
        }
        before = Some(line);
    }
    joined
}

/// Appends words to a line. What is longer than `width` goes on in lines with this indentation.
pub fn wrap<'w>(
    mut line: String,
    words: impl IntoIterator<Item = &'w str>,
    indentation: usize,
    width: usize,
) -> String {
    let mut text = String::new();
    for word in words {
        if line.len() + 1 + word.len() > width {
            text = text + &line + "\n";
            line = " ".repeat(indentation - 1);
        }
        line = line + " " + word;
    }
    text + &line
}

/// Whether the paragraph goes on in the next line.
fn is_continued(line: &str, next: &str) -> bool {
    let word = next.split_whitespace().next().unwrap_or_default();
    let length = |text: &str| text.chars().count();
    // Some lines are one or two short of the width.
    let did_not_fit = length(line) + 1 + length(word) > WIDTH - 4;
    !word.is_empty() && did_not_fit && indentation(line) == indentation(next) && !is_row(next)
}

/// Whether a line has columns.
fn is_row(line: &str) -> bool {
    line.trim().contains("  ")
}

/// How many spaces a line begins with.
pub fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// A count, with its noun in singular and plural.
pub struct Counted<N>(pub N, pub &'static str, pub &'static str);

impl<N: fmt::Display + PartialEq + From<bool>> fmt::Display for Counted<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number, one, many) = self;
        let is_one = *number == N::from(true);
        write!(f, "{number} {}", if is_one { one } else { many })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_were_full_are_joined() {
        let full = ["word"; 19].join(" ");
        let text =
            format!("{full}\nmore words\nlast\n\nHeading:\n  one line\n  another\n  {full}\n  end");
        let joined =
            format!("{full} more words\nlast\n\nHeading:\n  one line\n  another\n  {full} end");
        assert_eq!(join(&text), joined);
    }

    #[test]
    fn tables_stay() {
        let full = ["word"; 19].join(" ");
        for text in [
            format!("  key  {full}\n       its second line"),
            format!("  key  {full}\n  other  its text"),
        ] {
            assert_eq!(join(&text), text);
        }
    }
}
