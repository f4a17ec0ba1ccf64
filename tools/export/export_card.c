// export_card.c: see export_card.h. What it says of the run is export_card_run.c's.
#include "export/export_card.h"

#include "base/file.h"
#include "base/json.h"
#include "export/export_card_run.h"
#include "export/export_config.h"
#include "export/hub_id.h"

#include <stdio.h>
#include <string.h>

// ---- which model it was made from ----

static const char *start_path(const struct rlhf__export_source *s) {
    const char *path =
        json_string_value(json_object_get(json_object_get(s->settings, "policy"), "path"));
    return s->settings ? path : s->dir;
}

// The hub's name of the base model; 0 = not known.
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
    if (writes)
        rlhf__buf_puts(out, "out = model.generate(**tokenizer(\"PROMPT\", return_tensors=\"pt\"))\n"
                            "print(tokenizer.decode(out[0]))\n");
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
    rlhf__buf_free(&text);
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
    rlhf__buf_free(&out);
    return st;
}
