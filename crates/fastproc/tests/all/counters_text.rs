//! Compares the renderers with simple slow ones, on rare machines; and feeds the parsers with any text.

use std::fmt::Write;

use fastproc::text::{
    interrupts::Interrupts,
    loadavg::LoadAvg,
    machine_stat::{self, Cpu, CpuTimes, MachineStat, Moved},
    softirqs,
    uptime::Uptime,
    vmstat::{self, VmStat},
};
use proptest::prelude::*;

/// A generator for the values of any machine.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // numbers of all lengths
        self.0 >> (self.0 % 61)
    }

    fn count(&mut self) -> u32 {
        match self.next() % 3 {
            0 => 0,
            1 => (self.next() % 1000) as u32,
            _ => self.next() as u32,
        }
    }

    fn times(&mut self) -> CpuTimes {
        CpuTimes {
            ns: std::array::from_fn(|_| self.next()),
        }
    }
}

/// Every seventh CPU is offline, except on a machine with one CPU.
fn machine(cpus: u32, irqs: usize, seed: u64) -> MachineStat {
    let mut numbers = Numbers(seed | 1);
    let cpus = (0..cpus)
        .filter(|cpu| cpus == 1 || cpu % 7 != 3)
        .map(|id| Cpu {
            id,
            times: numbers.times(),
        })
        .collect();
    MachineStat {
        total: numbers.times(),
        cpus,
        intr: numbers.next(),
        irqs: (0..irqs).map(|_| numbers.count()).collect(),
        ctxt: numbers.next(),
        btime: numbers.next(),
        processes: numbers.next(),
        procs_running: numbers.next(),
        procs_blocked: numbers.next(),
        softirq: numbers.next(),
        softirqs: (0..10).map(|_| numbers.count()).collect(),
    }
}

fn slow_times(text: &mut String, times: &CpuTimes) {
    for ns in times.ns {
        write!(text, " {}", ns / 10_000_000).unwrap();
    }
    text.push('\n');
}

fn slow_stat(stat: &MachineStat) -> String {
    let mut text = String::from("cpu ");
    slow_times(&mut text, &stat.total);
    for cpu in &stat.cpus {
        write!(text, "cpu{}", cpu.id).unwrap();
        slow_times(&mut text, &cpu.times);
    }
    write!(text, "intr {}", stat.intr).unwrap();
    for count in &stat.irqs {
        write!(text, " {count}").unwrap();
    }
    write!(
        text,
        "\nctxt {}\nbtime {}\nprocesses {}\nprocs_running {}\nprocs_blocked {}\nsoftirq {}",
        stat.ctxt, stat.btime, stat.processes, stat.procs_running, stat.procs_blocked, stat.softirq
    )
    .unwrap();
    for count in &stat.softirqs {
        write!(text, " {count}").unwrap();
    }
    text.push('\n');
    text
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the text is ASCII")
}

#[test]
fn only_the_named_interrupts_are_rewritten() {
    let mut renderer = machine_stat::Renderer::default();
    let mut stat = machine(3, 50, 7);
    renderer.render(&stat, Moved::Any);
    for round in 0..200_u32 {
        stat.irqs[7] = stat.irqs[7].wrapping_mul(3).wrapping_add(round);
        stat.irqs[49] = round;
        stat.ctxt += 1;
        let slow = slow_stat(&stat);
        assert_eq!(text(renderer.render(&stat, Moved::Only(&[7, 49]))), slow);
    }
    // a count that is not listed keeps its bytes, and an index beyond the row does no harm
    let before = text(renderer.render(&stat, Moved::Any)).to_owned();
    stat.irqs[3] = stat.irqs[3].wrapping_add(1);
    assert_eq!(text(renderer.render(&stat, Moved::Only(&[99]))), before);
    assert_eq!(text(renderer.render(&stat, Moved::Any)), slow_stat(&stat));
}

#[test]
fn cpus_that_come_and_go_change_the_shape() {
    let mut renderer = machine_stat::Renderer::default();
    for cpus in [4, 64, 65, 3, 1, 4096, 2] {
        let stat = machine(cpus, 30, u64::from(cpus));
        assert_eq!(
            text(renderer.render(&stat, Moved::Only(&[]))),
            slow_stat(&stat)
        );
    }
}

#[test]
fn vmstat_in_full_and_in_part() {
    let mut numbers = Numbers(99);
    let mut renderer = vmstat::Renderer::default();
    for lines in [1, 170, 191, 4] {
        let mut stat = VmStat {
            names: (0..lines).map(|line| format!("nr_line_{line}")).collect(),
            values: vec![0; lines],
        };
        for _ in 0..50 {
            for _ in 0..=lines / 5 {
                let line = numbers.next() as usize % lines;
                stat.values[line] = numbers.next();
            }
            let mut slow = String::new();
            for (name, value) in stat.iter() {
                writeln!(slow, "{name} {value}").unwrap();
            }
            assert_eq!(text(renderer.render(&stat)), slow);
            assert_eq!(VmStat::parse(slow.as_bytes()).expect("it parses"), stat);
        }
    }
}

#[test]
fn interrupts_of_machines_of_all_sizes() {
    for cpus in [1, 64, 65, 512, 4096] {
        let mut numbers = Numbers(cpus);
        let mut slow = " ".repeat(12);
        for cpu in 0..cpus {
            write!(slow, "CPU{cpu:<8}").unwrap();
        }
        slow.push('\n');
        let mut expected = Vec::new();
        for (label, rest) in [
            (" 24", " IO-APIC   5-edge      ACPI:Ged"),
            ("136", " PCI-MSIX-0000:00:01.0   0-edge      virtio0-config"),
            ("LOC", "  Local timer interrupts"),
        ] {
            write!(slow, "{label:>4}:").unwrap();
            let counts: Vec<u32> = (0..cpus).map(|_| numbers.count()).collect();
            for count in &counts {
                write!(slow, " {count:>10}").unwrap();
            }
            writeln!(slow, "{rest}").unwrap();
            expected.push((counts, rest));
        }
        writeln!(slow, " ERR: {:>10}", 3).unwrap();
        let interrupts = Interrupts::parse(slow.as_bytes()).expect("it parses");
        assert_eq!(interrupts.rows.len(), 4);
        for (row, (counts, rest)) in interrupts.rows.iter().zip(expected) {
            assert_eq!((&row.counts, text(&row.rest)), (&counts, rest));
        }
        assert_eq!(interrupts.rows[0].irq(), Some(24));
        assert_eq!(interrupts.row("ERR").expect("the row exists").counts, [3]);
    }
}

#[test]
fn a_label_wider_than_numbers_has_no_space_before_its_counts() {
    let kernel = "           CPU0       CPU1       \n 11:        728        796 GIC-0  27 Level     arch_timer\n\
                  IPI0:        86         91       Rescheduling interrupts\nErr:          0\n";
    let interrupts = Interrupts::parse(kernel.as_bytes()).expect("it parses");
    assert_eq!(
        interrupts.row("IPI0").expect("the row exists").counts,
        [86, 91]
    );
}

#[test]
fn malformed_counter_texts_are_errors_with_line_and_byte() {
    let error = MachineStat::parse(b"cpu  1 2 3 4 5 6 7 8 9 x\n").expect_err("x is no number");
    assert_eq!((error.line, error.byte), (1, 24));
    assert!(
        MachineStat::parse(b"cpu  1 2 3 4 5 6 7 8 9 10\n").is_err(),
        "lines are missing"
    );
    assert!(
        MachineStat::parse(b"cpu  1 2 3 4 5 6 7 8 9 10 11\n").is_err(),
        "a time too many"
    );
    let error = VmStat::parse(b"nr_free_pages 12\npgfault -1\n").expect_err("-1 is no count");
    assert_eq!(error.line, 2);
    assert!(
        softirqs::names(b"   CPU0 CPU1\n HI 1 2\n").is_err(),
        "a colon is missing"
    );
    assert!(LoadAvg::parse(b"0.10 0.20 0.30 1/2\n").is_err());
    assert!(Uptime::parse(b"1.5 2.00\n").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_a_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = MachineStat::parse(&bytes);
        let _ = VmStat::parse(&bytes);
        let _ = softirqs::names(&bytes);
        let _ = Interrupts::parse(&bytes);
        let _ = LoadAvg::parse(&bytes);
        let _ = Uptime::parse(&bytes);
    }

    #[test]
    fn parsers_take_texts_with_a_byte_changed(at in any::<prop::sample::Index>(), byte in any::<u8>(), seed in any::<u64>()) {
        let mut stat = slow_stat(&machine(3, 9, seed)).into_bytes();
        let at = at.index(stat.len());
        stat[at] = byte;
        if let Ok(parsed) = MachineStat::parse(&stat) {
            machine_stat::Renderer::default().render(&parsed, Moved::Any);
        }
    }

    #[test]
    fn any_machine_renders_as_the_slow_way(cpus in 1..70_u32, irqs in 0..200_usize, seeds in prop::collection::vec(any::<u64>(), 1..4)) {
        let mut renderer = machine_stat::Renderer::default();
        for seed in seeds {
            let stat = machine(cpus, irqs, seed);
            let slow = slow_stat(&stat);
            prop_assert_eq!(text(renderer.render(&stat, Moved::Any)), &slow);
            let parsed = MachineStat::parse(slow.as_bytes()).expect("it parses");
            prop_assert_eq!(slow_stat(&parsed), slow);
        }
    }

    #[test]
    fn load_and_uptime_survive(hundredths in any::<[u32; 3]>(), running in any::<u32>(), threads in any::<u32>(), last_pid in 0..i32::MAX, up in any::<u32>(), idle in any::<u32>()) {
        let load = LoadAvg { hundredths: hundredths.map(u64::from), running, threads, last_pid };
        let slow = format!(
            "{} {} {} {running}/{threads} {last_pid}\n",
            format_args!("{}.{:02}", hundredths[0] / 100, hundredths[0] % 100),
            format_args!("{}.{:02}", hundredths[1] / 100, hundredths[1] % 100),
            format_args!("{}.{:02}", hundredths[2] / 100, hundredths[2] % 100),
        );
        prop_assert_eq!(LoadAvg::parse(slow.as_bytes()).expect("it parses"), load);
        let time = |ms: u32| std::time::Duration::from_millis(u64::from(ms) * 10);
        let uptime = Uptime { up: time(up), idle: time(idle) };
        let slow = format!("{}.{:02} {}.{:02}\n", up / 100, up % 100, idle / 100, idle % 100);
        prop_assert_eq!(Uptime::parse(slow.as_bytes()).expect("it parses"), uptime);
    }
}
