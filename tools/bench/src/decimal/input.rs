//! What is converted: the numbers of this machine's own files, and numbers of each length.

use std::{fs, io};

use fastrand::Rng;

/// An array of numbers.
pub struct Input {
    /// Its name in the report.
    pub name: String,
    pub numbers: Vec<u64>,
    /// What every method has to write for it.
    pub text: String,
}

impl Input {
    fn new(name: impl Into<String>, numbers: Vec<u64>) -> Self {
        let text = numbers.iter().map(u64::to_string).collect();
        Self {
            name: name.into(),
            numbers,
            text,
        }
    }

    /// The memory that a method needs, with what it may touch behind its last digit.
    pub fn room(&self) -> usize {
        self.text.len() + 32
    }
}

/// Processes whose files are read; those of a big machine would make a text that no cache holds.
const PROCESSES: usize = 128;

/// Random numbers of an input: too many for a branch predictor to learn their order.
const NUMBERS: usize = 8192;

/// The most digits of a u64.
pub const MAX_DIGITS: u32 = 20;

/// All inputs, the real one first. The random ones are the same in every run.
pub fn all() -> io::Result<Vec<Input>> {
    let mut rng = Rng::with_seed(0);
    let mut inputs = vec![Input::new("real", real()?)];
    for digits in 1..=MAX_DIGITS {
        let numbers = (0..NUMBERS).map(|_| of_length(&mut rng, digits)).collect();
        inputs.push(Input::new(format!("digits-{digits}"), numbers));
    }
    // As many of each length, shuffled.
    let mut mix: Vec<u64> = (1..=MAX_DIGITS)
        .cycle()
        .take(NUMBERS)
        .map(|digits| of_length(&mut rng, digits))
        .collect();
    rng.shuffle(&mut mix);
    inputs.push(Input::new("digits-mix", mix));
    Ok(inputs)
}

/// A random number of exactly so many digits.
pub fn of_length(rng: &mut Rng, digits: u32) -> u64 {
    let least = if digits == 1 {
        0
    } else {
        10_u64.pow(digits - 1)
    };
    // Only 20 digits go beyond what a u64 holds.
    let beyond = 10_u64.checked_pow(digits);
    rng.u64(least..=beyond.map_or(u64::MAX, |beyond| beyond - 1))
}

/// The numbers of stat, status, vmstat and the processes' files, in the order in which the kernel prints them.
fn real() -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    let mut pids: Vec<u32> = fs::read_dir("/proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    // Spread over all there are.
    for pid in pids.iter().step_by(pids.len().div_ceil(PROCESSES).max(1)) {
        // A process may be gone by now.
        let Ok(stat) = fs::read(format!("/proc/{pid}/stat")) else {
            continue;
        };
        let Ok(status) = fs::read(format!("/proc/{pid}/status")) else {
            continue;
        };
        numbers.push(u64::from(*pid));
        // Behind the name, which may hold anything.
        let end = stat.iter().rposition(|&byte| byte == b')').unwrap_or(0);
        numbers.extend(decimals(&stat[end..]));
        numbers.extend(
            status
                .split(|&byte| byte == b'\n')
                .filter_map(status_value)
                .flat_map(decimals),
        );
    }
    for file in ["/proc/vmstat", "/proc/stat"] {
        // Behind the name, which may have digits in it.
        let values = |line: &[u8]| {
            line.iter()
                .position(|&byte| byte == b' ')
                .map_or(0, |space| space)
        };
        numbers.extend(
            fs::read(file)?
                .split(|&byte| byte == b'\n')
                .flat_map(|line| decimals(&line[values(line)..])),
        );
    }
    Ok(numbers)
}

/// What stands behind the label of a line of status, if the kernel prints it in base ten.
fn status_value(line: &[u8]) -> Option<&[u8]> {
    const OTHER: [&str; 6] = [
        "Name",
        "Umask",
        "untag_mask",
        "x86_Thread_features",
        "Cpus_allowed",
        "Mems_allowed",
    ];
    let colon = line.iter().position(|&byte| byte == b':')?;
    let (label, value) = (str::from_utf8(&line[..colon]).ok()?, &line[colon + 1..]);
    let set = matches!(value, [b'\t', digits @ ..] if digits.len() == 16 && digits.iter().all(u8::is_ascii_hexdigit));
    (!set
        && !OTHER
            .iter()
            .any(|other| label.starts_with(other) && !label.ends_with("_list")))
    .then_some(value)
}

/// The numbers in `text`, without their signs.
fn decimals(text: &[u8]) -> impl Iterator<Item = u64> {
    let runs = text.split(|byte| !byte.is_ascii_digit());
    runs.filter_map(|run| str::from_utf8(run).ok()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_decimal_values_of_status_are_taken() {
        let taken = |line: &str| {
            status_value(line.as_bytes()).map(|value| decimals(value).collect::<Vec<_>>())
        };
        assert_eq!(taken("SigQ:\t3/96365"), Some(vec![3, 96365]));
        assert_eq!(taken("VmRSS:\t   13968 kB"), Some(vec![13968]));
        assert_eq!(taken("Cpus_allowed_list:\t0-3,7"), Some(vec![0, 3, 7]));
        assert_eq!(taken("x86_Thread_features:\t"), None);
        for line in [
            "Name:\tfoo 12",
            "Umask:\t0022",
            "SigCgt:\t0000000000000010",
            "Cpus_allowed:\t3",
            "untag_mask:\t0x12",
            "",
        ] {
            assert_eq!(taken(line), None, "{line}");
        }
    }

    #[test]
    fn inputs_have_the_lengths_that_they_are_named_for() {
        let inputs = all().unwrap();
        assert_eq!(inputs.len(), 22);
        for input in &inputs {
            let digits = input
                .name
                .strip_prefix("digits-")
                .and_then(|digits| digits.parse::<usize>().ok());
            assert!(input.numbers.len() >= 1000, "{}", input.name);
            if let Some(digits) = digits {
                assert_eq!(
                    input.text.len(),
                    digits * input.numbers.len(),
                    "{}",
                    input.name
                );
            }
        }
        assert_eq!(inputs[0].name, "real");
        assert_eq!(inputs[21].name, "digits-mix");
    }
}
