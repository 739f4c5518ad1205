//! The settings file: read at the start if it exists, written only by a key.

use std::{
    env,
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use fastproc::regular_file;
use fastproc_columns::{Processes, cgroups::Cgroups, is_interval};
use serde::{Deserialize, Serialize};

use crate::{
    chosen::{Chosen, Words},
    error::Error,
    group::GroupBy,
    options::Options,
};

/// The longest file that is read, in bytes.
const LONGEST_FILE: u64 = 1 << 20;

/// The settings. The command line overrides the file.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[allow(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Settings {
    /// The refresh interval in seconds.
    pub interval: f64,
    /// The columns; empty: the defaults that fit.
    pub columns: Vec<String>,
    /// The order.
    pub sort: String,
    /// Which processes to show; empty: all.
    pub filter: String,
    /// Whether to show children below their parents.
    pub tree: bool,
    /// Whether to show each thread on its own row.
    pub threads: bool,
    /// Whether to show kernel threads.
    pub kernel_threads: bool,
    /// Whether to show processes that used no CPU.
    pub idle: bool,
    /// Whether to show processes that exited in the interval.
    pub exited: bool,
    /// Whether to show each CPU.
    pub each_cpu: bool,
    /// Whether to show the header.
    pub header: bool,
    /// Whether to use colour, unless `NO_COLOR` is set.
    pub colour: bool,
    /// Whether to show the folders of programs; `None`: on a very wide terminal.
    pub paths: Option<bool>,
    /// How processes are grouped.
    pub group: Option<GroupBy>,
    /// The table of cgroups.
    pub cgroups: CgroupSettings,
}

/// The settings of the table of cgroups.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CgroupSettings {
    /// Whether it is shown, and not that of processes.
    pub shown: bool,
    /// The columns; empty: the defaults that fit.
    pub columns: Vec<String>,
    /// What to sort by.
    pub sort: String,
    /// Which cgroups to show; empty: all.
    pub filter: String,
    /// Whether to show descendants below their cgroup.
    pub tree: bool,
}

impl CgroupSettings {
    /// What is chosen of the table of cgroups.
    pub fn words(&mut self) -> Words<'_> {
        Words {
            columns: &mut self.columns,
            sort: &mut self.sort,
            filter: &mut self.filter,
        }
    }
}

impl Default for CgroupSettings {
    fn default() -> Self {
        Self {
            shown: false,
            columns: Vec::new(),
            sort: "-cpu".into(),
            filter: String::new(),
            tree: false,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            interval: 1.0,
            columns: Vec::new(),
            sort: "-pcpu".into(),
            filter: String::new(),
            tree: false,
            threads: false,
            kernel_threads: true,
            idle: true,
            exited: false,
            each_cpu: true,
            header: true,
            colour: true,
            paths: None,
            group: None,
            cgroups: CgroupSettings::default(),
        }
    }
}

/// Seconds as an interval, if it is a valid one.
pub fn interval(seconds: f64) -> Option<Duration> {
    let interval = Duration::try_from_secs_f64(seconds).ok()?;
    is_interval(interval).then_some(interval)
}

impl Settings {
    /// What is chosen of the table of processes.
    pub fn words(&mut self) -> Words<'_> {
        Words {
            columns: &mut self.columns,
            sort: &mut self.sort,
            filter: &mut self.filter,
        }
    }

    /// Loads the file and applies the command line. The defaults apply if there is no file, or if the file is at its default path
    /// and may not be read.
    pub fn load(options: &Options) -> Result<Self, Error> {
        let mut settings = match &options.settings {
            Some(path) => {
                Self::read(path, options.settings_by_default).map_err(|source| Error::Settings {
                    path: path.clone(),
                    source,
                })?
            }
            None => Self::default(),
        };
        if let Some(interval) = options.interval {
            settings.interval = interval.as_secs_f64();
        }
        if !options.columns.is_empty() {
            settings.columns.clone_from(&options.columns);
        }
        if let Some(sort) = &options.sort {
            settings.sort.clone_from(sort);
        }
        if let Some(filter) = &options.filter {
            settings.filter.clone_from(filter);
        }
        if options.cgroups {
            settings.cgroups.shown = true;
            settings.cgroups.tree |= options.tree;
            return Ok(settings);
        }
        if options.threads || options.tree {
            (settings.threads, settings.tree) = (options.threads, options.tree);
            settings.group = None;
        }
        // A user who chooses processes, or how to show them, wants to see them.
        settings.cgroups.shown &= !options.is_about_processes();
        Ok(settings)
    }

    fn read(
        path: &Path,
        by_default: bool,
    ) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let text = match regular_file::read(path, LONGEST_FILE) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            // After a change of the user, HOME may belong to another user.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && by_default => {
                return Ok(Self::default());
            }
            Err(error) => return Err(error.into()),
        };
        let settings: Self = toml::from_slice(&text)?;
        settings.check()?;
        Ok(settings)
    }

    /// Checks every value here, so that the error names the file.
    fn check(&self) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        if interval(self.interval).is_none() {
            return Err("interval is a number of seconds, at least 0.01".into());
        }
        let mut words = self.clone();
        Chosen::<Processes>::new(words.words(), Vec::new())?;
        Chosen::<Cgroups>::new(words.cgroups.words(), Vec::new())?;
        Ok(())
    }

    /// Writes the file, and the folders above it.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let text = toml::to_string(self).map_err(io::Error::other)?;
        // Other programs never find a partial file. Remove the rest of an earlier attempt instead of writing to it: it
        // may be a link to another user's file.
        let new = path.with_extension("toml.new");
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => File::create_new(&new)?.write_all(text.as_bytes())?,
        }
        fs::rename(&new, path)
    }
}

/// The default path: `fastproc/top.toml` in `XDG_CONFIG_HOME`, or in `.config` of the home folder.
pub fn default_path() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty());
    let folder = set("XDG_CONFIG_HOME").map(PathBuf::from);
    let folder = folder.filter(|folder| folder.is_absolute());
    let folder = folder.or_else(|| Some(PathBuf::from(set("HOME")?).join(".config")))?;
    Some(folder.join("fastproc/top.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_values_are_read_back() {
        let folder = env::temp_dir().join(format!("fastproc-top-settings-{}", std::process::id()));
        // A killed run may have left one of this name.
        let _ = fs::remove_dir_all(&folder);
        let path = folder.join("a/top.toml");
        let settings = Settings {
            interval: 0.25,
            columns: vec!["pid".into(), "rss".into()],
            filter: "rss > 1M && comm =~ 'a\"b'".into(),
            group: Some(GroupBy::Container),
            tree: true,
            cgroups: CgroupSettings {
                shown: true,
                filter: "memory > 1M".into(),
                ..CgroupSettings::default()
            },
            ..Settings::default()
        };
        settings.write(&path).expect("a folder of our own");
        assert_eq!(Settings::read(&path, false).expect("valid"), settings);
        fs::write(&path, "tree = true\n").expect("the file is written");
        assert!(Settings::read(&path, false).expect("valid").tree);
        for wrong in [
            "trees = true",
            "interval = 0",
            "interval = \"1\"",
            "=",
            "sort = \"nope\"",
            "columns = [\"nope\"]",
            "filter = \"rss >\"",
            "[cgroups]\nsort = \"vsize\"",
            "[cgroups]\ncolumns = [\"vsize\"]",
            "[cgroups]\nfilter = \"memory\"",
        ] {
            fs::write(&path, wrong).expect("the file is written");
            assert!(Settings::read(&path, false).is_err(), "{wrong}");
        }
        fs::remove_dir_all(&folder).expect("the folder is removed");
        assert_eq!(
            Settings::read(&path, false).expect("none"),
            Settings::default()
        );
    }

    #[test]
    fn reads_no_settings_from_a_pipe_a_device_or_a_long_file() {
        let folder = env::temp_dir().join(format!("fastproc-top-odd-{}", std::process::id()));
        // A killed run may have left one of this name.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a folder of our own");
        let [pipe, long] = ["pipe", "long"].map(|name| folder.join(name));
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR)
            .expect("a pipe can be made");
        fs::write(&long, " ".repeat((1 << 20) + 1)).expect("the file is written");
        for (path, reason) in [
            (pipe.as_path(), "it is not a regular file"),
            (Path::new("/dev/zero"), "it is not a regular file"),
            (&long, "it is longer than 1 MiB, the limit"),
        ] {
            let error = Settings::read(path, true).expect_err("it is refused");
            assert_eq!(error.to_string(), reason, "{}", path.display());
        }
        fs::remove_dir_all(&folder).expect("the folder is removed");
    }

    #[test]
    fn a_link_is_replaced_and_not_written_through() {
        let folder = env::temp_dir().join(format!("fastproc-top-link-{}", std::process::id()));
        let [path, precious] = ["top.toml", "precious"].map(|name| folder.join(name));
        // A killed run may have left one of this name.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a folder of our own");
        fs::write(&precious, "precious").expect("the file is written");
        for link in [&path, &path.with_extension("toml.new")] {
            std::os::unix::fs::symlink(&precious, link).expect("the link is made");
        }
        Settings::default()
            .write(&path)
            .expect("the file is written");
        assert_eq!(fs::read(&precious).expect("the file is read"), b"precious");
        assert!(path.symlink_metadata().expect("the path exists").is_file());
        fs::remove_dir_all(&folder).expect("the folder is removed");
    }

    #[test]
    fn the_command_line_has_the_last_word() {
        let options = Options {
            interval: Some(Duration::from_millis(100)),
            sort: Some("rss".into()),
            tree: true,
            ..Options::default()
        };
        let settings = Settings::load(&options).expect("valid");
        assert!(settings.tree && settings.sort == "rss");
        assert!((settings.interval - 0.1).abs() < 1e-9);
    }

    #[test]
    fn choices_about_processes_show_processes() {
        let folder = env::temp_dir().join(format!("fastproc-top-shown-{}", std::process::id()));
        let path = folder.join("top.toml");
        let mut saved = Settings::default();
        saved.cgroups.shown = true;
        saved.write(&path).expect("a folder of our own");
        let is_shown = |change: fn(&mut Options)| {
            let mut options = Options {
                settings: Some(path.clone()),
                ..Options::default()
            };
            change(&mut options);
            Settings::load(&options).expect("valid").cgroups.shown
        };
        let about: [fn(&mut Options); 5] = [
            |options| options.columns = vec!["pid".into()],
            |options| options.sort = Some("rss".into()),
            |options| options.filter = Some("rss > 1M".into()),
            |options| options.threads = true,
            |options| options.tree = true,
        ];
        for change in about {
            assert!(!is_shown(change));
        }
        assert!(is_shown(|options| options.interval = interval(2.0)));
        assert!(is_shown(
            |options| (options.cgroups, options.tree) = (true, true)
        ));
        fs::remove_dir_all(&folder).expect("the folder is removed");
    }
}
