# What kernels_cuda.so is made of; tests/cuda builds the same files as C++ on the emulation.
set(RLHF_CUDA_SOURCES
  context.cu
  elementwise.cu
  memory.cu
  table.cu)
list(TRANSFORM RLHF_CUDA_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
