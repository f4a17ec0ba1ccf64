// version.c: `rlhf-host --version` and what a report of a fault should say of the program, the same
// with --json. See cmd/help.h.
#include "cmd/help.h"

#include "base/child.h"
#include "base/json.h"
#include "cmd/levels.h"
#include "cmd/print.h"
#include "model/compute_load.h"

#include <stdio.h>
#include <string.h>

#if defined __clang__
#define COMPILER "clang " __clang_version__
#elif defined __GNUC__
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

// In the child: what the CPU backend says of itself, "amx, ..." or "oneDNN 2.6.3, amx, ...", and
// its levels.
static rlhf_status describe(void *arg, struct rlhf__buf *out) {
    const struct rlhf__dirs *dirs = arg;
    struct rlhf__error err;
    char path[RLHF__PATH_CAP];
    void *object;
    rlhf_kernels k;
    rlhf_device_info d;
    rlhf_status st = rlhf__compute_find(dirs, "cpu", path, &err);
    if (st == RLHF_OK) st = rlhf__compute_load(path, &object, &k, &err);
    if (st == RLHF_OK) st = rlhf__compute_describe(&k, path, 0, &d, &err);
    if (st < 0) {
        rlhf__buf_puts(out, err.text);
        return st;
    }
    json_t *all = json_pack("{so,so}", "library", rlhf__json_text(d.library), "levels",
                            rlhf__levels_json(&d));
    rlhf__json_write(out, all, 0);
    json_decref(all);
    return RLHF_OK;
}

// What describe() wrote; NULL when the backend cannot be asked.
static json_t *ask(const struct rlhf__dirs *dirs) {
    struct rlhf__buf said = RLHF__BUF_INIT;
    struct rlhf__dirs own = *dirs;
    struct rlhf__error none;
    json_t *all = NULL;
    if (rlhf__child_run("cpu", describe, &own, &said, &none) == RLHF_OK)
        (void)rlhf__json_parse("cpu", rlhf__buf_text(&said), said.len, &all, &none);
    rlhf__buf_free(&said);
    return all;
}

rlhf_status rlhf__version(const struct rlhf__dirs *dirs, struct rlhf__error *err) {
    struct rlhf__buf table = RLHF__BUF_INIT;
    json_t *said = ask(dirs);
    rlhf__levels_put(&table, json_object_get(said, "levels"));
    json_decref(said);
    printf("rlhf-host %s (plugin ABI %d.%d)\n%s", RLHF_SDK_VERSION, RLHF_ABI_MAJOR, RLHF_ABI_MINOR,
           rlhf__buf_text(&table));
    rlhf__buf_free(&table);
    return rlhf__print_flush(err);
}

// The part of "a, b, c" after its first n commas; null where there is none.
static json_t *part(const char *text, int n) {
    for (; n > 0 && text; n--) {
        text = strstr(text, ", ");
        text = text ? text + 2 : NULL;
    }
    if (!text || !*text) return json_null();
    const char *end = strstr(text, ", ");
    return json_stringn(text, end ? (size_t)(end - text) : strlen(text));
}

rlhf_status rlhf__version_json(const struct rlhf__dirs *dirs, const char *git, const char *build,
                               struct rlhf__error *err) {
    json_t *said = ask(dirs);
    const char *library = json_string_value(json_object_get(said, "library"));
    const char *text = library ? library : "";
    json_t *levels = json_object_get(said, "levels");
    static const char name[] = "oneDNN ";
    const int has = strncmp(text, name, sizeof name - 1) == 0;
    json_t *all = json_pack("{ss,s{si,si},ss,ss,ss,so,so,so,ss,ss}", "version", RLHF_SDK_VERSION,
                            "contract", "major", RLHF_ABI_MAJOR, "minor", RLHF_ABI_MINOR, "git",
                            git, "compiler", COMPILER, "build", build, "onednn",
                            has ? part(text + sizeof name - 1, 0) : json_null(), "instruction_set",
                            part(text, has), "levels", levels ? json_incref(levels) : json_array(),
                            "lib", dirs->lib, "share", dirs->share);
    json_decref(said);
    return rlhf__print_json_new(all, err);
}
