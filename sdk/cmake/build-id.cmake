# Writes the header OUT with the commit of SOURCE as a short hash, plus "-changed" if tracked files
# differ from that commit. Writes "" if SOURCE is not a clone. OUT is written only if its contents
# change, so that a build without a new commit rebuilds nothing.
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD
  OUTPUT_VARIABLE id ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  set(id "")
else()
  execute_process(COMMAND git -C ${SOURCE} diff-index --quiet HEAD -- RESULT_VARIABLE changed
    ERROR_QUIET)
  if(changed)
    string(APPEND id "-changed")
  endif()
endif()
set(text "#define RLHF_GIT_ID \"${id}\"\n")
set(there "")
if(EXISTS ${OUT})
  file(READ ${OUT} there)
endif()
if(NOT there STREQUAL text)
  file(WRITE ${OUT} "${text}")
endif()
