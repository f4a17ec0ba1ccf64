// frame.c: the frame, i.e. the special tokens that are put around a text. This file reads the frame
// from the tokenizer's files, and writes a changed frame so that transformers uses it too.
#include "tokenizer/tokenizer_impl.h"

#include "base/json.h"
#include "text/tokenizer_part.h"

#include <string.h>

// If `behind` is 1, adds a token after the text, otherwise before it. The token becomes the
// outermost token on that side.
static rlhf_status wrap(struct rlhf__tokenizer *tok, int behind, json_int_t id,
                        struct rlhf__error *err) {
    struct rlhf__tokenizer_frame *f = &tok->frame;
    size_t *n = behind ? &f->n_after : &f->n_before;
    int32_t *list = behind ? f->after : f->before;
    if (id < 0 || id >= tok->vocab.n || !tok->vocab.token[id].used)
        return rlhf__fail(err, RLHF_E_INVALID, "post_processor: the vocabulary has no token %lld",
                          (long long)id);
    if (*n == RLHF__FRAME_MAX)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "the post_processor puts more than %d tokens around a text",
                          RLHF__FRAME_MAX);
    if (!behind) memmove(list + 1, list, *n * sizeof *list);
    list[behind ? *n : 0] = (int32_t)id;
    ++*n;
    return RLHF_OK;
}

// Adds the ids of a template's SpecialToken before or after the text, in their order.
static rlhf_status wrap_special(struct rlhf__tokenizer *tok, const json_t *post, const char *name,
                                int behind, struct rlhf__error *err) {
    const json_t *ids =
        json_object_get(json_object_get(json_object_get(post, "special_tokens"), name), "ids");
    size_t n = json_array_size(ids);
    if (!n)
        return rlhf__fail(err, RLHF_E_INVALID, "post_processor: special_tokens has no ids for '%s'",
                          name);
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(ids, behind ? i : n - 1 - i);
        RLHF_TRY(wrap(tok, behind, json_is_integer(id) ? json_integer_value(id) : -1, err));
    }
    return RLHF_OK;
}

// Reads {"single": [{"SpecialToken": {"id"}}, {"Sequence": {"id": "A"}}, ...], "special_tokens"}.
static rlhf_status read_template(struct rlhf__tokenizer *tok, const json_t *post,
                                 struct rlhf__error *err) {
    const json_t *single = json_object_get(post, "single");
    size_t n = json_array_size(single), text = n;
    for (size_t i = 0; i < n; i++)
        if (json_object_get(json_array_get(single, i), "Sequence")) text = text == n ? i : n + 1;
    if (text >= n)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "the post_processor TemplateProcessing must name the text once");
    for (size_t k = 0; k < n; k++) {
        size_t i = k < text ? text - 1 - k : k; // before the text, start with the innermost token
        if (i == text) continue;
        const char *name = json_string_value(
            json_object_get(json_object_get(json_array_get(single, i), "SpecialToken"), "id"));
        RLHF_TRY(wrap_special(tok, post, name ? name : "", i > text, err));
    }
    return RLHF_OK;
}

// Reads {"cls": [text, id], "sep": [text, id]}.
static rlhf_status read_pair(struct rlhf__tokenizer *tok, const json_t *post,
                             struct rlhf__error *err) {
    const json_t *cls = json_array_get(json_object_get(post, "cls"), 1);
    const json_t *sep = json_array_get(json_object_get(post, "sep"), 1);
    if (!json_is_integer(cls) || !json_is_integer(sep))
        return rlhf__fail(err, RLHF_E_INVALID, "post_processor: cls and sep need an id");
    RLHF_TRY(wrap(tok, 0, json_integer_value(cls), err));
    return wrap(tok, 1, json_integer_value(sep), err);
}

static rlhf_status read_one(struct rlhf__tokenizer *tok, const json_t *post,
                            struct rlhf__error *err) {
    const char *type = rlhf__part_type(post);
    if (!strcmp(type, "ByteLevel")) return RLHF_OK; // it changes offsets, not ids
    if (!strcmp(type, "TemplateProcessing")) return read_template(tok, post, err);
    if (!strcmp(type, "BertProcessing") || !strcmp(type, "RobertaProcessing"))
        return read_pair(tok, post, err);
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "the post_processor '%.60s' is not supported; allowed: ByteLevel, "
                      "TemplateProcessing, BertProcessing, RobertaProcessing, a Sequence of them",
                      type);
}

rlhf_status rlhf__frame_read(struct rlhf__tokenizer *tok, const json_t *post,
                             struct rlhf__error *err) {
    if (!post || json_is_null(post)) return RLHF_OK;
    tok->frame_given = 1;
    if (!rlhf__part_is(post, "Sequence")) return read_one(tok, post, err);
    const json_t *parts = json_object_get(post, "processors"), *item;
    size_t i;
    if (!json_is_array(parts))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the post_processor Sequence: processors: expected an array, found %s",
                          rlhf__json_kind(parts));
    json_array_foreach(parts, i, item) RLHF_TRY(read_one(tok, item, err));
    return RLHF_OK;
}

void rlhf__frame_default(struct rlhf__tokenizer *tok, const json_t *config) {
    const struct rlhf__tokenizer_info *info = &tok->info;
    struct rlhf__tokenizer_frame *f = &tok->frame;
    if (tok->frame_given) return;
    if (info->kind == RLHF__TOKENIZER_WORDPIECE) {
        *f = (struct rlhf__tokenizer_frame){{info->cls}, {info->sep}, 1, 1};
    } else if (!tok->has_json) { // ignored if tokenizer.json exists
        *f = (struct rlhf__tokenizer_frame){{info->bos}, {info->eos}, 0, 0};
        f->n_before = info->bos >= 0 && json_is_true(json_object_get(config, "add_bos_token"));
        f->n_after = info->eos >= 0 && json_is_true(json_object_get(config, "add_eos_token"));
    }
}

int rlhf__tokenizer_has_bos(const struct rlhf__tokenizer *tok) {
    return tok->frame.n_before > 0 && tok->frame.before[0] == tok->info.bos;
}

size_t rlhf__tokenizer_around(const struct rlhf__tokenizer *tok, int behind, const int32_t **ids) {
    *ids = behind ? tok->frame.after : tok->frame.before;
    return behind ? tok->frame.n_after : tok->frame.n_before;
}

int rlhf__tokenizer_only_bos(const struct rlhf__tokenizer *tok) {
    return tok->frame.n_after == 0 && tok->frame.n_before == (size_t)rlhf__tokenizer_has_bos(tok);
}

void rlhf__tokenizer_set_bos(struct rlhf__tokenizer *tok, int on) {
    struct rlhf__tokenizer_frame *f = &tok->frame;
    if (tok->info.kind != RLHF__TOKENIZER_BPE || tok->info.bos < 0) return;
    if (on ? f->n_before == 1 && rlhf__tokenizer_has_bos(tok) : f->n_before == 0) return;
    f->before[0] = tok->info.bos;
    f->n_before = on != 0;
    tok->frame_changed = 1;
}

// ---- writing ----

static json_t *special_items(const struct rlhf__tokenizer *tok, const int32_t *ids, size_t n,
                             json_t *single, json_t *named) {
    for (size_t i = 0; i < n; i++) {
        rlhf_str b = rlhf__tokenizer_written(tok, ids[i]);
        json_t *text = json_stringn(b.ptr, (size_t)b.len);
        json_array_append_new(
            single, json_pack("{s:{s:O, s:i}}", "SpecialToken", "id", text, "type_id", 0));
        json_object_setn_new(
            named, b.ptr, (size_t)b.len,
            json_pack("{s:O, s:[i], s:[O]}", "id", text, "ids", (int)ids[i], "tokens", text));
        json_decref(text);
    }
    return single;
}

// The frame in the form of a post_processor; NULL if memory runs out.
static json_t *as_template(const struct rlhf__tokenizer *tok) {
    const struct rlhf__tokenizer_frame *f = &tok->frame;
    json_t *single = json_array(), *named = json_object();
    special_items(tok, f->before, f->n_before, single, named);
    json_array_append_new(single, json_pack("{s:{s:s, s:i}}", "Sequence", "id", "A", "type_id", 0));
    special_items(tok, f->after, f->n_after, single, named);
    json_t *pair = json_deep_copy(single);
    json_array_append_new(pair, json_pack("{s:{s:s, s:i}}", "Sequence", "id", "B", "type_id", 1));
    return json_pack("{s:s, s:o, s:o, s:o}", "type", "TemplateProcessing", "single", single, "pair",
                     pair, "special_tokens", named);
}

// Reads the object in the file `name` of `dir`. If the file is missing, *out is a new object.
static rlhf_status read_object(const struct rlhf__folder *dir, const char *name, json_t **out,
                               struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf_status st = RLHF_OK;
    *out = NULL;
    if (rlhf__folder_is_file(dir, name)) {
        st = rlhf__folder_read(dir, name, (uint64_t)256 << 20, &text, err);
        if (st == RLHF_OK)
            st = rlhf__json_parse_foreign(name, rlhf__buf_text(&text), text.len, out, err);
    } else {
        *out = json_object();
    }
    rlhf__buf_finish(&text);
    if (st != RLHF_OK || json_is_object(*out)) return st;
    st = rlhf__fail(err, RLHF_E_INVALID, "%s/%s: expected an object, found %s", dir->path, name,
                    rlhf__json_kind(*out));
    json_decref(*out);
    return st;
}

// Updates add_bos_token in tokenizer_config.json if the file has this member. Some versions of
// transformers use the member even if the directory has a tokenizer.json.
static rlhf_status write_add_bos(const struct rlhf__tokenizer *tok, const struct rlhf__folder *dir,
                                 struct rlhf__error *err) {
    static const char name[] = "tokenizer_config.json";
    json_t *file = NULL;
    int on = rlhf__tokenizer_has_bos(tok);
    if (!tok->has_json || !rlhf__folder_is_file(dir, name)) return RLHF_OK;
    RLHF_TRY(read_object(dir, name, &file, err));
    const json_t *said = json_object_get(file, "add_bos_token");
    if (json_is_boolean(said) && json_is_true(said) != on) {
        if (!json_object_set_new(file, "add_bos_token", json_boolean(on)))
            return rlhf__json_save_new(dir, name, file, 2, err);
        rlhf__fail(err, RLHF_E_NOMEM, "out of memory for %s", name);
        json_decref(file);
        return RLHF_E_NOMEM;
    }
    json_decref(file);
    return RLHF_OK;
}

rlhf_status rlhf__tokenizer_write_frame(const struct rlhf__tokenizer *tok,
                                        const struct rlhf__folder *dir, struct rlhf__error *err) {
    json_t *file = NULL;
    const char *name = tok->has_json ? "tokenizer.json" : "tokenizer_config.json";
    if (!tok->frame_changed) return RLHF_OK;
    RLHF_TRY(write_add_bos(tok, dir, err));
    RLHF_TRY(read_object(dir, name, &file, err));
    int bad = tok->has_json ? json_object_set_new(file, "post_processor", as_template(tok))
                            : json_object_set_new(file, "add_bos_token",
                                                  json_boolean(rlhf__tokenizer_has_bos(tok)));
    rlhf_str bos = rlhf__vocab_bytes(&tok->vocab, tok->info.bos);
    if (!bad && !tok->has_json && !json_object_get(file, "bos_token"))
        bad = json_object_set_new(file, "bos_token", json_stringn(bos.ptr, (size_t)bos.len));
    if (!bad) return rlhf__json_save_new(dir, name, file, 2, err);
    json_decref(file);
    return RLHF__NOMEM(err, "out of memory for %s", name);
}
