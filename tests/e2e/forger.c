// forger.c: code that runs when its file is opened, and misbehaves. $FORGE chooses how: it answers
// in place of the program's own code, sends without end, or does not end.
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Returns the descriptor to which the answer must be sent: the end of a pipe, but not a standard
// stream.
static int answer_file(void) {
    for (int fd = 3; fd < 64; fd++) {
        struct stat s;
        if (fstat(fd, &s) == 0 && S_ISFIFO(s.st_mode) &&
            (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY)
            return fd;
    }
    _exit(1);
}

static void answer(int32_t status, const char *text) {
    const int fd = answer_file();
    if (write(fd, &status, sizeof status) < 0 || write(fd, text, strlen(text)) < 0) _exit(1);
    _exit(0);
}

__attribute__((constructor)) static void misbehave(void) {
    static char much[1 << 16];
    const char *how = getenv("FORGE");
    if (!how) return;
    if (strcmp(how, "text") == 0) answer(0, "forged \033]0;title\007\033[2Jtext\n");
    if (strcmp(how, "failure") == 0) answer(-1, "forged \033]0;title\007\033[2Jtext\n");
    if (strcmp(how, "rows") == 0)
        answer(0, "[{\"rows\": [{\"kind\": \"reward\", \"file\": \"answer.so\", \"id\": "
                  "\"forged\", \"path\": \"/answer.so\"}, 3], \"warning\": \"\"}]");
    if (strcmp(how, "many") == 0) answer(0, "[{\"rows\": []}, {\"rows\": [3]}]");
    if (strcmp(how, "flood") == 0)
        for (const int fd = answer_file(); write(fd, much, sizeof much) > 0;)
            continue;
    signal(SIGALRM, SIG_IGN);
    for (;;)
        pause();
}
