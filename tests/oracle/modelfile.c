// modelfile.c: writes the Modelfile of the model directory DIR to standard output, for
// modelfiles.py.
//   modelfile DIR
#include "export/modelfile.h"
#include "base/json.h"

#include <stdio.h>

int main(int argc, char **argv) {
    struct rlhf__error err = {0, ""};
    struct rlhf__buf out = RLHF__BUF_INIT;
    json_t *config = json_object();
    const struct rlhf__modelfile m = {argv[1], config, "./m.gguf", "./a.gguf"};
    const rlhf_status st = argc == 2 ? rlhf__modelfile_make(&m, &out, &err)
                                     : rlhf__fail(&err, RLHF_E_INVALID, "usage: modelfile DIR");
    if (st == RLHF_OK)
        fwrite(rlhf__buf_text(&out), 1, out.len, stdout);
    else
        fprintf(stderr, "%s\n", err.text);
    rlhf__buf_finish(&out);
    json_decref(config);
    return st != RLHF_OK;
}
