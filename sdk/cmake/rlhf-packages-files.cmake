# CPack runs this before it builds a package. It adds files that Debian requires in every package
# but a manual installation does not need: the licence as `copyright`, a change log, and compressed
# manual pages.
find_program(GZIP gzip REQUIRED)
foreach(component host models sdk)
  string(TOUPPER ${component} upper)
  set(root "${CPACK_TEMPORARY_DIRECTORY}/${component}")
  if(NOT IS_DIRECTORY "${root}")
    continue()
  endif()
  set(doc "${root}/usr/share/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME}")
  file(WRITE "${doc}/copyright" "Copyright: ${CPACK_PACKAGE_VENDOR}\n\n"
    "Licensed under the Apache License, Version 2.0; on Debian its text is in\n"
    "/usr/share/common-licenses/Apache-2.0.\n")
  configure_file("${CPACK_RLHF_CHANGES}" "${doc}/changelog" COPYONLY)
  file(GLOB pages "${root}/usr/share/man/man*/*")
  execute_process(COMMAND ${GZIP} -9n ${pages} "${doc}/changelog" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
