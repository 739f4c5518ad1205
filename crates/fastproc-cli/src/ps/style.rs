//! What people type for ps(1), as columns of ours.

/// Sets of columns, for those who name none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Our own.
    #[default]
    Default,
    /// Our own for threads.
    Threads,
    /// `ps ax`.
    Terminals,
    /// `ps aux`.
    User,
    /// `ps -ef`.
    Full,
    /// `ps -el`.
    Long,
}

impl Style {
    /// The names of its columns.
    pub const fn columns(self) -> &'static str {
        match self {
            Self::Default => "pid,user,state,pcpu,pmem,rss,vsize,num_threads,etime,time,comm",
            Self::Threads => "pid,tid,user,state,pcpu,processor,etime,time,comm",
            Self::Terminals => "pid,tty,stat,time,cmdline",
            Self::User => "user,pid,pcpu,pmem,vsize,rss,tty,stat,start,time,cmdline",
            Self::Full => "user,pid,ppid,c,start,tty,time,cmdline",
            Self::Long => "f,s,euid,pid,ppid,c,pri,ni,sz,wchan,tty,time,comm",
        }
    }

    /// What it is sorted by.
    pub const fn sort(self) -> &'static str {
        match self {
            Self::Default | Self::Threads => "-pcpu",
            _ => "pid",
        }
    }
}

/// What words without a dash ask for, as in `ps aux` and `ps 1 42`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// Process ids.
    pub pids: Vec<u32>,
    /// The columns, if letters say so.
    pub style: Style,
    /// `f`: as a tree.
    pub tree: bool,
    /// `H`: a row for each thread.
    pub threads: bool,
    /// What follows `o`: columns.
    pub columns: Option<String>,
}

/// Words that mean something else than the person who typed them may think.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{}' is not understood. {}", .word.escape_debug(), HINT)]
pub struct UnknownWord {
    word: String,
}

/// What to type instead.
pub const HINT: &str = "\
Every process is shown unless you select some; type
    fastproc ps aux, or -ef      for the columns of ps(1)
    fastproc ps -o pid,rss,comm  for columns of your own
    fastproc ps -u root          for processes of a user (-p PID, -C NAME)
    fastproc ps --tree           for children below their parents";

/// Understands words without a dash.
pub fn understand(words: &[String]) -> Result<Words, UnknownWord> {
    let mut asked = Words::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let unknown = || UnknownWord { word: word.clone() };
        if let Ok(pid) = word.parse() {
            asked.pids.push(pid);
            continue;
        }
        // Without both a and x, ps(1) would leave out processes.
        let has = |letter| word.contains(letter);
        if !has('a') || !has('x') || asked.style != Style::Default {
            return Err(unknown());
        }
        asked.style = Style::Terminals;
        for letter in word.chars() {
            match letter {
                'a' | 'x' | 'w' => {}
                'u' => asked.style = Style::User,
                'l' => asked.style = Style::Long,
                'f' => asked.tree = true,
                'H' => asked.threads = true,
                'o' => asked.columns = Some(words.next().ok_or_else(unknown)?.clone()),
                _ => return Err(unknown()),
            }
        }
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Words, UnknownWord> {
        let words: Vec<_> = line.split_whitespace().map(String::from).collect();
        understand(&words)
    }

    #[test]
    fn the_words_of_ps_are_understood() {
        let style = |line| words(line).map(|words| words.style).ok();
        assert_eq!(style(""), Some(Style::Default));
        assert_eq!(style("aux"), Some(Style::User));
        assert_eq!(style("auxww"), Some(Style::User));
        assert_eq!(style("ax"), Some(Style::Terminals));
        assert_eq!(style("alx"), Some(Style::Long));
        assert!(words("auxf").is_ok_and(|words| words.tree));
        assert!(words("axH").is_ok_and(|words| words.threads));
        assert_eq!(
            words("axo pid,comm").map(|words| words.columns),
            Ok(Some("pid,comm".into()))
        );
        assert_eq!(words("1 42").map(|words| words.pids), Ok(vec![1, 42]));
    }

    #[test]
    fn what_is_not_understood_is_answered_with_what_to_type() {
        for line in ["u", "x", "extra", "axo", "auxz", "aux aux", "top"] {
            let error = words(line).expect_err(line).to_string();
            assert!(error.contains("fastproc ps aux"), "{error}");
        }
    }
}
