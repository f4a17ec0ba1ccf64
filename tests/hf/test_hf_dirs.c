// test_hf_dirs.c: opens the directories of dirs/, which transformers wrote, as a user's own models.
// Compares ids, log-probs, logits and labels with expected.json. make_dirs.py made the directories
// and expected.json.
#include "kit.h"

#define LM(test, name)                                                                             \
    static void test(void **state) { hf_check_lm(*state, "dirs/" name, name); }
#define CLASSIFIER(test, name, labels, first)                                                      \
    static void test(void **state) {                                                               \
        hf_check_classifier(*state, "dirs/" name, name, labels, first);                            \
    }

LM(one_tokenizer_file, "gpt2")
LM(classic_files_and_f16, "gpt2-classic-f16")
LM(sharded_and_untied, "gpt2-sharded")
LM(bf16_and_padded_vocabulary, "gpt2-bf16")
CLASSIFIER(gpt2_with_default_labels, "gpt2-classifier", 2, "LABEL_0")
CLASSIFIER(gpt2_with_one_label_and_bos, "gpt2-reward", 1, "LABEL_0")
CLASSIFIER(distilbert_with_named_labels, "distilbert", 3, "bad")

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_tokenizer_file),
        cmocka_unit_test(classic_files_and_f16),
        cmocka_unit_test(sharded_and_untied),
        cmocka_unit_test(bf16_and_padded_vocabulary),
        cmocka_unit_test(gpt2_with_default_labels),
        cmocka_unit_test(gpt2_with_one_label_and_bos),
        cmocka_unit_test(distilbert_with_named_labels),
    };
    return cmocka_run_group_tests_name("directories of transformers", tests, hf_setup, hf_teardown);
}
