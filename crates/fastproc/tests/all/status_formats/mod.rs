//! The status of kernels that are not running here, from artificial texts in their format.

mod kernels;

use fastproc::{
    Fields, Process,
    record::{Credentials, Memory, MemoryDetails, Record, Users},
    text::{
        RenderError, Text,
        status::{Format, Renderer, SpeculationControl, parse},
    },
};
use fastproc_testbed::with;
use proptest::prelude::*;

use kernels::{KERNEL_THREAD, Kernel, LINUX_5_10, LINUX_6_1, LINUX_6_12, OTHER, OWN, Values, text};

fn learn(kernel: Kernel) -> Format {
    let own = text(kernel, OWN);
    let control = SpeculationControl {
        store_bypass: true,
        indirect_branch: true,
    };
    Format::learn(own.as_bytes(), Some(40), control)
        .expect("it can be learned")
        .with_thp_disable_bit(Some(24))
}

/// Renders the values parsed from `text`.
fn again(format: &Format, text: &str, kernel_text: Option<&str>) -> Result<String, RenderError> {
    let mut record = Record::default();
    let mut pool = Vec::new();
    parse(text.as_bytes(), format, &mut record, &mut pool).expect("it parses");
    record.identity.groups = Fields::THREE_FILES.bits();
    let mut renderer = Renderer::new(format.clone());
    let process = Process::new(&record, &pool);
    let mut rendered = Text::default();
    let rendered =
        rendered.render(|out| renderer.render(process, kernel_text.map(str::as_bytes), out))?;
    Ok(String::from_utf8(rendered.to_vec()).expect("it is text"))
}

#[test]
fn older_kernels_are_rendered_from_records_alone() {
    for kernel in [
        LINUX_5_10,
        LINUX_6_1,
        Kernel {
            huge_pages: false,
            ..LINUX_6_1
        },
    ] {
        let format = learn(kernel);
        assert_eq!(format.kernel_lines().count(), 0);
        for values in [OWN, OTHER, KERNEL_THREAD] {
            let text = text(kernel, values);
            assert_eq!(again(&format, &text, None).as_ref(), Ok(&text));
        }
    }
}

#[test]
fn lines_that_no_record_holds_come_from_the_kernel() {
    let format = learn(LINUX_6_12);
    let lines: Vec<&str> = format.kernel_lines().collect();
    assert_eq!(lines, ["x86_Thread_features", "x86_Thread_features_locked"]);
    for values in [OWN, OTHER, KERNEL_THREAD] {
        let text = text(LINUX_6_12, values);
        assert_eq!(again(&format, &text, Some(&text)).as_ref(), Ok(&text));
        let refused = again(&format, &text, None);
        assert_eq!(
            refused,
            Err(RenderError::KernelText {
                label: "x86_Thread_features".into()
            })
        );
    }
}

#[test]
fn features_of_a_thread_are_rendered_where_records_hold_them() {
    let format = learn(LINUX_6_12).with_thread_features(true);
    assert_eq!(format.kernel_lines().count(), 0);
    for (features, bits) in [("", 0), ("shstk ", 1), ("wrss ", 2), ("shstk wrss ", 3)] {
        let text = text(LINUX_6_12, Values { features, ..OTHER });
        let mut record = Record::default();
        parse(text.as_bytes(), &format, &mut record, &mut Vec::new()).expect("it parses");
        assert_eq!(record.credentials.thread_features, bits);
        assert_eq!(record.credentials.thread_features_locked, 0);
        assert_eq!(again(&format, &text, None).as_ref(), Ok(&text));
        let locked = text.replace("_locked:\t", &format!("_locked:\t{features}"));
        assert_eq!(again(&format, &locked, None).as_ref(), Ok(&locked));
    }
}

#[test]
fn a_feature_nobody_knows_is_copied_and_never_left_out() {
    let mut record = Record::default();
    let mut parsed =
        |format: &Format, text: &str| parse(text.as_bytes(), format, &mut record, &mut Vec::new());
    let text = text(
        LINUX_6_12,
        Values {
            features: "shstk lass ",
            ..OTHER
        },
    );
    let copies = learn(LINUX_6_12);
    assert_eq!(parsed(&copies, &text), Ok(()));
    assert_eq!(again(&copies, &text, Some(&text)).as_ref(), Ok(&text));
    let renders = learn(LINUX_6_12).with_thread_features(true);
    let error = parsed(&renders, &text).expect_err("no record holds it");
    assert!(
        text.lines()
            .nth(error.line - 1)
            .is_some_and(|line| line.starts_with("x86_Thread_features:")),
        "{error}"
    );
    // If this process itself has features, the line is rendered for no process, but copied from the kernel's text.
    let learned = Format::learn(text.as_bytes(), Some(40), SpeculationControl::default());
    let learned = learned
        .expect("it can be learned")
        .with_thp_disable_bit(Some(24))
        .with_thread_features(true);
    assert_eq!(
        learned.kernel_lines().collect::<Vec<_>>(),
        ["x86_Thread_features"]
    );
}

#[test]
fn a_label_nobody_knows_is_copied_where_it_stands() {
    let kernel = Kernel {
        unknown: true,
        ..LINUX_6_1
    };
    let format = learn(kernel);
    assert_eq!(format.kernel_lines().collect::<Vec<_>>(), ["Horizon"]);
    for values in [OWN, OTHER, KERNEL_THREAD] {
        let text = text(kernel, values);
        let other_value = text.replace("Horizon:\tevent", "Horizon:\tflat");
        assert_eq!(
            again(&format, &text, Some(&other_value)).as_ref(),
            Ok(&other_value)
        );
        // A process for which the kernel does not print it.
        let without = text.replace("Horizon:\tevent\n", "");
        assert_eq!(
            again(&format, &without, Some(&without)).as_ref(),
            Ok(&without)
        );
    }
}

#[test]
fn a_line_in_another_form_is_copied_too() {
    let form = |text: String| {
        text.replace("Threads:\t12\n", "Threads:\t12 or so\n")
            .replace("Umask:\t0022", "Umask:\t022")
    };
    let own = form(text(LINUX_6_1, OWN));
    let format = Format::learn(own.as_bytes(), Some(40), SpeculationControl::default())
        .expect("it can be learned");
    let format = format.with_thp_disable_bit(Some(24));
    assert_eq!(
        format.kernel_lines().collect::<Vec<_>>(),
        ["Umask", "Threads"]
    );
    assert_eq!(again(&format, &own, Some(&own)).as_ref(), Ok(&own));
}

#[test]
fn lines_in_another_order_keep_it() {
    let swap = |text: String| {
        let line = "Mems_allowed:\t00000000,00000003\n";
        let text = text.replace(line, "");
        let peak = "VmPeak:\t123456789012 kB\n";
        let text = text
            .replace(peak, "")
            .replace("VmLck:", &format!("{peak}VmLck:"));
        text.replace("Threads:", &format!("{line}Threads:"))
    };
    let own = swap(text(LINUX_6_1, OWN));
    let format = Format::learn(own.as_bytes(), Some(40), SpeculationControl::default())
        .expect("it can be learned");
    let format = format.with_thp_disable_bit(Some(24));
    assert_eq!(format.kernel_lines().count(), 0);
    for values in [OWN, KERNEL_THREAD] {
        let text = swap(text(LINUX_6_1, values));
        assert_eq!(again(&format, &text, None).as_ref(), Ok(&text));
    }
    // A text in another order still parses: the order is an expectation, not a condition.
    assert_eq!(
        again(&format, &text(LINUX_6_1, OWN), None).as_ref(),
        Ok(&own)
    );
}

#[test]
fn cpus_that_could_never_be_are_not_shown() {
    let own = text(LINUX_6_1, OWN);
    let parsed = |format: &Format| {
        let mut record = Record::default();
        let mut pool = Vec::new();
        parse(own.as_bytes(), format, &mut record, &mut pool).expect("it parses");
        record.identity.groups = Fields::THREE_FILES.bits();
        // The kernel's value in the mask of a process that may run on all CPUs.
        record.scheduling_details.cpus_allowed = u64::MAX;
        record
    };
    let format = learn(LINUX_6_1);
    let record = parsed(&format);
    let mut renderer = Renderer::new(format);
    let mut rendered = Text::default();
    let process = Process::new(&record, &[]);
    let refused = rendered
        .render(|out| renderer.render(process, None, out))
        .map(String::from_utf8_lossy);
    let refused = refused.expect("it renders");
    assert!(
        refused.contains("Cpus_allowed:\tff,ffffffff\nCpus_allowed_list:\t0-39\n"),
        "{refused}"
    );
    // If the number of CPUs disagrees with the kernel's text, the text is right.
    let control = SpeculationControl {
        store_bypass: true,
        indirect_branch: true,
    };
    for cpus in [None, Some(2), Some(64)] {
        let format = Format::learn(own.as_bytes(), cpus, control).expect("it can be learned");
        let lines: Vec<&str> = format.kernel_lines().collect();
        assert_eq!(lines, ["THP_enabled", "Cpus_allowed", "Cpus_allowed_list"]);
    }
}

#[test]
fn malformed_status_texts_are_refused() {
    for own in ["Name:\tcat", "no colon\n", ":\n", "\n"] {
        assert!(
            Format::learn(own.as_bytes(), None, SpeculationControl::default()).is_err(),
            "{own:?}"
        );
    }
}

#[test]
fn a_text_that_was_cut_is_refused() {
    let format = learn(LINUX_6_12);
    for values in [OWN, KERNEL_THREAD] {
        let text = text(LINUX_6_12, values);
        // The last two lines are unknown, so a text may lack them.
        let known = text.find("x86_Thread").expect("the text has the line");
        for end in 0..known {
            let mut record = Record::default();
            assert!(
                parse(
                    &text.as_bytes()[..end],
                    &format,
                    &mut record,
                    &mut Vec::new()
                )
                .is_err(),
                "{}",
                &text[..end]
            );
        }
    }
}

proptest! {
    #[test]
    fn values_of_status_survive_rendering_and_parsing(
        name in prop::collection::vec(1_u8.., 0..=63),
        ids: [u32; 17],
        sizes in prop::array::uniform16(0_u64..1 << 48),
        sets: [u64; 16],
        groups in prop::collection::vec(any::<u32>(), 0..9),
        nested in prop::collection::vec(any::<[u32; 4]>(), 0..4),
        state in 0..9_u32,
        umask in -1..0o1000_i32,
        flags: [bool; 6],
    ) {
        let format = learn(Kernel { kthread: true, untag_mask: true, ..LINUX_6_1 });
        let mut record = status_record(&name, ids, sizes, sets, umask, flags);
        record.identity.state_bits = (1 << state) >> 1;
        let mut pool = vec![0];
        if !groups.is_empty() {
            record.credentials.groups_at = 1;
            record.credentials.ngroups = groups.len() as u32;
            pool.extend(groups.chunks(2).map(|pair| u64::from(pair[0]) | u64::from(*pair.get(1).unwrap_or(&0)) << 32));
        }
        if !nested.is_empty() {
            record.namespaces.level = nested.len() as u32;
            record.namespaces.ids_at = pool.len() as u32;
            let words = |pair: &[u32]| u64::from(pair[0]) | u64::from(pair[1]) << 32;
            pool.extend(nested.iter().flat_map(|ids| [words(&ids[..2]), words(&ids[2..])]));
        }
        let process = Process::new(&record, &pool);
        prop_assert_eq!(&*process.name(), name.as_slice());
        prop_assert!(process.supplementary_groups().eq(groups.iter().copied()));
        prop_assert!(process.nested_ids().map(|ids| [ids.tgid, ids.pid, ids.pgrp, ids.session]).eq(nested));
        let mut renderer = Renderer::new(format);
        let mut rendered = Text::default();
        let rendered = rendered.render(|out| renderer.render(process, None, out)).expect("it renders");
        let mut parsed = Record::default();
        let mut parsed_pool = vec![0];
        prop_assert_eq!(parse(rendered, renderer.format(), &mut parsed, &mut parsed_pool), Ok(()));
        parsed.identity.groups = Fields::THREE_FILES.bits();
        prop_assert_eq!(parsed, record);
        // Without groups or ids the pool may end after the first word.
        prop_assert_eq!(parsed_pool, pool);
    }
}

/// A record with the values of status except lists.
fn status_record(
    name: &[u8],
    ids: [u32; 17],
    sizes: [u64; 16],
    sets: [u64; 16],
    umask: i32,
    flags: [bool; 6],
) -> Record {
    let mut record = Record::default();
    let short = name.len().min(15);
    record.identity.comm[..short].copy_from_slice(&name[..short]);
    if name.len() > 15 {
        record.name.kind = 1;
        record.name.text[..name.len()].copy_from_slice(name);
    }
    let identity = &mut record.identity;
    let [
        tgid,
        ppid,
        pgrp,
        session,
        tracer_pid,
        num_threads,
        ngid,
        fd_size,
        queued,
        uid,
        euid,
        suid,
        fsuid,
        gid,
        egid,
        sgid,
        fsgid,
    ] = ids;
    // Ids of process groups are signed in the text.
    (
        identity.tgid,
        identity.ppid,
        identity.pgrp,
        identity.session,
    ) = (tgid >> 1, ppid, pgrp >> 1, session >> 1);
    (identity.tracer_pid, identity.num_threads) = (tracer_pid, num_threads);
    identity.groups = Fields::THREE_FILES.bits();
    let [
        kernel_thread,
        has_memory,
        dumping,
        no_huge_pages,
        no_new_privs,
        seccomp,
    ] = flags;
    identity.flags = if kernel_thread { 0x0020_0000 } else { 0 };
    identity.has_mm = has_memory.into();
    identity.core_dumping = (has_memory && dumping).into();
    (record.scheduling_details.ngid, record.limits.fd_size) = (ngid, fd_size);
    record.users = with!(Users::default(), {
        uid,
        euid,
        suid,
        fsuid,
        gid,
        egid,
        sgid,
        fsgid,});
    record.credentials = with!(Credentials::default(), {
        cap_inheritable: sets[0],
        cap_permitted: sets[1],
        cap_effective: sets[2],
        cap_bounding: sets[3],
        cap_ambient: sets[4],
        atomic_flags: no_new_privs.into(),
        seccomp_mode: if seccomp { 2 } else { 0 },
        seccomp_filters: seccomp.into(),});
    record.credentials.set_umask((umask >= 0).then_some(umask));
    let signals = &mut record.signals;
    [
        signals.pending,
        signals.shared_pending,
        signals.blocked,
        signals.ignored,
        signals.caught,
        signals.queue_limit,
    ] = [sets[5], sets[6], sets[7], sets[8], sets[9], sets[10]];
    (signals.queued, signals.switches) = (queued.into(), u64::MAX);
    (record.cpu.nvcsw, record.cpu.nivcsw) = (sets[11], sets[12]);
    (
        record.scheduling_details.cpus_allowed,
        record.scheduling_details.mems_allowed,
    ) = (sets[13] & 0xff_ffff_ffff, sets[14]);
    if has_memory {
        let [
            vsize,
            rss_anon,
            rss_file,
            rss_shmem,
            swap,
            peak_vsize,
            peak_rss,
            locked,
            pinned,
            data,
            stack,
            exe,
            lib,
            page_tables,
            hugetlb,
            _,
        ] = sizes.map(|kib| kib << 10);
        record.memory = with!(Memory::default(), {
            vsize,
            rss_anon,
            rss_file,
            rss_shmem,
            swap,
            peak_vsize,
            peak_rss,
            locked,
            pinned,
            data,
            stack,
            exe,
            lib,
            text: exe,
            rss_approx: 0,
        });
        record.memory_details = with!(MemoryDetails::default(), {
            page_tables,
            hugetlb,
            mm_flags: if no_huge_pages { 1 << 24 } else { 0 },
            untag_mask: sets[15],
        });
    }
    record
}
