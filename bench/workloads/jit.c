// A just-in-time compiler in small: writes machine code into anonymous memory, names it in
// /tmp/perf-PID.map (or in a jitdump file) and runs it.
//
//   jit [--seconds S] [--jitdump DIR]
//
// Two functions: `jit_outer` calls `jit_inner`, which loops. Both set up frame pointers, so that
// a chain by frame pointers passes through them down to `main`. With --jitdump they are described
// by DIR/jit-PID.dump, with source lines, and no map file is written; record with `-k mono` then.
// The result is compared with the same computation in C.

#define _GNU_SOURCE
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { LOOP_ROUNDS = 100 * 1000, INNER_OFFSET = 0, OUTER_OFFSET = 64, MULTIPLIER = 33 };

// inner(n): value = n; do { value = value * 33 + n; n -= 1; } while (n != 0); return value.
// outer(n, f): return f(n) + 1.
#if defined(__x86_64__)
static const unsigned char inner_code[] = {
    0x55,                          // push rbp
    0x48, 0x89, 0xE5,              // mov rbp, rsp
    0x48, 0x89, 0xF8,              // mov rax, rdi
    0x48, 0x6B, 0xC0, MULTIPLIER,  // imul rax, rax, 33     <- loop
    0x48, 0x01, 0xF8,              // add rax, rdi
    0x48, 0xFF, 0xCF,              // dec rdi
    0x75, 0xF4,                    // jnz loop
    0x5D,                          // pop rbp
    0xC3,                          // ret
};
static const unsigned char outer_code[] = {
    0x55,              // push rbp
    0x48, 0x89, 0xE5,  // mov rbp, rsp
    0xFF, 0xD6,        // call rsi
    0x48, 0xFF, 0xC0,  // inc rax
    0x5D,              // pop rbp
    0xC3,              // ret
};
enum { LOOP_OFFSET = 7, MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
static const uint32_t inner_code[] = {
    0xA9BF7BFD,  // stp x29, x30, [sp, #-16]!
    0x910003FD,  // mov x29, sp
    0xAA0003E1,  // mov x1, x0
    0x8B001400,  // add x0, x0, x0, lsl #5      <- loop
    0x8B010000,  // add x0, x0, x1
    0xF1000421,  // subs x1, x1, #1
    0x54FFFFA1,  // b.ne loop
    0xA8C17BFD,  // ldp x29, x30, [sp], #16
    0xD65F03C0,  // ret
};
static const uint32_t outer_code[] = {
    0xA9BF7BFD,  // stp x29, x30, [sp, #-16]!
    0x910003FD,  // mov x29, sp
    0xD63F0020,  // blr x1
    0x91000400,  // add x0, x0, #1
    0xA8C17BFD,  // ldp x29, x30, [sp], #16
    0xD65F03C0,  // ret
};
enum { LOOP_OFFSET = 12, MACHINE = EM_AARCH64 };
#else
#error "jit.c knows the machine code of x86-64 and arm64 only"
#endif

typedef uint64_t (*inner_fn)(uint64_t);
typedef uint64_t (*outer_fn)(uint64_t, inner_fn);

struct function {
    const char *name;
    uint64_t address, size;
    uint64_t lines[2][2];  // offset, line
    unsigned line_count;
};

// The jitdump format: tools/perf/Documentation/jitdump-specification.txt of the kernel.
enum { JITDUMP_MAGIC = 0x4A695444, JIT_CODE_LOAD = 0, JIT_CODE_DEBUG_INFO = 2, JIT_CODE_CLOSE = 3 };

struct jitdump_header {
    uint32_t magic, version, total_size, elf_mach, pad1, pid;
    uint64_t timestamp, flags;
};
struct record_header {
    uint32_t id, total_size;
    uint64_t timestamp;
};
struct code_load {
    uint32_t pid, tid;
    uint64_t vma, code_addr, code_size, code_index;
};
struct debug_info {
    uint64_t code_addr, entries;
};
struct debug_entry {
    uint64_t code_addr;
    uint32_t line, discriminator;
};

static void fail(const char *what) {
    fprintf(stderr, "jit: ");
    perror(what);
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void put(FILE *file, const void *bytes, size_t size) {
    if (fwrite(bytes, size, 1, file) != 1) fail("write jitdump");
}

static void put_debug_info(FILE *file, const struct function *function) {
    static const char source[] = "jit-source.demo";
    struct record_header record = {JIT_CODE_DEBUG_INFO, 0, now_ns()};
    struct debug_info info = {function->address, function->line_count};
    record.total_size =
        (uint32_t)(sizeof record + sizeof info +
                   function->line_count * (sizeof(struct debug_entry) + sizeof source));
    put(file, &record, sizeof record);
    put(file, &info, sizeof info);
    for (unsigned i = 0; i < function->line_count; i++) {
        struct debug_entry entry = {function->address + function->lines[i][0],
                                    (uint32_t)function->lines[i][1], 0};
        put(file, &entry, sizeof entry);
        put(file, source, sizeof source);
    }
}

static void put_code(FILE *file, const struct function *function, uint64_t index) {
    uint32_t pid = (uint32_t)getpid();
    struct record_header record = {JIT_CODE_LOAD, 0, now_ns()};
    struct code_load load = {pid,  pid, function->address, function->address, function->size,
                             index};
    record.total_size =
        (uint32_t)(sizeof record + sizeof load + strlen(function->name) + 1 + function->size);
    put(file, &record, sizeof record);
    put(file, &load, sizeof load);
    put(file, function->name, strlen(function->name) + 1);
    put(file, (const void *)(uintptr_t)function->address, function->size);
}

static void write_jitdump(const char *directory, const struct function *functions, size_t count) {
    char path[4096];
    snprintf(path, sizeof path, "%s/jit-%d.dump", directory, (int)getpid());
    FILE *file = fopen(path, "w+");
    if (!file) fail(path);
    struct jitdump_header header = {
        JITDUMP_MAGIC, 1, sizeof header, MACHINE, 0, (uint32_t)getpid(), now_ns(), 0};
    put(file, &header, sizeof header);
    for (size_t i = 0; i < count; i++) {
        put_debug_info(file, &functions[i]);
        put_code(file, &functions[i], i);
    }
    struct record_header close_record = {JIT_CODE_CLOSE, sizeof close_record, now_ns()};
    put(file, &close_record, sizeof close_record);
    if (fflush(file) != 0) fail(path);
    // An executable mapping of the file is what tells the recorder's reader where it is.
    void *marker = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_EXEC, MAP_PRIVATE,
                        fileno(file), 0);
    if (marker == MAP_FAILED) fail("map the jitdump file");
    fclose(file);
}

static void write_map(const struct function *functions, size_t count) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *file = fopen(path, "w");
    if (!file) fail(path);
    for (size_t i = 0; i < count; i++)
        fprintf(file, "%llx %llx %s\n", (unsigned long long)functions[i].address,
                (unsigned long long)functions[i].size, functions[i].name);
    if (fclose(file) != 0) fail(path);
}

static uint64_t expected(uint64_t n) {
    uint64_t value = n;
    do value = value * MULTIPLIER + n;
    while (--n != 0);
    return value + 1;
}

int main(int argc, char **argv) {
    double seconds = 1.0;
    const char *jitdump_directory = NULL;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 < argc && strcmp(argv[i], "--seconds") == 0) seconds = atof(argv[i + 1]);
        else if (i + 1 < argc && strcmp(argv[i], "--jitdump") == 0) jitdump_directory = argv[i + 1];
        else {
            fprintf(stderr, "usage: jit [--seconds S] [--jitdump DIR]\n");
            return 2;
        }
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *code = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) fail("map memory for code");
    memcpy(code + INNER_OFFSET, inner_code, sizeof inner_code);
    memcpy(code + OUTER_OFFSET, outer_code, sizeof outer_code);
    __builtin___clear_cache((char *)code, (char *)code + page);
    if (mprotect(code, page, PROT_READ | PROT_EXEC) != 0) fail("make code executable");

    struct function functions[] = {
        {"jit_inner", (uintptr_t)(code + INNER_OFFSET), sizeof inner_code,
         {{0, 10}, {LOOP_OFFSET, 11}}, 2},
        {"jit_outer", (uintptr_t)(code + OUTER_OFFSET), sizeof outer_code, {{0, 20}, {0, 0}}, 1},
    };
    if (jitdump_directory) write_jitdump(jitdump_directory, functions, 2);
    else write_map(functions, 2);

    inner_fn inner = (inner_fn)(uintptr_t)functions[0].address;
    outer_fn outer = (outer_fn)(uintptr_t)functions[1].address;
    uint64_t end_ns = now_ns() + (uint64_t)(seconds * 1e9), want = expected(LOOP_ROUNDS), runs = 0;
    do {
        uint64_t got = outer(LOOP_ROUNDS, inner);
        if (got != want) {
            fprintf(stderr, "jit: the code returned %llx instead of %llx\n",
                    (unsigned long long)got, (unsigned long long)want);
            return 1;
        }
        runs++;
    } while (now_ns() < end_ns);
    printf("checksum %016llx runs %llu\n", (unsigned long long)want, (unsigned long long)runs);
    return 0;
}
