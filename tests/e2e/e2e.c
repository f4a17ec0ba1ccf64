// e2e.c: see e2e.h.
#include "e2e.h"

#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// ---- the tiny model ----

// Returns GPT-2's spelling of byte b: printable Latin-1 characters stay, other bytes follow from
// U+0100.
static unsigned spelling(unsigned b) {
    unsigned next = 256;
    for (unsigned k = 0; k < 256; k++) {
        int plain = (k >= '!' && k <= '~') || (k >= 0xa1 && k <= 0xac) || k >= 0xae;
        if (k == b) return plain ? k : next;
        if (!plain) next++;
    }
    return 0;
}

static void put_utf8(FILE *f, unsigned c) {
    if (c == '"' || c == '\\')
        fprintf(f, "\\%c", (int)c);
    else if (c < 0x80)
        fputc((int)c, f);
    else
        fprintf(f, "%c%c", (int)(0xc0 | (c >> 6)), (int)(0x80 | (c & 63)));
}

static FILE *create(const struct e2e *t, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", t->dir, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    return f;
}

void e2e_write(const struct e2e *t, const char *name, const char *text) {
    FILE *f = create(t, name);
    assert_int_equal(fputs(text, f) < 0, 0);
    assert_int_equal(fclose(f), 0);
}

// 256 bytes, 3 merges, one special token: 260 ids.
static void write_model(const struct e2e *t) {
    FILE *f = create(t, "model/vocab.json");
    fputc('{', f);
    for (unsigned b = 0; b < 256; b++) {
        fprintf(f, "%s\"", b ? ", " : "");
        put_utf8(f, spelling(b));
        fprintf(f, "\": %u", b);
    }
    fputs(", \"th\": 256, \"the\": 257, \"in\": 258, \"<|endoftext|>\": 259}\n", f);
    assert_int_equal(fclose(f), 0);
    e2e_write(t, "model/merges.txt", "#version: 0.2\nt h\nth e\ni n\n");
    e2e_write(t, "model/config.json",
              "{\"model_type\": \"gpt2\", \"architectures\": [\"GPT2LMHeadModel\"],\n"
              " \"vocab_size\": 260, \"n_positions\": 64, \"n_embd\": 32, \"n_layer\": 2,\n"
              " \"n_head\": 2, \"layer_norm_epsilon\": 1e-05, \"initializer_range\": 0.02,\n"
              " \"activation_function\": \"gelu_new\", \"bos_token_id\": 259,\n"
              " \"eos_token_id\": 259}\n");
}

static void write_data(const struct e2e *t) {
    static const char *const good[] = {"a fine film", "the best thing", "good fun", "great acting"};
    static const char *const bad[] = {"a poor film", "the worst thing", "dull work",
                                      "awful acting"};
    FILE *texts = create(t, "texts.jsonl"), *labeled = create(t, "labeled.jsonl");
    for (int i = 0; i < 64; i++) {
        fprintf(texts, "{\"text\": \"It was %s. I think %s is what it was.\"}\n", good[i % 4],
                bad[i / 4 % 4]);
        fprintf(labeled, "{\"text\": \"%s\", \"label\": %d}\n",
                i % 2 ? good[i / 2 % 4] : bad[i / 2 % 4], i % 2);
    }
    assert_int_equal(fclose(texts), 0);
    assert_int_equal(fclose(labeled), 0);
    e2e_write(t, "prompts.txt", "It was\nThe film\nI think\nthe thing in it\n");
}

int e2e_setup(void **state) {
    struct e2e *t = calloc(1, sizeof *t);
    const char *tmp = getenv("TMPDIR");
    if (!t) return -1;
    snprintf(t->dir, sizeof t->dir, "%s/rlhf-e2e-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(t->dir)) return -1;
    char path[512];
    snprintf(path, sizeof path, "%s/model", t->dir);
    if (mkdir(path, 0777) != 0) return -1;
    write_model(t);
    write_data(t);
    *state = t;
    return 0;
}

int e2e_teardown(void **state) {
    struct e2e *t = *state;
    char command[512];
    snprintf(command, sizeof command, "rm -rf '%s'", t->dir);
    int failed = !getenv("RLHF_E2E_KEEP") && system(command) != 0;
    free(t);
    return failed ? -1 : 0;
}

// ---- running ----

// Writes the shell command that runs `script` in `dir` with its variables. `to` redirects its
// output.
static void command_of(const struct e2e *t, const char *script, const char *to, char *command,
                       size_t cap) {
    const char *build = getenv("RLHF_BUILD_DIR");
    assert_non_null(build);
    int n = snprintf(
        command, cap,
        "cd '%s' && HOST='%s/bin/rlhf-host' RLHF_PLUGIN_PATH='%s/tests/e2e' "
        "RLHF_TEST_PLUGINS='%s/tests/e2e' CUDA_VISIBLE_DEVICES=\"$RLHF_TEST_CARDS\"; export HOST "
        "RLHF_PLUGIN_PATH CUDA_VISIBLE_DEVICES; { %s\n} %s",
        t->dir, build, build, build, script, to);
    assert_true(n > 0 && (size_t)n < cap);
}

static int shell(struct e2e *t, const char *script) {
    char command[8192], path[512];
    command_of(t, script, ">out.txt 2>&1", command, sizeof command);
    int status = system(command);
    snprintf(path, sizeof path, "%s/out.txt", t->dir);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t len = fread(t->out, 1, sizeof t->out - 1, f);
    t->out[len] = 0;
    fclose(f);
    assert_true(status >= 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int e2e_shell(struct e2e *t, const char *script, ...) {
    char text[6144];
    va_list ap;
    va_start(ap, script);
    int n = vsnprintf(text, sizeof text, script, ap);
    va_end(ap);
    assert_true(n > 0 && (size_t)n < sizeof text);
    return shell(t, text);
}

// Start a script on a terminal.
static pid_t open_terminal(struct e2e *t, unsigned short rows, unsigned short columns,
                           const char *script, int *master) {
    char command[8192];
    command_of(t, script, "", command, sizeof command);
    struct winsize size = {rows, columns, 0, 0};
    pid_t pid = forkpty(master, NULL, NULL, &size);
    assert_true(pid >= 0);
    if (pid == 0) {
        setenv("TERM", "xterm", 1);
        setenv("NO_COLOR", "1", 1);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    return pid;
}

// Read the rest of the output, from t->out + len on. Returns the exit status.
static int read_rest(struct e2e *t, size_t len, pid_t pid, int master) {
    ssize_t got; // -1 when the other end is closed
    while (len + 1 < sizeof t->out &&
           (got = read(master, t->out + len, sizeof t->out - 1 - len)) > 0)
        len += (size_t)got;
    t->out[len] = 0;
    close(master);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int e2e_terminal(struct e2e *t, unsigned short columns, const char *script, ...) {
    char text[6144];
    va_list ap;
    va_start(ap, script);
    int n = vsnprintf(text, sizeof text, script, ap), master;
    va_end(ap);
    assert_true(n > 0 && (size_t)n < sizeof text);
    const pid_t pid = open_terminal(t, 24, columns, text, &master);
    return read_rest(t, 0, pid, master);
}

// Reads until the output from `from` on contains `until`. Returns the end of that text.
static size_t read_until(struct e2e *t, size_t from, size_t *len, const char *until, int master) {
    const char *found;
    t->out[*len] = 0;
    while (!(found = strstr(t->out + from, until))) {
        struct pollfd p = {.fd = master, .events = POLLIN};
        ssize_t got = -1;
        if (poll(&p, 1, 60000) == 1 && *len + 1 < sizeof t->out)
            got = read(master, t->out + *len, sizeof t->out - 1 - *len);
        if (got <= 0) fail_msg("waiting for \"%s\" after:\n%s", until, t->out + from);
        *len += (size_t)got;
        t->out[*len] = 0;
    }
    return (size_t)(found - t->out) + strlen(until);
}

int e2e_typed(struct e2e *t, unsigned short rows, unsigned short columns,
              const struct e2e_keys *keys, size_t n_keys, const char *script, ...) {
    char text[6144];
    va_list ap;
    va_start(ap, script);
    int n = vsnprintf(text, sizeof text, script, ap), master;
    va_end(ap);
    assert_true(n > 0 && (size_t)n < sizeof text);
    const pid_t pid = open_terminal(t, rows, columns, text, &master);
    size_t len = 0, at = 0;
    for (size_t i = 0; i < n_keys; i++) {
        at = read_until(t, at, &len, keys[i].until, master);
        const size_t bytes = strlen(keys[i].send);
        assert_int_equal(write(master, keys[i].send, bytes), bytes);
    }
    return read_rest(t, len, pid, master);
}

int e2e_run(struct e2e *t, const char *args, ...) {
    char text[6144];
    va_list ap;
    va_start(ap, args);
    int n = vsnprintf(text, sizeof text, args, ap);
    va_end(ap);
    assert_true(n > 0 && (size_t)n < sizeof text);
    const char *threads = strstr(text, "--threads") || strstr(text, "plugin ") ? "" : "--threads 1";
    return e2e_shell(t, "\"$HOST\" %s %s", text, threads);
}

void e2e_says(const struct e2e *t, const char *text) {
    if (!strstr(t->out, text)) fail_msg("expected \"%s\" in:\n%s", text, t->out);
}

// ---- files of a run ----

int e2e_exists(const struct e2e *t, const char *name) {
    char path[512];
    struct stat s;
    snprintf(path, sizeof path, "%s/%s", t->dir, name);
    return lstat(path, &s) == 0;
}

int e2e_count(const struct e2e *t, const char *text) {
    int n = 0;
    for (const char *at = t->out; (at = strstr(at, text)) != NULL; at++)
        n++;
    return n;
}

json_t *e2e_lines(const struct e2e *t, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", t->dir, name);
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s is missing", name);
    json_t *rows = json_array(), *row;
    while ((row = json_loadf(f, JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, NULL)) != NULL)
        json_array_append_new(rows, row);
    assert_int_equal(fgetc(f), EOF); // all of the file was JSON
    fclose(f);
    return rows;
}

json_t *e2e_metrics(const struct e2e *t, const char *run) {
    char name[512];
    snprintf(name, sizeof name, "%s/metrics.jsonl", run);
    return e2e_lines(t, name);
}

double e2e_metric(const json_t *rows, int i, const char *name) {
    size_t n = json_array_size(rows);
    size_t at = i < 0 ? n - (size_t)-i : (size_t)i;
    assert_true(at < n);
    const json_t *v = json_object_get(json_array_get(rows, at), name);
    if (!json_is_number(v)) fail_msg("metric %s is missing in row %d", name, i);
    return json_number_value(v);
}

void e2e_same_tree(struct e2e *t, const char *a, const char *b) {
    if (e2e_shell(t, "diff -r '%s' '%s'", a, b) != 0)
        fail_msg("%s and %s differ:\n%s", a, b, t->out);
}
