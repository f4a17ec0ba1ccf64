// test_why_unused.c: which options the shipped algorithms report as having no effect. They must not
// report any other option.
#include "algos/fixture.h"

#include <rlhf/draft/iteration.h>

static const struct {
    const char *so, *options, *unused; // unused: keys in table order, each with a space before it
} cases[] = {
    {"ppo.so", "",
     " advantage_eps advantage_std kl_target kl_horizon kl_unit kl_measure whiten_scope"},
    {"ppo.so", "advantage=broadcast_reward",
     " advantage_eps advantage_std kl_target kl_horizon kl_unit kl_measure whiten_scope"},
    {"ppo.so", "advantage=one_step,kl_controller=adaptive,minibatches=2",
     " gamma lambda advantage_eps advantage_std kl_measure"},
    {"ppo.so", "advantage=sequence,minibatches=2",
     " gamma lambda kl_target kl_horizon kl_unit kl_measure whiten_form whiten_eps value_coef "
     "value_clip"},
    {"ppo.so", "advantage=sequence,whiten_rewards=true,minibatches=2",
     " gamma lambda kl_target kl_horizon kl_unit kl_measure value_coef value_clip"},
    {"ppo.so", "advantage=group,group_size=2,minibatches=2",
     " gamma lambda kl_target kl_horizon kl_unit kl_measure whiten_scope whiten_form whiten_eps "
     "value_coef value_clip"},
    {"ppo.so", "advantage=group_mean,group_size=2,whiten_advantages=on,minibatches=2",
     " gamma lambda advantage_eps advantage_std kl_target kl_horizon kl_unit kl_measure value_coef "
     "value_clip"},
    {"ppo.so", "kl_placement=none,minibatches=2",
     " advantage_eps advantage_std kl_estimator kl_coef kl_target kl_horizon kl_unit"},
    {"ppo.so", "kl_placement=none,kl_coef=0,epochs=1",
     " advantage_eps advantage_std kl_estimator kl_target kl_horizon kl_unit whiten_scope "
     "target_kl"},
    {"grpo.so", "",
     " advantage_scope sapo_temperature_pos sapo_temperature_neg kl_target kl_horizon kl_unit "
     "kl_measure dynamic_rounds target_kl"},
    {"grpo.so", "epochs=2,kl_coef=0",
     " advantage_scope sapo_temperature_pos sapo_temperature_neg kl_estimator kl_target kl_horizon "
     "kl_unit kl_measure dynamic_rounds"},
    {"grpo.so", "minibatches=2,kl_coef=0,kl_estimator=full",
     " sapo_temperature_pos sapo_temperature_neg kl_target kl_horizon kl_unit kl_measure "
     "dynamic_rounds"},
    {"grpo.so", "minibatches=2,advantage_scale=none,loss=cispo",
     " advantage_eps advantage_std sapo_temperature_pos sapo_temperature_neg kl_target kl_horizon "
     "kl_unit kl_measure dynamic_rounds"},
    {"grpo.so", "minibatches=2,loss=sapo,kl_controller=adaptive,dynamic_sampling=true",
     " clip_range clip_range_high kl_measure"},
    {"ppo.so", "advantage=reward_to_go,minibatches=2",
     " lambda advantage_eps advantage_std kl_target kl_horizon kl_unit kl_measure whiten_scope "
     "whiten_form whiten_eps value_coef value_clip"},
    {"grpo.so", "minibatches=2,loss=cispo,clip_range_high=4,kl_controller=adaptive",
     " sapo_temperature_pos sapo_temperature_neg clip_range kl_measure dynamic_rounds"},
    {"grpo_iterative.so", "minibatches=2,kl_controller=adaptive",
     " replay_share replay_history rm_epochs rm_batch rm_lr rm_refit sapo_temperature_pos "
     "sapo_temperature_neg kl_measure dynamic_rounds"},
    {"grpo_iterative.so", "minibatches=2,kl_controller=adaptive,replay=true",
     " sapo_temperature_pos sapo_temperature_neg kl_measure dynamic_rounds"},
};

static void table(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct algo a;
        char found[1024] = "";
        static const rlhf_iteration_service unused = {.size = sizeof unused};
        algo_offer = (struct rlhf_test_service){RLHF_SVC_ITERATION, &unused};
        assert_int_equal(algo_try(&a, cases[i].so, cases[i].options), RLHF_OK);
        rlhf_opt o;
        for (uint32_t k = 0;
             rlhf_opt_at(a.plugin->opts, a.plugin->n_opts, a.plugin->opt_stride, k, &o); k++) {
            const rlhf_option_in in = {.size = sizeof in, .config = a.config.bytes, .key = o.key};
            const char *why = a.plugin->why_unused(&in);
            if (why) snprintf(found + strlen(found), sizeof found - strlen(found), " %s", o.key);
        }
        if (strcmp(found, cases[i].unused) != 0)
            fail_msg("%s:%s: unused are%s, not%s", cases[i].so, cases[i].options, found,
                     cases[i].unused);
        algo_close(&a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(table)};
    return cmocka_run_group_tests_name("algos/why_unused", tests, NULL, NULL);
}
