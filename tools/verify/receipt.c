// receipt.c: see receipt.h.
#include "verify/receipt.h"

#include "base/file.h"
#include "history/text_lines.h"
#include "verify/receipt_page.h"
#include "verify/recompute_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <gnu/libc-version.h>
#include <rlhf/plugin.h>

#define FORMAT    "rlhf-receipt-1"
#define MAX_BYTES ((uint64_t)16 << 20)

enum { MOST_FAULTS = 100 };

// ---- who made the run, and who verified it ----

static void put_compute(json_t *to, const json_t *manifest) {
    static const char *const keys[] = {"backend", "detail", "dtype", "sha256"};
    const json_t *compute = json_object_get(manifest, "compute");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_object_get(compute, keys[i]))
            json_object_set(to, keys[i], json_object_get(compute, keys[i]));
    if (json_object_get(manifest, "version"))
        json_object_set(to, "version", json_object_get(manifest, "version"));
}

// The machine on which the run began, according to the run.
static json_t *made(const char *run) {
    char path[RLHF__PATH_CAP];
    struct rlhf__error unread;
    struct rlhf__text_lines l;
    json_t *out = json_object(), *manifest = NULL, *event = NULL;
    int more = 0;
    rlhf__path_put(path, "%s/manifest.json", run);
    if (rlhf__json_load(path, &manifest, &unread) != RLHF_OK) manifest = NULL;
    put_compute(out, manifest);
    rlhf__path_put(path, "%s/events.jsonl", run);
    if (rlhf__text_lines_open(path, &l, &unread) == RLHF_OK &&
        rlhf__text_lines_next(&l, &more, &unread) == RLHF_OK && more)
        event = rlhf__json_decode(rlhf__buf_text(&l.line), l.line.len, 0, NULL);
    if (json_object_get(event, "machine"))
        json_object_set(out, "machine", json_object_get(event, "machine"));
    rlhf__text_lines_close(&l);
    json_decref(event);
    json_decref(manifest);
    return out;
}

static json_t *verified(const json_t *manifest) {
    json_t *out = json_object();
    struct utsname u;
    struct tm now;
    char text[80];
    const time_t t = time(NULL);
    put_compute(out, manifest);
    json_object_set_new(out, "version", json_string(RLHF_SDK_VERSION));
    if (uname(&u) == 0)
        json_object_set_new(out, "system", json_pack("[s, s, s]", u.sysname, u.release, u.machine));
    json_object_set_new(out, "libc", json_string(gnu_get_libc_version()));
    json_object_set_new(out, "compiler", json_string(__VERSION__));
    if (gmtime_r(&t, &now) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &now) > 0)
        json_object_set_new(out, "time", json_string(text));
    return out;
}

// ---- the receipt ----

static json_t *faults(const struct rlhf__faults *f) {
    json_t *out = json_array();
    for (size_t i = 0; i < f->n && i < MOST_FAULTS; i++)
        json_array_append_new(out, json_pack("{s:I, s:o, s:o, s:o, s:o}", "phase",
                                             (json_int_t)f->item[i].phase, "file",
                                             rlhf__json_text(f->item[i].file), "where",
                                             rlhf__json_text(f->item[i].where), "was",
                                             rlhf__json_text(f->item[i].was), "expected",
                                             rlhf__json_text(f->item[i].expected)));
    return out;
}

const char *rlhf__receipt_digest(const struct rlhf__receipt *r, const char *key) {
    const struct rlhf__chain_line *l =
        rlhf__chain_file_last(r->chain, RLHF__CHAIN_CHECKPOINT, INT64_MAX);
    if (strcmp(key, "seal") == 0) return l ? rlhf__json_text_in(l->value, "seal") : "";
    return rlhf__chain_file_head(r->chain, strcmp(key, "begin") == 0 ? 1 : r->chain->n);
}

static json_t *phases(const struct rlhf__receipt *r) {
    const struct rlhf__chain_line *last =
        rlhf__chain_file_last(r->chain, RLHF__CHAIN_PHASE, INT64_MAX);
    return json_pack("{s:I, s:[I, I], s:I, s:I, s:I, s:I, s:I}", "run",
                     (json_int_t)(last ? last->phase : 0), "asked", (json_int_t)r->first,
                     (json_int_t)r->last, "from_checkpoint", (json_int_t)r->told->from,
                     "recomputed", (json_int_t)r->told->recomputed, "equal",
                     (json_int_t)r->told->equal, "rewards_on_trust",
                     (json_int_t)(r->on_trust ? r->told->recomputed : 0), "environment_on_trust",
                     (json_int_t)(r->answers ? r->told->recomputed : 0));
}

static void digest_of(const json_t *receipt, char hex[RLHF__HEX]) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__sha256 s;
    json_t *v = json_copy((json_t *)(uintptr_t)receipt);
    json_object_del(v, "sha256");
    rlhf__json_write(&text, v, 0);
    rlhf__sha256_init(&s);
    rlhf__sha256_put(&s, text.data, text.len);
    rlhf__sha256_hex(&s, hex);
    rlhf__buf_finish(&text);
    json_decref(v);
}

// Returns false if there is a fault. Otherwise returns true if all phases that were asked for were
// recomputed, and null if some could not be, or if only files were compared.
static json_t *equal(const struct rlhf__receipt *r) {
    if (r->faults->n > 0) return json_false();
    return r->told->recomputed > 0 && !r->told->left ? json_true() : json_null();
}

json_t *rlhf__receipt_json(const struct rlhf__receipt *r) {
    const struct rlhf__chain_line *l =
        rlhf__chain_file_last(r->chain, RLHF__CHAIN_BEGIN, INT64_MAX);
    const json_t *begin = l ? json_object_get(l->value, "begin") : NULL;
    char hex[RLHF__HEX];
    json_t *v = json_pack(
        "{s:s, s:o, s:o, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:O?, s:s?, s:o, s:o}", "format",
        FORMAT, "run", rlhf__json_text(r->run), "equal", equal(r), "arithmetic",
        rlhf__json_text_in(begin, "arithmetic"), "dtype", rlhf__json_text_in(begin, "dtype"),
        "version", rlhf__json_text_in(begin, "version"), "begin", rlhf__receipt_digest(r, "begin"),
        "head", rlhf__receipt_digest(r, "head"), "seal", rlhf__receipt_digest(r, "seal"), "phases",
        phases(r), "faults", faults(r->faults), "rewards_on_trust", r->on_trust,
        "environment_on_trust", r->answers, "made", made(r->dir), "verified",
        verified(r->told->manifest));
    if (!v) return NULL;
    json_object_set_new(v, "not_recomputed",
                        r->told->left ? rlhf__json_text(rlhf__buf_text(&r->told->left_text))
                                      : json_null());
    json_object_set_new(v, "proof", json_string(r->limits ? "limits" : "bits"));
    json_object_set(v, "compared", r->told->compared);
    json_object_set_new(v, "all_faults", json_integer((json_int_t)r->faults->n));
    digest_of(v, hex);
    json_object_set_new(v, "sha256", json_string(hex));
    return v;
}

// ---- files ----

static int ends_in(const char *name, const char *end) {
    const size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

static void page_path(char out[RLHF__PATH_CAP], const char *path) {
    rlhf__path_put(out, "%.*s.html", (int)(strlen(path) - strlen(".json")), path);
}

static rlhf_status is_free(const char *path, struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__error unread;
    if (access(path, F_OK) != 0) return RLHF_OK;
    const int ours = rlhf__file_read(path, MAX_BYTES, &text, &unread) == RLHF_OK &&
                     strstr(rlhf__buf_text(&text), FORMAT) != NULL;
    rlhf__buf_finish(&text);
    if (ours) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "verify: --out would overwrite %s, which is not a receipt; give another name",
                      path);
}

rlhf_status rlhf__receipt_can_write(const char *path, struct rlhf__error *err) {
    char page[RLHF__PATH_CAP];
    if (!ends_in(path, ".json"))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "verify: --out is %s; give a name that ends in .json (the page of the "
                          "same name is written too)",
                          path);
    page_path(page, path);
    RLHF_TRY(is_free(path, err));
    return is_free(page, err);
}

rlhf_status rlhf__receipt_write(const char *path, const json_t *receipt, struct rlhf__error *err) {
    char page[RLHF__PATH_CAP];
    struct rlhf__buf text = RLHF__BUF_INIT;
    page_path(page, path);
    RLHF_TRY(rlhf__json_save_new(NULL, path, json_incref((json_t *)(uintptr_t)receipt), 2, err));
    rlhf__receipt_page(receipt, &text);
    rlhf_status st = rlhf__buf_ok(&text, err);
    if (st == RLHF_OK) st = rlhf__file_write(NULL, page, text.data, text.len, err);
    rlhf__buf_finish(&text);
    return st;
}

static rlhf_status not_a_receipt(const char *path, struct rlhf__error *err) {
    return rlhf__fail(
        err, RLHF_E_INVALID,
        "verify: %s is not a receipt, which is a .json or .html file that `rlhf-host verify "
        "--out` wrote",
        path);
}

// Find the JSON in a page. Returns 0 if the page has none.
static int in_page(const struct rlhf__buf *text, const char **from, size_t *n) {
    const char *begin = strstr(rlhf__buf_text(text), RLHF__RECEIPT_SCRIPT);
    const char *end = begin ? strstr(begin, "</script>") : NULL;
    if (!end) return 0;
    *from = begin + strlen(RLHF__RECEIPT_SCRIPT);
    *n = (size_t)(end - *from);
    return 1;
}

// A receipt is unchanged if its digest is correct and its text is exactly what this program writes.
static int is_unchanged(const json_t *v, const struct rlhf__buf *text, int page) {
    char hex[RLHF__HEX];
    struct rlhf__buf again = RLHF__BUF_INIT;
    digest_of(v, hex);
    if (strcmp(hex, rlhf__json_text_in(v, "sha256")) != 0) return 0;
    if (page) {
        rlhf__receipt_page(v, &again);
    } else {
        rlhf__json_write(&again, v, 2);
        rlhf__buf_putc(&again, '\n');
    }
    const int same = again.len == text->len && memcmp(again.data, text->data, text->len) == 0;
    rlhf__buf_finish(&again);
    return same;
}

rlhf_status rlhf__receipt_read(const char *path, json_t **out, struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    const int page = ends_in(path, ".html");
    *out = NULL;
    RLHF_TRY(rlhf__file_read(path, MAX_BYTES, &text, err));
    const char *from = rlhf__buf_text(&text);
    size_t n = text.len;
    if (!page || in_page(&text, &from, &n))
        *out = rlhf__json_decode(from, n, JSON_REJECT_DUPLICATES, NULL);
    rlhf_status st = RLHF_OK;
    if (strcmp(rlhf__json_text_in(*out, "format"), FORMAT) != 0)
        st = strstr(rlhf__buf_text(&text), FORMAT)
                 ? rlhf__fail(err, RLHF_E_INVALID, "verify: %s was edited: it is no longer JSON",
                              path)
                 : not_a_receipt(path, err);
    else if (!is_unchanged(*out, &text, page))
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "verify: %s was edited: its content does not fit its sha256 %.12s", path,
                        rlhf__json_text_in(*out, "sha256"));
    rlhf__buf_finish(&text);
    if (st == RLHF_OK) return RLHF_OK;
    json_decref(*out);
    *out = NULL;
    return st;
}
