// editor.c: see editor.h.
#include "prompt/editor.h"

#include "base/file.h"

#include <dlfcn.h>
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>
#ifdef RLHF_HAS_EDIT
#include <histedit.h>
#endif

#define LIBRARY       "libedit.so.2"
#define HISTORY_LINES 1000
#define WAIT_MS       200 // a signal that another thread handled is noticed after this time
#define CTRL_D        4

// The functions of libedit. `lib` is NULL if libedit is not used.
struct library {
    void *lib;
#ifdef RLHF_HAS_EDIT
    EditLine *(*init)(const char *, FILE *, FILE *, FILE *);
    void (*end)(EditLine *);
    const char *(*gets)(EditLine *, int *);
    int (*set)(EditLine *, int, ...);
    const LineInfo *(*line)(EditLine *);
    int (*insert)(EditLine *, const char *);
    History *(*history_init)(void);
    void (*history_end)(History *);
    int (*history)(History *, HistEvent *, int, ...);
#endif
};

struct rlhf__editor {
    struct rlhf__editor_opts o;
    struct rlhf__buf line;     // the last line read
    char path[RLHF__PATH_CAP]; // of the history; "": none
    locale_t utf8, before;     // libedit converts characters by the thread's locale
    struct library f;
#ifdef RLHF_HAS_EDIT
    EditLine *el;
    History *lines;
#endif
};

// Wait for a byte of the terminal. Returns 1 and sets *c, or returns 0 at the end, or -1 after
// Ctrl-C.
static int next_byte(const struct rlhf__editor *e, char *c) {
    for (;;) {
        struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
        if (*e->o.ended) return 0;
        if (*e->o.interrupted) return -1;
        const int n = poll(&p, 1, WAIT_MS);
        if (n < 0 && errno != EINTR) return 0;
        if (n <= 0) continue;
        const ssize_t got = read(STDIN_FILENO, c, 1);
        if (got == 1) return 1;
        if (got == 0 || errno != EINTR) return 0;
    }
}

static int plain_line(struct rlhf__editor *e) {
    char c;
    int got;
    fputs("> ", stdout);
    fflush(stdout);
    while ((got = next_byte(e, &c)) == 1 && c != '\n')
        if (c) rlhf__buf_putc(&e->line, c);
    if (got < 0) return RLHF__LINE_LEFT;
    return got == 0 && e->line.len == 0 ? RLHF__LINE_END : RLHF__LINE;
}

// ---- libedit ----

#ifdef RLHF_HAS_EDIT

static char *prompt_of(EditLine *el) {
    static char prompt[] = "> "; // libedit takes no const
    (void)el;
    return prompt;
}

// Returns the editor that belongs to `el`. A callback of libedit receives only `el`, whose client
// data is the pointer to the editor. Only a function of libedit can read it. While a callback runs,
// libedit is loaded.
static struct rlhf__editor *editor_of(EditLine *el) {
    struct rlhf__editor *e = NULL;
    void *lib = dlopen(LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
    int (*get)(EditLine *, int, ...) = NULL;
    if (!lib) return NULL;
    *(void **)&get = dlsym(lib, "el_get");
    if (get) get(el, EL_CLIENTDATA, &e);
    dlclose(lib);
    return e;
}

// Read one character. Invalid UTF-8 becomes U+FFFD. While a text is printed, the terminal collects
// whole lines, so a Ctrl-D typed during this time arrives as a byte 0.
static int read_char(EditLine *el, wchar_t *out) {
    struct rlhf__editor *e = editor_of(el);
    mbstate_t state = {0};
    char c;
    for (int got; e && (got = next_byte(e, &c)) != 0;) {
        if (got < 0) return -1;
        if (c == 0) c = CTRL_D;
        const size_t n = mbrtowc(out, &c, 1, &state);
        if (n == (size_t)-2) continue;
        if (n == (size_t)-1) *out = 0xfffd;
        return 1;
    }
    return 0;
}

static unsigned char complete_line(EditLine *el, int key) {
    struct rlhf__editor *e = editor_of(el);
    struct rlhf__buf add = RLHF__BUF_INIT, list = RLHF__BUF_INIT;
    unsigned char does = CC_REFRESH_BEEP;
    (void)key;
    if (!e) return CC_ERROR;
    const LineInfo *l = e->f.line(el);
    const rlhf_str typed = {l->buffer, (uint64_t)(l->cursor - l->buffer)};
    const size_t n = rlhf__complete(&e->o.words, typed, &add, &list);
    if (n && add.len) {
        does = e->f.insert(el, rlhf__buf_text(&add)) == 0 ? CC_REFRESH : CC_ERROR;
    } else if (n && list.len) {
        printf("\n%s\n", rlhf__buf_text(&list));
        fflush(stdout);
        does = CC_REDISPLAY;
    }
    rlhf__buf_finish(&add);
    rlhf__buf_finish(&list);
    return does;
}

static int load_library(struct library *f) {
    const struct {
        const char *name;
        void *to;
    } names[] = {{"el_init", &f->init},
                 {"el_end", &f->end},
                 {"el_gets", &f->gets},
                 {"el_set", &f->set},
                 {"el_line", &f->line},
                 {"el_insertstr", &f->insert},
                 {"history_init", &f->history_init},
                 {"history_end", &f->history_end},
                 {"history", &f->history}};
    // With NODELETE, memory that libedit allocates for itself stays reachable.
    f->lib = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    for (size_t i = 0; f->lib && i < sizeof names / sizeof *names; i++) {
        void *found = dlsym(f->lib, names[i].name);
        memcpy(names[i].to, &found, sizeof found);
        if (found) continue;
        dlclose(f->lib);
        f->lib = NULL;
    }
    return f->lib != NULL;
}

// Make the directories of the history file, readable only by the user.
static void make_folders(const char *path) {
    char part[RLHF__PATH_CAP];
    for (const char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(at - path), path);
        mkdir(part, 0700); // usually it exists; a missing history is not worth an error
    }
}

// The history is in the state directory of the XDG base directory specification.
static void find_history(struct rlhf__editor *e) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state && state[0] == '/')
        rlhf__path_put(e->path, "%s/rlhf-host/history", state);
    else if (home && home[0] == '/')
        rlhf__path_put(e->path, "%s/.local/state/rlhf-host/history", home);
}

static void open_history(struct rlhf__editor *e) {
    HistEvent event;
    e->lines = e->f.history_init();
    if (!e->lines) return;
    e->f.history(e->lines, &event, H_SETSIZE, HISTORY_LINES);
    e->f.history(e->lines, &event, H_SETUNIQUE, 1);
    find_history(e);
    if (e->path[0]) e->f.history(e->lines, &event, H_LOAD, e->path);
    e->f.set(e->el, EL_HIST, e->f.history, e->lines);
}

static void open_library(struct rlhf__editor *e) {
    e->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (!e->utf8) return;
    if (!load_library(&e->f)) return;
    e->before = uselocale(e->utf8);
    e->el = e->f.init("rlhf-host", stdin, stdout, stderr);
    if (!e->el) return;
    e->f.set(e->el, EL_CLIENTDATA, e);
    e->f.set(e->el, EL_PROMPT, prompt_of);
    e->f.set(e->el, EL_EDITOR, "emacs");
    e->f.set(e->el, EL_GETCFN, read_char);
    e->f.set(e->el, EL_ADDFN, "rlhf-complete", "complete a command or a path", complete_line);
    e->f.set(e->el, EL_BIND, "^I", "rlhf-complete", NULL);
    e->f.set(e->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    open_history(e);
}

static int edited_line(struct rlhf__editor *e) {
    HistEvent event;
    int n = 0;
    // Prepare the terminal before the prompt is printed. Otherwise a Ctrl-D that is typed right
    // after the prompt would be lost.
    e->f.set(e->el, EL_PREP_TERM, 1);
    const char *got = e->f.gets(e->el, &n);
    e->f.set(e->el, EL_PREP_TERM, 0);
    if (*e->o.interrupted) return RLHF__LINE_LEFT;
    if (!got || n <= 0) return RLHF__LINE_END;
    while (n > 0 && (got[n - 1] == '\n' || got[n - 1] == '\r'))
        n--;
    rlhf__buf_put(&e->line, got, (size_t)n);
    if (n > 0 && e->lines && !e->line.bad)
        e->f.history(e->lines, &event, H_ENTER, rlhf__buf_text(&e->line));
    return RLHF__LINE;
}

static void close_library(struct rlhf__editor *e) {
    HistEvent event;
    if (e->lines && e->path[0]) {
        make_folders(e->path);
        const mode_t mask = umask(0077);
        e->f.history(e->lines, &event, H_SAVE, e->path);
        umask(mask);
    }
    if (e->el) e->f.end(e->el);
    if (e->lines) e->f.history_end(e->lines);
    if (e->before) uselocale(e->before);
    if (e->utf8) freelocale(e->utf8);
    if (e->f.lib) dlclose(e->f.lib);
}

int rlhf__editor_edits(const struct rlhf__editor *e) { return e->el != NULL; }

#else

static void open_library(struct rlhf__editor *e) { (void)e; }
static int edited_line(struct rlhf__editor *e) { return plain_line(e); }
static void close_library(struct rlhf__editor *e) { (void)e; }
int rlhf__editor_edits(const struct rlhf__editor *e) { return e->f.lib != NULL; }

#endif

// ---- the editor ----

rlhf_status rlhf__editor_open(const struct rlhf__editor_opts *o, struct rlhf__editor **out,
                              struct rlhf__error *err) {
    struct rlhf__editor *e = *out = calloc(1, sizeof *e);
    if (!e) return RLHF__NOMEM(err, "out of memory for a dialogue");
    e->o = *o;
    open_library(e);
    return RLHF_OK;
}

void rlhf__editor_close(struct rlhf__editor *e) {
    if (!e) return;
    close_library(e);
    rlhf__buf_finish(&e->line);
    free(e);
}

int rlhf__editor_line(struct rlhf__editor *e, const char **line) {
    *e->o.interrupted = 0;
    rlhf__buf_clear(&e->line);
    const int event = rlhf__editor_edits(e) ? edited_line(e) : plain_line(e);
    if (*e->o.ended) return RLHF__LINE_END;
    *line = rlhf__buf_text(&e->line);
    return event;
}
