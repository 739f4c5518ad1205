/* Storms of a process's properties: ids, places, rights. */
#include "storm.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

/* Shows each state, then goes through all of them repeatedly. */
static void cycle(unsigned states, void (*enter)(unsigned state))
{
	for (unsigned state = 0; state < states; state++) {
		change_begins(state);
		enter(state);
		change_done();
		pose(state);
	}
	go();
	for (unsigned state = 0;; state = (state + 1) % states) {
		change_begins(state);
		enter(state);
		change_done();
		rest();
	}
}

/* Empty lists, and lists that take one block of memory or many. */
static void enter_groups(unsigned state)
{
	static const int lengths[] = {64, 1, 5000, 0};
	static gid_t lists[4][5000];
	gid_t *list = lists[state];
	for (int i = 0; i < lengths[state] && !list[i]; i++)
		list[i] = state == 1 ? 8888 : 7777 * (state + 1) + (state ? i : 0);
	MUST(setgroups((size_t)lengths[state], list));
}

void groups(void)
{
	cycle(4, enter_groups);
}

static void set_capabilities(uint64_t effective, uint64_t permitted, uint64_t inheritable)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {
		{(uint32_t)effective, (uint32_t)permitted, (uint32_t)inheritable},
		{(uint32_t)(effective >> 32), (uint32_t)(permitted >> 32), (uint32_t)(inheritable >> 32)},
	};
	MUST(syscall(SYS_capset, &header, data));
}

static void enter_credentials(unsigned state)
{
	static uint64_t permitted;
	if (!permitted) {
		struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
		struct __user_cap_data_struct data[2];
		MUST(syscall(SYS_capget, &header, data));
		permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
		/* Changing users changes no capability. */
		MUST(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP));
	}
	const uint64_t needed = 1 << CAP_SETUID | 1 << CAP_SETGID | 1 << CAP_SETPCAP;
	switch (state) {
	case 0: MUST(setresuid(0, 0, 0)); break;
	case 1: MUST(setresgid(0, 0, 0)); break;
	case 2: set_capabilities(permitted, permitted, 0); break;
	case 3: MUST(setresuid(101, 102, 103)); break;
	case 4: MUST(setresgid(201, 202, 203)); break;
	case 5: set_capabilities(needed, permitted, permitted); break;
	case 6: MUST(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SETUID, 0, 0)); break;
	case 7: MUST(setresuid(4000000001, 4000000002, 4000000003)); break;
	case 8: MUST(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)); break;
	}
}

void credentials(void)
{
	for (unsigned state = 0; state < 9; state++)
		enter_credentials(state);
	cycle(9, enter_credentials);
}

static void enter_affinity(unsigned state)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	if (state != 1)
		CPU_SET(0, &set);
	if (state != 0)
		CPU_SET(1, &set);
	/* A machine of one CPU has only one state. */
	if (sched_setaffinity(0, sizeof(set), &set) && state != 1)
		fail("sched_setaffinity");
}

void affinity(void)
{
	cycle(3, enter_affinity);
}

/* The table of descriptors grows with the highest number; a copy of a shared table is as small as possible. */
static void enter_descriptors(unsigned state)
{
	static const int numbers[] = {0, 100, 1000, 4000};
	if (state) {
		MUST(dup2(0, numbers[state]));
		return;
	}
	for (unsigned i = 1; i < 4; i++)
		close(numbers[i]);
	pid_t sharing = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	if (sharing == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	MUST(sharing);
	MUST(unshare(CLONE_FILES));
	MUST(kill(sharing, SIGKILL));
	MUST(waitpid(sharing, NULL, 0));
}

void descriptors(void)
{
	struct rlimit limit = {8192, 8192};
	MUST(setrlimit(RLIMIT_NOFILE, &limit));
	cycle(4, enter_descriptors);
}

static void enter_seccomp(unsigned state)
{
	static struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	static struct sock_fprog program = {1, allow};
	if (state == 1)
		MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	if (state > 1)
		MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

/* Filters cannot be removed: a child shows and goes through the states, and another child takes its place. */
void seccomp_filters(void)
{
	for (;;) {
		pid_t pid = child();
		if (pid == 0) {
			for (unsigned state = 0; state < 24; state++) {
				enter_seccomp(state);
				rest();
			}
			_exit(0);
		}
		if (pid < 0)
			continue;
		static int shown;
		if (!shown++)
			go();
		waitpid(pid, NULL, 0);
	}
}

static void enter_names(unsigned state)
{
	static const char *const names[] = {"aaaaaaaaaaaaaaa", "b", "c (R) d\\\n\t)", "", "\xff\xfe \xc3\xa4"};
	MUST(prctl(PR_SET_NAME, names[state]));
}

void names(void)
{
	cycle(5, enter_names);
}

static void *rename_thread(void *unused)
{
	for (unsigned i = 0;; i++) {
		prctl(PR_SET_NAME, i % 2 ? "xxxxxxxxxxxxxxx" : "yyyyyyy");
		rest();
	}
	return unused;
}

void thread_names(void)
{
	pthread_t thread;
	for (int i = 0; i < 3; i++)
		pthread_create(&thread, NULL, rename_thread, NULL);
	usleep(20000);
	cycle(5, enter_names);
}

static void enter_scheduling(unsigned state)
{
	static const struct {
		int policy, priority, nice;
	} states[] = {
		{SCHED_OTHER, 0, 0}, {SCHED_OTHER, 0, 19},  {SCHED_FIFO, 1, 19},  {SCHED_RR, 7, 19},
		{SCHED_IDLE, 0, 19}, {SCHED_BATCH, 0, -20}, {SCHED_OTHER, 0, -5},
	};
	struct sched_param parameter = {states[state].priority};
	MUST(sched_setscheduler(0, states[state].policy, &parameter));
	errno = 0;
	setpriority(PRIO_PROCESS, 0, states[state].nice);
}

void scheduling(void)
{
	cycle(7, enter_scheduling);
}

static void enter_masks(unsigned state)
{
	static const mode_t masks[] = {022, 0, 0777, 077};
	umask(masks[state]);
}

void masks(void)
{
	cycle(4, enter_masks);
}

static void enter_limits(unsigned state)
{
	struct rlimit resident = {state ? 1u << 30 : RLIM_INFINITY, RLIM_INFINITY};
	struct rlimit pending = {state == 2 ? 77 : 1000 + state, 2000};
	MUST(setrlimit(RLIMIT_RSS, &resident));
	MUST(setrlimit(RLIMIT_SIGPENDING, &pending));
}

void limits(void)
{
	cycle(3, enter_limits);
}

static void nothing(int number)
{
	(void)number;
}

static void take(int number)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, number);
	struct timespec none = {0, 0};
	if (sigtimedwait(&set, NULL, &none) < 0 && errno != EAGAIN)
		fail("sigtimedwait");
}

/* One system call per state, and none that runs a handler or blocks signals for a while, as raise() does. */
static void enter_signals(unsigned state)
{
	sigset_t set;
	sigemptyset(&set);
	switch (state) {
	case 0: MUST(sigprocmask(SIG_SETMASK, &set, NULL)); break;
	case 1: signal(SIGUSR2, SIG_IGN); break;
	case 2: signal(SIGRTMIN + 5, nothing); break;
	case 3:
		sigaddset(&set, SIGUSR1);
		sigaddset(&set, SIGRTMIN + 5);
		MUST(sigprocmask(SIG_SETMASK, &set, NULL));
		break;
	case 4: MUST(kill(getpid(), SIGUSR1)); break;
	case 5: MUST(syscall(SYS_tgkill, getpid(), getpid(), SIGRTMIN + 5)); break;
	case 6: take(SIGUSR1); break;
	case 7: take(SIGRTMIN + 5); break;
	case 8: signal(SIGUSR2, SIG_DFL); break;
	case 9: signal(SIGRTMIN + 5, SIG_DFL); break;
	}
}

void signals(void)
{
	signal(SIGUSR1, nothing);
	cycle(10, enter_signals);
}

static void enter_title(unsigned state)
{
	extern char **environ;
	static char *start;
	static size_t space;
	if (!start) {
		extern char *program_invocation_name;
		start = program_invocation_name;
		space = strlen(start);
	}
	memset(start, state ? 'T' : 't', space);
}

void titles(void)
{
	cycle(2, enter_title);
}

static char where[2][256];

static void enter_cgroup(unsigned state)
{
	int file = MUST(open(where[state], O_WRONLY | O_CLOEXEC));
	MUST(write(file, "0", 1));
	close(file);
}

/* The process that starts the storm makes the folders. */
void cgroups(void)
{
	for (int i = 0; i < 2; i++) {
		const char *folder = getenv(i ? "STORM_CGROUP_1" : "STORM_CGROUP_0");
		snprintf(where[i], sizeof(where[i]), "%s/cgroup.procs", folder ? folder : "");
	}
	cycle(2, enter_cgroup);
}

static int cpuset_cpus = -1, cpuset_mems = -1;

static void write_all(int file, const char *text)
{
	MUST(pwrite(file, text, strlen(text), 0));
}

/* CPUs and, if there are two, nodes that the group of the process may use: its masks change without its own call. */
static void enter_cpuset(unsigned state)
{
	if (state < 3)
		write_all(cpuset_cpus, (const char *[]){"0", "0-1", "1"}[state]);
	else if (cpuset_mems >= 0)
		write_all(cpuset_mems, (const char *[]){"0", "0-1"}[state - 3]);
}

/* The process that starts the storm makes the folder; this process joins it. */
void cpusets(void)
{
	char path[256];
	const char *folder = getenv("STORM_CPUSET");
	snprintf(path, sizeof(path), "%s/cgroup.procs", folder ? folder : "");
	int file = MUST(open(path, O_WRONLY | O_CLOEXEC));
	write_all(file, "0");
	close(file);
	snprintf(path, sizeof(path), "%s/cpuset.cpus", folder);
	cpuset_cpus = MUST(open(path, O_WRONLY | O_CLOEXEC));
	snprintf(path, sizeof(path), "%s/cpuset.mems", folder);
	if (!access("/sys/devices/system/node/node1", F_OK))
		cpuset_mems = MUST(open(path, O_WRONLY | O_CLOEXEC));
	cycle(5, enter_cpuset);
}

static void enter_process_group(unsigned state)
{
	MUST(setpgid(0, state ? 1 : 0));
}

static void watch_self(void)
{
	char own[16] = "";
	MUST(readlink("/proc/self", own, sizeof(own) - 1));
	watch(atoi(own));
}

static int at_depth(void *depth)
{
	uintptr_t left = (uintptr_t)depth;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* /proc is that of the outermost namespace. */
	watch_self();
	if (left) {
		char *stack = malloc(1 << 16);
		MUST(clone(at_depth, stack + (1 << 16), CLONE_NEWPID | SIGCHLD, (void *)(left - 1)));
	} else {
		/* The first process of the innermost namespace leads the other group. */
		MUST(setpgid(0, 0));
		if (child() == 0) {
			watch_self();
			cycle(2, enter_process_group);
		}
	}
	for (;;)
		pause();
}

/* A process in six pid namespaces changes its process group: its ids in each of them change. */
void nesting(void)
{
	static char stack[1 << 16];
	MUST(clone(at_depth, stack + sizeof(stack), CLONE_NEWPID | SIGCHLD, (void *)5));
	for (;;)
		pause();
}

/* Work for the kernel's workers, whose names show what they work on. The workers that exist at the start are watched. */
void workers(void)
{
	int master = MUST(posix_openpt(O_RDWR | O_NOCTTY)), slave;
	grantpt(master);
	unlockpt(master);
	slave = MUST(open(ptsname(master), O_RDWR | O_NOCTTY));
	char name[] = "/var/tmp/fastproc-storm-XXXXXX";
	int file = MUST(mkstemp(name));
	unlink(name);
	DIR *processes = opendir("/proc");
	for (struct dirent *one; processes && (one = readdir(processes));) {
		char path[300], comm[64] = "";
		snprintf(path, sizeof(path), "/proc/%s/comm", one->d_name);
		int opened = open(path, O_RDONLY | O_CLOEXEC);
		if (opened < 0)
			continue;
		if (read(opened, comm, sizeof(comm) - 1) > 0 && !strncmp(comm, "kworker/", 8))
			watch(atoi(one->d_name));
		close(opened);
	}
	closedir(processes);
	go();
	for (unsigned round = 0;; round++) {
		MUST(write(slave, "text\n", 5));
		char bytes[64];
		MUST(read(master, bytes, sizeof(bytes)));
		if (round % 64 == 0) {
			MUST(pwrite(file, bytes, sizeof(bytes), round % 65536));
			MUST(sync_file_range(file, 0, 0, SYNC_FILE_RANGE_WRITE));
		}
		rest();
	}
}

/* A session takes its terminal and gives it up. */
static int terminal = -1;
static void enter_terminal(unsigned state)
{
	if (state)
		MUST(ioctl(terminal, 0x540E /* TIOCSCTTY */, 0));
	else
		ioctl(terminal, 0x5422 /* TIOCNOTTY */, 0);
}

void terminals(void)
{
	signal(SIGHUP, SIG_IGN);
	signal(SIGCONT, SIG_IGN);
	int master = MUST(posix_openpt(O_RDWR | O_NOCTTY));
	grantpt(master);
	unlockpt(master);
	terminal = MUST(open(ptsname(master), O_RDWR | O_NOCTTY));
	cycle(2, enter_terminal);
}
