// answering.c: a program for the tests of exec.so. It reads rows and answers, correctly or not.
//
//     answering after K WHAT [ARG]   answers 1 to K lines, then does WHAT:
//         exit STATUS, kill SIGNAL, hang, say TEXT (then hang), close (its output, then hang)
//     answering one                  1 for each line
//     answering skip K INDEX         an object for each row except row K, with the row's index if
//                                    INDEX is yes
//     answering once                 1 for the first line, then exits
//     answering flaky FILE           like length, but a signal ends it at its third line, unless
//                                    FILE exists; it creates FILE first
//     answering length               the bytes of each line after the row's index, without the
//                                    line break
//     answering count                1, 2, 3, ... from the first line since it was started
//     answering stuck FILE           reads a line, writes its process id to FILE and hangs
//     answering batch N              reads N lines, then answers 1 to all of them
//     answering keep FILE            appends each line to FILE and answers 1
//     answering loud N               N bytes on standard error before each answer of 1
//     answering waits FILE           writes 100,000 bytes and "last words" to standard error, whose
//                                    pipe is large enough, answers 1, then creates FILE
//     answering wide N               answers with an object of N bytes
//     answering twice                two lines for each row
//     answering each TEXT            TEXT for each line
//     answering number TEXT          {"reward": 1, "index": TEXT} for each line
//     answering early                writes a line before it reads any
//     answering family FILE          starts a child in a separate session, which writes its process
//                                    id to FILE; both hang on any input
//     answering memory MIB           1 for each line if it can allocate that much memory, otherwise
//                                    exits with 9; no answer to a line with "hang"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *line;
static size_t room;

static ssize_t next_line(void) { return getline(&line, &room, stdin); }

static void answer(const char *text) {
    puts(text);
    fflush(stdout);
}

static void hang(void) {
    for (;;)
        pause();
}

static void after(long k, const char *what, const char *arg) {
    for (long i = 0; i < k && next_line() > 0; i++)
        answer("1");
    if (next_line() <= 0) exit(0); // the parent has ended
    if (strcmp(what, "exit") == 0) {
        fprintf(stderr, "I give up\nfor good\n");
        exit(atoi(arg));
    }
    if (strcmp(what, "kill") == 0) {
        signal(atoi(arg), SIG_DFL); // sanitizers install their own handler
        raise(atoi(arg));
    }
    if (strcmp(what, "say") == 0) answer(arg);
    if (strcmp(what, "close") == 0) fclose(stdout);
    hang();
}

static void skip_one(long k, int with_index) {
    while (next_line() > 0) {
        const char *at = strstr(line, "\"index\":");
        const long i = at ? atol(at + 8) : -1;
        if (i == k) continue;
        printf(with_index ? "{\"reward\": 1, \"index\": %ld}\n" : "1\n", i);
        fflush(stdout);
    }
}

static void family(const char *file) {
    signal(SIGTERM, SIG_IGN);
    if (fork() == 0) {
        setsid();
        if (fork() != 0) _exit(0); // the child's parent is not one of ours
        FILE *f = fopen(file, "w");
        if (f) fprintf(f, "%ld", (long)getpid());
        if (f) fclose(f);
    }
    hang();
}

static void stuck(const char *file) {
    if (next_line() <= 0) exit(0);
    FILE *f = fopen(file, "w");
    if (f) fprintf(f, "%ld", (long)getpid());
    if (f) fclose(f);
    hang();
}

// Returns the part of the line after the row's index. This part is the same on a retry.
static const char *behind_index(void) {
    const char *at = strstr(line, "\"index\":");
    return at ? at + 8 + strspn(at + 8, "0123456789") : line;
}

static void flaky(const char *file) {
    for (long n = 1; next_line() > 0; n++) {
        if (n == 3 && access(file, F_OK) != 0) {
            FILE *f = fopen(file, "w");
            if (f) fclose(f);
            raise(SIGKILL);
        }
        printf("%zu\n", strcspn(behind_index(), "\n"));
        fflush(stdout);
    }
}

static void loud(size_t n) {
    while (next_line() > 0) {
        for (size_t i = 0; i < n; i++)
            fputc(i % 80 == 79 ? '\n' : 'x', stderr);
        answer("1");
    }
}

static void waits(const char *file) {
    fcntl(STDERR_FILENO, F_SETPIPE_SZ, 1 << 20);
    while (next_line() > 0) {
        for (int i = 0; i < 1250; i++)
            fprintf(stderr, "%079d\n", i);
        fputs("last words\n", stderr);
        answer("1");
        FILE *f = fopen(file, "w");
        if (f) fclose(f);
    }
}

static void wide(size_t n) {
    while (next_line() > 0) {
        fputs("{\"reward\": 1", stdout);
        for (size_t i = 13; i < n; i++)
            fputc(' ', stdout);
        answer("}");
    }
}

static void each(const char *mode, const char *arg) {
    char text[32];
    long n = 0;
    while (next_line() > 0) {
        while (strcmp(mode, "memory") == 0 && strstr(line, "\"hang\""))
            pause();
        n++;
        snprintf(text, sizeof text, "%zu", strcspn(behind_index(), "\n"));
        if (strcmp(mode, "length") == 0)
            answer(text);
        else if (strcmp(mode, "number") == 0)
            printf("{\"reward\": 1, \"index\": %s}\n", arg), fflush(stdout);
        else if (strcmp(mode, "count") == 0)
            printf("%ld\n", n), fflush(stdout);
        else
            answer(strcmp(mode, "each") == 0 ? arg : strcmp(mode, "twice") == 0 ? "1\n1" : "1");
        if (strcmp(mode, "once") == 0) return;
    }
}

static void keep(const char *file) {
    while (next_line() > 0) {
        FILE *f = fopen(file, "a");
        if (!f) exit(3);
        fputs(line, f);
        fclose(f);
        answer("1");
    }
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "", *arg = argc > 2 ? argv[2] : "";
    const long n = atol(arg);
    if (strcmp(mode, "after") == 0 && argc > 3) after(n, argv[3], argc > 4 ? argv[4] : "");
    if (strcmp(mode, "skip") == 0) skip_one(n, argc > 3 && strcmp(argv[3], "yes") == 0);
    if (strcmp(mode, "family") == 0) family(arg);
    if (strcmp(mode, "flaky") == 0) flaky(arg);
    if (strcmp(mode, "stuck") == 0) stuck(arg);
    if (strcmp(mode, "loud") == 0) loud((size_t)n);
    if (strcmp(mode, "waits") == 0) waits(arg);
    if (strcmp(mode, "wide") == 0) wide((size_t)n);
    if (strcmp(mode, "keep") == 0) keep(arg);
    if (strcmp(mode, "early") == 0) answer("1");
    if (strcmp(mode, "memory") == 0 && !(line = calloc((size_t)n, 1 << 20))) return 9;
    if (strcmp(mode, "memory") == 0) free(line), line = NULL;
    while (strcmp(mode, "batch") == 0) {
        for (long i = 0; i < n; i++)
            if (next_line() <= 0) return 0;
        for (long i = 0; i < n; i++)
            puts("1");
        fflush(stdout);
    }
    if (strcmp(mode, "flaky") != 0) each(mode, arg);
    return 0;
}
