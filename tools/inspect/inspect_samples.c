// inspect_samples.c: see inspect_samples.h.
#include "inspect/inspect_samples.h"

#include "base/json.h"
#include "base/printable.h"
#include "cmd/program.h"
#include "sample/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GAP = 3 }; // columns between the two texts

static rlhf_status encode(const struct rlhf__samples_request *q, struct rlhf__ids *ids,
                          struct rlhf__error *err) {
    const struct rlhf__model *m = q->model[0];
    const rlhf_str text = {q->prompt, strlen(q->prompt)};
    uint32_t flags = RLHF__ENCODE_TEMPLATE;
    if (m->info.n_vocab != q->model[1]->info.n_vocab ||
        !rlhf__tokenizer_equal(m->tok, q->model[1]->tok))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the models have different tokenizers: the tokens of '%s' are not those "
                          "of '%s'",
                          m->dir, q->model[1]->dir);
    if (q->bos && !rlhf__tokenizer_has_bos(m->tok)) flags |= RLHF__ENCODE_BOS;
    RLHF_TRY(rlhf__tokenizer_encode(m->tok, text, flags, 0, ids, err));
    if (ids->n == 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "--prompt is empty; at least one token is needed (--bos gives one)");
    for (int k = 0; k < 2; k++)
        if ((int64_t)ids->n + q->max_new > q->model[k]->info.n_ctx)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "--prompt has %zu tokens; with --max-new %lld that is more than the "
                              "context of '%s', %d tokens",
                              ids->n, (long long)q->max_new, q->model[k]->dir,
                              q->model[k]->info.n_ctx);
    return RLHF_OK;
}

static rlhf_status draw(const struct rlhf__env *env, const struct rlhf__samples_request *q,
                        const struct rlhf__model *m, const struct rlhf__ids *ids,
                        struct rlhf__gen_result *out, struct rlhf__error *err) {
    const size_t n = (size_t)q->n;
    const rlhf_dist dist = RLHF_DIST(1 / q->temperature, 1, 0, 0);
    const int32_t **prompt = malloc(n * sizeof *prompt);
    int32_t *len = malloc(n * sizeof *len);
    rlhf_gen *cache = NULL;
    rlhf_status st = RLHF_OK;
    if (!prompt || !len) st = RLHF__NOMEM(err, "out of memory for %zu texts", n);
    for (size_t i = 0; st == RLHF_OK && i < n; i++) {
        prompt[i] = ids->data;
        len[i] = (int32_t)ids->n;
    }
    const uint32_t wish = rlhf__compute_slots(m->compute, 0);
    const struct rlhf__gen_request g = {.n = (uint32_t)n,
                                        .slots = n < wish ? (uint32_t)n : wish,
                                        .prompt = prompt,
                                        .prompt_len = len,
                                        .max_new = (int32_t)q->max_new,
                                        .ends = &m->ends,
                                        .dist = &dist,
                                        .logp_dist = &dist,
                                        .seed = (uint64_t)q->seed,
                                        .stream = rlhf_rng_stream("inspect"),
                                        .cancelled = env->cancelled};
    if (st == RLHF_OK)
        st =
            rlhf__model_gen_open(m, g.slots, (uint32_t)((int64_t)ids->n + q->max_new), &cache, err);
    if (st == RLHF_OK) st = rlhf__generate(m, cache, &g, out, err);
    rlhf__model_gen_close(m, cache);
    free(prompt);
    free(len);
    return st;
}

static char *text_of(const struct rlhf__model *m, const struct rlhf__gen_result *r, size_t i,
                     size_t *len) {
    return rlhf__tokenizer_text(m->tok, r->ids + i * (size_t)r->stride, (size_t)r->len[i],
                                RLHF__DECODE_SKIP_SPECIAL, len);
}

// ---- output ----

// Write the first line of *rest into `columns` columns, and remove it from *rest.
static void put_cell(struct rlhf__buf *out, rlhf_str *rest, int columns) {
    const size_t n = rest->len ? rlhf__wrap_at(*rest, columns) : 0;
    const int used = rlhf__put_clipped(out, (rlhf_str){rest->ptr, n}, columns);
    for (int i = used; i < columns + GAP; i++)
        rlhf__buf_putc(out, ' ');
    rest->ptr += n;
    rest->len -= n;
    while (rest->len && *rest->ptr == ' ') {
        rest->ptr++;
        rest->len--;
    }
}

static void put_pair(struct rlhf__buf *out, rlhf_str a, rlhf_str b, int columns) {
    while (a.len || b.len) {
        put_cell(out, &a, columns);
        put_cell(out, &b, columns);
        while (out->len && out->data[out->len - 1] == ' ')
            out->data[--out->len] = '\0';
        rlhf__buf_putc(out, '\n');
    }
}

// One text for the terminal, in one line.
static rlhf_str one_line(struct rlhf__buf *room, const char *text, size_t len) {
    rlhf__buf_clear(room);
    rlhf__put_printable(room, text ? text : "", text ? len : 0, "");
    return (rlhf_str){rlhf__buf_text(room), room->len};
}

static void put_texts(const struct rlhf__samples_request *q, const struct rlhf__gen_result r[2],
                      struct rlhf__buf *out) {
    const int columns = (rlhf__terminal_width(STDOUT_FILENO, 100) - GAP) / 2;
    const int each = columns < 20 ? 20 : columns;
    struct rlhf__buf room[2] = {RLHF__BUF_INIT, RLHF__BUF_INIT};
    put_pair(out, (rlhf_str){q->name[0], strlen(q->name[0])},
             (rlhf_str){q->name[1], strlen(q->name[1])}, each);
    for (size_t i = 0; i < (size_t)q->n; i++) {
        rlhf_str line[2];
        for (int k = 0; k < 2; k++) {
            size_t len = 0;
            char *text = text_of(q->model[k], &r[k], i, &len);
            if (!text) out->bad = 1;
            line[k] = one_line(&room[k], text, len);
            free(text);
        }
        rlhf__buf_putc(out, '\n');
        put_pair(out, line[0], line[1], each);
    }
    rlhf__buf_finish(&room[0]);
    rlhf__buf_finish(&room[1]);
}

static void put_json(const struct rlhf__samples_request *q, const struct rlhf__gen_result r[2],
                     struct rlhf__buf *out) {
    static const char *const key[] = {"base", "tuned"};
    rlhf__buf_puts(out, "{\"version\":1,\"prompt\":");
    rlhf__json_write_string(out, q->prompt, strlen(q->prompt));
    rlhf__buf_puts(out, ",\"samples\":[");
    for (size_t i = 0; i < (size_t)q->n; i++) {
        for (int k = 0; k < 2; k++) {
            size_t len = 0;
            char *text = text_of(q->model[k], &r[k], i, &len);
            rlhf__buf_printf(out, "%s\"%s\":", k ? "," : i ? ",{" : "{", key[k]);
            if (text)
                rlhf__json_write_string(out, text, len);
            else
                out->bad = 1;
            free(text);
        }
        rlhf__buf_putc(out, '}');
    }
    rlhf__buf_puts(out, "]}\n");
}

rlhf_status rlhf__inspect_samples(const struct rlhf__env *env,
                                  const struct rlhf__samples_request *q, struct rlhf__error *err) {
    struct rlhf__ids ids = {0};
    struct rlhf__gen_result r[2] = {{0}, {0}};
    struct rlhf__buf out = RLHF__BUF_INIT;
    rlhf_status st = encode(q, &ids, err);
    for (int k = 0; st == RLHF_OK && k < 2; k++)
        st = draw(env, q, q->model[k], &ids, &r[k], err);
    if (st == RLHF_OK) {
        if (q->json)
            put_json(q, r, &out);
        else
            put_texts(q, r, &out);
        st = rlhf__buf_ok(&out, err);
    }
    if (st == RLHF_OK) {
        fwrite(rlhf__buf_text(&out), 1, out.len, stdout);
        st = rlhf__print_flush(err);
    }
    rlhf__gen_result_finish(&r[0]);
    rlhf__gen_result_finish(&r[1]);
    rlhf__buf_finish(&out);
    rlhf__ids_finish(&ids);
    return st;
}
