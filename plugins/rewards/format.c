// format.c: checks whether a response has the required form: think tags, or a PCRE2 pattern.
//
// PCRE2's interpreter matches patterns, with limits that do not depend on the machine. So a pattern
// cannot hang a run, and a text that reaches a limit also reaches it in a resumed run. This reward
// does not judge the contents; answer.so compares answers.
#include <rlhf/reward.h>

#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum { TAGS_THINK = 0, TAGS_THINK_ONCE = 1 };
enum { MATCH_SEARCH = 0, MATCH_BEGIN = 1, MATCH_WHOLE = 2 };

enum { HEAP_KIB = 64 << 10 }; // limit of the memory for backtracking

struct format_config {
    const char *pattern;
    int64_t limit;
    double right, wrong;
    int32_t tags, opened, match;
};

struct format {
    const rlhf_host *host;
    const struct format_config *config;
    pcre2_general_context *memory; // without a pattern, this and the following fields are NULL
    pcre2_code *code;
    pcre2_match_data *room;
    pcre2_match_context *limits;
    int32_t warned;
};

// ---- a pattern ----

static void *take_bytes(size_t n, void *host) {
    const rlhf_host *h = host;
    return h->alloc(h, n);
}

static void give_bytes(void *p, void *host) {
    const rlhf_host *h = host;
    h->free(h, p);
}

static rlhf_status no_memory(const struct format *f) {
    return f->host->fail(f->host, RLHF_E_NOMEM, "out of memory");
}

static rlhf_status compile(struct format *f) {
    const struct format_config *c = f->config;
    uint32_t flags = PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF;
    int code = 0;
    size_t at = 0;
    if (c->match != MATCH_SEARCH) flags |= PCRE2_ANCHORED;
    if (c->match == MATCH_WHOLE) flags |= PCRE2_ENDANCHORED;
    pcre2_compile_context *how = pcre2_compile_context_create(f->memory);
    if (!how) return no_memory(f);
    pcre2_set_newline(how, PCRE2_NEWLINE_LF);
    f->code = pcre2_compile((PCRE2_SPTR)c->pattern, PCRE2_ZERO_TERMINATED, flags, &code, &at, how);
    pcre2_compile_context_free(how);
    if (f->code) return RLHF_OK;
    if (code == PCRE2_ERROR_HEAP_FAILED) return no_memory(f);
    char why[160] = "";
    pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
    return rlhf_failf(f->host, RLHF_E_INVALID,
                      "the pattern does not compile: %s, at byte %zu of %s", why, at, c->pattern);
}

static rlhf_status open_pattern(struct format *f) {
    union {
        const rlhf_host *host;
        void *data;
    } memory = {f->host}; // a pointer without const for PCRE2, which returns it unchanged
    f->memory = pcre2_general_context_create(take_bytes, give_bytes, memory.data);
    if (!f->memory) return no_memory(f);
    RLHF_TRY(compile(f));
    f->room = pcre2_match_data_create(1, f->memory);
    f->limits = pcre2_match_context_create(f->memory);
    if (!f->room || !f->limits) return no_memory(f);
    pcre2_set_match_limit(f->limits, (uint32_t)f->config->limit);
    pcre2_set_heap_limit(f->limits, HEAP_KIB);
    return RLHF_OK;
}

// Sets *yes to 1 if the pattern matches, and *gave_up to 1 if a limit ended the match.
static rlhf_status matches(const struct format *f, rlhf_str text, int *yes, int *gave_up) {
    const char *at = text.ptr ? text.ptr : "";
    const int code =
        pcre2_match(f->code, (PCRE2_SPTR)at, (size_t)text.len, 0, PCRE2_NO_JIT, f->room, f->limits);
    *yes = code >= 0;
    *gave_up = code == PCRE2_ERROR_MATCHLIMIT || code == PCRE2_ERROR_HEAPLIMIT ||
               code == PCRE2_ERROR_DEPTHLIMIT;
    if (*yes || *gave_up || code == PCRE2_ERROR_NOMATCH) return RLHF_OK;
    if (code == PCRE2_ERROR_NOMEMORY) return no_memory(f);
    return rlhf_failf(f->host, RLHF_E_INTERNAL, "PCRE2 gave up on a response (code %d)", code);
}

// ---- think tags ----

static const rlhf_str open_tag = {"<think>", 7}, close_tag = {"</think>", 8};

// The position of the first `tag` at or after `from`; text.len = not found.
static uint64_t find(rlhf_str text, uint64_t from, rlhf_str tag) {
    for (; from + tag.len <= text.len; from++)
        if (memcmp(text.ptr + from, tag.ptr, (size_t)tag.len) == 0) return from;
    return text.len;
}

static int is_blank(rlhf_str text, uint64_t from) {
    while (from < text.len &&
           (text.ptr[from] == ' ' || (text.ptr[from] >= '\t' && text.ptr[from] <= '\r')))
        from++;
    return from == text.len;
}

// Requires a response that begins with <think> and contains </think> later, but not a second
// <think>. With `opened`, the prompt ends with <think>, so the response must contain </think> but
// no <think>. TAGS_THINK_ONCE also requires that </think> occurs only once and that an answer
// follows.
static int has_tags(const struct format_config *c, rlhf_str text) {
    const uint64_t from = c->opened ? 0 : open_tag.len;
    if (!c->opened && find(text, 0, open_tag) != 0) return 0;
    if (text.len < from || find(text, from, open_tag) != text.len) return 0;
    const uint64_t close = find(text, from, close_tag);
    if (close == text.len || c->tags == TAGS_THINK) return close < text.len;
    const uint64_t rest = close + close_tag.len;
    return find(text, rest, close_tag) == text.len && !is_blank(text, rest);
}

// ---- the plugin ----

static void format_destroy(void *self) {
    struct format *f = self;
    if (!f) return;
    pcre2_match_context_free(f->limits);
    pcre2_match_data_free(f->room);
    pcre2_code_free(f->code);
    pcre2_general_context_free(f->memory);
    f->host->free(f->host, f);
}

static rlhf_status format_create(const rlhf_host *host, const void *config, void **self) {
    struct format *f = host->alloc(host, sizeof *f);
    if (!f) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    f->host = host;
    f->config = config;
    rlhf_status st = RLHF_OK;
    if (f->config->pattern && !*f->config->pattern)
        st =
            host->fail(host, RLHF_E_INVALID, "the pattern is empty: it would match every response");
    else if (f->config->pattern)
        st = open_pattern(f);
    if (st < 0) {
        format_destroy(f);
        return st;
    }
    *self = f;
    return RLHF_OK;
}

static void report(struct format *f, uint32_t n, uint32_t matched, uint32_t gave_up) {
    const rlhf_host *h = f->host;
    if (!n) return;
    rlhf_metric_mean(h, "matched", (double)matched / n, n);
    if (!f->code) return;
    rlhf_metric_add(h, "gave_up", gave_up);
    if (!gave_up || f->warned) return;
    f->warned = 1;
    rlhf_logf(h, RLHF_LOG_WARN,
              "the pattern gave up on %u of %u responses, which then do not match: it tries too "
              "many ways (limit=%lld); this is said once, the metric gave_up counts on",
              gave_up, n, (long long)f->config->limit);
}

static rlhf_status format_score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    struct format *f = self;
    const struct format_config *c = f->config;
    uint32_t matched = 0, gave_up = 0;
    for (uint32_t i = 0; i < in->n; i++) {
        int yes, over = 0;
        if (f->code)
            RLHF_TRY(matches(f, in->response[i], &yes, &over));
        else
            yes = has_tags(c, in->response[i]);
        out->seq[i] = (float)(yes ? c->right : c->wrong);
        matched += (uint32_t)yes;
        gave_up += (uint32_t)over;
    }
    report(f, in->n, matched, gave_up);
    return RLHF_OK;
}

static const char *format_why_unused(const rlhf_option_in *in) {
    const struct format_config *c = in->config;
    const char *key = in->key;
    const int of_tags = strcmp(key, "tags") == 0 || strcmp(key, "opened") == 0;
    const int of_pattern = strcmp(key, "match") == 0 || strcmp(key, "limit") == 0;
    if (of_tags && c->pattern) return "a pattern is given";
    return of_pattern && !c->pattern ? "no pattern is given" : NULL;
}

static const char *const tags_names[] = {"think", "think_once", NULL};
static const char *const match_names[] = {"search", "begin", "whole", NULL};
static const rlhf_opt options[] = {
    RLHF_OPT_ENUM(struct format_config, tags, TAGS_THINK, tags_names,
                  "think: the response begins with <think>, which occurs once, and has </think>; "
                  "think_once: has </think> once, and an answer after it"),
    RLHF_OPT_BOOL(struct format_config, opened, 0,
                  "the prompt ends in <think>: the response has none of its own"),
    RLHF_OPT_STR(struct format_config, pattern, NULL,
                 "a PCRE2 pattern that the response has to match, instead of tags; (?s), (?m) and "
                 "(?i) in front of it set what . ^ $ and letters match"),
    RLHF_OPT_ENUM(struct format_config, match, MATCH_SEARCH, match_names,
                  "where the pattern has to match: anywhere, at the beginning, or the whole "
                  "response"),
    RLHF_OPT_I64(struct format_config, limit, 1000000, 1, 1000000000,
                 "how many steps PCRE2 may try on a response; beyond them it does not match"),
    RLHF_OPT_F64(struct format_config, right, 1, -1000, 1000, "reward of a response that matches"),
    RLHF_OPT_F64(struct format_config, wrong, 0, -1000, 1000, "reward of one that does not"),
};
static const rlhf_reward_ops ops = {
    .size = sizeof ops,
    .flags = RLHF_REWARD_FUNCTION,
    .score = format_score,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_REWARD,
    .id = "org.rlhf-host.format",
    .version = RLHF_SDK_VERSION,
    .summary = "whether a response has a form: think tags, or a pattern of PCRE2",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct format_config, options),
    .create = format_create,
    .destroy = format_destroy,
    .ops = &ops,
    .why_unused = format_why_unused,
};
RLHF_DEFINE_PLUGIN(plugin)
