use super::*;

const SIZE: usize = 1 << 20;
const LIMITS: Limits = Limits {
    of_user: 16 << 20,
    of_all: 40 << 20,
};

fn contents(generation: u64) -> Contents {
    Contents {
        generation,
        groups: 3,
        ..Contents::default()
    }
}

fn take(buffers: &mut Buffers, view: View, generation: u64) -> Option<u64> {
    let buffer = buffers.take(view, SIZE).ok()?;
    buffer.finish(contents(generation));
    Some(buffer.id)
}

#[test]
fn lent_buffers_are_not_written_and_returned_ones_are_reused() {
    let mut buffers = Buffers::new(100, LIMITS);
    let first = take(&mut buffers, View::All, 1).expect("a buffer");
    buffers.lend(first);
    buffers.lend(first);
    let second = take(&mut buffers, View::All, 2).expect("another");
    assert_ne!(first, second);
    buffers.lend(second);
    buffers.give_back(first);
    assert_ne!(
        take(&mut buffers, View::All, 3),
        Some(first),
        "one still reads"
    );
    buffers.give_back(second);
    buffers.give_back(first);
    let again = take(&mut buffers, View::All, 4).expect("a buffer");
    assert!(again <= second + 1, "nothing new was made");
}

#[test]
fn no_view_gets_what_another_has_had() {
    let mut buffers = Buffers::new(1, LIMITS);
    let root = take(&mut buffers, View::All, 1).expect("a buffer");
    let user_a = take(&mut buffers, View::of_user(7), 2).expect("a buffer");
    let user_b = take(&mut buffers, View::of_user(8), 3).expect("a buffer");
    assert_eq!(take(&mut buffers, View::All, 4), Some(root));
    assert_eq!(take(&mut buffers, View::of_user(7), 5), Some(user_a));
    assert_eq!(take(&mut buffers, View::of_user(8), 6), Some(user_b));
    assert!(buffers.find(View::of_user(8), contents(5)).is_none());
}

#[test]
fn a_user_is_lent_so_much_and_others_are_served() {
    let mut buffers = Buffers::new(1, LIMITS);
    let mut generation = 0;
    let mut lend = |buffers: &mut Buffers, view| {
        generation += 1;
        let id = take(buffers, view, generation)?;
        buffers.lend(id);
        Some(id)
    };
    let lent: Vec<u64> = std::iter::from_fn(|| lend(&mut buffers, View::of_user(7))).collect();
    assert!(lent.len() * SIZE <= LIMITS.of_user && lent.len() * SIZE * 2 > LIMITS.of_user);
    assert!(lend(&mut buffers, View::of_user(8)).is_some());
    assert!(lend(&mut buffers, View::All).is_some());
    buffers.give_back(lent[0]);
    assert!(lend(&mut buffers, View::of_user(7)).is_some());
}

/// A descriptor of a buffer, as a reader keeps it.
fn keep(buffers: &Buffers, id: u64) -> std::os::fd::OwnedFd {
    let buffer = buffers.get(id).expect("the buffer is lent");
    let kept = buffer.memory.file().try_clone_to_owned();
    kept.expect("a descriptor")
}

#[test]
fn buffers_that_a_user_keeps_count_until_they_are_unmapped() {
    let mut buffers = Buffers::new(1, LIMITS);
    let mut generation = 0;
    let mut kept = Vec::new();
    let mut pin = |buffers: &mut Buffers, uid, kept: &mut Vec<_>| {
        // Ever larger ones, so that no returned buffer fits.
        generation += 1;
        let bytes = SIZE + (generation as usize) * (64 << 10);
        let Ok(buffer) = buffers.take(View::of_user(uid), bytes) else {
            return false;
        };
        let id = buffer.id;
        buffers.lend(id);
        kept.push(keep(buffers, id));
        buffers.give_back(id);
        true
    };
    while pin(&mut buffers, 7, &mut kept) {
        assert!(kept.len() < 100, "a reader holds more than its limit");
        assert!(buffers.charged(Some(7)) <= LIMITS.of_user);
    }
    // Others are served until all of them together reach the limit.
    let others = (8..40).take_while(|&uid| {
        while pin(&mut buffers, uid, &mut kept) {}
        buffers.charged(Some(uid)) > 0
    });
    assert!((2..20).contains(&others.count()));
    assert!(buffers.charged(None) <= LIMITS.of_all);
    assert!(take(&mut buffers, View::All, 1000).is_some(), "root is");
    kept.clear();
    // A child that another test forks has all descriptors for a moment.
    fastproc_testbed::wait_until("nobody has them", || pin(&mut buffers, 7, &mut kept));
    assert!(pin(&mut buffers, 39, &mut kept));
}

#[test]
fn the_bytes_of_unused_buffers_are_bounded() {
    let mut buffers = Buffers::new(
        1,
        Limits {
            of_all: 1 << 30,
            ..LIMITS
        },
    );
    for uid in 1..100 {
        take(&mut buffers, View::of_user(uid), u64::from(uid)).expect("a buffer");
        assert!(buffers.sizes()[1].1 <= READY);
    }
    // Also when many come back at once.
    let lent: Vec<u64> = (1..100)
        .map(|uid| {
            let id =
                take(&mut buffers, View::of_user(uid), 1000 + u64::from(uid)).expect("a buffer");
            buffers.lend(id);
            id
        })
        .collect();
    for id in lent {
        buffers.give_back(id);
    }
    assert!(buffers.sizes()[1].1 <= READY);
}
