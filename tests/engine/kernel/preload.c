/*
 * A kernel that can be told to misbehave: a library that is preloaded into the programs under test.
 *
 * A seccomp filter traps every system call that changes a file, so that none is missed, whoever makes it (the standard
 * library, SQLite, inline assembly). Where such a call concerns a file below INJECT_ROOT it is counted, together with
 * those of all other processes of the test, and one of them can be made to fail, or to be the last that its process
 * makes. The filter lives through execve, so that workers are subject to it, too. What programs do before this library
 * is initialised must not be trapped: the dynamic linker opens files for reading, and does nothing else of all this.
 *
 *   INJECT_ROOT     the folder; absolute
 *   INJECT_STATE    a file of 16 zero bytes that the processes share: how many calls matched
 *   INJECT_TRACE    a file to which every call is appended: OPERATION RESULT PROCESS PATH [NEW PATH], tabs between them
 *   INJECT_FAULT    OPERATION PART NTH ACTION: the nth call of that operation (* for any) whose path, the new one where there
 *                   are two, holds PART (* for any); ACTION is `kill` or the number of an error, with a `+` behind it where
 *                   all later matching calls fail, too
 *   INJECT_LOCKS    what becomes of requests to lock a file: the number of an error, or 0: granted, and nothing is locked
 *   INJECT_NO_FLAGS the number of the error with which the file system answers a rename with flags
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* In the sixth argument of a call, which none of those trapped has: it is ours, and passes. */
#define OURS 0x50524f56
#define FICLONE 0x40049409
/* Exit status of a program that cannot be made subject to this; in the tests, a reason to skip. */
#define UNAVAILABLE 97

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "which registers hold the arguments of a system call is not known for this processor"
#endif

static char root[PATH_MAX];
static size_t root_length;
static _Atomic uint64_t *matched;
static int trace = -1;

static char wanted_operation[16];
static char wanted_part[256];
static uint64_t wanted_number;
static int fault_error; /* 0: kill */
static int fault_lasts;
static int has_fault;
/* Whether a write was done in part and the next one has to say why. */
static atomic_int owed;

static long ours(long number, long a, long b, long c, long d, long e) {
    long result = syscall(number, a, b, c, d, e, (long)OURS);
    return result == -1 ? -errno : result;
}

struct call {
    const char *operation;
    char path[PATH_MAX];
    char new_path[PATH_MAX];
    int is_write; /* with the number of bytes in the third argument */
};

static void link_of(char *path, const char *link) {
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
}

static void path_of_file(char *path, int file) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    link_of(path, link);
}

static void path_at(char *path, int folder, const char *name) {
    if (name[0] == '/') {
        snprintf(path, PATH_MAX, "%s", name);
        return;
    }
    char at[PATH_MAX];
    if (folder == AT_FDCWD)
        link_of(at, "/proc/self/cwd");
    else
        path_of_file(at, folder);
    if (snprintf(path, PATH_MAX, "%s/%s", at, name) >= PATH_MAX)
        path[0] = 0;
}

/* What a trapped call does, and to which files. */
static void describe(struct call *call, long number, const long *a) {
    call->path[0] = call->new_path[0] = 0;
    call->is_write = 0;
    call->operation = "other";
    switch (number) {
    case SYS_write:
    case SYS_pwrite64:
        call->is_write = 1;
        /* fall through */
    case SYS_writev:
    case SYS_pwritev:
    case SYS_sendfile:
        call->operation = "write";
        path_of_file(call->path, a[0]);
        break;
    case SYS_ioctl:
        call->operation = "clone";
        path_of_file(call->path, a[0]);
        break;
    case SYS_fsync:
    case SYS_fdatasync:
        call->operation = "sync";
        path_of_file(call->path, a[0]);
        break;
    case SYS_syncfs:
        call->operation = "sync-all";
        path_of_file(call->path, a[0]);
        break;
    case SYS_ftruncate:
        call->operation = "truncate";
        path_of_file(call->path, a[0]);
        break;
    case SYS_fchmod:
        call->operation = "mode";
        path_of_file(call->path, a[0]);
        break;
    case SYS_openat:
        call->operation = "open";
        path_at(call->path, a[0], (const char *)a[1]);
        break;
    case SYS_mkdirat:
        call->operation = "folder";
        path_at(call->path, a[0], (const char *)a[1]);
        break;
    case SYS_unlinkat:
        call->operation = "remove";
        path_at(call->path, a[0], (const char *)a[1]);
        break;
    case SYS_fchmodat:
        call->operation = "mode";
        path_at(call->path, a[0], (const char *)a[1]);
        break;
    case SYS_utimensat:
        call->operation = "times";
        if (a[1])
            path_at(call->path, a[0], (const char *)a[1]);
        else
            path_of_file(call->path, a[0]);
        break;
    case SYS_linkat:
        call->operation = "link";
        path_at(call->path, a[0], (const char *)a[1]);
        path_at(call->new_path, a[2], (const char *)a[3]);
        break;
#ifdef SYS_renameat
    case SYS_renameat:
#endif
    case SYS_renameat2:
        call->operation = "rename";
        path_at(call->path, a[0], (const char *)a[1]);
        path_at(call->new_path, a[2], (const char *)a[3]);
        break;
#ifdef SYS_open
    case SYS_open:
        call->operation = "open";
        path_at(call->path, AT_FDCWD, (const char *)a[0]);
        break;
    case SYS_mkdir:
        call->operation = "folder";
        path_at(call->path, AT_FDCWD, (const char *)a[0]);
        break;
    case SYS_unlink:
    case SYS_rmdir:
        call->operation = "remove";
        path_at(call->path, AT_FDCWD, (const char *)a[0]);
        break;
    case SYS_chmod:
        call->operation = "mode";
        path_at(call->path, AT_FDCWD, (const char *)a[0]);
        break;
    case SYS_link:
        call->operation = "link";
        path_at(call->path, AT_FDCWD, (const char *)a[0]);
        path_at(call->new_path, AT_FDCWD, (const char *)a[1]);
        break;
    case SYS_rename:
        call->operation = "rename";
        path_at(call->path, AT_FDCWD, (const char *)a[0]);
        path_at(call->new_path, AT_FDCWD, (const char *)a[1]);
        break;
#endif
    }
}

static int is_below(const char *path) {
    return strncmp(path, root, root_length) == 0 && path[root_length] == '/';
}

/* Whether this call is the first that goes wrong (1), one after it that does, too (2), or none of them. */
static int chosen(const struct call *call) {
    const char *target = call->new_path[0] ? call->new_path : call->path;
    if (!has_fault || (wanted_operation[0] != '*' && strcmp(wanted_operation, call->operation) != 0) ||
        (wanted_part[0] != '*' && strstr(target, wanted_part) == NULL))
        return 0;
    uint64_t number = atomic_fetch_add(matched, 1) + 1;
    if (number == wanted_number)
        return 1;
    return number > wanted_number && (fault_lasts || (call->is_write && atomic_exchange(&owed, 0))) ? 2 : 0;
}

static void tell(const struct call *call, long result) {
    char line[3 * PATH_MAX];
    if (trace < 0)
        return;
    int length = snprintf(line, sizeof line, "%s\t%ld\t%d\t%s%s%s\n", call->operation, result, getpid(), call->path,
                          call->new_path[0] ? "\t" : "", call->new_path);
    ours(SYS_write, trace, (long)line, length, 0, 0);
}

static long carry_out(long number, const long *a) {
    struct call call;
    describe(&call, number, a);
    if (!is_below(call.path) && !is_below(call.new_path))
        return ours(number, a[0], a[1], a[2], a[3], a[4]);
    int which = chosen(&call);
    if (!which) {
        long result = ours(number, a[0], a[1], a[2], a[3], a[4]);
        tell(&call, result);
        return result;
    }
    /* A write that a kill or a full disk interrupts may have been done in part. */
    int is_torn = which == 1 && call.is_write && a[2] > 1 && (fault_error == 0 || fault_error == ENOSPC);
    long torn = is_torn ? ours(number, a[0], a[1], a[2] / 2, a[3], a[4]) : 0;
    if (fault_error == 0) {
        tell(&call, -ECANCELED);
        ours(SYS_kill, getpid(), SIGKILL, 0, 0, 0);
        for (;;)
            pause();
    }
    owed = torn > 0;
    tell(&call, torn > 0 ? torn : -fault_error);
    return torn > 0 ? torn : -fault_error;
}

static void on_trap(int signal, siginfo_t *info, void *context) {
    (void)signal;
    int saved = errno;
    mcontext_t *machine = &((ucontext_t *)context)->uc_mcontext;
#if defined(__x86_64__)
    greg_t *r = machine->gregs;
    long a[5] = {r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8]};
    r[REG_RAX] = carry_out(info->si_syscall, a);
#else
    long a[5];
    for (int i = 0; i < 5; i++)
        a[i] = machine->regs[i];
    machine->regs[0] = carry_out(info->si_syscall, a);
#endif
    errno = saved;
}

#define LIMIT 256
static struct sock_filter filter[LIMIT];
static int filter_length;

static void put(uint16_t code, uint32_t k, uint8_t jump_if, uint8_t jump_else) {
    filter[filter_length++] = (struct sock_filter){code, jump_if, jump_else, k};
}

static void load(size_t offset) { put(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0); }
static void argument(int number) { load(offsetof(struct seccomp_data, args) + 8 * number); }

/* Traps the call whose number was loaded, unless it is ours. */
static void trap() {
    argument(5);
    put(BPF_JMP | BPF_JEQ | BPF_K, OURS, 0, 1);
    put(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    put(BPF_RET | BPF_K, SECCOMP_RET_TRAP, 0, 0);
}

static void always(long number) {
    put(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4);
    trap();
}

/* Traps a call that opens a file in order to change it. */
static void opens(long number, int flags) {
    put(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 7);
    argument(flags);
    put(BPF_JMP | BPF_JSET | BPF_K, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, 1, 0);
    put(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    trap();
}

static void when(long number, int index, uint32_t value, uint32_t answer) {
    put(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4);
    argument(index);
    put(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    put(BPF_RET | BPF_K, answer, 0, 0);
    load(offsetof(struct seccomp_data, nr));
}

static void build(const char *locks, const char *no_flags) {
    load(offsetof(struct seccomp_data, arch));
    put(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    put(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    load(offsetof(struct seccomp_data, nr));
    if (no_flags) {
        put(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 4);
        argument(4);
        put(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
        put(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | atoi(no_flags), 0, 0);
        load(offsetof(struct seccomp_data, nr));
    }
    if (locks) {
        uint32_t answer = SECCOMP_RET_ERRNO | atoi(locks);
        int requests[] = {F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW};
        for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
            when(SYS_fcntl, 1, requests[i], answer);
        put(BPF_JMP | BPF_JEQ | BPF_K, SYS_flock, 0, 1);
        put(BPF_RET | BPF_K, answer, 0, 0);
    }
    long calls[] = {
        SYS_write, SYS_pwrite64, SYS_writev, SYS_pwritev, SYS_sendfile, SYS_fsync, SYS_fdatasync, SYS_syncfs, SYS_ftruncate,
        SYS_fchmod, SYS_mkdirat, SYS_unlinkat, SYS_fchmodat, SYS_utimensat, SYS_linkat, SYS_renameat2,
#ifdef SYS_renameat
        SYS_renameat,
#endif
#ifdef SYS_open
        SYS_mkdir, SYS_unlink, SYS_rmdir, SYS_chmod, SYS_link, SYS_rename,
#endif
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        always(calls[i]);
    opens(SYS_openat, 2);
#ifdef SYS_open
    opens(SYS_open, 1);
#endif
    when(SYS_ioctl, 1, FICLONE, SECCOMP_RET_ERRNO | EOPNOTSUPP);
    /* It has six arguments, none of which is free for our sign; who uses it knows kernels that lack it. */
    put(BPF_JMP | BPF_JEQ | BPF_K, SYS_copy_file_range, 0, 1);
    put(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS, 0, 0);
    put(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

static void give_up(const char *what) {
    dprintf(2, "faults cannot be injected: %s: %s\n", what, strerror(errno));
    _exit(UNAVAILABLE);
}

__attribute__((constructor)) static void begin() {
    const char *folder = getenv("INJECT_ROOT"), *state = getenv("INJECT_STATE"), *file = getenv("INJECT_TRACE");
    const char *fault = getenv("INJECT_FAULT");
    if (!folder || !state)
        return;
    root_length = snprintf(root, sizeof root, "%s", folder);
    int shared = ours(SYS_openat, AT_FDCWD, (long)state, O_RDWR | O_CLOEXEC, 0, 0);
    if (shared < 0)
        give_up("the shared state");
    matched = mmap(NULL, sizeof *matched, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
    if (matched == MAP_FAILED)
        give_up("the shared state");
    close(shared);
    if (file)
        trace = ours(SYS_openat, AT_FDCWD, (long)file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600, 0);
    if (fault) {
        char action[16];
        unsigned long number;
        if (sscanf(fault, "%15s %255s %lu %15s", wanted_operation, wanted_part, &number, action) != 4)
            give_up("INJECT_FAULT");
        wanted_number = number;
        fault_error = strcmp(action, "kill") == 0 ? 0 : atoi(action);
        fault_lasts = strchr(action, '+') != NULL;
        has_fault = 1;
    }
    struct sigaction handler = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    sigfillset(&handler.sa_mask);
    if (sigaction(SIGSYS, &handler, NULL) != 0)
        give_up("sigaction");
    build(getenv("INJECT_LOCKS"), getenv("INJECT_NO_FLAGS"));
    struct sock_fprog program = {.len = filter_length, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        give_up("seccomp");
}
