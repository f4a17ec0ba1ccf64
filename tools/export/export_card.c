// export_card.c: see export_card.h.
#include "export/export_card.h"
#include "export/export_evaluations.h"

#include "base/file.h"
#include "base/json.h"
#include "base/printable.h"
#include "export/export_config.h"
#include "gguf/model_text.h"

#include <stdio.h>
#include <string.h>

// ---- the base model ----

static const char *start_path(const struct rlhf__export_source *s) {
    const char *path =
        json_string_value(json_object_get(json_object_get(s->settings, "policy"), "path"));
    return s->settings ? path : s->dir;
}

// Sets `out` to the base model's name on the hub. Returns 0 if this name is not known.
static int base_model(const struct rlhf__export_card *c, char out[128]) {
    const char *path = start_path(c->source);
    const char *own = json_string_value(json_object_get(c->source->config, "_name_or_path"));
    snprintf(out, 128, "%s", c->base_model ? c->base_model : own ? own : "");
    if (c->base_model) return 1;
    return (path && rlhf__hub_id_of_path(path, out)) || (strchr(out, '/') && rlhf__is_hub_id(out));
}

// ---- the parts ----

static const char *task_of(const struct rlhf__export_source *s) {
    const char *name =
        json_string_value(json_array_get(json_object_get(s->config, "architectures"), 0));
    if (rlhf__export_source_writes(s)) return "text-generation";
    if (name && strstr(name, "SequenceClassification")) return "text-classification";
    return name && strstr(name, "MaskedLM") ? "fill-mask" : "feature-extraction";
}

static void front_matter(struct rlhf__buf *out, const struct rlhf__export_card *c) {
    char base[128], algo[64];
    rlhf__buf_printf(out, "---\nlibrary_name: %s\npipeline_tag: %s\n",
                     c->adapter ? "peft" : "transformers", task_of(c->source));
    if (base_model(c, base)) {
        rlhf__buf_puts(out, "base_model: ");
        rlhf__json_write_string(out, base, strlen(base));
        rlhf__buf_putc(out, '\n');
    }
    rlhf__buf_puts(out, "tags:\n- rlhf-host\n");
    if (rlhf__export_algo(c->source, algo)) {
        rlhf__buf_puts(out, "- ");
        rlhf__json_write_string(out, algo, strlen(algo));
        rlhf__buf_putc(out, '\n');
    }
    rlhf__buf_puts(out, "---\n\n");
}

static void what_it_is(struct rlhf__buf *out, const struct rlhf__export_card *c) {
    const struct rlhf__export_source *s = c->source;
    char algo[64];
    rlhf__buf_puts(out, "# ");
    rlhf__export_code(out, c->title, 0);
    rlhf__buf_puts(out, "\n\nA ");
    rlhf__export_code(out, json_string_value(json_object_get(s->config, "model_type")), 1);
    rlhf__buf_printf(out, " %s of %lld parameters%s%s", c->adapter ? "LoRA adapter" : "model",
                     (long long)c->n_parameters, c->dtype ? " in " : "", c->dtype ? c->dtype : "");
    if (rlhf__export_algo(s, algo)) {
        rlhf__buf_puts(out, ", trained with ");
        rlhf__export_code(out, algo, 1);
        rlhf__buf_puts(out, " by rlhf-host");
    }
    rlhf__buf_puts(out, ".\n");
}

static void how_it_scores(struct rlhf__buf *out, const struct rlhf__export_source *s) {
    const json_t *reward = json_object_get(s->config, "rlhf_reward");
    const char *theirs, *pooling = rlhf__export_pooling(s, &theirs);
    if (reward) {
        rlhf__buf_puts(out, "\nA reward model: rlhf-host takes gain x score + bias of a response's "
                            "tokens, pooled as `rlhf_reward` in config.json says: ");
        rlhf__export_json(out, reward, 0);
        rlhf__buf_puts(out, ". `transformers` gives the last token's score as it is.\n");
    } else if (pooling) {
        rlhf__buf_puts(out, "\nrlhf-host pools hidden states as `rlhf_pooling` in config.json "
                            "says (");
        rlhf__export_code(out, pooling, 1);
        rlhf__buf_printf(out, "); `transformers` reads the %s token's, so its logits differ.\n",
                         theirs);
    }
}

// Returns 1 if the tokenizer's files have a chat template.
static int has_chat_template(const struct rlhf__export_source *s) {
    const char *dir = rlhf__export_source_text(s);
    char path[RLHF__PATH_CAP];
    json_t *config = NULL;
    if (rlhf__is_file(rlhf__path_put(path, "%s/chat_template.jinja", dir))) return 1;
    if (rlhf__model_json(dir, "tokenizer_config.json", &config, NULL) != RLHF_OK) config = NULL;
    const int has = json_object_get(config, "chat_template") != NULL;
    json_decref(config);
    return has;
}

static void how_to_generate(struct rlhf__buf *out, const struct rlhf__export_source *s) {
    if (has_chat_template(s))
        rlhf__buf_puts(out, "messages = [{\"role\": \"user\", \"content\": \"PROMPT\"}]\n"
                            "inputs = tokenizer.apply_chat_template(messages, "
                            "add_generation_prompt=True, return_dict=True, "
                            "return_tensors=\"pt\")\n");
    else
        rlhf__buf_puts(out, "inputs = tokenizer(\"PROMPT\", return_tensors=\"pt\")\n");
    rlhf__buf_puts(out, "out = model.generate(**inputs)\nprint(tokenizer.decode(out[0]))\n");
}

static void how_to_load(struct rlhf__buf *out, const struct rlhf__export_card *c) {
    const struct rlhf__export_source *s = c->source;
    const int writes = rlhf__export_source_writes(s);
    const char *task = task_of(s);
    const char *name = writes ? "AutoModelForCausalLM"
                       : strcmp(task, "text-classification") == 0
                           ? "AutoModelForSequenceClassification"
                       : strcmp(task, "fill-mask") == 0 ? "AutoModelForMaskedLM"
                                                        : "AutoModel";
    rlhf__buf_printf(out,
                     "\n## Use\n\n```python\n%sfrom transformers import AutoTokenizer, %s\n\n"
                     "tokenizer = AutoTokenizer.from_pretrained(\"DIRECTORY\")\n"
                     "model = %s.from_pretrained(\"%s\")\n%s",
                     c->adapter ? "from peft import PeftModel\n" : "", name, name,
                     c->adapter ? "BASE" : "DIRECTORY",
                     c->adapter ? "model = PeftModel.from_pretrained(model, \"DIRECTORY\")\n" : "");
    if (writes) how_to_generate(out, s);
    rlhf__buf_puts(out, "```\n");
    how_it_scores(out, s);
}

int rlhf__export_card_kept(const struct rlhf__export_source *s) {
    char path[RLHF__PATH_CAP];
    rlhf__path_put(path, "%s/README.md", s->dir);
    return !s->settings && !s->peft.dir && rlhf__is_file(path);
}

static rlhf_status keep_own(const struct rlhf__export_source *s, const struct rlhf__folder *to,
                            struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__path_put(path, "%s/README.md", s->dir);
    rlhf_status st = rlhf__file_read(path, (uint64_t)16 << 20, &text, err);
    if (st == RLHF_OK) st = rlhf__file_write(to, "README.md", rlhf__buf_text(&text), text.len, err);
    rlhf__buf_finish(&text);
    return st;
}

rlhf_status rlhf__export_card_write(const struct rlhf__export_card *c,
                                    const struct rlhf__folder *to, struct rlhf__error *err) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    if (rlhf__export_card_kept(c->source)) return keep_own(c->source, to, err);
    front_matter(&out, c);
    what_it_is(&out, c);
    rlhf__export_card_run(&out, c->source);
    how_to_load(&out, c);
    rlhf_status st = rlhf__buf_ok(&out, err);
    if (st == RLHF_OK) st = rlhf__file_write(to, "README.md", rlhf__buf_text(&out), out.len, err);
    rlhf__buf_finish(&out);
    return st;
}

// ---- the model's run ----

// ---- text from other sources ----

void rlhf__export_code(struct rlhf__buf *out, const char *text, int code) {
    struct rlhf__buf safe = RLHF__BUF_INIT;
    rlhf__put_printable(&safe, text ? text : "?", strlen(text ? text : "?"), "");
    if (code) rlhf__buf_putc(out, '`');
    for (const char *p = rlhf__buf_text(&safe); *p; p++) {
        const int special = strchr("\\`*_{}[]<>#|!~$", *p) != NULL;
        if (*p == '|' || (special && !code)) rlhf__buf_putc(out, '\\'); // '|' would end a cell
        rlhf__buf_putc(out, code && *p == '`' ? '\'' : *p);
    }
    if (code) rlhf__buf_putc(out, '`');
    rlhf__buf_finish(&safe);
}

// If the text looks like a path, returns its last part, otherwise the whole text. A path begins
// with "/", "~", "./" or "../", or has a slash and no spaces.
static const char *without_path(const char *text) {
    const char *slash = strrchr(text, '/');
    const int begins = text[0] == '/' || text[0] == '~' || strncmp(text, "./", 2) == 0 ||
                       strncmp(text, "../", 3) == 0;
    return slash && slash[1] && (begins || !strpbrk(text, " \t\n")) ? slash + 1 : text;
}

// Returns a copy of `v` with only the last part of each path. New reference.
static json_t *tidy(const json_t *v) {
    const char *key;
    json_t *item, *out;
    size_t i;
    if (json_is_string(v)) return json_string(without_path(json_string_value(v)));
    if (json_is_array(v)) {
        out = json_array();
        json_array_foreach(v, i, item) { json_array_append_new(out, tidy(item)); }
        return out;
    }
    if (!json_is_object(v)) return json_deep_copy(v);
    out = json_object();
    // jansson's iterator takes a non-const table
    void *iter = json_object_iter((json_t *)(uintptr_t)v);
    for (; iter; iter = json_object_iter_next((json_t *)(uintptr_t)v, iter)) {
        key = json_object_iter_key(iter);
        json_object_set_new(out, key, tidy(json_object_iter_value(iter)));
    }
    return out;
}

void rlhf__export_json(struct rlhf__buf *out, const json_t *v, int indent) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    json_t *safe = tidy(v);
    rlhf__json_write(indent ? out : &text, safe, indent);
    if (!indent) rlhf__export_code(out, rlhf__buf_text(&text), 1);
    json_decref(safe);
    rlhf__buf_finish(&text);
}

// ---- training ----

int rlhf__export_algo(const struct rlhf__export_source *s, char out[64]) {
    const char *file =
        json_string_value(json_object_get(json_object_get(s->settings, "algo"), "plugin"));
    if (!file) return 0;
    const char *base = rlhf__path_base(file), *dot = strrchr(base, '.');
    snprintf(out, 64, "%.*s", (int)(dot ? dot - base : 60), base);
    return out[0] != '\0';
}

static void row_text(struct rlhf__buf *out, const char *what, const char *text) {
    rlhf__buf_printf(out, "| %s | ", what);
    rlhf__export_code(out, text, 1);
    rlhf__buf_puts(out, " |\n");
}

static void row_json(struct rlhf__buf *out, const char *what, const json_t *v) {
    if (!v) return;
    rlhf__buf_printf(out, "| %s | ", what);
    rlhf__export_json(out, v, 0);
    rlhf__buf_puts(out, " |\n");
}

static void rewards(struct rlhf__buf *out, const json_t *settings) {
    size_t i;
    const json_t *r;
    json_array_foreach(json_object_get(settings, "reward"), i, r) { row_json(out, "reward", r); }
    const json_t *judge = json_object_get(settings, "judge");
    if (json_object_get(judge, "plugin")) row_json(out, "judge", judge);
}

// Appends "sft, checkpoint 000060" for .../sft/checkpoints/000060. For other paths, appends the
// last part.
static void start_of_run(struct rlhf__buf *out, const char *path) {
    static const char between[] = "/checkpoints/";
    const char *at = strstr(path, between), *next = NULL;
    for (; at; at = next) {
        next = strstr(at + 1, between);
        if (!next) break;
    }
    const char *last = at ? at + strlen(between) : NULL;
    if (!last || at == path || !*last || strchr(last, '/')) {
        rlhf__export_code(out, without_path(path), 1);
        return;
    }
    char run[512];
    snprintf(run, sizeof run, "%.*s", (int)(at - path < 500 ? at - path : 500), path);
    rlhf__export_code(out, without_path(run), 1);
    rlhf__buf_puts(out, ", checkpoint ");
    rlhf__export_code(out, last, 1);
}

static void start(struct rlhf__buf *out, const json_t *settings) {
    const json_t *policy = json_object_get(settings, "policy");
    const char *path = json_string_value(json_object_get(policy, "path"));
    char hub[128];
    const char *init = json_string_value(json_object_get(policy, "init"));
    rlhf__buf_puts(out, "| start | ");
    if (path && path[0] && rlhf__hub_id_of_path(path, hub))
        rlhf__export_code(out, hub, 1);
    else if (path && path[0])
        start_of_run(out, path);
    else
        rlhf__buf_puts(out, "the policy that comes with rlhf-host");
    rlhf__buf_puts(out, init && strcmp(init, "random") == 0 ? ", random weights |\n" : " |\n");
}

static void inputs(struct rlhf__buf *out, const json_t *manifest) {
    size_t i;
    const json_t *in;
    json_array_foreach(json_object_get(manifest, "inputs"), i, in) {
        const char *path = json_string_value(json_object_get(in, "path"));
        const char *sum = json_string_value(json_object_get(in, "sha256"));
        rlhf__buf_puts(out, "| input ");
        rlhf__export_code(out, json_string_value(json_object_get(in, "setting")), 1);
        rlhf__buf_puts(out, " | ");
        rlhf__export_code(out, path ? without_path(path) : NULL, 1);
        rlhf__buf_printf(out, ", %lld bytes, sha256 ",
                         (long long)json_integer_value(json_object_get(in, "bytes")));
        rlhf__export_code(out, sum, 1);
        rlhf__buf_puts(out, " |\n");
    }
}

static void versions(struct rlhf__buf *out, const json_t *manifest) {
    const json_t *compute = json_object_get(manifest, "compute");
    size_t i;
    const json_t *p;
    if (!manifest) return;
    row_text(out, "rlhf-host", json_string_value(json_object_get(manifest, "version")));
    json_array_foreach(json_object_get(manifest, "plugins"), i, p) {
        const char *role = json_string_value(json_object_get(p, "role"));
        rlhf__buf_puts(out, "| ");
        rlhf__export_code(out, role, 0);
        rlhf__buf_puts(out, " plugin | ");
        rlhf__export_code(out, json_string_value(json_object_get(p, "id")), 1);
        rlhf__buf_puts(out, " ");
        rlhf__export_code(out, json_string_value(json_object_get(p, "version")), 0);
        rlhf__buf_puts(out, " |\n");
    }
    row_text(out, "computed by", json_string_value(json_object_get(compute, "backend")));
    row_text(out, "computed in", json_string_value(json_object_get(compute, "dtype")));
    const size_t changed = json_array_size(json_object_get(manifest, "earlier"));
    if (changed)
        rlhf__buf_printf(out, "| changed during the run | code or inputs, %zu time%s |\n", changed,
                         changed == 1 ? "" : "s");
}

static void training(struct rlhf__buf *out, const struct rlhf__export_source *s) {
    const json_t *optim = json_object_get(s->state, "optim");
    char algo[64];
    rlhf__buf_puts(out, "\n## Training\n\n| | |\n|---|---|\n");
    if (rlhf__export_algo(s, algo)) row_text(out, "algorithm", algo);
    start(out, s->settings);
    rewards(out, s->settings);
    row_text(out, "checkpoint", s->checkpoint);
    row_json(out, "phases", json_object_get(s->state, "phase"));
    row_json(out, "sequences", json_object_get(s->state, "episodes"));
    row_json(out, "optimizer steps", json_object_get(optim, "step"));
    row_json(out, "seed", json_object_get(json_object_get(s->settings, "run"), "seed"));
    inputs(out, s->manifest);
    versions(out, s->manifest);
}

// ---- figures and settings ----

static int is_figure(const char *name) {
    return strcmp(name, "phase") != 0 && strncmp(name, "perf/", 5) != 0 &&
           strncmp(name, "time/", 5) != 0;
}

static void figures(struct rlhf__buf *out, const struct rlhf__export_source *s) {
    const char *name;
    json_t *v;
    if (!s->metrics) return;
    rlhf__buf_printf(out,
                     "\n## Figures\n\nOf the phase that the checkpoint ended%s.\n\n"
                     "| metric | value |\n|---|---|\n",
                     s->is_best ? ", the run's best" : "");
    json_object_foreach(s->metrics, name, v) {
        if (!is_figure(name) || !json_is_number(v)) continue;
        rlhf__buf_puts(out, "| ");
        rlhf__export_code(out, name, 1);
        rlhf__buf_printf(out, " | %.6g |\n", json_number_value(v));
    }
}

// Settings that affect training, without paths and display options.
static void settings(struct rlhf__buf *out, const struct rlhf__export_source *s) {
    static const char *const sections[] = {"algo",     "reward",  "judge", "policy",  "reference",
                                           "value",    "score",   "data",  "prompts", "sampling",
                                           "response", "rewards", "batch", "optim",   "early_stop"};
    json_t *some = json_object();
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (json_object_get(s->settings, sections[i]))
            json_object_set(some, sections[i], json_object_get(s->settings, sections[i]));
    rlhf__buf_puts(out, "\n## Settings\n\nAs `--config` takes them, paths apart.\n\n```json\n");
    rlhf__export_json(out, some, 2);
    rlhf__buf_puts(out, "\n```\n");
    json_decref(some);
}

void rlhf__export_card_run(struct rlhf__buf *out, const struct rlhf__export_source *s) {
    if (!s->settings) return;
    training(out, s);
    rlhf__export_evaluations(out, s);
    figures(out, s);
    settings(out, s);
}

// ---- names on the hub ----

#define CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

int rlhf__is_hub_id(const char *text) {
    const size_t owner = strspn(text, CHARS);
    const char *name = text[owner] == '/' ? text + owner + 1 : text;
    const size_t n = strspn(name, CHARS);
    return n > 0 && name[n] == '\0' && strlen(text) <= 96 && text[0] != '.' && text[0] != '-' &&
           name[0] != '.' && name[0] != '-' && (name == text || owner > 0);
}

int rlhf__hub_id_of_path(const char *path, char out[128]) {
    const char *at = strstr(path, "/models--");
    char name[100];
    if (!at) return 0;
    at += strlen("/models--");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "/"), at);
    const char *dashes = strstr(name, "--");
    const int owner = (int)(dashes ? dashes - name : 0);
    snprintf(out, 128, "%.*s%s%s", owner, name, dashes ? "/" : "", dashes ? dashes + 2 : name);
    return rlhf__is_hub_id(out);
}
