// faulty_program.c: `faulty_program SEED EVERY`, a program for exec.so. It scores a row by the
// row's line, not by its position, and fails once at each row that the seed chooses. It counts the
// rows in the file `asked`, so a restart does not lose the count. It appends its failures to the
// file `faults`, and the process ids of children that it leaves running to the file `children`.
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const kinds[] = {"crash", "exit",   "hang", "garbage", "lines",
                                    "noise", "memory", "fork", "nan",     "slow"};
enum { KINDS = sizeof kinds / sizeof *kinds };

// FNV-1a.
static uint64_t mix(uint64_t h, const void *bytes, size_t n) {
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * UINT64_C(1099511628211);
    return h;
}

// Returns the number of the next row. Rows are counted over all processes.
static uint64_t next_number(void) {
    uint64_t n = 0;
    const int fd = open("asked", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || pread(fd, &n, sizeof n, 0) < 0) exit(7);
    n++;
    if (pwrite(fd, &n, sizeof n, 0) != (ssize_t)sizeof n) exit(7);
    close(fd);
    return n;
}

static void note(const char *file, const char *text) {
    const int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    char line[64];
    const int n = snprintf(line, sizeof line, "%s\n", text);
    if (fd < 0 || write(fd, line, (size_t)n) != n) exit(7);
    close(fd);
}

static void wait_for_ever(void) {
    for (;;)
        pause();
}

static void leave_children(void) {
    char text[32];
    for (int i = 0; i < 3; i++) {
        const pid_t pid = fork();
        if (pid == 0) wait_for_ever();
        snprintf(text, sizeof text, "%d", (int)pid);
        if (pid > 0) note("children", text);
    }
    _exit(0);
}

static void eat_memory(void) {
    for (;;) {
        char *p = malloc(16 << 20);
        if (!p) {
            fputs("no more memory\n", stderr);
            abort();
        }
        memset(p, 1, 16 << 20);
    }
}

// Write all output at once: the host counts a row as answered when its line arrives, so later
// output would be too late.
static void answer_too_much(void) {
    static const char lines[] = "1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n";
    if (write(STDOUT_FILENO, lines, sizeof lines - 1) < 0) exit(7);
}

// Cause the failure `kind`, an entry of kinds[], at a row. Returns 1 if the row must not be
// answered normally. After a bad line the program waits until the host ends it. Otherwise a later
// row could fail, too, before the host has read the line.
static int go_wrong(const char *kind) {
    note("faults", kind);
    if (strcmp(kind, "crash") == 0) {
        signal(SIGSEGV, SIG_DFL); // sanitizers install their own handler
        raise(SIGSEGV);
    }
    if (strcmp(kind, "exit") == 0) exit(3);
    if (strcmp(kind, "hang") == 0) wait_for_ever();
    if (strcmp(kind, "memory") == 0) eat_memory();
    if (strcmp(kind, "fork") == 0) leave_children();
    if (strcmp(kind, "slow") == 0) usleep(200000);
    if (strcmp(kind, "garbage") == 0) puts("\033[31mnot a number\001");
    if (strcmp(kind, "lines") == 0) answer_too_much();
    if (strcmp(kind, "noise") == 0) puts("Loading checkpoint shards: 100%");
    if (strcmp(kind, "slow") == 0) return 0;
    if (strcmp(kind, "nan") != 0) wait_for_ever();
    puts("NaN");
    return 1;
}

// Returns the text after the row's index. The index differs on a retry, but this text does not.
static const char *behind_index(const char *line) {
    const char *at = strstr(line, "\"index\":");
    return at ? at + 8 + strspn(at + 8, "0123456789") : line;
}

int main(int argc, char **argv) {
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    const uint64_t every = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    char *line = NULL;
    size_t cap = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (getline(&line, &cap, stdin) > 0) {
        const uint64_t number = every ? next_number() : 0;
        const uint64_t draw = mix(mix(14695981039346656037u, &seed, 8), &number, 8) >> 13;
        const char *row = behind_index(line);
        const uint64_t worth = mix(14695981039346656037u, row, strlen(row)) >> 23;
        if (every && draw % every == 0 && go_wrong(kinds[draw / every % KINDS])) continue;
        printf("%.3f\n", (double)(worth % 16) / 8);
    }
    free(line);
    return 0;
}
