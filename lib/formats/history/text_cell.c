// text_cell.c: see text_cell.h.
#include "history/text_cell.h"

#include "base/printable.h"

#include <string.h>

#define TEXT_MAX    6000 // bytes of a prompt or response
#define TOKENS_MAX  600  // tokens of a response
#define REWARDS_MAX 32

// Returns about TEXT_MAX bytes of a string, cut between characters. If `tail` is 1, returns the end
// of the string (for prompts), otherwise the beginning (for responses). The result is a new
// reference, and is "" if v is not a string.
static json_t *shortened(const json_t *v, int tail, int *cut) {
    const char *text = json_string_value(v);
    size_t n = text ? json_string_length(v) : 0, from = 0;
    if (n > TEXT_MAX) {
        *cut = 1;
        if (tail)
            from = rlhf__utf8_floor(text, n - TEXT_MAX);
        else
            n = rlhf__utf8_floor(text, TEXT_MAX);
    }
    return json_stringn(text ? text + from : "", n - from);
}

static json_t *number_or_null(const json_t *v) {
    return json_is_number(v) ? json_incref((json_t *)(uintptr_t)v) : json_null();
}

// The first n items of `list`, with null for items that are not numbers. Returns null unless the
// length of `list` is `of`.
static json_t *numbers(const json_t *list, size_t of, size_t n) {
    if (!json_is_array(list) || json_array_size(list) != of) return json_null();
    json_t *out = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(out, number_or_null(json_array_get(list, i)));
    return out;
}

static int all_texts(const json_t *list) {
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_string(json_array_get(list, i))) return 0;
    return json_array_size(list) > 0;
}

// Adds the response as a list of tokens. Returns 0 if the row lacks the texts of the tokens or
// their log-probabilities.
static int put_tokens(json_t *cell, const json_t *row, int *cut) {
    const json_t *pieces = json_object_get(row, "pieces");
    const size_t all = json_array_size(pieces), n = all < TOKENS_MAX ? all : TOKENS_MAX;
    if (!all_texts(pieces)) return 0;
    json_t *logp = numbers(json_object_get(row, "logp_tokens"), all, n), *tokens = json_array();
    if (json_is_null(logp)) {
        json_decref(tokens);
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        json_array_append_new(tokens, shortened(json_array_get(pieces, i), 0, cut));
    *cut |= n < all;
    json_object_set_new(cell, "tokens", tokens);
    json_object_set_new(cell, "logp", logp);
    json_object_set_new(cell, "ref", numbers(json_object_get(row, "ref_logp_tokens"), all, n));
    json_object_set_new(cell, "value", numbers(json_object_get(row, "value_tokens"), all, n));
    return 1;
}

static void put_rewards(json_t *cell, const json_t *rewards) {
    const char *name;
    json_t *v, *out;
    if (json_object_size(rewards) < 2) return; // a single reward equals the whole reward
    out = json_object();
    json_object_foreach((json_t *)(uintptr_t)rewards, name, v) {
        if (json_object_size(out) < REWARDS_MAX) json_object_set_new(out, name, number_or_null(v));
    }
    json_object_set_new(cell, "rewards", out);
}

// Adds the turns of an episode, which say who wrote which tokens of the response.
static void put_turns(json_t *cell, const json_t *turns) {
    const size_t n = json_array_size(turns);
    json_t *out = json_array();
    for (size_t i = 0; i < n && i < TOKENS_MAX; i++) {
        const json_t *turn = json_array_get(turns, i);
        const char *by = json_string_value(json_object_get(turn, "by"));
        const json_t *tokens = json_object_get(turn, "tokens");
        if (!by || !json_is_integer(tokens) || json_integer_value(tokens) < 1) break;
        const int own = strcmp(by, "policy") == 0;
        json_array_append_new(out,
                              json_pack("{s:s, s:I, s:o}", "by", own ? "policy" : "environment",
                                        "tokens", json_integer_value(tokens), "paid",
                                        number_or_null(json_object_get(turn, "paid"))));
    }
    if (json_array_size(out) > 0) json_object_set(cell, "turns", out);
    json_decref(out);
}

json_t *rlhf__text_cell(const json_t *row) {
    json_t *cell = json_object(), *label = json_object_get(row, "label");
    const json_t *logp = json_object_get(row, "logp"), *ref = json_object_get(row, "ref_logp");
    int cut = 0;
    json_object_set_new(cell, "reward", number_or_null(json_object_get(row, "reward")));
    json_object_set_new(cell, "prompt", shortened(json_object_get(row, "prompt"), 1, &cut));
    if (!put_tokens(cell, row, &cut))
        json_object_set_new(cell, "text", shortened(json_object_get(row, "response"), 0, &cut));
    if (json_is_number(logp) && json_is_number(ref))
        json_object_set_new(cell, "ratio",
                            json_real(json_number_value(logp) - json_number_value(ref)));
    if (json_is_boolean(label))
        json_object_set_new(cell, "label",
                            json_string(json_is_true(label) ? "wanted" : "unwanted"));
    if (json_is_string(label)) json_object_set_new(cell, "label", shortened(label, 0, &cut));
    if (json_is_integer(json_object_get(row, "length")))
        json_object_set(cell, "length", json_object_get(row, "length"));
    put_rewards(cell, json_object_get(row, "rewards"));
    put_turns(cell, json_object_get(row, "turns"));
    if (json_is_string(json_object_get(row, "end")))
        json_object_set_new(cell, "end", shortened(json_object_get(row, "end"), 0, &cut));
    if (cut) json_object_set_new(cell, "cut", json_integer(1));
    return cell;
}
