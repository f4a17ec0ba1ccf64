// token_rows.c: see token_rows.h. Each thread takes chunks of the dataset's rows. The chunks are
// joined in their order, so the result does not depend on the number of threads.
#include "data/token_rows.h"

#include "text/tokenizer.h"
#include "turns/conversation.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_ROWS = 128, MAX_THREADS = 256, FIRST_ROWS = 128 };

// How texts become rows of tokens. All pointers are borrowed.
struct cut {
    const struct rlhf__tokenizer *tok;
    const struct rlhf__token_opts *opts;
    int32_t narrow, template; // 1: ids take 2 bytes; 1: the tokenizer adds special tokens
};

// The tokens of some consecutive rows of the dataset.
struct chunk {
    int32_t *len;    // [n] number of tokens of each row made
    int64_t *source; // [n] the dataset row that it was made from
    size_t n, cap;
    void *ids;     // [total] of 2 or 4 bytes; set by chunk_store
    uint8_t *says; // [total] if opts->says; also set by chunk_store
    int64_t total, truncated, dropped, silent, chats;
    int64_t unreached, first_unreached; // see struct rlhf__token_rows
};

static rlhf_status no_memory(struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the tokens of the dataset");
}

// ---- a chunk ----

static rlhf_status add_row(struct chunk *c, int64_t source, int32_t len, struct rlhf__error *err) {
    if (c->n == c->cap) {
        size_t cap = c->cap ? c->cap * 2 : FIRST_ROWS;
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

// Mark every id from index `from` on as the assistant's.
static void mark(struct rlhf__ids *ids, size_t from) {
    for (size_t i = from; i < ids->n; i++)
        ids->data[i] |= RLHF__TOKEN_SAYS;
}

rlhf_status rlhf__token_completion(const struct rlhf__tokenizer *tok,
                                   const struct rlhf__data_row *row, uint32_t flags,
                                   struct rlhf__ids *ids, struct rlhf__error *err) {
    RLHF_TRY(rlhf__tokenizer_encode(tok, row->text[RLHF__FIELD_PROMPT], flags & RLHF__ENCODE_BOS, 0,
                                    ids, err));
    const size_t from = ids->n;
    RLHF_TRY(rlhf__tokenizer_encode(tok, row->text[RLHF__FIELD_CHOSEN], 0, 0, ids, err));
    if (flags & RLHF__ENCODE_EOS)
        RLHF_TRY(rlhf__ids_push(ids, rlhf__tokenizer_info(tok)->eos, err));
    mark(ids, from);
    return RLHF_OK;
}

rlhf_status rlhf__token_completion_chat(const struct rlhf__tokenizer *tok,
                                        const struct rlhf__messages *m, size_t asked,
                                        struct rlhf__ids *ids, struct rlhf__error *err) {
    const struct rlhf__messages prompt = {.item = m->item, .n = asked, .tools = m->tools};
    const struct rlhf__messages answer = {.item = m->item + asked, .n = m->n - asked};
    struct rlhf__ids own = {0}, rest = {0};
    rlhf_status st = rlhf__conversation_encode(tok, &prompt, 1, &own, NULL, err);
    if (st == RLHF_OK)
        st = rlhf__conversation_answer(tok, &prompt, &answer, own.data, own.n, &rest, err);
    mark(&rest, 0);
    for (size_t i = 0; st == RLHF_OK && i < own.n + rest.n; i++)
        st = rlhf__ids_push(ids, i < own.n ? own.data[i] : rest.data[i - own.n], err);
    rlhf__ids_finish(&own);
    rlhf__ids_finish(&rest);
    return st;
}

// Append all ids of one dataset row to ids: bos, text and eos, cut to the usable length.
static rlhf_status encode_row(const struct cut *how, rlhf_str text, struct rlhf__ids *ids, int *cut,
                              struct rlhf__error *err) {
    const struct rlhf__token_opts *o = how->opts;
    size_t max = (size_t)o->max_len, before = ids->n;
    *cut = 0;
    if (o->long_rows == RLHF__LONG_SPLIT)
        return rlhf__tokenizer_encode(how->tok, text, o->encode_flags, 0, ids, err);
    // Encode one token more than fits, to find out whether the row must be cut. The text of a cut
    // row does not end at the cut, so the row does not get eos. It does get [SEP].
    RLHF_TRY(rlhf__tokenizer_encode(how->tok, text, o->encode_flags & ~(uint32_t)RLHF__ENCODE_EOS,
                                    max + 1, ids, err));
    if (o->encode_flags & RLHF__ENCODE_EOS)
        RLHF_TRY(rlhf__ids_push(ids, rlhf__tokenizer_info(how->tok)->eos, err));
    *cut = ids->n - before > max;
    if (!*cut) return RLHF_OK;
    ids->n = before;
    uint32_t flags =
        how->template ? o->encode_flags : o->encode_flags & ~(uint32_t)RLHF__ENCODE_EOS;
    return rlhf__tokenizer_encode(how->tok, text, flags, max, ids, err);
}

// Append the ids of a conversation, with RLHF__TOKEN_SAYS if the marks are requested.
static rlhf_status encode_messages(const struct cut *how, const struct rlhf__data_row *row,
                                   struct rlhf__ids *ids, int *cut, struct rlhf__error *err) {
    struct rlhf__messages m = {0};
    struct rlhf__buf says = RLHF__BUF_INIT;
    json_t *held = NULL;
    const int marked = how->opts->says == RLHF__SAYS_ASSISTANT;
    size_t before = ids->n, max = (size_t)how->opts->max_len;
    rlhf_status st = rlhf__data_row_messages(row, &held, &m, err);
    if (st == RLHF_OK && row->asked > 0)
        st = rlhf__token_completion_chat(how->tok, &m, (size_t)row->asked, ids, err);
    else if (st == RLHF_OK)
        st = rlhf__conversation_encode(how->tok, &m, 0, ids, marked ? &says : NULL, err);
    for (size_t i = 0; st == RLHF_OK && i < says.len; i++)
        if (says.data[i]) ids->data[before + i] |= RLHF__TOKEN_SAYS;
    *cut = how->opts->long_rows != RLHF__LONG_SPLIT && ids->n - before > max;
    if (*cut) ids->n = before + max;
    rlhf__messages_finish(&m);
    rlhf__buf_free(&says);
    json_decref(held);
    return st;
}

// 1 if any token after the first is marked as the assistant's, or if marks are not requested.
static int has_says(const struct cut *how, const int32_t *ids, size_t n) {
    int found = !how->opts->says;
    for (size_t i = 1; i < n && !found; i++)
        found = (ids[i] & RLHF__TOKEN_SAYS) != 0;
    return found;
}

// Turns the n ids at ids->data[at] into rows. If there are more than max_len ids, they become
// windows that overlap by one token. First each such token is duplicated, so that each window has a
// copy.
static rlhf_status cut_row(const struct cut *how, struct chunk *c, int64_t source,
                           struct rlhf__ids *ids, size_t at, struct rlhf__error *err) {
    size_t n = ids->n - at, max = (size_t)how->opts->max_len;
    size_t min = how->opts->min_len > 0 ? (size_t)how->opts->min_len : 1;
    if (n <= max) {
        const int says = n > 0 && has_says(how, ids->data + at, n); // without ids, data is NULL
        if (n >= min && says) return add_row(c, source, (int32_t)n, err);
        ids->n = at;
        c->dropped += n < min;
        c->silent += n >= min;
        return RLHF_OK;
    }
    size_t windows = (n - 2) / (max - 1) + 1; // n > max >= 2: the last has at least 2 tokens
    RLHF_TRY(rlhf__ids_reserve(ids, windows, err));
    int32_t *data = ids->data + at;
    size_t kept = 0, end = n + windows - 1; // start with the last window, which moves furthest
    for (size_t w = windows; w-- > 0;) {
        size_t begin = w * (max - 1), len = n - begin < max ? n - begin : max;
        memmove(data + w * max, data + begin, len * sizeof *data);
    }
    for (size_t w = 0; w < windows; w++) {
        size_t len = w + 1 < windows ? max : end - w * max;
        const int32_t *window = data + w * max;
        if (len < min || !has_says(how, window, len)) { // only the last window can be short
            c->dropped += len < min;
            c->silent += len >= min;
            continue;
        }
        memmove(data + kept, window, len * sizeof *data);
        kept += len;
        RLHF_TRY(add_row(c, source, (int32_t)len, err));
    }
    ids->n = at + kept;
    return RLHF_OK;
}

static rlhf_status encode_text(const struct cut *how, const struct rlhf__data_row *row,
                               struct rlhf__ids *ids, int *cut, struct rlhf__error *err) {
    rlhf_str text = row->text[how->opts->field];
    if (!text.ptr) return rlhf__fail(err, RLHF_E_INVALID, "the row has no such field");
    if (how->opts->says == RLHF__SAYS_ASSISTANT)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the row is a text, and data.assistant_only is for rows with messages");
    return encode_row(how, text, ids, cut, err);
}

// Encodes a prompt and a completion. As for a text, a cut row does not get eos.
static rlhf_status encode_pair(const struct cut *how, const struct rlhf__data_row *row,
                               struct rlhf__ids *ids, int *cut, struct rlhf__error *err) {
    const size_t before = ids->n, max = (size_t)how->opts->max_len;
    RLHF_TRY(rlhf__token_completion(how->tok, row, how->opts->encode_flags, ids, err));
    *cut = how->opts->long_rows != RLHF__LONG_SPLIT && ids->n - before > max;
    if (*cut) ids->n = before + max;
    return RLHF_OK;
}

// Append the ids of row `source` to *ids, and append the rows made from them to the chunk. Errors:
// RLHF_E_NOMEM, RLHF_E_INVALID (no such field; messages that cannot be rendered).
static rlhf_status chunk_add(struct chunk *c, const struct cut *how, int64_t source,
                             const struct rlhf__data_row *row, struct rlhf__ids *ids,
                             struct rlhf__error *err) {
    size_t at = ids->n;
    int cut = 0, chat = row->messages.ptr != NULL;
    if (rlhf__data_row_is_pair(row))
        RLHF_TRY(encode_pair(how, row, ids, &cut, err));
    else
        RLHF_TRY(chat ? encode_messages(how, row, ids, &cut, err)
                      : encode_text(how, row, ids, &cut, err));
    if (how->opts->says == RLHF__SAYS_COMPLETION && !row->asked && !rlhf__data_row_is_pair(row))
        mark(ids, at);
    c->chats += chat;
    if (cut && !has_says(how, ids->data + at, ids->n - at)) {
        if (c->unreached++ == 0) c->first_unreached = source;
        ids->n = at;
        return RLHF_OK;
    }
    c->truncated += cut;
    return cut_row(how, c, source, ids, at, err);
}

// Copy the ids of all rows to the chunk. Called once, after the last row. Clears RLHF__TOKEN_SAYS
// in *ids.
static rlhf_status chunk_store(struct chunk *c, const struct cut *how, struct rlhf__ids *ids,
                               struct rlhf__error *err) {
    size_t width = how->narrow ? sizeof(uint16_t) : sizeof(int32_t);
    c->total = (int64_t)ids->n;
    c->ids = malloc((ids->n ? ids->n : 1) * width);
    if (how->opts->says) c->says = malloc(ids->n ? ids->n : 1);
    if (!c->ids || (how->opts->says && !c->says)) return no_memory(err);
    for (size_t i = 0; c->says && i < ids->n; i++) {
        c->says[i] = (ids->data[i] & RLHF__TOKEN_SAYS) != 0;
        ids->data[i] &= ~RLHF__TOKEN_SAYS;
    }
    if (!how->narrow) {
        if (ids->n) memcpy(c->ids, ids->data, ids->n * width);
        return RLHF_OK;
    }
    uint16_t *out = c->ids;
    for (size_t i = 0; i < ids->n; i++)
        out[i] = (uint16_t)ids->data[i];
    return RLHF_OK;
}

static void chunk_finish(struct chunk *c) {
    free(c->len);
    free(c->source);
    free(c->ids);
    free(c->says);
    *c = (struct chunk){0};
}

// ---- threads ----

struct job {
    const struct rlhf__dataset *ds;
    struct cut how;
    int64_t n_rows, n_chunks;
    struct chunk *chunk; // [n_chunks]
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

static rlhf_status do_chunk(struct job *j, int64_t k, struct rlhf__ids *ids,
                            struct rlhf__error *err) {
    struct chunk *c = &j->chunk[k];
    int64_t end = (k + 1) * CHUNK_ROWS < j->n_rows ? (k + 1) * CHUNK_ROWS : j->n_rows;
    ids->n = 0;
    for (int64_t i = k * CHUNK_ROWS; i < end; i++) {
        const struct rlhf__data_row row = rlhf__dataset_row(j->ds, i);
        RLHF_TRY(rlhf__loading_check(j->how.opts->loading, atomic_load(&j->bytes), path_of(j, i), 0,
                                     err));
        rlhf_status st = chunk_add(c, &j->how, i, &row, ids, err);
        if (st < 0) {
            char where[512];
            rlhf__dataset_where(j->ds, i, where, sizeof where);
            rlhf__error_context(err, "%s", where);
            return st;
        }
    }
    RLHF_TRY(chunk_store(c, &j->how, ids, err));
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
    }
    if (!out->n && out->unreached) return all_too_long(out, j, err);
    if (!out->n && out->silent)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the assistant says nothing in the %lld rows of the data",
                          (long long)j->n_rows);
    if (!out->n)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "none of the %lld rows of the data has the %d tokens a row needs",
                          (long long)j->n_rows, (int)j->how.opts->min_len);
    RLHF_TRY(allocate(out, j->how.narrow, j->how.opts->says, err));
    int64_t row = 0, at = 0;
    for (int64_t k = 0; k < j->n_chunks; k++) {
        struct chunk *c = &j->chunk[k];
        size_t total = (size_t)c->total;
        if (total && j->how.narrow) memcpy(out->ids16 + at, c->ids, total * sizeof *out->ids16);
        if (total && !j->how.narrow) memcpy(out->ids32 + at, c->ids, total * sizeof *out->ids32);
        if (total && c->says) memcpy(out->says + at, c->says, total);
        for (size_t i = 0; i < c->n; i++, row++) {
            out->source[row] = c->source[i];
            out->offset[row] = at;
            at += c->len[i];
        }
        chunk_finish(c);
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
        chunk_finish(&j.chunk[k]);
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
