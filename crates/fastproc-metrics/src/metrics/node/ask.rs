//! Asks servers, any of which may never answer, in threads of their own.

use std::{
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, TryRecvError, channel},
    },
    thread,
    time::{Duration, Instant},
};

/// How long one scrape waits for answers; later ones do not wait for a late one. A virtual CPU may stall for a while.
pub(super) const PATIENCE: Duration = Duration::from_secs(4);

/// The most threads that wait for servers of one rank. Others of that rank are not asked meanwhile.
const MOST_STUCK: usize = 16;

/// A question to a server.
pub(super) trait Question: fmt::Debug + Send + Sync + 'static {
    type Answer: fmt::Debug + Send + 'static;

    /// Identifies the server.
    fn server(&self) -> u64;
    /// Servers of lower ranks are asked first.
    fn rank(&self) -> u8;
    /// How long to wait for its answer, at most this long.
    fn patience(&self, most: Duration) -> Duration {
        most
    }
    /// May never return.
    fn ask(&self) -> Self::Answer;
}

/// The threads that ask.
#[derive(Debug)]
pub(super) struct Askers<Q: Question> {
    /// The name of the threads.
    name: &'static str,
    /// It has answered everything.
    idle: Option<Worker<Q>>,
    stuck: Vec<Stuck<Q>>,
    patience: Duration,
}

/// A thread that waits for a server.
#[derive(Debug)]
struct Stuck<Q: Question> {
    server: u64,
    rank: u8,
    worker: Worker<Q>,
}

/// A thread that answers questions in their order.
#[derive(Debug)]
struct Worker<Q: Question> {
    questions: Sender<Vec<(usize, Arc<Q>)>>,
    answers: Receiver<(usize, Q::Answer)>,
    /// Set when another thread takes its place: it then asks nothing more.
    given_up: Arc<AtomicBool>,
}

impl<Q: Question> Worker<Q> {
    fn start(name: &str) -> io::Result<Self> {
        let (questions, asked) = channel::<Vec<(usize, Arc<Q>)>>();
        let (answer, answers) = channel();
        let given_up = Arc::new(AtomicBool::new(false));
        let ends = given_up.clone();
        let body = move || {
            for (at, question) in asked.into_iter().flatten() {
                if ends.load(Ordering::Relaxed) {
                    break;
                }
                if answer.send((at, question.ask())).is_err() {
                    break;
                }
            }
        };
        thread::Builder::new().name(name.into()).spawn(body)?;
        Ok(Self {
            questions,
            answers,
            given_up,
        })
    }
}

impl<Q: Question> Askers<Q> {
    /// Waits this long for all answers together, and a quarter of it for one.
    pub(super) const fn new(name: &'static str, patience: Duration) -> Self {
        Self {
            name,
            idle: None,
            stuck: Vec::new(),
            patience,
        }
    }

    /// The answers that come in time. A server that has not answered an earlier question is not asked again before it does.
    /// Privileges belong to threads, so drop them before the first call.
    pub(super) fn ask(&mut self, questions: Vec<Q>) -> Vec<Option<Q::Answer>> {
        self.stuck
            .retain(|stuck| matches!(stuck.worker.answers.try_recv(), Err(TryRecvError::Empty)));
        let questions: Vec<Arc<Q>> = questions.into_iter().map(Arc::new).collect();
        let mut answers: Vec<_> = questions.iter().map(|_| None).collect();
        let mut left: Vec<usize> = (0..questions.len()).collect();
        left.sort_by_key(|&at| questions[at].rank());
        let until = Instant::now() + self.patience;
        loop {
            left.retain(|&at| self.may_ask(&*questions[at]));
            if left.is_empty() {
                break;
            }
            let Some(worker) = self.idle.take().or_else(|| Worker::start(self.name).ok()) else {
                break;
            };
            let batch = left.iter().map(|&at| (at, questions[at].clone()));
            // Fails if the thread has panicked; then there will be no answer.
            let _ = worker.questions.send(batch.collect());
            let silent = left.iter().position(|&at| {
                let room = until.saturating_duration_since(Instant::now());
                let room = questions[at].patience(room.min(self.patience / 4));
                match worker.answers.recv_timeout(room) {
                    Ok((at, answer)) => {
                        answers[at] = Some(answer);
                        false
                    }
                    Err(_) => true,
                }
            });
            let Some(silent) = silent else {
                self.idle = Some(worker);
                break;
            };
            worker.given_up.store(true, Ordering::Relaxed);
            let question = &questions[left[silent]];
            self.stuck.push(Stuck {
                server: question.server(),
                rank: question.rank(),
                worker,
            });
            if Instant::now() >= until {
                break;
            }
            left.drain(..=silent);
        }
        answers
    }

    fn may_ask(&self, question: &Q) -> bool {
        let of_rank = |stuck: &&Stuck<Q>| stuck.rank == question.rank();
        self.stuck
            .iter()
            .all(|stuck| stuck.server != question.server())
            && self.stuck.iter().filter(of_rank).count() < MOST_STUCK
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};

    use super::*;

    const HOURS: Duration = Duration::from_secs(24 * 3600);

    /// Answers once this is set.
    #[derive(Clone, Debug, Default)]
    struct Gate(Arc<(Mutex<bool>, Condvar)>);

    impl Gate {
        fn open(&self) {
            *self.0.0.lock().expect("no thread panics") = true;
            self.0.1.notify_all();
        }
    }

    #[derive(Debug)]
    struct Server {
        number: u64,
        rank: u8,
        gate: Gate,
        is_asked: AtomicBool,
    }

    impl Question for Server {
        type Answer = u64;

        fn server(&self) -> u64 {
            self.number
        }

        fn rank(&self) -> u8 {
            self.rank
        }

        /// A machine under load may be late with an answer that will come, and with a question.
        fn patience(&self, most: Duration) -> Duration {
            if *self.gate.0.0.lock().expect("no thread panics") {
                return most;
            }
            while !self.is_asked.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            Duration::ZERO
        }

        fn ask(&self) -> u64 {
            self.is_asked.store(true, Ordering::Relaxed);
            let open = self.gate.0.0.lock().expect("no thread panics");
            let open = self.gate.0.1.wait_while(open, |open| !*open);
            drop(open);
            self.number
        }
    }

    fn server(number: u64, rank: u8, gate: &Gate) -> Server {
        Server {
            number,
            rank,
            gate: gate.clone(),
            is_asked: AtomicBool::new(false),
        }
    }

    #[test]
    fn a_server_that_does_not_answer_keeps_no_other_from_it() {
        let (open, shut) = (Gate::default(), Gate::default());
        open.open();
        let mut askers = Askers::new("asker", HOURS);
        let all = || {
            vec![
                server(1, 1, &shut),
                server(2, 1, &open),
                server(3, 0, &open),
            ]
        };
        for _ in 0..3 {
            assert_eq!(askers.ask(all()), [None, Some(2), Some(3)]);
            assert_eq!(askers.stuck.len(), 1, "it is asked once");
        }
        shut.open();
        while askers.ask(all())[0].is_none() {
            thread::yield_now();
        }
        assert!(askers.stuck.is_empty());
    }

    #[test]
    fn servers_that_do_not_answer_take_a_bounded_number_of_threads_and_none_of_other_ranks() {
        let (open, shut) = (Gate::default(), Gate::default());
        open.open();
        let mut askers = Askers::new("asker", HOURS);
        for _ in 0..100 {
            let silent = (0..100).map(|number| server(number, 2, &shut));
            assert!(askers.ask(silent.collect()).iter().all(Option::is_none));
        }
        assert_eq!(askers.stuck.len(), MOST_STUCK);
        let asked = askers.ask(vec![server(100, 2, &open), server(101, 1, &open)]);
        assert_eq!(asked, [None, Some(101)]);
        shut.open();
    }
}
