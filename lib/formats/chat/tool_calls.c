// tool_calls.c: see tool_calls.h.
#include "chat/tool_calls.h"

#include "base/json.h"
#include "chat/python_calls.h"
#include "chat/tool_judge.h"

#include <stdlib.h>
#include <string.h>

// A turn, and the current position in it.
struct reader {
    const char *s; // NUL-ended
    size_t n, at;
    size_t begins, ends; // the next think marks; see next_begin
    size_t mark;         // where the mark of the current call begins
    int32_t thought;     // 1: a block of thoughts has begun or ended before
    const json_t *tools;
    struct rlhf__tool_calls *out;
};

// ---- texts ----

static rlhf_str slice(const struct reader *r, size_t from, size_t to) {
    return (rlhf_str){r->s + from, to - from};
}

static int is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static void skip_space(struct reader *r) {
    while (r->at < r->n && is_space(r->s[r->at]))
        r->at++;
}

static int take(struct reader *r, const char *text) {
    const size_t n = strlen(text);
    if (r->n - r->at < n || memcmp(r->s + r->at, text, n) != 0) return 0;
    r->at += n;
    return 1;
}

// The position of `text` at or after `from`, or r->n if none exists.
static size_t find(const struct reader *r, size_t from, const char *text) {
    const char *p = memmem(r->s + from, r->n - from, text, strlen(text));
    return p ? (size_t)(p - r->s) : r->n;
}

// Move past the next occurrence of `text`. If none exists, moves to the end and returns 0.
static int pass(struct reader *r, const char *text) {
    const size_t at = find(r, r->at, text);
    r->at = at == r->n ? at : at + strlen(text);
    return at != r->n;
}

// Take the text before `end`, and move past `end`. The result's ptr is NULL if `end` does not
// occur.
static rlhf_str take_until(struct reader *r, const char *end) {
    const size_t from = r->at, at = find(r, from, end);
    if (at == r->n) return (rlhf_str){NULL, 0};
    r->at = at + strlen(end);
    return slice(r, from, at);
}

// ---- JSON ----

// Returns the length in bytes of the JSON object or list at the beginning of s. Returns 0 if its
// end is missing, or if it is nested too deeply.
static size_t json_extent(const char *s, size_t n) {
    int depth = 0, quoted = 0;
    for (size_t i = 0; i < n; i++) {
        if (quoted) {
            if (s[i] == '\\')
                i++;
            else
                quoted = s[i] != '"';
        } else if (s[i] == '"') {
            quoted = 1;
        } else if (s[i] == '{' || s[i] == '[') {
            if (++depth > RLHF__TOOL_DEPTH_MAX) return 0;
        } else if ((s[i] == '}' || s[i] == ']') && --depth == 0) {
            return i + 1;
        }
    }
    return 0;
}

static json_t *decode(rlhf_str s, size_t flags) {
    if (s.len > RLHF__TOOL_ARGUMENTS_MAX) return NULL;
    return rlhf__json_decode_digits(s.ptr, (size_t)s.len, flags | JSON_ALLOW_NUL, NULL);
}

// Take the object or list that begins here. Returns a new reference, or NULL if there is no valid
// one.
static json_t *take_json(struct reader *r) {
    if (r->at == r->n || (r->s[r->at] != '{' && r->s[r->at] != '[')) return NULL;
    const size_t n = json_extent(r->s + r->at, r->n - r->at);
    json_t *v = n ? decode((rlhf_str){r->s + r->at, n}, 0) : NULL;
    if (v) r->at += n;
    return v;
}

static json_t *text_json(rlhf_str s) { return json_stringn(s.ptr, (size_t)s.len); }

// ---- calls ----

// Adds a call, and takes over the references to its three values. The call is marked as malformed
// if `name` is not a string, `arguments` is not an object, or the turn has too many calls.
static void add(struct reader *r, json_t *name, json_t *arguments, json_t *id) {
    struct rlhf__tool_calls *out = r->out;
    const int full = out->n >= RLHF__TOOL_CALLS_MAX;
    const int good = json_is_string(name) && rlhf__json_is_object(arguments) && !full;
    if (!out->n) out->first = r->mark;
    if (out->n < sizeof out->item / sizeof *out->item) {
        struct rlhf__called *c = &out->item[out->n++];
        c->name = good ? json_incref(name) : json_string("");
        c->arguments = good ? json_incref(arguments) : json_object();
        c->id = good && json_is_string(id) ? json_incref(id) : NULL;
        c->fault = good ? RLHF__CALL_GOOD : RLHF__CALL_MALFORMED;
    }
    json_decref(name);
    json_decref(arguments);
    json_decref(id);
}

static void add_malformed(struct reader *r) { add(r, NULL, NULL, NULL); }

// Returns the member "arguments" or "parameters" of a call as a new reference, or an empty object
// if both are missing. Returns NULL if the member is a string that is not valid JSON.
static json_t *arguments_of(const json_t *call) {
    json_t *v = json_object_get(call, "arguments");
    if (!v) v = json_object_get(call, "parameters");
    if (!v || json_is_null(v)) return json_object();
    if (json_is_string(v))
        return decode((rlhf_str){json_string_value(v), json_string_length(v)}, 0);
    return json_incref(v);
}

// Adds the call {"name", "arguments"}, and takes over the reference to this object. If `call` is
// NULL, the call is marked as malformed.
static void add_object(struct reader *r, json_t *call) {
    json_t *id = json_object_get(call, "id");
    add(r, json_incref(json_object_get(call, "name")), arguments_of(call), json_incref(id));
    json_decref(call);
}

// ---- thoughts ----

// Calls in a block of thoughts are not calls. Think marks in a call's own text are only text, so
// blocks are looked for between calls.
static const char think[] = "<think>", thought[] = "</think>";

// The positions of the next marks at or after the current position; r->n = none. They are kept, so
// that a turn with many calls is searched only once.
static size_t next_begin(struct reader *r) {
    if (r->begins < r->at) r->begins = find(r, r->at, think);
    return r->begins;
}

static size_t next_end(struct reader *r) {
    if (r->thought) return r->n;
    if (r->ends < r->at) r->ends = find(r, r->at, thought);
    return r->ends;
}

// Moves past the block of thoughts that begins at the mark at `from`.
static void pass_block(struct reader *r, size_t from) {
    r->thought = 1;
    r->at = from;
    pass(r, thought);
}

// Forgets the calls so far: they were in a block of thoughts that the template had opened, and that
// ends at the mark at `from`.
static void end_block(struct reader *r, size_t from) {
    struct rlhf__tool_calls *out = r->out;
    const int32_t forged = out->forged;
    rlhf__tool_calls_finish(out);
    out->forged = forged;
    r->thought = 1;
    r->at = from + sizeof thought - 1;
}

// Moves past the next `mark` that is not in a block of thoughts. Returns 0 if the turn contains
// none.
static int next_call(struct reader *r, const char *mark) {
    for (;;) {
        const size_t call = find(r, r->at, mark), begins = next_begin(r), ends = next_end(r);
        if (ends < call && ends < begins) {
            end_block(r, ends);
        } else if (begins < call) {
            pass_block(r, begins);
        } else {
            r->mark = call;
            r->at = call == r->n ? call : call + strlen(mark);
            return call != r->n;
        }
    }
}

// Moves past the rest of a malformed call: behind `close`, or to a think mark before it.
static void pass_malformed(struct reader *r, const char *close) {
    const size_t begins = next_begin(r), ends = next_end(r), to = begins < ends ? begins : ends;
    add_malformed(r);
    if (find(r, r->at, close) < to)
        pass(r, close);
    else
        r->at = to;
}

// ---- hermes ----

static void read_hermes(struct reader *r) {
    while (next_call(r, "<tool_call>")) {
        skip_space(r);
        json_t *call = take_json(r);
        skip_space(r);
        if (call && take(r, "</tool_call>")) {
            add_object(r, call);
            continue;
        }
        json_decref(call);
        pass_malformed(r, "</tool_call>");
    }
}

// ---- llama3 ----

// Moves past white space and blocks of thoughts.
static void skip_thoughts(struct reader *r) {
    for (skip_space(r); take(r, think); skip_space(r))
        pass_block(r, r->at);
}

// Reads the rest of the turn as a call. Returns 0 if the text is not a call.
static int take_llama3(struct reader *r) {
    skip_thoughts(r);
    r->mark = r->at;
    const int tagged = take(r, "<|python_tag|>");
    skip_space(r);
    json_t *call = take_json(r);
    skip_thoughts(r);
    const int whole = call && r->at == r->n && json_is_string(json_object_get(call, "name")),
              has_arguments = json_object_get(call, "parameters") != NULL ||
                              json_object_get(call, "arguments") != NULL;
    if (whole && (tagged || has_arguments)) {
        add_object(r, call);
        return 1;
    }
    json_decref(call);
    r->at = r->mark;
    return 0;
}

static void read_llama3(struct reader *r) {
    if (take_llama3(r)) return;
    // The turn may begin inside a block of thoughts that the template opened.
    const size_t ends = next_end(r);
    if (ends < next_begin(r)) {
        end_block(r, ends);
        if (take_llama3(r)) return;
    }
    // The text is not a valid call. It may be an answer that happens to be JSON, so it counts as a
    // malformed call only if it has the beginning of a call.
    const int tagged = take(r, "<|python_tag|>");
    skip_space(r);
    const int open = take(r, "{");
    skip_space(r);
    if (tagged || (open && (take(r, "\"name\"") || take(r, "\"type\": \"function\""))))
        add_malformed(r);
}

// ---- mistral ----

static void add_list(struct reader *r, json_t *list) {
    for (size_t i = 0; i < json_array_size(list); i++)
        add_object(r, json_incref(json_array_get(list, i)));
    if (!json_array_size(list)) add_malformed(r);
    json_decref(list);
}

static void read_mistral(struct reader *r) {
    while (next_call(r, "[TOOL_CALLS]")) {
        skip_space(r);
        if (r->at < r->n && r->s[r->at] == '[') {
            add_list(r, take_json(r));
            continue;
        }
        const size_t from = r->at;
        while (r->at < r->n && r->s[r->at] != '[' && r->s[r->at] != '{')
            r->at++;
        const rlhf_str name = slice(r, from, r->at);
        rlhf_str id = {NULL, 0};
        if (take(r, "[CALL_ID]")) {
            const size_t begin = r->at;
            r->at = find(r, begin, "[ARGS]");
            id = slice(r, begin, r->at);
        }
        take(r, "[ARGS]");
        json_t *arguments = take_json(r);
        add(r, name.len ? text_json(name) : NULL, arguments, id.len ? text_json(id) : NULL);
    }
}

// ---- calls in the manner of XML ----

struct marks {
    const char *open, *before, *name_end, *key, *key_end, *value_end, *close, *after;
};

static const struct marks coder = {"<tool_call>", "<function=",   ">",           "<parameter=",
                                   ">",           "</parameter>", "</function>", "</tool_call>"};
static const struct marks xml = {"<call name=\"", "",       "\">",     "<arg name=\"",
                                 "\">",           "</arg>", "</call>", ""};

// Returns the value of an argument that the policy wrote as the text `value`. If the argument's
// schema declares a type other than string, and the text is valid JSON, returns the JSON value.
// Otherwise returns the text as a string.
static json_t *typed(const struct reader *r, const json_t *name, rlhf_str key, rlhf_str value) {
    const json_t *inner;
    rlhf__tool_named(r->tools, name, &inner);
    const json_t *properties = json_object_get(json_object_get(inner, "parameters"), "properties");
    const json_t *type =
        json_object_get(json_object_getn(properties, key.ptr, (size_t)key.len), "type");
    json_t *v = NULL;
    if (type && !(json_is_string(type) && strcmp(json_string_value(type), "string") == 0) &&
        (!value.len || (*value.ptr != '{' && *value.ptr != '[') ||
         json_extent(value.ptr, (size_t)value.len)))
        v = decode(value, JSON_DECODE_ANY);
    return v ? v : text_json(value);
}

static rlhf_str without_line_ends(rlhf_str s) {
    if (s.len && *s.ptr == '\n') s = (rlhf_str){s.ptr + 1, s.len - 1};
    if (s.len && s.ptr[s.len - 1] == '\n') s.len--;
    return s;
}

// Reads a call, after its opening mark. Returns 0 if the call is malformed.
static int read_marked(struct reader *r, const struct marks *m) {
    json_t *arguments = json_object(), *name = NULL;
    const size_t from = r->at;
    skip_space(r);
    rlhf_str text = {NULL, 0};
    if (take(r, m->before)) text = take_until(r, m->name_end);
    int good = text.len > 0 && text.len < 256;
    if (good) name = text_json(text);
    for (skip_space(r); good && take(r, m->key); skip_space(r)) {
        const rlhf_str key = take_until(r, m->key_end);
        rlhf_str value = key.ptr ? take_until(r, m->value_end) : key;
        good = key.len > 0 && value.ptr && r->at - from <= RLHF__TOOL_ARGUMENTS_MAX;
        if (good && m == &coder) value = without_line_ends(value);
        if (good)
            good = json_object_setn_new(arguments, key.ptr, (size_t)key.len,
                                        typed(r, name, key, value)) == 0;
    }
    good = good && take(r, m->close);
    skip_space(r);
    good = good && take(r, m->after);
    if (good)
        add(r, json_incref(name), json_incref(arguments), NULL);
    else
        r->at = from;
    json_decref(name);
    json_decref(arguments);
    return good;
}

static void read_marks(struct reader *r, const struct marks *m) {
    while (next_call(r, m->open)) {
        if (!read_marked(r, m)) pass_malformed(r, *m->after ? m->after : m->close);
    }
}

// ---- lfm2 ----

// Take the list of calls that begins here, and the closing mark after it. Returns a new reference,
// or NULL if they are not there.
static json_t *take_python(struct reader *r) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    const size_t from = r->at, n = rlhf__python_calls_json(r->s + from, r->n - from, &text);
    const int good = n > 0 && rlhf__buf_ok(&text, NULL) == RLHF_OK &&
                     json_extent(rlhf__buf_text(&text), text.len) == text.len;
    json_t *list = good ? decode((rlhf_str){rlhf__buf_text(&text), text.len}, 0) : NULL;
    rlhf__buf_finish(&text);
    r->at += list ? n : 0;
    skip_space(r);
    if (list && take(r, "<|tool_call_end|>")) return list;
    json_decref(list);
    r->at = from;
    return NULL;
}

static void read_lfm2(struct reader *r) {
    while (next_call(r, "<|tool_call_start|>")) {
        json_t *list = take_python(r);
        if (list)
            add_list(r, list);
        else
            pass_malformed(r, "<|tool_call_end|>");
    }
}

// ---- the whole turn ----

rlhf_status rlhf__tool_calls_read(int32_t form, rlhf_str turn, const json_t *tools,
                                  struct rlhf__tool_calls *out, struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__tool_calls_finish(out);
    rlhf__buf_put(&text, turn.ptr, (size_t)turn.len);
    rlhf_status st = rlhf__buf_ok(&text, err);
    struct reader r = {.s = rlhf__buf_text(&text), .n = text.len, .tools = tools, .out = out};
    if (st == RLHF_OK) {
        // A NUL would end the searches too early, so it is replaced with a space.
        for (size_t i = 0; text.data && i < text.len; i++)
            if (!text.data[i]) text.data[i] = ' ';
        out->forged = rlhf__tool_forged(r.s);
        r.begins = find(&r, 0, think);
        r.ends = find(&r, 0, thought);
        switch (form) {
        case RLHF__TOOL_FORM_NONE:
            break;
        case RLHF__TOOL_FORM_HERMES:
            read_hermes(&r);
            break;
        case RLHF__TOOL_FORM_LLAMA3:
            read_llama3(&r);
            break;
        case RLHF__TOOL_FORM_MISTRAL:
            read_mistral(&r);
            break;
        case RLHF__TOOL_FORM_QWEN3_CODER:
        case RLHF__TOOL_FORM_XML:
            read_marks(&r, form == RLHF__TOOL_FORM_XML ? &xml : &coder);
            break;
        case RLHF__TOOL_FORM_LFM2:
            read_lfm2(&r);
            break;
        default:
            st = rlhf__fail(err, RLHF_E_INVALID, "%d is not a form of tool calls", (int)form);
        }
        rlhf__tool_judge(out, tools);
    }
    rlhf__buf_finish(&text);
    return st;
}

void rlhf__tool_calls_finish(struct rlhf__tool_calls *c) {
    for (size_t i = 0; i < c->n; i++) {
        json_decref(c->item[i].name);
        json_decref(c->item[i].arguments);
        json_decref(c->item[i].id);
    }
    *c = (struct rlhf__tool_calls){.n = 0};
}
