use super::*;

fn compared_and_wrong(tally: &Tally) -> (u64, u64) {
    let Counts {
        compared, wrong, ..
    } = tally.total();
    (compared, wrong)
}

fn statm<'t>(before: &'t [u8], kernel: &'t [u8], after: &'t [u8]) -> Bracket<'t> {
    Bracket {
        pid: 1,
        file: File::Statm,
        before,
        kernel,
        after,
        looks: &[],
        shown_since: &[],
        switched: false,
    }
}

/// Counts these texts, of which the last ones are judged. Returns also whether they would be read again. `switched`: as in
/// [`Bracket`].
fn counted(file: File, looks: &[[&str; 5]], switched: bool) -> (Tally, bool) {
    let looks: Vec<Look> = looks
        .iter()
        .map(|look| look.map(|text| text.as_bytes().to_vec()))
        .collect();
    let [_, before, kernel, after, _] = looks.last().expect("one look");
    let bracket = Bracket {
        pid: 1,
        file,
        before,
        kernel,
        after,
        looks: &looks,
        shown_since: &[],
        switched,
    };
    let mut tally = Tally::default();
    tally.add(&bracket, true);
    (tally, bracket.is_suspicious())
}

/// Whether texts that changed are wrong.
fn is_wrong(file: File, looks: &[[&str; 5]]) -> bool {
    let (tally, is_suspicious) = counted(file, looks, false);
    assert_eq!(is_suspicious, tally.total().wrong > 0);
    tally.total().wrong > 0
}

#[test]
fn a_list_that_moves_is_one_that_the_kernel_shows() {
    let [long, short, garbage] = [
        "Groups:\t7777 7777 \n",
        "Groups:\t8888 \n",
        "Groups:\t8888 18446744071612759648 \n",
    ];
    let file = File::Status;
    assert!(is_wrong(file, &[[long, garbage, short, long, short]]));
    // Ours changed, and the kernel's is one of ours.
    assert!(is_wrong(file, &[[long, garbage, short, short, short]]));
    // A later reading does not undo it.
    let usual = [long, short, short, long, long];
    assert!(is_wrong(
        file,
        &[[long, garbage, short, long, short], usual]
    ));
    assert!(!is_wrong(file, &[usual]));
    // The kernel shows it in the end.
    let unknown = [long, short, long, short, long];
    assert!(is_wrong(file, &[unknown]));
    assert!(!is_wrong(file, &[unknown, usual]));
}

/// A list that is rarely in force.
#[test]
fn a_list_that_the_kernel_shows_when_it_is_looked_at_for_longer_is_right() {
    let looks = ["7777", "8888", "7777", "9999", "7777"];
    let looks = [looks.map(|list| format!("Groups:\t{list} \n").into_bytes())];
    let [_, before, kernel, after, _] = &looks[0];
    let list = |list: &str| ("Groups".to_owned(), format!("\t{list} ").into_bytes());
    let bracket = Bracket {
        pid: 1,
        file: File::Status,
        before,
        kernel,
        after,
        looks: &looks,
        shown_since: &[],
        switched: false,
    };
    assert_eq!(bracket.unseen(), [list("8888"), list("9999")]);
    let wrong = |shown_since: &[Value]| {
        let mut tally = Tally::default();
        let bracket = Bracket {
            shown_since,
            ..bracket
        };
        tally.add(&bracket, true);
        tally.total().wrong
    };
    assert_eq!(wrong(&[list("8888"), list("9999")]), 0);
    assert_eq!(wrong(&[list("8888")]), 2, "the field and the text");
    assert_eq!(wrong(&[]), 2);
}

#[test]
fn a_counter_that_moves_is_between_the_kernels_texts() {
    let texts = |values: [u64; 5]| values.map(|value| format!("rchar: {value}\n"));
    let wrong = |values| {
        let texts = texts(values);
        is_wrong(File::Io, &[texts.each_ref().map(String::as_str)])
    };
    assert!(!wrong([10, 20, 30, 100, 110]));
    assert!(wrong([10, 9, 30, 100, 110]), "it fell");
    assert!(wrong([10, 31, 30, 100, 110]), "it came before its time");
    assert!(wrong([10, 20, 30, 29, 110]));
    assert!(!wrong([10, 5, 4, 4, 4]), "the kernel's fell as well");
}

#[test]
fn user_and_system_time_may_be_divided_differently_if_the_sum_is_right() {
    let stat = |[user, system]: [u64; 2]| {
        format!("1 (x) S 0 0 0 0 0 0 0 0 0 0 {user} {system} 0 0 20 0 1 0 0 0 0\n")
    };
    let wrong = |times: [[u64; 2]; 5]| {
        let texts = times.map(stat);
        is_wrong(File::Stat, &[texts.each_ref().map(String::as_str)])
    };
    let kernel = [[514, 20], [514, 22], [514, 24]];
    assert!(!wrong([
        kernel[0],
        [500, 35],
        kernel[1],
        [500, 37],
        kernel[2]
    ]));
    assert!(wrong([
        kernel[0],
        [500, 32],
        kernel[1],
        [500, 37],
        kernel[2]
    ]));
    // It did not run.
    assert!(wrong([
        kernel[0],
        [500, 34],
        kernel[0],
        [500, 34],
        kernel[0]
    ]));
}

#[test]
fn a_value_that_moved_is_not_wrong() {
    let mut tally = Tally::default();
    tally.add(
        &statm(b"1 2 3 4 0 5 0\n", b"1 3 3 4 0 5 0\n", b"1 4 3 4 0 5 0\n"),
        true,
    );
    assert_eq!(compared_and_wrong(&tally), (8, 0));
    assert_eq!(tally.texts[&File::Statm].moved, 1);
}

#[test]
fn a_value_that_stood_still_is_wrong_if_it_differs() {
    let mut tally = Tally::default();
    let bracket = statm(b"1 2 3 4 0 5 0\n", b"1 3 3 4 0 5 0\n", b"1 2 3 4 0 5 0\n");
    assert!(bracket.is_suspicious());
    tally.add(&bracket, true);
    assert_eq!(compared_and_wrong(&tally), (8, 2), "the field and the text");
    assert_eq!(tally.examples[0].field, "resident");
}

/// Like `rcu_preempt`, which reading wakes each time.
#[test]
fn a_thread_that_was_switched_between_two_sleeps_is_not_judged() {
    let (asleep, awake) = (
        b"State:\tI (idle)\nTgid:\t16\n",
        b"State:\tR (running)\nTgid:\t16\n",
    );
    let bracket = |kernel: &'static [u8], switched| Bracket {
        pid: 16,
        file: File::Status,
        before: asleep,
        kernel,
        after: asleep,
        looks: &[],
        shown_since: &[],
        switched,
    };
    let wrong = |bracket: Bracket<'_>| {
        let mut tally = Tally::default();
        tally.add(&bracket, true);
        tally.total().wrong
    };
    assert_eq!(wrong(bracket(awake, true)), 0);
    assert!(
        bracket(awake, true).is_suspicious(),
        "it is looked at again"
    );
    assert_eq!(wrong(bracket(awake, false)), 2, "the field and the text");
    let other = b"State:\tR (running)\nTgid:\t17\n";
    assert_eq!(wrong(bracket(other, true)), 2, "a switch changes no pid");
}

#[test]
fn a_line_too_few_or_too_many_is_wrong() {
    for (kernel, ours) in [
        (&b"a:\t1\nb:\t2\n"[..], &b"a:\t1\n"[..]),
        (b"a:\t1\n", b"a:\t1\nb:\t2\n"),
    ] {
        let mut tally = Tally::default();
        let bracket = Bracket {
            pid: 1,
            file: File::Status,
            before: ours,
            kernel,
            after: ours,
            looks: &[],
            shown_since: &[],
            switched: false,
        };
        tally.add(&bracket, true);
        assert_eq!(
            tally
                .fields
                .values()
                .map(|(_, field)| field.counts.wrong)
                .sum::<u64>(),
            1
        );
    }
}

/// By the service, this process runs when a text is read, and waits when a record is. So its state differs in each reading, and
/// the last one decides about all of its values.
#[test]
fn a_value_is_wrong_if_it_differs_in_each_look() {
    let counts = |looks: &[[&str; 5]]| {
        let (tally, is_suspicious) = counted(File::Status, looks, true);
        assert!(is_suspicious, "it is looked at again");
        (tally.total().wrong, tally.in_motion)
    };
    let [eight, nine] = ["SigQ:\t8/99\nSeccomp:\t0\n", "SigQ:\t9/99\nSeccomp:\t0\n"];
    // A record that was kept too long: the field and the text are wrong, whatever the kernel shows around them.
    let stale = [nine, eight, nine, eight, nine];
    assert_eq!(counts(&[stale, stale]), (2, 0));
    assert_eq!(counts(&[[eight, eight, nine, eight, nine], stale]), (2, 0));
    assert_eq!(counts(&[stale, [nine, eight, nine, eight, eight]]), (2, 0));
    assert_eq!(counts(&[[eight, eight, eight, eight, nine], stale]), (0, 1));
    // A field with few values, which the kernel has shown.
    let [zero, two] = ["SigQ:\t8/99\nSeccomp:\t0\n", "SigQ:\t8/99\nSeccomp:\t2\n"];
    let back = [zero, zero, two, zero, zero];
    assert_eq!(counts(&[back, back]), (2, 0));
    assert_eq!(counts(&[[zero; 5], back]), (0, 1));
    // Another difference of the text is wrong beside one that may have moved.
    let empty_line = "SigQ:\t9/99\n\nSeccomp:\t0\n";
    let looks = [[eight; 5], [eight, eight, empty_line, eight, eight]];
    assert_eq!(counts(&looks), (1, 1));
}

/// It cannot have run in between without a switch.
#[test]
fn a_state_between_is_certain_without_a_switch() {
    let [sleeps, runs] = ["State:\tS (sleeping)\n", "State:\tR (running)\n"];
    let usual = [sleeps; 5];
    assert!(is_wrong(
        File::Status,
        &[usual, [sleeps, sleeps, runs, sleeps, sleeps]]
    ));
}

#[test]
fn a_process_that_no_snapshot_has_is_wrong() {
    let tally = Tally {
        missing: 2,
        ..Tally::default()
    };
    assert_eq!(compared_and_wrong(&tally), (0, 2));
}
