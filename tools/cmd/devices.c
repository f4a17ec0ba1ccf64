// devices.c: `rlhf-host devices`: lists the devices of the installed backends. If a backend or
// device cannot be used, the command prints the reason. Each backend is queried in a separate child
// process, so a driver that hangs or crashes spoils only its backend's lines.
#include "cmd/help.h"

#include "base/json.h"
#include "base/printable.h"
#include "cmd/commands.h"
#include "cmd/flags.h"
#include "cmd/program.h"
#include "model/compute_load.h"
#include "supervise/child.h"

#include <stdio.h>
#include <string.h>

struct options {
    const char *backend;
    int32_t json;
};

#define O struct options
static const struct rlhf__flag flags[] = {
    RLHF__FLAG_S(O, "--backend", backend, "NAME",
                 "only this one: cpu, cuda, reference or a file, with options as FILE:KEY=VALUE"),
    RLHF__FLAG_SW(O, "--json", json, "print a JSON list"),
};
#undef O
#define N_FLAGS (sizeof flags / sizeof *flags)

// ---- instruction sets ----

json_t *rlhf__levels_json(const struct rlhf__device_info *d) {
    json_t *list = json_array();
    const json_t *l;
    size_t i;
    json_array_foreach(d->levels, i, l) json_array_append_new(
        list,
        json_pack("{ss,sb,sb,ss,ss,ss,ss}", "level", rlhf__json_text_in(l, "name"), "has",
                  json_is_true(json_object_get(l, "supported")), "used",
                  json_is_true(json_object_get(l, "used")), "loops", rlhf__json_text_in(l, "loops"),
                  "f32", rlhf__json_text_in(l, "f32"), "bf16", rlhf__json_text_in(l, "bf16"),
                  "why_not", rlhf__json_text_in(l, "why_unused")));
    return list;
}

static void put_line(struct rlhf__buf *out, char mark, const char *has, const json_t *row) {
    const char *why = rlhf__json_text_in(row, "why_not");
    struct rlhf__buf line = RLHF__BUF_INIT;
    rlhf__buf_printf(&line, "  %c %-12s %-4s %-28s %-14s %-18s%s%s", mark,
                     rlhf__json_text_in(row, "level"), has, rlhf__json_text_in(row, "loops"),
                     rlhf__json_text_in(row, "f32"), rlhf__json_text_in(row, "bf16"),
                     *why ? "not: " : "", why);
    while (line.len && rlhf__buf_text(&line)[line.len - 1] == ' ')
        line.len--;
    rlhf__put_printable(out, rlhf__buf_text(&line), line.len, "");
    rlhf__buf_puts(out, "\n");
    rlhf__buf_finish(&line);
}

void rlhf__levels_put(struct rlhf__buf *out, const json_t *levels) {
    size_t i;
    const json_t *row;
    if (json_array_size(levels) == 0) return;
    json_t *head = json_pack("{ss,ss,ss,ss}", "level", "level", "loops", "loops", "f32",
                             "f32 products", "bf16", "bf16 products");
    put_line(out, ' ', "has", head);
    json_decref(head);
    json_array_foreach(levels, i, row)
        put_line(out, json_is_true(json_object_get(row, "used")) ? '*' : ' ',
                 json_is_true(json_object_get(row, "has")) ? "yes" : "no", row);
}

// ---- devices ----

struct look {
    const struct rlhf__dirs *dirs;
    const char *name;
};

static json_t *bytes_json(uint64_t bytes) {
    return bytes ? json_integer((json_int_t)bytes) : json_null();
}

static json_t *text_json(const char *text) { return text[0] ? rlhf__json_text(text) : json_null(); }

static json_t *row_of(const char *backend, uint32_t gpu, const char *path,
                      const struct rlhf__device_info *d) {
    char capability[24] = "";
    if (d->capability)
        snprintf(capability, sizeof capability, "%d.%d", d->capability / 10, d->capability % 10);
    return json_pack("{ss,si,so,so,so,so,so,so,so,so,so,so}", "backend", backend, "gpu", (int)gpu,
                     "name", text_json(d->name), "memory", bytes_json(d->memory), "memory_free",
                     bytes_json(d->memory_free), "compute_capability", text_json(capability),
                     "driver", text_json(d->driver), "runtime", text_json(d->runtime), "library",
                     text_json(d->library), "missing", text_json(d->missing), "path",
                     text_json(path), "levels", rlhf__levels_json(d));
}

// Returns "cpu" for the id "org.rlhf-host.kernels.cpu".
static const char *backend_of(const struct rlhf__plugin *p) {
    const char *dot = strrchr(p->desc.id, '.');
    return dot ? dot + 1 : p->desc.id;
}

static rlhf_status add_rows(const struct rlhf__kernels *k, json_t *rows, struct rlhf__error *err) {
    rlhf_status st = RLHF_OK;
    for (uint32_t gpu = 0, n = 1; st == RLHF_OK && gpu < n; gpu++) {
        struct rlhf__device_info d;
        st = rlhf__kernels_describe(k, gpu, &d, err);
        if (st == RLHF_OK)
            json_array_append_new(rows, row_of(backend_of(k->plugin), gpu, k->plugin->path, &d));
        n = d.devices;
        rlhf__device_info_finish(&d);
    }
    return st;
}

// Runs in the child: list the backend's devices as JSON.
static rlhf_status describe(void *arg, struct rlhf__buf *out) {
    const struct look *l = arg;
    struct rlhf__error err;
    struct rlhf__kernels k = {0};
    json_t *rows = json_array();
    rlhf_status st = rlhf__kernels_load(l->dirs, l->name, NULL, &k, &err);
    if (st == RLHF_OK) st = add_rows(&k, rows, &err);
    if (st == RLHF_OK)
        rlhf__json_write(out, rows, 0);
    else
        rlhf__buf_puts(out, err.text);
    json_decref(rows);
    rlhf__kernels_finish(&k);
    return st;
}

// Append the rows of one backend to `all`. If the backend cannot be queried, append one row with
// the reason.
static void look_at(const struct rlhf__dirs *dirs, const char *name, json_t *all) {
    struct look l = {dirs, name};
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__error err;
    struct rlhf__device_info none = {0};
    json_t *rows = NULL;
    rlhf_status st = rlhf__child_run(name, describe, &l, &text, &err);
    if (st == RLHF_OK) st = rlhf__json_parse(name, rlhf__buf_text(&text), text.len, &rows, &err);
    if (st == RLHF_OK) {
        json_array_extend(all, rows);
    } else {
        char why[512];
        snprintf(why, sizeof why, "%.500s", err.text);
        rlhf__device_info_read(NULL, &none, &err);
        none.missing = why;
        json_array_append_new(all, row_of(name, 0, "", &none));
    }
    json_decref(rows);
    rlhf__buf_finish(&text);
}

static double gib_of(const json_t *row, const char *key) {
    return (double)json_integer_value(json_object_get(row, key)) / (1 << 30);
}

// Append ", <what> <text>", unless `text` is empty.
static void put(struct rlhf__buf *out, const char *what, const char *text) {
    if (text[0]) rlhf__buf_printf(out, ", %s%s", what, text);
}

static void print_row(const json_t *row) {
    struct rlhf__buf line = RLHF__BUF_INIT, shown = RLHF__BUF_INIT;
    const json_int_t gpu = json_integer_value(json_object_get(row, "gpu"));
    const char *capability = rlhf__json_text_in(row, "compute_capability"),
               *missing = rlhf__json_text_in(row, "missing");
    char name[64];
    snprintf(name, sizeof name, *capability ? "%.40s %d" : "%.40s",
             rlhf__json_text_in(row, "backend"), (int)gpu);
    rlhf__buf_printf(&line, "%-10s %s", name, rlhf__json_text_in(row, "name"));
    if (json_is_integer(json_object_get(row, "memory_free")))
        rlhf__buf_printf(&line, ", %.1f of %.1f GiB free", gib_of(row, "memory_free"),
                         gib_of(row, "memory"));
    else if (json_is_integer(json_object_get(row, "memory")))
        rlhf__buf_printf(&line, ", %.1f GiB", gib_of(row, "memory"));
    if (rlhf__json_text_in(row, "name")[0]) {
        put(&line, "compute capability ", capability);
        put(&line, "driver ", rlhf__json_text_in(row, "driver"));
        put(&line, "runtime ", rlhf__json_text_in(row, "runtime"));
        put(&line, "", rlhf__json_text_in(row, "library"));
        if (*missing) rlhf__buf_puts(&line, "; ");
    }
    if (*missing) rlhf__buf_printf(&line, "not usable: %s", missing);
    rlhf__put_printable(&shown, rlhf__buf_text(&line), line.len, "");
    rlhf__buf_puts(&shown, "\n");
    rlhf__levels_put(&shown, json_object_get(row, "levels"));
    fputs(rlhf__buf_text(&shown), stdout);
    rlhf__buf_finish(&line);
    rlhf__buf_finish(&shown);
}

int rlhf__cmd_devices(const struct rlhf__env *env, int argc, char **argv) {
    static const char *const all[] = {"cpu", "reference", "cuda"};
    struct options o = {NULL, 0};
    struct rlhf__error err = {0, ""};
    if (rlhf__flags_helped(flags, N_FLAGS, "rlhf-host devices [--json]", argc, argv)) return 0;
    if (rlhf__flags_parse(flags, N_FLAGS, argc, argv, &o, NULL, &err) < 0) {
        rlhf__log_error(env->log, err.text);
        return 2;
    }
    json_t *rows = json_array();
    if (o.backend)
        look_at(env->dirs, o.backend, rows);
    else
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            look_at(env->dirs, all[i], rows);
    rlhf_status st = RLHF_OK;
    if (o.json) {
        st = rlhf__print_json_new(rows, &err);
    } else {
        size_t i;
        const json_t *row;
        json_array_foreach(rows, i, row) print_row(row);
        json_decref(rows);
        st = rlhf__print_flush(&err);
    }
    return st == RLHF_OK ? 0 : rlhf__cmd_end(env, st, &err);
}
