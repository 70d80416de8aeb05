/*
 * One thread waits for known objects, each ROUNDS times, and another one ends each wait.
 *
 * The other thread acts only when the first one sleeps, so that each call waits. The program then prints each object and
 * the number of calls:
 *
 *   waits tid=TID count=ROUNDS object=NAME
 *
 * With --sleeps N instead, a thread sleeps N times, for another time each.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 7
#define SLEEP_NS 1000000
/* Long enough that the thread leaves its CPU. */
#define SHORT_NS 20000

typedef void (*step)(void);

static pid_t waiter;
/* The step that ends the next wait of the first thread. */
static _Atomic(step) pending;
static char report[1 << 14];

/* The files and words that the steps use. */
static int in, out, lock_file;
static unsigned word;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static char state_of(pid_t tid)
{
	char path[64], text[256];
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	int file = open(path, O_RDONLY);
	ssize_t size = file < 0 ? -1 : read(file, text, sizeof(text) - 1);
	if (file >= 0)
		close(file);
	if (size <= 0)
		return '?';
	text[size] = 0;
	char *end = strrchr(text, ')');
	return end ? end[2] : '?';
}

/* Ends waits. */
static void *waker(void *unused)
{
	const struct timespec moment = { .tv_nsec = 50000 };

	(void)unused;
	for (;;) {
		step next = atomic_load(&pending);

		if (!next || state_of(waiter) != 'S') {
			nanosleep(&moment, NULL);
			continue;
		}
		atomic_store(&pending, NULL);
		next();
	}
	return NULL;
}

static void note(const char *format, ...)
{
	size_t used = strlen(report);
	va_list list;

	used += snprintf(report + used, sizeof(report) - used, "waits tid=%d count=%d object=", waiter,
			 ROUNDS);
	va_start(list, format);
	used += vsnprintf(report + used, sizeof(report) - used, format, list);
	va_end(list);
	snprintf(report + used, sizeof(report) - used, "\n");
}

/* Begins a wait that a step ends. */
#define WAIT(end, call)                                                                        \
	do {                                                                                   \
		for (int round = 0; round < ROUNDS; round++) {                                 \
			atomic_store(&pending, end);                                           \
			must((call) >= 0, #call);                                              \
			must(!atomic_load(&pending), "the wait had an end of its own: " #call);  \
		}                                                                              \
	} while (0)

/* A wait that ends by itself. */
#define ALONE(call)                                                                            \
	do {                                                                                   \
		for (int round = 0; round < ROUNDS; round++)                                   \
			must((call) >= 0, #call);                                              \
	} while (0)

static char bytes[1 << 16];

static void put(void)
{
	must(write(out, bytes, 1) == 1, "write");
}

static void put_event(void)
{
	uint64_t one = 1;
	must(write(out, &one, sizeof(one)) == sizeof(one), "write to the eventfd");
}

static int take(void)
{
	return read(in, bytes, 1);
}

static unsigned long inode(int file)
{
	struct stat stat;
	must(!fstat(file, &stat), "fstat");
	return stat.st_ino;
}

/* Files that are waited for together. */
static int events;
static struct epoll_event event;

static void watch(int file)
{
	struct epoll_event wanted = { .events = EPOLLIN };
	must(!epoll_ctl(events, EPOLL_CTL_ADD, file, &wanted), "epoll_ctl");
}

static int wait_for_event(void)
{
	return epoll_wait(events, &event, 1, -1);
}

static void pipes(void)
{
	int ends[2];

	must(!pipe(ends), "pipe");
	in = ends[0], out = ends[1];
	WAIT(put, take());
	struct pollfd one = { .fd = in, .events = POLLIN };
	WAIT(put, poll(&one, 1, -1) == 1 ? take() : -1);
	note("pipe:[%lu]", inode(in));
	note("pipe:[%lu]", inode(in));

	struct pollfd two[2] = { one, { .fd = STDERR_FILENO } };
	WAIT(put, poll(two, 2, -1) == 1 ? take() : -1);
	note("2 files");

	fd_set set;
	FD_ZERO(&set);
	FD_SET(in, &set);
	WAIT(put, syscall(SYS_select, in + 1, &set, NULL, NULL, NULL) == 1 ? take() : -1);
	note("unknown (select names several files)");

	watch(in);
	WAIT(put, wait_for_event() == 1 ? take() : -1);
	note("pipe:[%lu]", inode(in));
	/* Another pipe, of several files. */
	must(!pipe(ends), "pipe");
	in = ends[0], out = ends[1];
	watch(in);
	WAIT(put, wait_for_event() == 1 ? take() : -1);
	note("pipe:[%lu]", inode(in));
	ALONE(epoll_wait(events, &event, 1, 1) ? -1 : 0);
	note("no ready file");

	must(!mkfifo("fifo", 0600), "mkfifo");
	in = out = open("fifo", O_RDWR);
	WAIT(put, take());
	char *here = getcwd(NULL, 0);
	note("%s/fifo", here);
	free(here);
}

static void files(void)
{
	in = out = eventfd(0, 0);
	WAIT(put_event, read(in, bytes, 8));
	note("anon_inode:[eventfd] (fd %d)", in);

	int timer = timerfd_create(CLOCK_MONOTONIC, 0);
	const struct itimerspec once = { .it_value.tv_nsec = SLEEP_NS };
	ALONE(timerfd_settime(timer, 0, &once, NULL) ? -1 : read(timer, bytes, 8));
	note("anon_inode:[timerfd] (fd %d)", timer);

	int changes = inotify_init1(0);
	out = open("watched", O_RDWR | O_CREAT, 0600);
	must(inotify_add_watch(changes, "watched", IN_MODIFY) >= 0, "inotify_add_watch");
	WAIT(put, read(changes, bytes, sizeof(bytes)));
	note("anon_inode:inotify (fd %d)", changes);

	int controller = posix_openpt(O_RDWR | O_NOCTTY);
	must(controller >= 0 && !grantpt(controller) && !unlockpt(controller), "posix_openpt");
	in = open(ptsname(controller), O_RDWR | O_NOCTTY);
	out = controller;
	memset(bytes, '\n', 1);
	WAIT(put, take());
	note("%s", ptsname(controller));
}

static void release(void)
{
	must(!flock(lock_file, LOCK_UN), "flock");
}

static void release_range(void)
{
	struct flock range = { .l_type = F_UNLCK };
	must(!fcntl(lock_file, F_OFD_SETLK, &range), "fcntl");
}

static void locks(void)
{
	char *here = getcwd(NULL, 0);
	int file = open("locked", O_RDWR | O_CREAT, 0600);
	lock_file = open("locked", O_RDWR);
	for (int round = 0; round < ROUNDS; round++) {
		must(!flock(lock_file, LOCK_EX), "flock");
		atomic_store(&pending, release);
		must(!flock(file, LOCK_EX) && !flock(file, LOCK_UN), "flock");
	}
	note("%s/locked", here);
	struct flock range = { .l_type = F_WRLCK }, none = { .l_type = F_UNLCK };
	for (int round = 0; round < ROUNDS; round++) {
		must(!fcntl(lock_file, F_OFD_SETLK, &range), "fcntl");
		atomic_store(&pending, release_range);
		must(!fcntl(file, F_OFD_SETLKW, &range) && !fcntl(file, F_OFD_SETLK, &none), "fcntl");
	}
	note("%s/locked", here);
	free(here);
}

static struct sockaddr_in address;
static struct sockaddr_un path = { .sun_family = AF_UNIX, .sun_path = "socket" };

static void connect_inet(void)
{
	if (out >= 0)
		close(out);
	out = socket(AF_INET, SOCK_STREAM, 0);
	must(!connect(out, (struct sockaddr *)&address, sizeof(address)), "connect");
}

static void connect_unix(void)
{
	if (out >= 0)
		close(out);
	out = socket(AF_UNIX, SOCK_STREAM, 0);
	must(!connect(out, (struct sockaddr *)&path, sizeof(path)), "connect");
}

static int accept_one(int listener)
{
	if (in >= 0)
		close(in);
	return in = accept(listener, NULL, NULL);
}

static int port_of(int file)
{
	struct sockaddr_in of = { 0 };
	socklen_t size = sizeof(of);
	must(!getsockname(file, (struct sockaddr *)&of, &size), "getsockname");
	return ntohs(of.sin_port);
}

/* Where IPv6 is off, IPv4 has to do. */
static void datagrams(void)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr *to = (struct sockaddr *)&six;
	socklen_t size = sizeof(six);
	int from = socket(AF_INET6, SOCK_DGRAM, 0), has_six = from >= 0 && !bind(from, to, size);

	if (!has_six) {
		to = (struct sockaddr *)&four;
		size = sizeof(four);
		from = socket(AF_INET, SOCK_DGRAM, 0);
		must(!bind(from, to, size), "bind");
	}
	must(!getsockname(from, to, &size), "getsockname");
	out = socket(to->sa_family, SOCK_DGRAM, 0);
	must(!connect(out, to, size), "connect");
	WAIT(put, recv(from, bytes, 1, 0));
	if (has_six)
		note("udp [::1]:%d", ntohs(six.sin6_port));
	else
		note("udp 127.0.0.1:%d", ntohs(four.sin_port));
}

static void sockets(void)
{
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(!bind(listener, (struct sockaddr *)&address, size) && !listen(listener, 1), "listen");
	must(!getsockname(listener, (struct sockaddr *)&address, &size), "getsockname");
	in = out = -1;
	WAIT(connect_inet, accept_one(listener));
	note("tcp 127.0.0.1:%d (listens)", port_of(listener));
	watch(listener);
	WAIT(connect_inet, wait_for_event() == 1 ? accept_one(listener) : -1);
	note("tcp 127.0.0.1:%d (listens)", port_of(listener));
	WAIT(put, take());
	note("tcp 127.0.0.1:%d to 127.0.0.1:%d", port_of(listener), port_of(out));
	watch(in);
	WAIT(put, wait_for_event() == 1 ? take() : -1);
	note("tcp 127.0.0.1:%d to 127.0.0.1:%d", port_of(listener), port_of(out));
	/* The other way: the end that has connected waits. */
	int own = out;
	out = in, in = own;
	watch(in);
	WAIT(put, wait_for_event() == 1 ? take() : -1);
	note("tcp 127.0.0.1:%d to 127.0.0.1:%d", port_of(in), port_of(listener));
	own = out, out = in, in = own;

	datagrams();

	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	must(!bind(listener, (struct sockaddr *)&path, sizeof(path)) && !listen(listener, 1), "listen");
	in = out = -1;
	WAIT(connect_unix, accept_one(listener));
	note("unix socket");
	WAIT(put, take());
	note("unix socket (peer %d)", getpid());

	int ends[2];
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
	in = ends[0], out = ends[1];
	WAIT(put, take());
	note("unix socket:[%lu] (peer %d)", inode(in), getpid());
}

static void wake_word(void)
{
	word++;
	must(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1, "FUTEX_WAKE");
}

static void signal_waiter(void)
{
	must(!syscall(SYS_tgkill, getpid(), waiter, SIGUSR1), "tgkill");
}

static int queue;

static void send_message(void)
{
	struct {
		long type;
		char text[1];
	} message = { .type = 1 };
	must(!msgsnd(queue, &message, 1, 0), "msgsnd");
}

static void post(void)
{
	struct sembuf up = { .sem_op = 1 };
	must(!semop(queue, &up, 1), "semop");
}

static mqd_t messages;

static void send_posix(void)
{
	must(!mq_send(messages, bytes, 1, 0), "mq_send");
}

static void others(void)
{
	const struct timespec moment = { .tv_nsec = SLEEP_NS };
	ALONE(-syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &moment, NULL));
	note("1ms");

	for (int round = 0; round < ROUNDS; round++) {
		struct timespec then;
		clock_gettime(CLOCK_MONOTONIC, &then);
		then.tv_sec += (then.tv_nsec += SLEEP_NS) / 1000000000;
		then.tv_nsec %= 1000000000;
		must(!clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL), "clock_nanosleep");
	}
	note("a point in time");

	WAIT(wake_word, syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, word, NULL, NULL, 0));
	note("futex word in objects");

	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	must(!pthread_sigmask(SIG_BLOCK, &set, NULL), "pthread_sigmask");
	WAIT(signal_waiter, sigwaitinfo(&set, NULL));
	note("a signal");
	int signals = signalfd(-1, &set, 0);
	WAIT(signal_waiter, read(signals, bytes, sizeof(struct signalfd_siginfo)));
	note("anon_inode:[signalfd] (fd %d)", signals);

}

/* A kernel may be built without these. */
static void queues(void)
{
	queue = msgget(IPC_PRIVATE, 0600);
	if (queue < 0 && errno == ENOSYS)
		return;
	WAIT(send_message, msgrcv(queue, bytes, 1, 0, 0));
	note("message queue %d", queue);
	must(!msgctl(queue, IPC_RMID, NULL), "msgctl");
	queue = semget(IPC_PRIVATE, 1, 0600);
	struct sembuf down = { .sem_op = -1 };
	WAIT(post, semop(queue, &down, 1));
	note("semaphores %d", queue);
	must(!semctl(queue, 0, IPC_RMID), "semctl");

	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 8 };
	char name[64];
	snprintf(name, sizeof(name), "/whit-objects-%d", getpid());
	messages = mq_open(name, O_RDWR | O_CREAT, 0600, &attr);
	if (messages < 0 && errno == ENOSYS)
		return;
	must(messages >= 0, "mq_open");
	WAIT(send_posix, mq_receive(messages, bytes, 8, NULL));
	mq_unlink(name);
	note("%s", name);
}

static int gate[2];

static void open_gate(void)
{
	must(write(gate[1], bytes, 1) == 1, "write to the child");
}

/* The child ends when the parent sleeps. */
static pid_t child(void)
{
	pid_t pid = fork();

	must(pid >= 0, "fork");
	if (!pid) {
		must(read(gate[0], bytes, 1) == 1, "read in the child");
		_exit(0);
	}
	return pid;
}

static void children(void)
{
	must(!pipe(gate), "pipe");
	for (int round = 0; round < ROUNDS; round++) {
		child();
		atomic_store(&pending, open_gate);
		must(wait(NULL) > 0, "wait");
	}
	note("any child");
}

/* More objects than a recorder keeps at a time, all at one call stack. */
static void sleep_each_time(long count)
{
	must(!prctl(PR_SET_TIMERSLACK, 1), "prctl");
	for (long i = 0; i < count; i++) {
		struct timespec time = { 0, SHORT_NS + i };

		must(!syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, NULL), "clock_nanosleep");
	}
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc == 3 && !strcmp(argv[1], "--sleeps")) {
		sleep_each_time(atol(argv[2]));
		return 0;
	}
	waiter = gettid();
	must(argc == 2 && !chdir(argv[1]), "usage: objects DIRECTORY | --sleeps N");
	must(!pthread_create(&thread, NULL, waker, NULL), "pthread_create");
	events = epoll_create1(0);
	pipes();
	files();
	locks();
	sockets();
	others();
	queues();
	children();
	fputs(report, stdout);
	return 0;
}
