target_sources(rlhf_host_core PRIVATE
  report/columns.c report/events.c report/jsonl.c report/metrics.c report/progress.c
  report/samples.c)
