# Run by CMake at the end of llama.cpp's own project() call (CMAKE_PROJECT_llama.cpp_INCLUDE).
# llama-cpp-python forces LLAMA_BUILD_COMMON on, which compiles the chat, JSON, Jinja and HTTP code of
# llama.cpp's command-line tools. The Python package loads none of it; a plain variable of this scope wins
# over the forced cache entry (policy CMP0077).
set(LLAMA_BUILD_COMMON OFF)
