// tool_judge.c: see tool_judge.h.
#include "chat/tool_judge.h"

#include <string.h>

const json_t *rlhf__tool_named(const json_t *tools, const json_t *name, const json_t **inner) {
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i), *in = json_object_get(tool, "function");
        *inner = json_is_object(in) ? in : tool;
        if (json_equal(json_object_get(*inner, "name"), name)) return tool;
    }
    *inner = NULL;
    return NULL;
}

int32_t rlhf__tool_forged(const char *text) {
    static const char *const marks[] = {
        "<tool_response>",        "[TOOL_RESULTS]", "<|start_header_id|>",
        "<|im_start|>",           "[INST]",         "<|user|>",
        "<start_of_turn>user",    "<result>",       "\nObservation:",
        "<|tool_response_start|>"};
    int32_t n = strncmp(text, "Observation:", 12) == 0;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        for (const char *at = text; (at = strstr(at, marks[i])); at += strlen(marks[i]))
            n++;
    return n;
}

static int32_t fault_of(const struct rlhf__called *c, const json_t *tools) {
    const json_t *inner, *name;
    size_t i;
    if (c->fault || !tools) return c->fault;
    if (!rlhf__tool_named(tools, c->name, &inner)) return RLHF__CALL_UNKNOWN;
    json_t *required = json_object_get(json_object_get(inner, "parameters"), "required");
    json_array_foreach(required, i, name) {
        if (json_is_string(name) &&
            !json_object_getn(c->arguments, json_string_value(name), json_string_length(name)))
            return RLHF__CALL_INCOMPLETE;
    }
    return RLHF__CALL_GOOD;
}

void rlhf__tool_judge(struct rlhf__tool_calls *out, const json_t *tools) {
    for (size_t i = 0; i < out->n; i++) {
        out->item[i].fault = fault_of(&out->item[i], tools);
        out->faults += out->item[i].fault != RLHF__CALL_GOOD;
    }
    for (size_t i = 0; out->faults && i < out->n; i++)
        if (!out->item[i].fault) out->item[i].fault = RLHF__CALL_NOT_RUN;
}

const char *rlhf__call_fault_answer(int32_t fault) {
    static const char *const answers[RLHF__N_CALL_FAULTS] = {
        "{\"error\": \"the call was not run\"}", "{\"error\": \"the call could not be read\"}",
        "{\"error\": \"there is no tool of this name\"}",
        "{\"error\": \"a required argument is missing\"}",
        "{\"error\": \"not run: another call of this turn is wrong\"}"};
    return answers[fault > 0 && fault < RLHF__N_CALL_FAULTS ? fault : 0];
}

json_t *rlhf__tool_calls_json(const struct rlhf__tool_calls *calls) {
    json_t *list = json_array();
    for (size_t i = 0; list && i < calls->n; i++) {
        const struct rlhf__called *c = &calls->item[i];
        json_t *one = json_pack("{s:s,s:{s:O,s:O}}", "type", "function", "function", "name",
                                c->name, "arguments", c->arguments);
        if (!one || (c->id && json_object_set(one, "id", c->id) != 0) ||
            json_array_append_new(list, one) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}
