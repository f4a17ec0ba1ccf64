target_sources(rlhf_host_core PRIVATE
  report/append.c report/csv_columns.c report/events.c report/jsonl.c
  report/metrics.c report/progress.c report/samples.c report/sink_csv.c report/sink_events.c
  report/sink_jsonl.c)
