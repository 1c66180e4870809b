// A file that the build compiled into the program (cmake/EmbedFiles.cmake).
#pragma once

#include <string_view>

namespace fencepost {

struct EmbeddedFile {
  std::string_view name;  // without folders
  std::string_view content;
};

}  // namespace fencepost
