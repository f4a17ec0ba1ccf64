// test_e2e_chat.c: rows with messages as users write them, and a model directory with a chat
// template. Covers prompts, texts trained on the assistant's tokens, preferences, the log, the
// saved template, and refusals.
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEMPLATE                                                                                   \
    "{% for m in messages %}{{ m.content }}{% if m.role == 'assistant' %}{{ eos_token }}{% endif " \
    "%}{% endfor %}"
#define USER(s) "{\"role\":\"user\",\"content\":\"" s "\"}"
#define SAYS(s) "{\"role\":\"assistant\",\"content\":\"" s "\"}"

static int setup(void **state) {
    if (e2e_setup(state) != 0) return -1;
    struct e2e *t = *state;
    e2e_write(t, "model/chat_template.jinja", TEMPLATE);
    e2e_write(t, "prompts.jsonl",
              "{\"messages\":[" USER("a film") "],\"id\":1}\n{\"prompt\":[" USER("it") "," SAYS(
                  "was") "," USER("so") "]}\n");
    e2e_write(t, "talks.jsonl",
              "{\"messages\":[" USER("ab") "," SAYS("cd.") "," USER("ef") "," SAYS(
                  "gh.") "]}\n"
                         "{\"messages\":[" USER("what was it") "," SAYS("a film.") "]}\n");
    e2e_write(t, "pairs.jsonl",
              "{\"prompt\":[" USER("ab") "],\"chosen\":[" SAYS("yes.") "],\"rejected\":[" SAYS(
                  "no.") "]}\n{\"messages\":[" USER("cd") "],\"chosen\":\"good.\",\"rejected\":"
                                                          "\"bad.\"}\n");
    return 0;
}

#define GRPO                                                                                       \
    "--algo grpo.so --policy model --set policy.init=random --reward period_count.so --prompts "   \
    "prompts.jsonl --set batch.size=8 --set algo.group_size=4 --set sampling.max_new_tokens=8 "    \
    "--set run.phases=2 --set log.samples_every=1 "

// In rollouts.jsonl, the ids of the first rows begin with the ids of the rows' messages. The id of
// a byte is the byte itself.
static void rollouts(void **state) {
    struct e2e *t = *state;
    if (e2e_run(t, GRPO "--set log.rollouts=true --set run.dir=a") != 0) fail_msg("%s", t->out);
    e2e_says(t, "chat template: /");
    e2e_says(t, "model/chat_template.jinja, of 2 rows with messages");
    e2e_run(t, GRPO "--set run.dir=held --set data.eval_path=prompts.jsonl");
    assert_int_equal(e2e_count(t, "chat template: "), 1); // not again for the held-out rows
    assert_int_equal(e2e_shell(t,
                               "grep -c '\"prompt_length\": 6, \"ids\": \\[97, 32, 102, 105, 108, "
                               "109, ' a/rollouts.jsonl"),
                     0);
    assert_int_equal(e2e_shell(t,
                               "grep -c '\"prompt_length\": 8, \"ids\": \\[105, 116, 119, 97, 115, "
                               "259, 115, 111, ' a/rollouts.jsonl"),
                     0);
    // Samples and reward inputs contain no template tokens.
    assert_int_equal(e2e_shell(t, "grep -q '\"prompt\": \"a film\"' a/samples.jsonl"), 0);
    assert_int_equal(
        e2e_shell(t, "grep -q '\"prompt\": \"it\\\\n\\\\nwas\\\\n\\\\nso\"' a/samples.jsonl"), 0);
    assert_int_equal(e2e_shell(t, "grep -q endoftext a/samples.jsonl"), 1);
    // The checkpoint contains the template. A stopped run resumes to the same bits.
    assert_true(e2e_exists(t, "a/checkpoints/latest/chat_template.jinja"));
    assert_int_equal(e2e_run(t, GRPO "--set run.stop_after=1 --set run.dir=b"), 0);
    assert_int_equal(e2e_run(t, "--resume b"), 0);
    e2e_same_tree(t, "a/checkpoints/000002", "b/checkpoints/000002");
}

// Text cannot represent every response, because the model may sample single bytes that are invalid
// UTF-8. So responses keep the sampled ids. The run trains on these ids, and the log-probs of
// sampling and of training refer to them.
static void ids_stay(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, GRPO "--set log.rollouts=true --set run.dir=a"), 0);
    json_t *rows = e2e_metrics(t, "a");
    assert_true(e2e_metric(rows, 0, "sampling/logp_difference/max") == 0);
    assert_true(e2e_metric(rows, 1, "sampling/logp_difference/max") == 0);
    json_decref(rows);
    // Bytes that never occur in UTF-8.
    assert_int_equal(e2e_shell(t, "grep -qE '[ [](19[23]|24[5-9]|25[0-5])[],]' a/rollouts.jsonl"),
                     0);
}

// A single question under the plain template gives the same prompt as the text alone.
static void plain_is_the_prompt(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "one.jsonl", "{\"messages\":[" USER("a film") "]}\n");
    e2e_write(t, "text.jsonl", "{\"prompt\":\"a film\"}\n");
    assert_int_equal(e2e_run(t, GRPO "--prompts one.jsonl --set run.dir=m"), 0);
    assert_int_equal(e2e_run(t, GRPO "--prompts text.jsonl --set run.dir=p"), 0);
    assert_int_equal(e2e_shell(t, "cmp m/checkpoints/000002/model.safetensors "
                                  "p/checkpoints/000002/model.safetensors"),
                     0);
}

#define SFT                                                                                        \
    "--algo sft.so --policy model --set policy.init=random --data talks.jsonl --set batch.size=2 " \
    "--set run.phases=2 --set data.eval_path=talks.jsonl --set optim.lr=0.01 "

// Returns the loss in nats per token that `eval` measures on talks.jsonl.
static double measured(struct e2e *t, const char *flags) {
    char line[256];
    snprintf(line, sizeof line, "\"$HOST\" eval %s --data talks.jsonl --json 2>log", flags);
    assert_int_equal(e2e_shell(t, line), 0);
    json_t *v = json_loads(t->out, 0, NULL);
    const double x = json_number_value(json_object_get(v, "nats_per_token"));
    json_decref(v);
    return x;
}

static void supervised(void **state) {
    struct e2e *t = *state;
    if (e2e_run(t, SFT "--set run.dir=all") != 0) fail_msg("%s", t->out);
    e2e_says(t, "of 2 rows with messages");
    if (e2e_run(t, SFT "--set data.assistant_only=true --set run.dir=says") != 0)
        fail_msg("%s", t->out);
    assert_int_equal(e2e_run(t, SFT "--set data.assistant_only=true --set run.dir=small --set "
                                    "batch.microbatch_tokens=1"),
                     0);
    json_t *all = e2e_metrics(t, "all"), *says = e2e_metrics(t, "says");
    json_t *small = e2e_metrics(t, "small");
    // Microbatches add up to the mean over the assistant's tokens.
    double a = e2e_metric(says, 0, "objective/loss"), b = e2e_metric(small, 0, "objective/loss");
    assert_true(a - b < 1e-6 && b - a < 1e-6);
    // The loss is a mean over the counted tokens, and a random model predicts them all equally
    // badly.
    assert_true(a > 5.3 && a < 5.9);
    assert_true(e2e_metric(says, 0, "optim/grad_norm") != e2e_metric(all, 0, "optim/grad_norm"));
    assert_true(e2e_metric(says, 1, "eval/loss") != e2e_metric(all, 1, "eval/loss"));
    // `eval` counts the same tokens as the run.
    const double whole = e2e_metric(all, 1, "eval/loss"), theirs = e2e_metric(says, 1, "eval/loss");
    assert_true(fabs(measured(t, "--model all/checkpoints/latest") - whole) < 1e-9);
    assert_true(fabs(measured(t, "--model says/checkpoints/latest") - theirs) < 1e-9);
    assert_true(fabs(measured(t, "--model says") - theirs) < 1e-9);
    assert_true(fabs(measured(t, "--model says --tokens all") - theirs) > 1e-4);
    assert_true(fabs(measured(t, "--model all --tokens assistant") - whole) > 1e-4);
    assert_int_equal(e2e_run(t, "eval --model says --data talks.jsonl --tokens some"), 2);
    e2e_says(t, "eval: --tokens is 'some'; allowed: auto, all, assistant");
    assert_int_equal(e2e_run(t, "eval --model says --data texts.jsonl --tokens all"), 2);
    e2e_says(t, "eval: --tokens has no effect here: no row has messages");
    json_decref(all);
    json_decref(says);
    json_decref(small);
}

static void others(void **state) {
    struct e2e *t = *state;
    if (e2e_run(t, "--algo dpo.so --policy model --set policy.init=random --data pairs.jsonl --set "
                   "batch.size=2 --set run.phases=1 --set run.dir=d") != 0)
        fail_msg("%s", t->out);
    e2e_says(t, "of 2 rows with messages");
    if (e2e_run(t, "generate --model d/checkpoints/latest --prompts prompts.jsonl --max-new 3 "
                   "--ignore-eos --json") != 0)
        fail_msg("%s", t->out);
    e2e_says(t, "\"prompt\": \"it\\n\\nwas\\n\\nso\"");
    // In this model's training rows, a separator stood between prompt and answer. But if a prompt
    // is given as text, no separator is added.
    assert_int_equal(e2e_run(t, "generate --model d/checkpoints/latest --prompts prompts.jsonl "
                                "--max-new 3 --ignore-eos"),
                     0);
    e2e_says(t, "it\n\nwas\n\nso\n\n");
    assert_int_equal(e2e_run(t, "generate --model d/checkpoints/latest --prompt so --max-new 3 "
                                "--ignore-eos --raw"),
                     0);
    assert_null(strstr(t->out, "so\n\n"));
    if (e2e_run(t,
                "pairs --model d/checkpoints/latest --judge period_count.so --prompts "
                "prompts.jsonl --out p.jsonl --n 40 --k 8 --set sampling.max_new_tokens=24") != 0)
        fail_msg("%s", t->out);
    assert_int_equal(e2e_shell(t,
                               "grep -q '\"prompt\": *\\[{\"role\": *\"user\", *\"content\": *\"a "
                               "film\"' p.jsonl"),
                     0);
    assert_int_equal(e2e_shell(t, "grep -q '\"chosen\": *\\[{\"role\": *\"assistant\"' p.jsonl"),
                     0);
    assert_int_equal(e2e_run(t,
                             "--algo dpo.so --policy model --set policy.init=random --data p.jsonl "
                             "--set batch.size=2 --set run.phases=1 --set run.dir=e"),
                     0);
}

static void refused(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "bad.jsonl", "{\"messages\":[{\"role\":\"ipython\",\"content\":\"x\"}]}\n");
    assert_int_equal(e2e_run(t, GRPO "--prompts bad.jsonl --set run.dir=r"), 2);
    e2e_says(
        t,
        "bad.jsonl:1: messages[0]: the role is 'ipython'; allowed: system, user, assistant, tool");
    e2e_write(t, "model/chat_template.jinja", "{{ messages | pprint }}");
    assert_int_equal(e2e_run(t, GRPO "--set run.dir=r"), 2);
    e2e_says(t, "prompts.jsonl:1: the row has messages, but the chat template of ");
    e2e_says(t, "cannot be used (it does not render a question: line 1: the filter 'pprint'");
    e2e_says(t, "); name the template with prompts.template=NAME");
    assert_int_equal(e2e_run(t, GRPO "--set run.dir=r --set prompts.template=gema"), 2);
    e2e_says(t, "prompts.template: there is no chat template 'gema' (did you mean \"gemma\"?); "
                "allowed: auto, chatml, ");
    assert_int_equal(e2e_run(t, GRPO "--set run.dir=r --set prompts.template=./none.jinja"), 2);
    e2e_says(t, "prompts.template: ");
    e2e_says(t, "none.jinja");
    assert_int_equal(e2e_run(t, GRPO "--set run.dir=r --set prompts.template=plain --set "
                                     "prompts.prepend_bos=true"),
                     2);
    e2e_says(t, "prompts.prepend_bos has no effect here: all rows have messages");
    assert_int_equal(e2e_run(t, SFT "--set run.dir=r --data texts.jsonl --set "
                                    "data.assistant_only=true"),
                     2);
    e2e_says(t,
             "texts.jsonl:1: the row is a text, and data.assistant_only is for rows with messages");
    assert_int_equal(e2e_run(t, "--algo dpo.so --policy model --set policy.init=random --data "
                                "pairs.jsonl --set data.assistant_only=true --set run.dir=r"),
                     2);
    e2e_says(t, "data.assistant_only has no effect here");
    assert_false(e2e_exists(t, "r"));
    // If the rows have no messages, a message reports that the template name has no effect.
    assert_int_equal(e2e_run(t, GRPO "--prompts prompts.txt --set prompts.template=chatml --set "
                                     "run.dir=w"),
                     0);
    e2e_says(t, "prompts.template is chatml, but no row has messages");
}

// --prompt and piped lines become user turns, but piped JSON rows are used as they are. --raw skips
// the template. One line reports which of these applied.
static void typed(void **state) {
    struct e2e *t = *state;
#define ASK "\"$HOST\" generate --model model --template zephyr --max-new 3 --json "
    e2e_write(t, "one.jsonl", "{\"messages\":[" USER("so") "]}\n");
    e2e_write(t, "two.jsonl", "{\"messages\":[" USER("so") "]}\n{\"prompt\":\"{\\\"a\\\": 1\"}\n");
    assert_int_equal(
        e2e_shell(t, "\"$HOST\" --algo sft.so --policy model --set policy.init=random --data "
                     "talks.jsonl --set batch.size=2 --phases 1 --out w >/dev/null 2>&1 && rm -r "
                     "model && cp -rL w/checkpoints/latest model"),
        0);
    assert_int_equal(e2e_shell(t, ASK "--prompts one.jsonl >want && " ASK "--prompt so >a && cmp "
                                      "want a && printf 'so\n' | " ASK ">b && cmp want b && " ASK
                                      "<one.jsonl >c && cmp want c"),
                     0);
    e2e_says(t, "each prompt is a user's turn of the chat template zephyr (named); --raw leaves it "
                "out");
    assert_int_equal(e2e_shell(t, ASK "--prompts two.jsonl >want && cat two.jsonl | " ASK
                                      ">got && cmp want got && grep -c '\"prompt_length\": 7' got"),
                     0);
    e2e_says(t, "prompts are continued as they are, without the chat template zephyr; rows with "
                "messages get it");
    assert_int_equal(e2e_run(t, "generate --model model --raw --prompt so --json"), 0);
    e2e_says(t, "prompts are continued as they are, without the chat template ");
    e2e_says(t, "model/chat_template.jinja\n");
    e2e_says(t, "\"prompt_length\": 2,");
    assert_int_equal(e2e_run(t, "eval --model model --reward period_count.so --data prompts.txt "
                                "--n 4 --set sampling.max_new_tokens=3"),
                     0);
    e2e_says(t, "no row has messages: texts are taken as they are, without the model's chat "
                "template ");
    e2e_says(t, "model/chat_template.jinja\n");
    assert_int_equal(e2e_run(t, "generate --model model --bos --prompt so"), 2);
    e2e_says(t, "prompt 1: --bos is for texts, and a chat template says how a prompt begins; --raw "
                "leaves the template out");
    assert_int_equal(e2e_run(t, "generate --model model --raw --prompt ''"), 2);
    e2e_says(t,
             "--raw has no effect here: the prompt is empty, so the text begins at the BOS token");
    assert_int_equal(e2e_run(t, "generate --model model --raw --prompts one.jsonl"), 2);
    e2e_says(t, "generate: --raw has no effect here: no text is given by --prompt or as a piped "
                "line");
    assert_int_equal(e2e_shell(t, "printf '{\"prompt\": so}\n' | \"$HOST\" generate --model model"),
                     2);
    e2e_says(t, "standard input:1:13: not valid JSON");
    e2e_says(t, "its lines are JSON rows; such a text is given as {\"prompt\": ...}");
    // The run trains on plain texts. So its model has a chat template that it was not trained with,
    // and `generate` does not apply this template to a prompt.
    if (e2e_run(t, "--algo sft.so --policy model --data texts.jsonl --set batch.size=2 --phases 1 "
                   "--out plain") != 0)
        fail_msg("%s", t->out);
    assert_int_equal(e2e_run(t, "generate --model plain --prompt so --json"), 0);
    e2e_says(t, "chat_template.jinja, since the model's run had no messages; --template NAME makes "
                "them a user's turns");
    e2e_says(t, "\"prompt_length\": 2,");
    assert_int_equal(e2e_run(t, "generate --model plain --prompt so --template zephyr --max-new 3"),
                     0);
    e2e_says(t, "each prompt is a user's turn of the chat template zephyr (named)");
    e2e_write(t, "model/chat_template.jinja", "{{ raise_exception('never') }}");
    assert_int_equal(e2e_run(t, "generate --model model --prompt so"), 0);
    e2e_says(t, "prompts are continued as they are: the chat template of ");
    assert_int_equal(e2e_shell(t, "rm model/chat_template.jinja"), 0);
    assert_int_equal(e2e_run(t, "generate --model model --prompt so --raw"), 0);
    e2e_says(t, "--raw changes nothing: the model has no chat template");
}

// A named template is stored with the model, so the checkpoint and an export render the same text
// without a name.
static void named_goes_along(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "rm model/chat_template.jinja"), 0);
    assert_int_equal(e2e_run(t, GRPO "--set run.dir=no"), 2);
    if (e2e_run(t, GRPO "--set prompts.template=zephyr --set run.dir=a") != 0)
        fail_msg("%s", t->out);
    e2e_says(t, "chat template: zephyr (named)");
    assert_int_equal(e2e_shell(t, "\"$HOST\" export a --to out && "
                                  "cmp out/chat_template.jinja "
                                  "a/checkpoints/latest/chat_template.jinja && "
                                  "grep -q 'tokenizer.apply_chat_template(messages' "
                                  "out/README.md"),
                     0);
    assert_int_equal(e2e_shell(t, "for m in a/checkpoints/latest out; do \"$HOST\" generate "
                                  "--model $m --prompts prompts.jsonl --max-new 3 --seed 1 "
                                  "--ignore-eos >of.$(basename $m) || exit; done; \"$HOST\" "
                                  "generate --model out --template zephyr --prompts prompts.jsonl "
                                  "--max-new 3 --seed 1 --ignore-eos >named && cmp named of.out "
                                  "&& cmp named of.latest && grep -q add_generation_prompt "
                                  "out/chat_template.jinja"),
                     0);
    // A run that is stopped and resumed from this checkpoint equals a run that was never stopped.
    assert_int_equal(e2e_run(t, GRPO "--set prompts.template=zephyr --set run.stop_after=1 --set "
                                     "run.dir=b"),
                     0);
    assert_int_equal(e2e_run(t, "--resume b"), 0);
    e2e_same_tree(t, "a/checkpoints/000002", "b/checkpoints/000002");
    // If no template is named, the one in the model's directory is kept.
    e2e_write(t, "model/chat_template.jinja", TEMPLATE);
    assert_int_equal(e2e_run(t, GRPO "--set run.dir=c"), 0);
    assert_int_equal(e2e_shell(t, "cmp model/chat_template.jinja "
                                  "c/checkpoints/latest/chat_template.jinja"),
                     0);
}

// A user's template file is saved with the model. A resume finds the file from any directory, and
// refuses it if it has changed.
static void own_file(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "rm model/chat_template.jinja"), 0);
    e2e_write(t, "mine.jinja",
              "{% macro say(m) %}<{{ m.role }}>{{ m.content | trim }}{{ eos_token }}{% endmacro %}"
              "{% for m in messages %}{{ say(m) }}{% endfor %}"
              "{% if add_generation_prompt %}<assistant>{% endif %}\n");
#define MINE GRPO "--set prompts.template=mine.jinja "
    if (e2e_run(t, MINE "--set run.dir=a") != 0) fail_msg("%s", t->out);
    e2e_says(t, "mine.jinja (named), of 2 rows with messages");
    assert_int_equal(e2e_shell(t, "cmp mine.jinja a/checkpoints/latest/chat_template.jinja && "
                                  "grep -q '\"template\": \"/.*/mine.jinja\"' a/config.json"),
                     0);
    assert_int_equal(e2e_run(t, MINE "--set run.stop_after=1 --set run.dir=b"), 0);
    assert_int_equal(e2e_shell(t, "b=$PWD/b && cd / && \"$HOST\" --resume \"$b\""), 0);
    e2e_same_tree(t, "a/checkpoints/000002", "b/checkpoints/000002");
    assert_int_equal(e2e_run(t, MINE "--set run.stop_after=1 --set run.dir=c"), 0);
    e2e_write(t, "mine.jinja", "{{ messages[0].content }}");
    assert_int_equal(e2e_run(t, "--resume c"), 2);
    e2e_says(t, "prompts.template");
    assert_int_equal(e2e_run(t, "generate --model a/checkpoints/latest --template mine.jinja "
                                "--prompts prompts.jsonl --max-new 3 --ignore-eos --json"),
                     0);
}

// Classifiers can read conversations, too: in training, `eval` and `label`, with the directory's
// template or a named one.
static void classified(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "rated.jsonl",
              "{\"messages\":[" USER("ab") "," SAYS("good") "],\"label\":1}\n"
                                                            "{\"messages\":[" USER("ab") "," SAYS(
                                                                "poor") "],\"label\":0}\n");
    e2e_write(t, "as-text.jsonl",
              "{\"text\":\"abgood<|endoftext|>\",\"label\":1}\n"
              "{\"text\":\"abpoor<|endoftext|>\",\"label\":0}\n");
#define CLASSIFY                                                                                   \
    "--algo classify.so --policy model --set policy.init=random --set score.labels=BAD,GOOD "      \
    "--set batch.size=2 --set run.phases=20 --set optim.lr=0.01 "
    if (e2e_run(t, CLASSIFY "--data rated.jsonl --set data.eval_path=rated.jsonl --out c") != 0)
        fail_msg("%s", t->out);
    e2e_says(t, "model/chat_template.jinja, of 2 rows with messages");
    e2e_says(t, "held-out accuracy 1.0000 after 20 phases");
    assert_int_equal(e2e_run(t, "eval --model c/checkpoints/latest --data rated.jsonl"), 0);
    e2e_says(t, "1.0000 accuracy (standard error 0.0000, 2 rows");
    assert_int_equal(e2e_shell(t, "\"$HOST\" label --model c/checkpoints/latest --data rated.jsonl "
                                  "--out l.jsonl && cat l.jsonl"),
                     0);
    e2e_says(t, "{\"messages\": [{\"role\": \"user\", \"content\": \"ab\"}, {\"role\": "
                "\"assistant\", \"content\": \"good\"}], \"label\": 1, \"p\": 0.9");
    // Another template gives another text.
    for (const char *const *name = (const char *const[]){"auto", "zephyr", NULL}; *name; name++)
        assert_int_equal(e2e_shell(t,
                                   "\"$HOST\" label --model c/checkpoints/latest --template %s "
                                   "--data rated.jsonl --out %s.jsonl && \"$HOST\" eval --json "
                                   "--model c/checkpoints/latest --template %s --data rated.jsonl "
                                   ">%s.json",
                                   *name, *name, *name, *name),
                         0);
    assert_int_equal(e2e_shell(t, "cmp auto.jsonl l.jsonl && ! cmp -s auto.jsonl zephyr.jsonl && "
                                  "! cmp -s auto.json zephyr.json"),
                     0);
    assert_int_equal(e2e_run(t, "label --model c/checkpoints/latest --template zefyr --data "
                                "rated.jsonl --out x.jsonl"),
                     2);
    e2e_says(t, "--template: there is no chat template 'zefyr' (did you mean \"zephyr\"?)");
    // These flags are checked before a model is looked for.
    assert_int_equal(e2e_run(t, "generate --model nowhere --prompt x --template zefyr"), 2);
    e2e_says(t, "--template: there is no chat template 'zefyr'");
    assert_int_equal(e2e_run(t, "eval --model nowhere --data x.jsonl --template-vars {]"), 2);
    e2e_says(t, "--template-vars: not valid JSON");
    assert_int_equal(e2e_run(t, "label --model nowhere --data x.jsonl --out y.jsonl --date x"), 2);
    e2e_says(t, "--date");
    assert_int_equal(e2e_run(t, "label --model c/checkpoints/latest --template zephyr --data "
                                "texts.jsonl --out x.jsonl"),
                     2);
    e2e_says(t, "label: --template has no effect here: no row has messages");
    assert_int_equal(e2e_run(t, "eval --model c/checkpoints/latest --template zephyr --data "
                                "labeled.jsonl"),
                     2);
    e2e_says(t, "eval: --template has no effect here: no row has messages");
    assert_false(e2e_exists(t, "x.jsonl"));
}

// eval of a language model and of a reward model with a named template.
static void evaluated(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, SFT "--set run.dir=all"), 0);
    assert_int_equal(e2e_run(t, "--algo bradley_terry.so --policy model --set policy.init=random "
                                "--data pairs.jsonl --set batch.size=2 --set run.phases=1 --out r"),
                     0);
    assert_int_equal(e2e_shell(t, "for n in auto zephyr; do \"$HOST\" eval --model "
                                  "all/checkpoints/latest --data talks.jsonl --json --template $n "
                                  ">t.$n && \"$HOST\" eval --model r/checkpoints/latest --data "
                                  "pairs.jsonl --json --template $n >p.$n || exit; done; ! cmp -s "
                                  "t.auto t.zephyr && ! cmp -s p.auto p.zephyr"),
                     0);
    assert_int_equal(e2e_run(t, "eval --model all/checkpoints/latest --data prompts.jsonl --reward "
                                "period_count.so --template zephyr"),
                     2);
    e2e_says(t, "--template has no effect with --reward, where --set prompts.template=NAME "
                "(prompts.template_vars, prompts.date) says it");
}

// The warning about the end of a turn names a remedy that works in this run.
static void a_turn_end_that_ends_no_response(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "sed -i 's/\"vocab_size\": 260/\"vocab_size\": 261/' "
                                  "model/config.json && rm model/chat_template.jinja"),
                     0);
    e2e_write(t, "model/tokenizer_config.json",
              "{\"added_tokens_decoder\": {\"260\": {\"content\": \"<|im_end|>\", \"special\": "
              "true}}}");
    assert_int_equal(e2e_run(t, GRPO "--dry-run --set prompts.template=chatml"), 0);
    e2e_says(t, "responses go on after it; sampling.stop=[260] ends them there");
    static const char *const given[] = {"[260]", "'[\"<|im_end|>\"]'"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(e2e_run(t,
                                 GRPO "--dry-run --set prompts.template=chatml "
                                      "--set sampling.stop=%s",
                                 given[i]),
                         0);
        assert_null(strstr(t->out, "ends turns of the chat template"));
    }
    assert_int_equal(e2e_run(t, "--algo sft.so --policy model --set policy.init=random "
                                "--data talks.jsonl --dry-run --set prompts.template=chatml"),
                     0);
    e2e_says(t, "responses of the trained model will go on after it; id ");
    e2e_says(t, " among the eos_token_id of generation_config.json ends them there");
    assert_null(strstr(t->out, "sampling.stop"));
    assert_int_equal(e2e_run(t, "--algo dpo.so --policy model --set policy.init=random "
                                "--data pairs.jsonl --dry-run --set prompts.template=chatml"),
                     0);
    e2e_says(t, "responses of the trained model will go on after it; id ");
    assert_null(strstr(t->out, "sampling.stop"));
    // If the model ends its turns with a token that does not end responses, `generate` reports
    // this. If all responses of a run are cut off, the run reports it, too.
    assert_int_equal(e2e_run(t, "--algo sft.so --policy model --set policy.init=random --data "
                                "talks.jsonl --set prompts.template=chatml --set optim.lr=0.01 "
                                "--set batch.size=2 --phases 200 --out s"),
                     0);
    // The suggested command leaves out the prompt, because the template would be applied to it
    // again.
    e2e_says(t, "try it: rlhf-host generate --model s\n");
    e2e_write(t, "ab.jsonl", "{\"messages\":[" USER("ab") "]}\n");
    static const char *const asks[] = {"", "--stop-id 260", "--ignore-eos", "--raw"};
    for (int i = 0; i < 4; i++) {
        if (e2e_run(t, "generate --model s --prompt ab --max-new 9 %s", asks[i]) != 0)
            fail_msg("%s", t->out);
        if (i == 0)
            e2e_says(t, "responses go on after it; --stop-id 260 ends them there");
        else
            assert_null(strstr(t->out, "ends turns of the chat template"));
    }
    assert_int_equal(e2e_run(t, "--algo grpo.so --policy s --reward period_count.so --prompts "
                                "ab.jsonl --set batch.size=8 --set algo.group_size=4 --set "
                                "sampling.max_new_tokens=20 --phases 1 --out g"),
                     0);
    e2e_says(t, " contain '<|im_end|>', which ends turns of the chat template but no response; "
                "sampling.stop=[260] ends them there");
    assert_null(strstr(t->out, "a higher sampling.max_new_tokens"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rollouts, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(ids_stay, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(plain_is_the_prompt, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(supervised, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(others, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(typed, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(named_goes_along, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(own_file, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(classified, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(evaluated, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(refused, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_turn_end_that_ends_no_response, setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_chat", tests, NULL, NULL);
}
