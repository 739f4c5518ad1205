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

use crate::{Failure, serve};

/// The other name of `fastproc serve`.
const EXPORTER: &str = "fastproc-exporter";

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
    let mut command = crate::command();
    command.build();
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    for command in shown
        .filter(|sub| sub.get_name() != "help")
        .chain([&command])
    {
        let name = command
            .get_display_name()
            .unwrap_or(command.get_name())
            .to_owned();
        let mut file = File::create(pages.join(format!("{name}.1")))?;
        page(command.clone(), &name, &mut file)?;
    }
    // The program of this name has the same flags.
    let serve = <serve::Args as clap::Args>::augment_args(Command::new(EXPORTER));
    let mut file = File::create(pages.join(format!("{EXPORTER}.1")))?;
    page(serve.clone(), EXPORTER, &mut file)?;
    for (name, command) in [("fastproc", crate::command()), (EXPORTER, serve)] {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            clap_complete::generate_to(shell, &mut command.clone(), name, &args.directory)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a man page. Keeps the lines of the text after the options, because it has tables.
fn page(command: Command, name: &str, to: &mut impl Write) -> io::Result<()> {
    let more = command
        .get_after_long_help()
        .or(command.get_after_help())
        .map(ToString::to_string);
    let man = Man::new(command).title(name);
    man.render_title(to)?;
    man.render_name_section(to)?;
    man.render_synopsis_section(to)?;
    man.render_description_section(to)?;
    man.render_options_section(to)?;
    let mut roff = Roff::new();
    roff.control("nf", []);
    for line in more.iter().flat_map(|more| more.lines()) {
        match line.strip_suffix(':') {
            Some(heading) if !line.starts_with(' ') => {
                roff.control("fi", []);
                roff.control("SH", [heading.to_uppercase().as_str()]);
                roff.control("nf", []);
            }
            _ => {
                roff.text([roman(line)]);
            }
        }
    }
    roff.control("fi", []);
    roff.to_writer(to)
}
