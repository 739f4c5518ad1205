//! `fastproc generate`: man pages and shell completions, from the same definitions as the help. For packages.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::Command;
use clap_complete::Shell;
use clap_mangen::{
    Man,
    roff::{Roff, roman},
};

use crate::{Failure, paragraphs::indentation, serve, usage};

/// The other name of `fastproc serve`.
const EXPORTER: &str = "fastproc-exporter";

/// The longest line of a page that needs no filling: 80 columns without the margins of man(1).
const LINE: usize = 71;

/// Write man pages (man1/) and completions for bash, zsh and fish into a folder.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  fastproc generate target/generated")]
pub struct Args {
    /// Write into this folder, and create it if necessary.
    directory: PathBuf,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let pages = args.directory.join("man1");
    fs::create_dir_all(&pages)?;
    let mut command = crate::command().disable_help_subcommand(true);
    command.build();
    let names = |command: &Command| {
        let name = command.get_display_name().unwrap_or(command.get_name());
        name.to_owned()
    };
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let shown: Vec<_> = shown.collect();
    let mut others: Vec<String> = shown.iter().copied().map(names).collect();
    others.push(EXPORTER.into());
    let write = |command: &Command, name: &str, see: &[String]| {
        let mut file = File::create(pages.join(format!("{name}.1")))?;
        page(command.clone(), name, see, &mut file)
    };
    for sub in shown {
        write(sub, &names(sub), &["fastproc".into()])?;
    }
    write(&command, "fastproc", &others)?;
    // The program of this name has the same flags.
    let serve = <serve::Args as clap::Args>::augment_args(Command::new(EXPORTER));
    let serve = usage::complete(serve);
    write(&serve, EXPORTER, &["fastproc".into()])?;
    for (name, command) in [
        ("fastproc", without_hidden(&crate::command())),
        (EXPORTER, serve),
    ] {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            clap_complete::generate_to(shell, &mut command.clone(), name, &args.directory)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The command without those of its commands that help does not list: shells would complete them.
fn without_hidden(command: &Command) -> Command {
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    Command::new("fastproc")
        .version(env!("CARGO_PKG_VERSION"))
        .args(command.get_arguments())
        .subcommands(shown.cloned())
}

/// Writes a man page.
fn page(command: Command, name: &str, see: &[String], to: &mut impl Write) -> io::Result<()> {
    let more = command.get_after_long_help().or(command.get_after_help());
    let questions = command.get_before_help();
    let more = [
        questions.map(|text| format!("Examples:\n{text}\n\n")),
        more.map(ToString::to_string),
    ];
    let has_commands = command.has_subcommands();
    let man = Man::new(command).title(name);
    man.render_title(to)?;
    man.render_name_section(to)?;
    man.render_synopsis_section(to)?;
    man.render_description_section(to)?;
    man.render_options_section(to)?;
    if has_commands {
        man.render_subcommands_section(to)?;
    }
    let mut roff = Roff::new();
    roff.control("PP", []);
    let more: String = more.into_iter().flatten().collect();
    let mut lines = more.lines().peekable();
    while let Some(line) = lines.next() {
        if let (Some(heading), 0) = (line.strip_suffix(':'), indentation(line)) {
            roff.control("SH", [heading.to_uppercase().as_str()]);
        } else if let Some((before, text)) = columns(line) {
            let mut text = text.to_owned();
            let width = before.chars().count();
            while let Some(more) = lines.next_if(|next| indentation(next) == width) {
                text = text + " " + more.trim();
            }
            add_row(&mut roff, before, &text);
        } else if line.chars().count() <= LINE || line.trim().starts_with("fastproc ") {
            add_as_it_is(&mut roff, line);
        } else {
            let indentation = indentation(line).to_string();
            roff.control("RS", [indentation.as_str()]);
            roff.text([roman(line.trim_start())]);
            roff.control("RE", []);
        }
    }
    roff.control("SH", ["SEE ALSO"]);
    let see: Vec<_> = see.iter().map(|name| format!("{name}(1)")).collect();
    roff.text([roman(see.join(", "))]);
    roff.to_writer(to)
}

/// The first columns of a row of a table, with the spaces after them, and the last column.
fn columns(line: &str) -> Option<(&str, &str)> {
    let text = line.trim_start();
    let gap = text.rfind("  ")? + 2;
    Some(line.split_at(line.len() - text.len() + gap))
}

/// Adds a row; the words that do not fit its line are below its last column.
fn add_row(roff: &mut Roff, before: &str, text: &str) {
    let width = before.chars().count();
    let mut line = before.to_owned();
    for word in text.split_whitespace() {
        let length = line.chars().count();
        if length > width && length + 1 + word.chars().count() > LINE {
            add_as_it_is(roff, &line);
            line = " ".repeat(width);
        } else if length > width {
            line.push(' ');
        }
        line += word;
    }
    add_as_it_is(roff, &line);
}

fn add_as_it_is(roff: &mut Roff, line: &str) {
    roff.control("nf", []);
    roff.text([roman(line)]);
    roff.control("fi", []);
}
