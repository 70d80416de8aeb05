/* A file system (FUSE) that stops to answer, and a program on it that runs.

   silent DIRECTORY WHAT

   Serves a copy of this program as DIRECTORY/burn, and runs it. Says "ready PID" when that burns CPU time. A line on
   standard input ends the answers to "all" requests, to "reads" or to "closes". With "pages",
   reads of DIRECTORY/page have no answer: programs can map it. Requests are taken all the same: a process
   that made one waits and cannot even be killed. The end of standard input, or two minutes, end everything: with the
   last descriptor of /dev/fuse, all requests fail. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME "burn"
#define PAGE_NAME "page"
#define FILE_NODE 2
#define PAGE_NODE 3
#define PAGE_BYTES 4096
#define SECONDS_MAX 120
#define BUFFER_BYTES (1 << 20)

static volatile uint64_t sink;
static char *content;
static size_t content_bytes;
static const char *mounted;

__attribute__((noinline)) void burn_inner(void) {
  for (int i = 0; i < 100000; i++) sink += i;
}

__attribute__((noinline)) void burn_outer(void) {
  burn_inner();
  sink++;
}

static void die(const char *what) {
  perror(what);
  exit(1);
}

static uint64_t cpu_ns(void) {
  struct timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return used.tv_sec * 1000000000ull + used.tv_nsec;
}

/* A quarter of a CPU: recorders see hundreds of samples a second, and other programs run. */
__attribute__((noreturn)) static int burn(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  uint64_t before = cpu_ns();
  for (int round = 0;; round++) {
    for (int i = 0; i < 20; i++) burn_outer();
    if (round == 10) {
      printf("ready %d\n", getpid());
      fflush(stdout);
    }
    uint64_t now = cpu_ns(), idle_ns = 3 * (now - before);
    struct timespec idle = {idle_ns / 1000000000, idle_ns % 1000000000};
    nanosleep(&idle, NULL);
    before = now;
  }
}

static void load(void) {
  int self = open("/proc/self/exe", O_RDONLY);
  struct stat stat;
  if (self < 0 || fstat(self, &stat)) die("open this program");
  content_bytes = stat.st_size;
  content = malloc(content_bytes);
  if (read(self, content, content_bytes) != (ssize_t)content_bytes) die("read this program");
  close(self);
}

static void unmount(void) { umount2(mounted, MNT_DETACH); }

static void end(int signal) {
  (void)signal;
  unmount();
  _exit(1);
}

static struct fuse_attr attributes(uint64_t node) {
  struct fuse_attr attr = {.ino = node, .nlink = 1, .mode = S_IFDIR | 0755, .blksize = 4096};
  if (node != FUSE_ROOT_ID) {
    attr.mode = S_IFREG | 0755;
    attr.size = node == FILE_NODE ? content_bytes : PAGE_BYTES;
    attr.blocks = (attr.size + 511) / 512;
  }
  return attr;
}

static void answer(int fuse, const struct fuse_in_header *in, int error, const void *body, size_t bytes) {
  static char out[BUFFER_BYTES + sizeof(struct fuse_out_header)];
  struct fuse_out_header header = {.len = sizeof header + bytes, .error = -error, .unique = in->unique};
  memcpy(out, &header, sizeof header);
  if (bytes) memcpy(out + sizeof header, body, bytes);
  /* A request that was interrupted may be gone. */
  (void)!write(fuse, out, header.len);
}

static int is_silenced(const char *what, const struct fuse_in_header *in) {
  if (!strcmp(what, "all")) return 1;
  if (!strcmp(what, "reads")) return in->opcode == FUSE_READ;
  if (!strcmp(what, "pages")) return in->opcode == FUSE_READ && in->nodeid == PAGE_NODE;
  return in->opcode == FUSE_FLUSH;
}

static void serve(int fuse, const struct fuse_in_header *in, int is_silent) {
  const void *argument = in + 1;
  switch (in->opcode) {
    case FUSE_INIT: {
      const struct fuse_init_in *init = argument;
      struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION};
      out.max_readahead = init->max_readahead;
      out.max_write = 4096;
      answer(fuse, in, 0, &out, sizeof out);
      break;
    }
    case FUSE_LOOKUP: {
      uint64_t node = !strcmp(argument, NAME) ? FILE_NODE : PAGE_NODE;
      struct fuse_entry_out out = {.nodeid = node, .attr = attributes(node)};
      int is_there = node == FILE_NODE || !strcmp(argument, PAGE_NAME);
      answer(fuse, in, is_there ? 0 : ENOENT, &out, is_there ? sizeof out : 0);
      break;
    }
    case FUSE_GETATTR: {
      struct fuse_attr_out out = {.attr = attributes(in->nodeid)};
      answer(fuse, in, 0, &out, sizeof out);
      break;
    }
    case FUSE_OPEN: {
      /* Opened while reads are silent, the file has no page in memory that was read before. */
      struct fuse_open_out out = {.open_flags = is_silent ? FOPEN_DIRECT_IO : FOPEN_KEEP_CACHE};
      answer(fuse, in, 0, &out, sizeof out);
      break;
    }
    case FUSE_READ: {
      const struct fuse_read_in *read = argument;
      size_t at = read->offset < content_bytes ? read->offset : content_bytes;
      size_t left = content_bytes - at;
      answer(fuse, in, 0, content + at, read->size < left ? read->size : left);
      break;
    }
    case FUSE_STATFS: {
      struct fuse_statfs_out out = {.st = {.bsize = 4096, .namelen = 255}};
      answer(fuse, in, 0, &out, sizeof out);
      break;
    }
    case FUSE_FLUSH:
    case FUSE_RELEASE:
      answer(fuse, in, 0, NULL, 0);
      break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
      break;
    default:
      answer(fuse, in, ENOSYS, NULL, 0);
  }
}

int main(int argc, char **argv) {
  if (argc < 2) return burn();
  if (argc != 3) return 2;
  load();
  int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (fuse < 0) die("open /dev/fuse");
  char options[128];
  snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%d,group_id=%d,allow_other", fuse, geteuid(), getegid());
  mounted = argv[1];
  if (mount("silent", mounted, "fuse", MS_NOSUID | MS_NODEV, options)) die("mount");
  atexit(unmount);
  signal(SIGALRM, end);
  signal(SIGTERM, end);
  alarm(SECONDS_MAX);
  pid_t child = fork();
  if (child == 0) {
    char path[4096];
    snprintf(path, sizeof path, "%s/" NAME, mounted);
    execl(path, path, NULL);
    die("run the program");
  }
  static char in[BUFFER_BYTES];
  int is_silent = 0;
  for (;;) {
    struct pollfd ready[] = {{.fd = 0, .events = POLLIN}, {.fd = fuse, .events = POLLIN}};
    if (poll(ready, 2, -1) < 0) die("poll");
    if (ready[0].revents) {
      if (read(0, in, sizeof in) <= 0) break;
      is_silent = 1;
      printf("silent\n");
      fflush(stdout);
    }
    if (ready[1].revents) {
      ssize_t bytes = read(fuse, in, sizeof in);
      if (bytes < (ssize_t)sizeof(struct fuse_in_header)) continue;
      const struct fuse_in_header *header = (void *)in;
      if (!is_silent || !is_silenced(argv[2], header)) serve(fuse, header, is_silent);
    }
  }
  kill(child, SIGKILL);
  close(fuse);
  waitpid(child, NULL, 0);
  return 0;
}
