target_sources(rlhf_host_core PRIVATE
  chat/space.c chat/turns.c chat/message.c chat/jinja_lex.c chat/jinja_tree.c chat/jinja_parser.c
  chat/jinja_expression.c chat/jinja_parse.c chat/jinja_value.c chat/jinja_named.c
  chat/jinja_eval.c chat/jinja_run.c chat/style.c chat/form_jinja.c chat/probe.c chat/probe_thoughts.c chat/chat.c)
