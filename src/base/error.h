#pragma once
#include <fmt/core.h>

#include <stdexcept>
#include <string>

// The one exception class. Who can cure the fault decides the kind; the kind decides the exit code.
namespace rankine {

enum class ErrorKind { usage = 2, environment = 3, data = 4, resource = 5, internal = 70 };

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }
  int exit_code() const { return static_cast<int>(kind_); }

 private:
  ErrorKind kind_;
};

// Throws Error{kind} with the formatted message: lower case, what is wrong, the values, what to
// change.
template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

// A condition the user or the surroundings control.
template <class... Args>
void require(bool ok, ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  if (!ok) fail(kind, format, std::forward<Args>(args)...);
}

// A condition only a bug can break. (clang-tidy 14 cannot see std::source_location.)
inline void expect(bool ok, const char* what, const char* file = __builtin_FILE(),
                   int line = __builtin_LINE()) {
  if (!ok) throw Error(ErrorKind::internal, fmt::format("{}:{}: {}", file, line, what));
}

}  // namespace rankine
