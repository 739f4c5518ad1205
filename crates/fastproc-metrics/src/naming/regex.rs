//! Regular expressions of rules, with limited memory.

use regex::{Error, Regex, RegexBuilder};

/// The longest expression, in bytes: its parsed form is far larger.
const LONGEST: usize = 8 * 1024;

/// The memory of all expressions of the rules, in bytes. Each is charged with the first of these sizes that it fits.
const MEMORY: usize = 64 << 20;
const SIZES: [usize; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// The remaining memory.
#[derive(Debug)]
pub(super) struct Memory(usize);

impl Default for Memory {
    fn default() -> Self {
        Self(MEMORY)
    }
}

impl Memory {
    fn build(&mut self, pattern: &str) -> Result<Regex, Error> {
        let mut result = Err(Error::CompiledTooBig(self.0));
        for size in SIZES.into_iter().filter(|&size| size <= self.0) {
            let mut builder = RegexBuilder::new(pattern);
            // The cache of a search is at most as large.
            result = builder
                .size_limit(size)
                .dfa_size_limit(size.max(SIZES[2]))
                .build();
            match result {
                Err(Error::CompiledTooBig(_)) => {}
                Ok(_) => {
                    self.0 -= size;
                    break;
                }
                Err(_) => break,
            }
        }
        result
    }
}

/// A regular expression. Two with the same text are equal.
#[derive(Clone, Debug)]
pub(super) struct Expression(pub Regex);

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

/// Compiles an expression.
pub(super) fn compile(pattern: &str, memory: &mut Memory) -> Result<Expression, String> {
    if pattern.len() > LONGEST {
        let length = pattern.len();
        return Err(format!(
            "a regular expression of {length} bytes is too long: {LONGEST} are allowed"
        ));
    }
    memory.build(pattern).map(Expression).map_err(|error| {
        let (each, all) = (SIZES[4], MEMORY);
        let error = error.to_string();
        let reason = match error.lines().last().unwrap_or_default().trim() {
            _ if error.contains("size limit") => &format!(
                "it takes too much memory; one may take {each} bytes, and those of all rules {all}"
            ),
            last => last.trim_start_matches("error: "),
        };
        format!("the regular expression {pattern:?} is wrong: {reason}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_that_take_too_much_memory_are_refused() {
        for pattern in [r"(\pL{1000}){1000}", r"(?i)\pL{900}"] {
            let error = compile(pattern, &mut Memory::default()).expect_err(pattern);
            assert!(error.contains("it takes too much memory"), "{error}");
        }
        let error = compile(&"a".repeat(8193), &mut Memory::default()).expect_err("it is too long");
        assert_eq!(
            error,
            "a regular expression of 8193 bytes is too long: 8192 are allowed"
        );
        // Many small ones are as bad as a large one.
        let mut memory = Memory(SIZES[1]);
        let taken = (0..5).map(|_| compile("a", &mut memory).is_ok());
        assert_eq!(taken.collect::<Vec<_>>(), [true, true, true, true, false]);
    }

    /// Forms of expressions in configurations of process-exporter, a command line, and what the first group captures.
    const FOUND: &[(&str, &str, Option<&str>)] = &[
        ("(.+)", "a b", Some("a b")),
        (
            r"-config.path\s+(?P<Cfgfile>\S+)",
            "p -config.path a.yml -x",
            Some("a.yml"),
        ),
        (
            r"^/nix/store[^ ]*/(?P<Wrapped>[^ /]*) (?P<Args>.*)",
            "/nix/store/x-1/bin/vi a b",
            Some("vi"),
        ),
        (
            r"-D\s+.+?(?P<Path>[^/]+)(?:$|\s)",
            "pg -D /var/lib/main",
            Some("main"),
        ),
        (
            r"services\.(?P<svc>one|two)",
            "python -m services.two",
            Some("two"),
        ),
        (
            r"ping www.(?P<name>\w*).com",
            "ping www.example.com",
            Some("example"),
        ),
        (r"([^/]+)\.py", "python2 /x/run.py", Some("run")),
        (r"--name=([\w\-\.]+)", "x --name=a-b.c d", Some("a-b.c")),
        (
            r"[= ](?P<job>\S+?_\d+?@\d+.\d+.\d+.\d+)",
            "x=a_12@10.2.3.4",
            Some("a_12@10.2.3.4"),
        ),
        (r"(?i)NAME:\/(\w{2,3})", "name:/abcd", Some("abc")),
        (r"^(\S+(?: .* -D \S+)?)$", "a b", None),
    ];

    #[test]
    fn expressions_of_configurations_find_what_they_find_in_process_exporter() {
        for (pattern, text, found) in FOUND {
            let regex = compile(pattern, &mut Memory::default()).expect(pattern);
            let captures = regex.0.captures(text);
            let group = captures.and_then(|captures| captures.get(1));
            assert_eq!(group.map(|group| group.as_str()), *found, "{pattern}");
        }
    }

    #[test]
    fn a_wrong_expression_is_refused_with_the_reason() {
        for pattern in ["(", "[a", r"\1", "(?=a)", "*", r"[\w-.]", r"\Qa\E", "a{"] {
            let error = compile(pattern, &mut Memory::default()).expect_err(pattern);
            assert!(
                error.contains(&format!("{pattern:?} is wrong: ")),
                "{error}"
            );
        }
    }
}
