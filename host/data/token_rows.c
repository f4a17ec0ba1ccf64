// token_rows.c: see token_rows.h. Threads take chunks of dataset rows; the chunks are joined in
// their order, so the result does not depend on who did what.
#include "data/token_rows.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_ROWS = 128, MAX_THREADS = 256 };

struct chunk {
    int32_t *len; // [n] tokens of each row made
    int64_t *source;
    size_t n, cap;
    void *ids; // [total], 2 or 4 bytes each
    int64_t total, truncated, dropped;
};

struct job {
    const struct rlhf__dataset *ds;
    const struct rlhf__tokenizer *tok;
    const struct rlhf__token_opts *opts;
    int64_t n_rows, n_chunks;
    struct chunk *chunk;      // [n_chunks]
    int32_t narrow, template; // ids take 2 bytes; the tokenizer frames the text itself
    pthread_t main;
    atomic_llong next, done;
    atomic_ullong bytes; // of the rows and the tokens so far
    atomic_int failed;
    pthread_mutex_t lock; // guards err, err_chunk
    struct rlhf__error *err;
    int64_t err_chunk;
};

static rlhf_status no_memory(struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the tokens of the dataset");
}

static rlhf_status add_row(struct chunk *c, int64_t source, int32_t len, struct rlhf__error *err) {
    if (c->n == c->cap) {
        size_t cap = c->cap ? c->cap * 2 : CHUNK_ROWS;
        int32_t *lens = realloc(c->len, cap * sizeof *lens);
        if (lens) c->len = lens;
        int64_t *sources = realloc(c->source, cap * sizeof *sources);
        if (sources) c->source = sources;
        if (!lens || !sources) return no_memory(err);
        c->cap = cap;
    }
    c->len[c->n] = len;
    c->source[c->n++] = source;
    return RLHF_OK;
}

// All ids of one dataset row behind ids->n: bos, text, eos, cut to what can be used.
static rlhf_status encode_row(const struct job *j, rlhf_str text, struct rlhf__ids *ids, int *cut,
                              struct rlhf__error *err) {
    const struct rlhf__token_opts *o = j->opts;
    size_t max = (size_t)o->max_len, before = ids->n;
    *cut = 0;
    if (o->long_rows == RLHF__LONG_SPLIT)
        return rlhf__tokenizer_encode(j->tok, text, o->encode_flags, 0, ids, err);
    // One token more than fits tells whether the row is cut. A row that is cut has no eos, since
    // its text does not end there; [SEP] stays.
    RLHF_TRY(rlhf__tokenizer_encode(j->tok, text, o->encode_flags & ~(uint32_t)RLHF__ENCODE_EOS,
                                    max + 1, ids, err));
    if (o->encode_flags & RLHF__ENCODE_EOS)
        RLHF_TRY(rlhf__ids_push(ids, rlhf__tokenizer_info(j->tok)->eos, err));
    *cut = ids->n - before > max;
    if (!*cut) return RLHF_OK;
    ids->n = before;
    uint32_t flags = j->template ? o->encode_flags : o->encode_flags & ~(uint32_t)RLHF__ENCODE_EOS;
    return rlhf__tokenizer_encode(j->tok, text, flags, max, ids, err);
}

// Turn the n ids at ids->data[at] into rows; windows that overlap by one token are moved apart.
static rlhf_status cut_row(const struct job *j, struct chunk *c, int64_t source,
                           struct rlhf__ids *ids, size_t at, struct rlhf__error *err) {
    size_t n = ids->n - at, max = (size_t)j->opts->max_len;
    size_t min = j->opts->min_len > 0 ? (size_t)j->opts->min_len : 1;
    if (n <= max) {
        if (n >= min) return add_row(c, source, (int32_t)n, err);
        ids->n = at;
        c->dropped++;
        return RLHF_OK;
    }
    size_t windows = (n - 2) / (max - 1) + 1; // n > max >= 2; the last has 2 tokens or more
    RLHF_TRY(rlhf__ids_reserve(ids, windows, err));
    int32_t *data = ids->data + at;
    size_t end = n + windows - 1; // the last window is moved furthest, so it goes first
    for (size_t w = windows; w-- > 0;) {
        size_t begin = w * (max - 1), len = n - begin < max ? n - begin : max;
        memmove(data + w * max, data + begin, len * sizeof *data);
    }
    for (size_t w = 0; w < windows; w++) {
        size_t len = w + 1 < windows ? max : end - w * max;
        if (len < min) { // only the last one can be short
            end -= len;
            c->dropped++;
        } else {
            RLHF_TRY(add_row(c, source, (int32_t)len, err));
        }
    }
    ids->n = at + end;
    return RLHF_OK;
}

static rlhf_status store(const struct job *j, struct chunk *c, const struct rlhf__ids *ids,
                         struct rlhf__error *err) {
    size_t width = j->narrow ? sizeof(uint16_t) : sizeof(int32_t);
    c->total = (int64_t)ids->n;
    c->ids = malloc((ids->n ? ids->n : 1) * width);
    if (!c->ids) return no_memory(err);
    if (!j->narrow) {
        if (ids->n) memcpy(c->ids, ids->data, ids->n * width);
        return RLHF_OK;
    }
    uint16_t *out = c->ids;
    for (size_t i = 0; i < ids->n; i++)
        out[i] = (uint16_t)ids->data[i];
    return RLHF_OK;
}

static const char *path_of(const struct job *j, int64_t row) {
    return rlhf__dataset_path(j->ds, rlhf__dataset_row(j->ds, row).file);
}

static rlhf_status do_chunk(struct job *j, int64_t k, struct rlhf__ids *ids,
                            struct rlhf__error *err) {
    struct chunk *c = &j->chunk[k];
    int64_t end = (k + 1) * CHUNK_ROWS < j->n_rows ? (k + 1) * CHUNK_ROWS : j->n_rows;
    ids->n = 0;
    for (int64_t i = k * CHUNK_ROWS; i < end; i++) {
        rlhf_str text = rlhf__dataset_row(j->ds, i).text[j->opts->field];
        size_t at = ids->n;
        int cut = 0;
        RLHF_TRY(
            rlhf__loading_check(j->opts->loading, atomic_load(&j->bytes), path_of(j, i), 0, err));
        rlhf_status st = text.ptr ? encode_row(j, text, ids, &cut, err)
                                  : rlhf__fail(err, RLHF_E_INVALID, "the row has no such field");
        if (st < 0) {
            char where[512];
            rlhf__dataset_where(j->ds, i, where, sizeof where);
            rlhf__error_context(err, "%s", where);
            return st;
        }
        c->truncated += cut;
        RLHF_TRY(cut_row(j, c, i, ids, at, err));
    }
    RLHF_TRY(store(j, c, ids, err));
    uint64_t width = j->narrow ? sizeof(uint16_t) : sizeof(int32_t);
    atomic_fetch_add(&j->bytes, ids->n * width + c->n * (sizeof *c->len + sizeof *c->source));
    int64_t done = atomic_fetch_add(&j->done, end - k * CHUNK_ROWS) + end - k * CHUNK_ROWS;
    if (pthread_equal(pthread_self(), j->main) && j->opts->loading)
        rlhf__watch_seen(j->opts->loading->watch, "tokenising rows", done, j->n_rows);
    return rlhf__loading_check(j->opts->loading, atomic_load(&j->bytes), path_of(j, k * CHUNK_ROWS),
                               0, err);
}

static void *work(void *job_) {
    struct job *j = job_;
    struct rlhf__ids ids = {0};
    struct rlhf__error err = {0};
    for (;;) {
        int64_t k = atomic_fetch_add(&j->next, 1);
        if (k >= j->n_chunks || atomic_load(&j->failed)) break;
        if (do_chunk(j, k, &ids, &err) >= 0) continue;
        pthread_mutex_lock(&j->lock);
        if (!atomic_load(&j->failed) || k < j->err_chunk) {
            if (j->err) *j->err = err;
            j->err_chunk = k;
        }
        atomic_store(&j->failed, err.code);
        pthread_mutex_unlock(&j->lock);
        break;
    }
    rlhf__ids_finish(&ids);
    return NULL;
}

static void run_threads(struct job *j) {
    pthread_t thread[MAX_THREADS];
    long wanted = j->opts->threads > 0 ? j->opts->threads : sysconf(_SC_NPROCESSORS_ONLN);
    if (wanted > j->n_chunks) wanted = (long)j->n_chunks;
    if (wanted > MAX_THREADS) wanted = MAX_THREADS;
    int started = 0;
    for (long i = 1; i < wanted; i++)
        if (!pthread_create(&thread[started], NULL, work, j)) started++;
    work(j);
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
}

static rlhf_status allocate(struct rlhf__token_rows *out, int narrow, struct rlhf__error *err) {
    size_t n = (size_t)out->n, total = (size_t)(out->total ? out->total : 1);
    out->offset = malloc((n + 1) * sizeof *out->offset);
    out->source = malloc((n + 1) * sizeof *out->source);
    if (narrow)
        out->ids16 = malloc(total * sizeof *out->ids16);
    else
        out->ids32 = malloc(total * sizeof *out->ids32);
    return out->offset && out->source && (out->ids16 || out->ids32) ? RLHF_OK : no_memory(err);
}

static void free_chunk(struct chunk *c) {
    free(c->len);
    free(c->source);
    free(c->ids);
    *c = (struct chunk){0};
}

static rlhf_status join(struct rlhf__token_rows *out, struct job *j, struct rlhf__error *err) {
    for (int64_t k = 0; k < j->n_chunks; k++) {
        out->n += (int64_t)j->chunk[k].n;
        out->total += j->chunk[k].total;
        out->truncated += j->chunk[k].truncated;
        out->dropped += j->chunk[k].dropped;
    }
    if (!out->n)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "none of the %lld rows of the data has the %d tokens a row needs",
                          (long long)j->n_rows, (int)j->opts->min_len);
    RLHF_TRY(allocate(out, j->narrow, err));
    int64_t row = 0, at = 0;
    for (int64_t k = 0; k < j->n_chunks; k++) {
        struct chunk *c = &j->chunk[k];
        size_t total = (size_t)c->total;
        if (total && j->narrow) memcpy(out->ids16 + at, c->ids, total * sizeof *out->ids16);
        if (total && !j->narrow) memcpy(out->ids32 + at, c->ids, total * sizeof *out->ids32);
        for (size_t i = 0; i < c->n; i++, row++) {
            out->source[row] = c->source[i];
            out->offset[row] = at;
            at += c->len[i];
        }
        free_chunk(c);
    }
    out->offset[out->n] = at;
    return RLHF_OK;
}

static rlhf_status check(const struct rlhf__tokenizer *tok, const struct rlhf__token_opts *o,
                         struct rlhf__error *err) {
    const struct rlhf__tokenizer_info *info = rlhf__tokenizer_info(tok);
    int least = o->long_rows == RLHF__LONG_SPLIT ? 2 : 1;
    if (o->max_len < least || o->field < 0 || o->field >= RLHF__N_TEXT_FIELDS)
        return rlhf__fail(err, RLHF_E_INVALID, "rows of at most %d tokens: allowed: %d or more",
                          (int)o->max_len, least);
    if ((o->encode_flags & RLHF__ENCODE_EOS) && info->eos < 0)
        return rlhf__fail(err, RLHF_E_INVALID, "the tokenizer has no eos token");
    return RLHF_OK;
}

rlhf_status rlhf__token_rows_init(struct rlhf__token_rows *out, const struct rlhf__dataset *ds,
                                  const struct rlhf__tokenizer *tok,
                                  const struct rlhf__token_opts *opts, struct rlhf__error *err) {
    *out = (struct rlhf__token_rows){0};
    RLHF_TRY(check(tok, opts, err));
    const struct rlhf__tokenizer_info *info = rlhf__tokenizer_info(tok);
    struct job j = {.ds = ds, .tok = tok, .opts = opts, .err = err, .main = pthread_self()};
    j.bytes = rlhf__dataset_bytes(ds);
    j.n_rows = rlhf__dataset_rows(ds);
    j.n_chunks = (j.n_rows + CHUNK_ROWS - 1) / CHUNK_ROWS;
    j.narrow = info->n_vocab <= 65536;
    j.template = info->kind == RLHF__TOKENIZER_WORDPIECE;
    j.chunk = calloc((size_t)j.n_chunks, sizeof *j.chunk);
    if (!j.chunk) return no_memory(err);
    pthread_mutex_init(&j.lock, NULL);
    run_threads(&j);
    rlhf_status st = (rlhf_status)atomic_load(&j.failed);
    if (st == RLHF_OK) st = join(out, &j, err);
    pthread_mutex_destroy(&j.lock);
    for (int64_t k = 0; k < j.n_chunks; k++)
        free_chunk(&j.chunk[k]);
    free(j.chunk);
    if (st < 0) rlhf__token_rows_finish(out);
    return st;
}

void rlhf__token_rows_finish(struct rlhf__token_rows *rows) {
    free(rows->offset);
    free(rows->source);
    free(rows->ids16);
    free(rows->ids32);
    *rows = (struct rlhf__token_rows){0};
}

void rlhf__token_rows_copy(const struct rlhf__token_rows *rows, int64_t i, int32_t *ids) {
    int64_t at = rows->offset[i], n = rows->offset[i + 1] - at;
    for (int64_t k = 0; k < n; k++)
        ids[k] = rows->ids16 ? (int32_t)rows->ids16[at + k] : rows->ids32[at + k];
}
