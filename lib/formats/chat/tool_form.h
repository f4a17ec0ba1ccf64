// tool_form.h: the forms in which models write tool calls.
//
// tool_calls.h reads these forms. Chat templates write the tools, and the results of calls.
#ifndef RLHF_FORMATS_CHAT_TOOL_FORM_H
#define RLHF_FORMATS_CHAT_TOOL_FORM_H

enum rlhf__tool_form {
    RLHF__TOOL_FORM_NONE = 0,
    // <tool_call>
    // {"name": "f", "arguments": {"x": 1}}
    // </tool_call>        several in a turn (Qwen2.5, Qwen3, Hermes)
    RLHF__TOOL_FORM_HERMES,
    // {"name": "f", "parameters": {"x": 1}}        the whole turn, sometimes after <|python_tag|>
    RLHF__TOOL_FORM_LLAMA3,
    // [TOOL_CALLS] [{"name": "f", "arguments": {"x": 1}, "id": "..."}], or
    // [TOOL_CALLS]f[ARGS]{"x": 1}
    RLHF__TOOL_FORM_MISTRAL,
    // <tool_call>
    // <function=f>
    // <parameter=x>
    // 1
    // </parameter>
    // </function>
    // </tool_call>        (Qwen3-Coder, Qwen3.5)
    RLHF__TOOL_FORM_QWEN3_CODER,
    // <call name="f"><arg name="x">1</arg></call>        for models without another form
    RLHF__TOOL_FORM_XML,
    // <|tool_call_start|>[f(x=1, s='a'), g()]<|tool_call_end|>        (LFM2)
    RLHF__TOOL_FORM_LFM2,
    RLHF__N_TOOL_FORMS
};

#endif
