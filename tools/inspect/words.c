// words.c: see words.h.
#include "inspect/words.h"

#include "base/printable.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

// ---- splitting ----

static rlhf_status add(struct rlhf__words *w, int side, const char *text, size_t n,
                       struct rlhf__error *err) {
    if (n == 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "--words: a word is empty; expected two sides, as good,bad or "
                          "good/great,bad/awful");
    if (w->n[side] == RLHF__WORDS_MAX)
        return rlhf__fail(err, RLHF_E_INVALID, "--words: at most %d words a side are allowed",
                          RLHF__WORDS_MAX);
    char *own = strndup(text, n);
    if (!own) return RLHF__NOMEM(err, "out of memory for a word");
    w->side[side][w->n[side]++].text = own;
    return RLHF_OK;
}

static rlhf_status split_side(struct rlhf__words *w, int side, const char *text, size_t n,
                              struct rlhf__error *err) {
    const char *end = text + n, *slash;
    for (; (slash = memchr(text, '/', (size_t)(end - text))) != NULL; text = slash + 1)
        RLHF_TRY(add(w, side, text, (size_t)(slash - text), err));
    return add(w, side, text, (size_t)(end - text), err);
}

rlhf_status rlhf__words_split(struct rlhf__words *w, const char *flag, struct rlhf__error *err) {
    const char *comma = strchr(flag, ',');
    if (!comma || strchr(comma + 1, ','))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "--words needs two sides with one comma between them, as good,bad or "
                          "good/great,bad/awful");
    RLHF_TRY(split_side(w, 0, flag, (size_t)(comma - flag), err));
    return split_side(w, 1, comma + 1, strlen(comma + 1), err);
}

// ---- tokens ----

static void note(struct rlhf__words *w, const struct rlhf__word *word,
                 const struct rlhf__tokenizer *tok) {
    char text[200], first[80];
    char *piece = rlhf__tokenizer_text(tok, &word->id, 1, 0, NULL);
    rlhf__buf_printf(&w->note, "“%s” is %d tokens; the first one, “%s”, is used\n",
                     rlhf__printable(word->text, text, sizeof text), word->pieces,
                     rlhf__printable(piece ? piece : "", first, sizeof first));
    free(piece);
}

static rlhf_status find(struct rlhf__words *w, int side, uint32_t i,
                        const struct rlhf__tokenizer *tok, int space, struct rlhf__error *err) {
    struct rlhf__word *word = &w->side[side][i];
    struct rlhf__ids ids = {0};
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (space) rlhf__buf_putc(&text, ' ');
    rlhf__buf_puts(&text, word->text);
    rlhf_status st = rlhf__buf_ok(&text, err);
    if (st == RLHF_OK)
        st = rlhf__tokenizer_encode(tok, (rlhf_str){rlhf__buf_text(&text), text.len}, 0, 0, &ids,
                                    err);
    if (st == RLHF_OK && ids.n == 0) {
        char shown[200];
        st = rlhf__fail(err, RLHF_E_INVALID, "--words: the tokenizer has no token for “%s”",
                        rlhf__printable(word->text, shown, sizeof shown));
    }
    if (st == RLHF_OK) {
        word->id = ids.data[0];
        word->pieces = (int32_t)ids.n;
        w->id[side][i] = word->id;
        if (ids.n > 1) note(w, word, tok);
    }
    rlhf__buf_finish(&text);
    rlhf__ids_finish(&ids);
    return st;
}

// Any two words begin with the same token if the space before them is a separate token, as it is
// before digits.
static rlhf_status alike(const struct rlhf__words *w, uint32_t i, uint32_t k,
                         const struct rlhf__tokenizer *tok, int space, struct rlhf__error *err) {
    char a[200], b[200], first[80];
    char *piece = rlhf__tokenizer_text(tok, &w->id[0][i], 1, 0, NULL);
    const int is_space = space && piece && piece[strspn(piece, " ")] == '\0';
    const rlhf_status st = rlhf__fail(
        err, RLHF_E_INVALID,
        "--words: “%s” and “%s” begin with the same token, “%s”, so their logits cannot differ%s",
        rlhf__printable(w->side[0][i].text, a, sizeof a),
        rlhf__printable(w->side[1][k].text, b, sizeof b),
        rlhf__printable(piece ? piece : "", first, sizeof first),
        is_space ? ": the space before a word is a separate token here; a prompt that ends in a "
                   "space needs none"
                 : "");
    free(piece);
    return st;
}

static rlhf_status check_sides(const struct rlhf__words *w, const struct rlhf__tokenizer *tok,
                               int space, struct rlhf__error *err) {
    for (uint32_t i = 0; i < w->n[0]; i++)
        for (uint32_t k = 0; k < w->n[1]; k++)
            if (w->id[0][i] == w->id[1][k]) return alike(w, i, k, tok, space, err);
    return RLHF_OK;
}

rlhf_status rlhf__words_find(struct rlhf__words *w, const struct rlhf__tokenizer *tok,
                             const char *prompt, struct rlhf__error *err) {
    const size_t n = strlen(prompt);
    const int space = n > 0 && !isspace((unsigned char)prompt[n - 1]);
    for (int side = 0; side < 2; side++)
        for (uint32_t i = 0; i < w->n[side]; i++)
            RLHF_TRY(find(w, side, i, tok, space, err));
    RLHF_TRY(rlhf__buf_ok(&w->note, err));
    return check_sides(w, tok, space, err);
}

struct rlhf__sides rlhf__words_sides(const struct rlhf__words *w) {
    return (struct rlhf__sides){w->id[0], w->id[1], w->n[0], w->n[1]};
}

void rlhf__words_finish(struct rlhf__words *w) {
    for (int side = 0; side < 2; side++)
        for (uint32_t i = 0; i < w->n[side]; i++)
            free(w->side[side][i].text);
    rlhf__buf_finish(&w->note);
    memset(w, 0, sizeof *w);
}
