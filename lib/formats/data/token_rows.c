// token_rows.c: see token_rows.h. Each thread takes chunks of the dataset's rows. The chunks are
// joined in their order, so the result does not depend on the number of threads.
#include "data/token_rows.h"

#include "data/token_chunk.h"
#include "tokenizer/tokenizer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_ROWS = 128, MAX_THREADS = 256 };

static rlhf_status no_memory(struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the tokens of the dataset");
}

// ---- threads ----

struct job {
    const struct rlhf__dataset *ds;
    struct rlhf__token_cut how;
    int64_t n_rows, n_chunks;
    struct rlhf__token_chunk *chunk; // [n_chunks]
    pthread_t main;
    atomic_llong next, done;
    atomic_ullong bytes; // used by the rows and the tokens so far
    atomic_int failed;
    pthread_mutex_t lock; // guards err, err_chunk
    struct rlhf__error *err;
    int64_t err_chunk;
};

static const char *path_of(const struct job *j, int64_t row) {
    return rlhf__dataset_path(j->ds, rlhf__dataset_row(j->ds, row).file);
}

// If bad rows are left out and `err` is about one, count it in the chunk and return RLHF_OK.
static rlhf_status leave_out(const struct job *j, struct rlhf__token_chunk *c, rlhf_status st,
                             const struct rlhf__error *err) {
    const struct rlhf__loading *all = j->how.opts->loading;
    int left_out = 0;
    if (st != RLHF_E_INVALID || !all || !all->bad) return st;
    if (!c->bad) c->bad = calloc(1, sizeof *c->bad);
    if (!c->bad) return st;
    const struct rlhf__loading own = {.bad = c->bad};
    return rlhf__bad_row(&own, st, &left_out, err);
}

static rlhf_status do_chunk(struct job *j, int64_t k, struct rlhf__ids *ids,
                            struct rlhf__error *err) {
    struct rlhf__token_chunk *c = &j->chunk[k];
    int64_t end = (k + 1) * CHUNK_ROWS < j->n_rows ? (k + 1) * CHUNK_ROWS : j->n_rows;
    ids->n = 0;
    for (int64_t i = k * CHUNK_ROWS; i < end; i++) {
        const struct rlhf__data_row row = rlhf__dataset_row(j->ds, i);
        RLHF_TRY(rlhf__loading_check(j->how.opts->loading, atomic_load(&j->bytes), path_of(j, i), 0,
                                     err));
        const size_t before = ids->n;
        rlhf_status st = rlhf__token_chunk_add(c, &j->how, i, &row, ids, err);
        if (st < 0) {
            char where[512];
            rlhf__dataset_where(j->ds, i, where, sizeof where);
            rlhf__error_context(err, "%s", where);
            ids->n = before;
            RLHF_TRY(leave_out(j, c, st, err));
        }
    }
    RLHF_TRY(rlhf__token_chunk_store(c, &j->how, ids, err));
    uint64_t width = (j->how.narrow ? sizeof(uint16_t) : sizeof(int32_t)) + (c->says != NULL);
    atomic_fetch_add(&j->bytes, ids->n * width + c->n * (sizeof *c->len + sizeof *c->source));
    int64_t done = atomic_fetch_add(&j->done, end - k * CHUNK_ROWS) + end - k * CHUNK_ROWS;
    if (pthread_equal(pthread_self(), j->main) && j->how.opts->loading)
        rlhf__watch_seen(j->how.opts->loading->watch, "tokenising rows", done, j->n_rows);
    return rlhf__loading_check(j->how.opts->loading, atomic_load(&j->bytes),
                               path_of(j, k * CHUNK_ROWS), 0, err);
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
    long wanted = j->how.opts->threads > 0 ? j->how.opts->threads : sysconf(_SC_NPROCESSORS_ONLN);
    if (wanted > j->n_chunks) wanted = (long)j->n_chunks;
    if (wanted > MAX_THREADS) wanted = MAX_THREADS;
    int started = 0;
    for (long i = 1; i < wanted; i++)
        if (!pthread_create(&thread[started], NULL, work, j)) started++;
    work(j);
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
}

// ---- joining the chunks ----

static rlhf_status allocate(struct rlhf__token_rows *out, int narrow, int says,
                            struct rlhf__error *err) {
    size_t n = (size_t)out->n, total = (size_t)(out->total ? out->total : 1);
    out->offset = malloc((n + 1) * sizeof *out->offset);
    out->source = malloc((n + 1) * sizeof *out->source);
    if (narrow)
        out->ids16 = malloc(total * sizeof *out->ids16);
    else
        out->ids32 = malloc(total * sizeof *out->ids32);
    if (says) out->says = malloc(total);
    return out->offset && out->source && (out->ids16 || out->ids32) && (!says || out->says)
               ? RLHF_OK
               : no_memory(err);
}

static rlhf_status all_too_long(const struct rlhf__token_rows *out, const struct job *j,
                                struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s: the prompt is longer than the %d tokens of a row (data.max_tokens, or "
                      "else the model's context), so no token of the answer is left; of %lld row%s "
                      "none can be used",
                      out->first_unreached, (int)j->how.opts->max_len, (long long)j->n_rows,
                      j->n_rows == 1 ? "" : "s");
}

static rlhf_status join(struct rlhf__token_rows *out, struct job *j, struct rlhf__error *err) {
    for (int64_t k = 0; k < j->n_chunks; k++) {
        out->n += (int64_t)j->chunk[k].n;
        out->total += j->chunk[k].total;
        out->truncated += j->chunk[k].truncated;
        out->dropped += j->chunk[k].dropped;
        out->silent += j->chunk[k].silent;
        out->chats += j->chunk[k].chats;
        if (!out->unreached && j->chunk[k].unreached)
            rlhf__dataset_where(j->ds, j->chunk[k].first_unreached, out->first_unreached,
                                sizeof out->first_unreached);
        out->unreached += j->chunk[k].unreached;
        if (j->chunk[k].bad) rlhf__bad_rows_add(j->how.opts->loading->bad, j->chunk[k].bad);
    }
    if (!out->n && out->unreached) return all_too_long(out, j, err);
    if (!out->n && out->silent)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the assistant says nothing in the %lld rows of the data",
                          (long long)j->n_rows);
    if (!out->n) {
        rlhf__fail(err, RLHF_E_INVALID,
                   "none of the %lld rows of the data has the %d tokens a row needs",
                   (long long)j->n_rows, (int)j->how.opts->min_len);
        return rlhf__bad_rows_context(j->how.opts->loading, err);
    }
    RLHF_TRY(allocate(out, j->how.narrow, j->how.opts->says, err));
    int64_t row = 0, at = 0;
    for (int64_t k = 0; k < j->n_chunks; k++) {
        struct rlhf__token_chunk *c = &j->chunk[k];
        size_t total = (size_t)c->total;
        if (total && j->how.narrow) memcpy(out->ids16 + at, c->ids, total * sizeof *out->ids16);
        if (total && !j->how.narrow) memcpy(out->ids32 + at, c->ids, total * sizeof *out->ids32);
        if (total && c->says) memcpy(out->says + at, c->says, total);
        for (size_t i = 0; i < c->n; i++, row++) {
            out->source[row] = c->source[i];
            out->offset[row] = at;
            at += c->len[i];
        }
        rlhf__token_chunk_finish(c);
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
    struct job j = {
        .ds = ds, .how = {.tok = tok, .opts = opts}, .err = err, .main = pthread_self()};
    j.bytes = rlhf__dataset_bytes(ds);
    j.n_rows = rlhf__dataset_rows(ds);
    j.n_chunks = (j.n_rows + CHUNK_ROWS - 1) / CHUNK_ROWS;
    j.how.narrow = info->n_vocab <= 65536;
    j.how.template = info->kind == RLHF__TOKENIZER_WORDPIECE;
    j.chunk = calloc((size_t)j.n_chunks, sizeof *j.chunk);
    if (!j.chunk) return no_memory(err);
    pthread_mutex_init(&j.lock, NULL);
    run_threads(&j);
    rlhf_status st = (rlhf_status)atomic_load(&j.failed);
    if (st == RLHF_OK) st = join(out, &j, err);
    pthread_mutex_destroy(&j.lock);
    for (int64_t k = 0; k < j.n_chunks; k++)
        rlhf__token_chunk_finish(&j.chunk[k]);
    free(j.chunk);
    if (st < 0) rlhf__token_rows_finish(out);
    return st;
}

void rlhf__token_rows_finish(struct rlhf__token_rows *rows) {
    free(rows->offset);
    free(rows->source);
    free(rows->ids16);
    free(rows->ids32);
    free(rows->says);
    *rows = (struct rlhf__token_rows){0};
}

void rlhf__token_rows_copy(const struct rlhf__token_rows *rows, int64_t i, int32_t *ids) {
    int64_t at = rows->offset[i], n = rows->offset[i + 1] - at;
    for (int64_t k = 0; k < n; k++)
        ids[k] = rows->ids16 ? (int32_t)rows->ids16[at + k] : rows->ids32[at + k];
}
