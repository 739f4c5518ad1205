/* Storms of a process's activity: threads, memory, input and output, children, exec. */
#include "storm.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Page faults, read and write calls, CPU time. */
static void work(unsigned us)
{
	static const char file[] = "/proc/self/exe";
	char bytes[3000];
	uint64_t end = now_ns() + us * 1000ull;
	do {
		char *memory = mmap(NULL, 16 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			return;
		for (int page = 0; page < 16; page++)
			memory[page << 12] = 1;
		munmap(memory, 16 << 12);
		int descriptor = open(file, O_RDONLY | O_CLOEXEC);
		for (int i = 0; i < 4; i++)
			if (read(descriptor, bytes, sizeof(bytes)) < 0)
				break;
		close(descriptor);
		descriptor = open("/dev/null", O_WRONLY | O_CLOEXEC);
		if (write(descriptor, bytes, 700) < 0)
			_exit(1);
		close(descriptor);
	} while (now_ns() < end);
}

static void *short_life(void *us)
{
	work((unsigned)(uintptr_t)us);
	return NULL;
}

/* Threads that start, work and exit: the sums over live and exited threads never shrink. */
void threads(void)
{
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 1 << 16);
	go();
	for (unsigned round = 0;; round++) {
		pthread_t many[6];
		unsigned started = 0;
		for (; started < 6; started++)
			if (pthread_create(&many[started], &attributes, short_life,
					   (void *)(uintptr_t)(100 + 300 * (round % 5) + 50 * started)))
				break;
		for (unsigned i = 0; i < started; i++)
			pthread_join(many[i], NULL);
		rest();
	}
}

#define LARGE (16u << 20)

static void enter_memory(unsigned state)
{
	static char *large;
	if (state == 1) {
		large = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (large == MAP_FAILED)
			fail("mmap");
		madvise(large, LARGE, MADV_NOHUGEPAGE);
		for (unsigned page = 0; page < LARGE >> 12; page++)
			large[page << 12] = 1;
		MUST(mlock(large, LARGE / 2));
	} else if (large) {
		MUST(munmap(large, LARGE));
		large = NULL;
	}
}

void memory(void)
{
	for (unsigned state = 0; state < 2; state++) {
		enter_memory(state);
		pose(state);
	}
	enter_memory(0);
	pose(0);
	go();
	for (unsigned state = 1;; state ^= 1) {
		enter_memory(state);
		rest();
	}
}

void inout(void)
{
	char name[] = "/var/tmp/fastproc-storm-XXXXXX";
	int file = MUST(mkstemp(name));
	unlink(name);
	static char block[1 << 16];
	go();
	for (;;) {
		for (int i = 0; i < 16; i++) {
			MUST(pwrite(file, block, sizeof(block), (off_t)i * (off_t)sizeof(block)));
			MUST(pread(file, block, 1000, (off_t)i * 100));
		}
		MUST(ftruncate(file, 0));
		rest();
	}
}

/* Children that live for a moment and use a CPU all the time. */
void forks(void)
{
	signal(SIGCHLD, SIG_DFL);
	go();
	for (unsigned round = 0;; round++) {
		for (int i = 0; i < 3; i++) {
			pid_t pid = child();
			if (pid == 0) {
				burn(200 * (round % 8));
				work(100);
				_exit(7);
			}
		}
		burn(100);
		while (waitpid(-1, NULL, 0) > 0)
			;
		rest();
	}
}

/* Programs of one name with different command lines and folders; every fourth has another name. */
void execs(void)
{
	static const char *const titles[] = {"0 first", "1 second", "2 the third, which is longer", "3"};
	static const char *const programs[] = {"STORM_PROGRAM_0", "STORM_PROGRAM_1", "STORM_PROGRAM_0", "STORM_PROGRAM_2"};
	unsigned next = 0;
	if (exec_title()) {
		unsigned state = (unsigned)exec_title()[0] - '0';
		next = (state + 1) % 4;
		change_done();
		/* Both have the same length; otherwise the stack would differ. */
		if (*getenv("STORM_POSED") == '0') {
			pose(state);
			if (next == 0) {
				setenv("STORM_POSED", "1", 1);
				go();
			}
		} else
			rest();
	} else
		setenv("STORM_POSED", "0", 1);
	change_begins(next);
	exec_self(getenv(programs[next]), titles[next]);
}

static void *exec_from_thread(void *unused)
{
	rest();
	exec_self(NULL, "again");
	return unused;
}

/* A thread that is not the leader calls exec: it takes the leader's id, and the leader exits. All have one command line. */
void dethread(void)
{
	if (!exec_title()) {
		setenv("STORM_POSED", "0", 1);
		exec_self(NULL, "again");
	}
	if (*getenv("STORM_POSED") == '0') {
		pose(0);
		setenv("STORM_POSED", "1", 1);
		go();
	}
	pthread_t thread;
	pthread_create(&thread, NULL, exec_from_thread, NULL);
	for (;;)
		pause();
}

static int nested(void *depth)
{
	unsigned left = (unsigned)(uintptr_t)depth;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (left % 2)
		setsid();
	if (left) {
		char *stack = malloc(1 << 16);
		pid_t pid = clone(nested, stack + (1 << 16), CLONE_NEWPID | SIGCHLD, (void *)(uintptr_t)(left - 1));
		if (pid > 0)
			waitpid(pid, NULL, 0);
		free(stack);
	} else
		rest();
	return 0;
}

/* Nested pid namespaces, created and removed. */
void namespaces(void)
{
	static char stack[1 << 16];
	go();
	for (unsigned round = 0;; round++) {
		pid_t pid = clone(nested, stack + sizeof(stack), CLONE_NEWPID | SIGCHLD, (void *)(uintptr_t)(round % 8));
		if (pid > 0)
			waitpid(pid, NULL, 0);
		rest();
	}
}

static void *wait_for_ever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

/* Waits until /proc shows a child in this state. */
static void until(pid_t pid, char state)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	for (;;) {
		char text[512] = "";
		int file = MUST(open(path, O_RDONLY | O_CLOEXEC));
		MUST(read(file, text, sizeof(text) - 1));
		close(file);
		const char *end = strrchr(text, ')');
		if (end && end[1] && end[2] == state)
			return;
		usleep(1000);
	}
}

/* Processes in rare states; they stay in them. */
void odd(void)
{
	pid_t pid;
	/* a zombie */
	if ((pid = child()) == 0)
		_exit(3);
	until(pid, 'Z');
	watch(pid);
	/* one that was killed */
	if ((pid = child()) == 0)
		for (;;)
			pause();
	kill(pid, SIGKILL);
	until(pid, 'Z');
	watch(pid);
	/* an exited leader with live threads */
	if ((pid = child()) == 0) {
		pthread_t thread;
		pthread_create(&thread, NULL, wait_for_ever, NULL);
		pthread_create(&thread, NULL, wait_for_ever, NULL);
		syscall(SYS_exit, 0);
	}
	until(pid, 'Z');
	watch(pid);
	/* the parent of a vfork */
	if ((pid = child()) == 0) {
		if (vfork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
		_exit(0);
	}
	until(pid, 'D');
	watch(pid);
	/* stopped */
	if ((pid = child()) == 0) {
		raise(SIGSTOP);
		_exit(0);
	}
	until(pid, 'T');
	watch(pid);
	/* stopped by a tracer */
	if ((pid = child()) == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGUSR1);
		_exit(0);
	}
	until(pid, 't');
	watch(pid);
	/* one that locked all of its memory */
	if ((pid = child()) == 0) {
		mlockall(MCL_CURRENT | MCL_FUTURE);
		for (;;)
			pause();
	}
	until(pid, 'S');
	watch(pid);
	usleep(100000);
	go();
	for (;;)
		pause();
}

static void *switch_often(void *unused)
{
	for (;;)
		usleep(50);
	return unused;
}

/* Sleeping and waking: switches, states and the CPU of the last run. */
void switching(void)
{
	pthread_t thread;
	for (int i = 0; i < 2; i++)
		pthread_create(&thread, NULL, switch_often, NULL);
	go();
	for (unsigned i = 0;; i++) {
		sched_yield();
		if (i % 16 == 0)
			usleep(20);
	}
}
