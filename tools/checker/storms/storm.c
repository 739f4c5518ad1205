/* Runs one storm: storm NAME JOURNAL PERIOD_US SECONDS */
#include "storm.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <time.h>

#define CAPACITY (1u << 16)

struct entry {
	uint64_t begin_ns, end_ns, state;
};

struct journal {
	uint64_t written, capacity;
	struct entry entries[CAPACITY];
};

static const struct {
	const char *name;
	storm *run;
} storms[] = {
	{"affinity", affinity},
	{"cgroups", cgroups},
	{"cpusets", cpusets},
	{"credentials", credentials},
	{"descriptors", descriptors},
	{"dethread", dethread},
	{"execs", execs},
	{"forks", forks},
	{"groups", groups},
	{"inout", inout},
	{"limits", limits},
	{"masks", masks},
	{"memory", memory},
	{"names", names},
	{"namespaces", namespaces},
	{"nesting", nesting},
	{"odd", odd},
	{"scheduling", scheduling},
	{"seccomp", seccomp_filters},
	{"signals", signals},
	{"switching", switching},
	{"terminals", terminals},
	{"thread_names", thread_names},
	{"threads", threads},
	{"titles", titles},
	{"workers", workers},
};

unsigned period_us;
static struct journal *journal;
static struct entry *open_entry;
static const char *title;
static char **arguments;

void fail(const char *what)
{
	fprintf(stderr, "storm: %s: %s\n", what, strerror(errno));
	_exit(1);
}

uint64_t now_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_BOOTTIME, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void answer(void)
{
	char line[64];
	fflush(stdout);
	ssize_t got = read(0, line, sizeof(line));
	if (got <= 0)
		_exit(0);
}

void watch(pid_t pid)
{
	printf("watch %d\n", pid);
	/* Before a fork: otherwise the child has a copy of the buffer. */
	fflush(stdout);
}

void pose(unsigned state)
{
	printf("pose %u\n", state);
	answer();
}

void go(void)
{
	printf("go\n");
	answer();
}

/* The release store lets the checker read an entry's start before the change can be seen. */
void change_begins(unsigned state)
{
	open_entry = &journal->entries[journal->written % CAPACITY];
	open_entry->end_ns = 0;
	open_entry->state = state;
	open_entry->begin_ns = now_ns();
	__atomic_store_n(&journal->written, journal->written + 1, __ATOMIC_SEQ_CST);
}

void change_done(void)
{
	if (!open_entry && journal->written)
		open_entry = &journal->entries[(journal->written - 1) % CAPACITY];
	__atomic_store_n(&open_entry->end_ns, now_ns(), __ATOMIC_SEQ_CST);
}

/* At full speed the storm runs in bursts: the processes beside it need the CPU too. */
void rest(void)
{
	static __thread uint64_t burst_ns;
	if (period_us) {
		usleep(period_us);
	} else if (now_ns() > burst_ns + 300000) {
		usleep(1000);
		burst_ns = now_ns();
	}
}

pid_t child(void)
{
	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(0);
	}
	return pid;
}

void burn(unsigned us)
{
	for (uint64_t end = now_ns() + us * 1000ull; now_ns() < end;)
		;
}

void exec_self(const char *program, const char *new_title)
{
	char *next[] = {arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], (char *)new_title, NULL};
	execv(program ? program : arguments[0], next);
	fail("execv");
}

const char *exec_title(void)
{
	return title;
}

int main(int argc, char **argv)
{
	if (argc < 5) {
		fprintf(stderr, "usage: storm NAME JOURNAL PERIOD_US SECONDS\n");
		return 2;
	}
	/* Addresses are the same after each exec, so that they identify a state. */
	if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) {
		personality(personality(0xffffffff) | ADDR_NO_RANDOMIZE);
		execv(argv[0], argv);
		fail("execv");
	}
	arguments = argv;
	title = argc > 5 ? argv[5] : NULL;
	period_us = (unsigned)atoi(argv[3]);
	int file = MUST(open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	if (!title) {
		MUST(ftruncate(file, sizeof(struct journal)));
		/* If the checker is killed, the storm ends with it. A storm that has changed its user gets no such signal. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm((unsigned)atoi(argv[4]));
	}
	/* All pages are mapped at the start; otherwise the storm's own memory would grow. */
	journal = mmap(NULL, sizeof(struct journal), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
	if (journal == MAP_FAILED)
		fail("mmap");
	for (uint32_t i = 0; i < CAPACITY && !title; i += 64)
		*(volatile uint64_t *)&journal->entries[i].state = 0;
	close(file);
	journal->capacity = CAPACITY;
	for (size_t i = 0; i < sizeof(storms) / sizeof(storms[0]); i++)
		if (!strcmp(storms[i].name, argv[1])) {
			storms[i].run();
			return 0;
		}
	fprintf(stderr, "storm: there is no storm '%s'\n", argv[1]);
	return 2;
}
