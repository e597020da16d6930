#pragma once
#include <exception>
#include <new>
#include <system_error>

#include "base/error.h"

namespace rankine {

// What an exception says of itself: want of memory or threads is {resource}, what nobody expected
// {internal}.
inline Error failure_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& e) {
    return e;
  } catch (const std::bad_alloc&) {
    return {ErrorKind::resource, "out of memory"};
  } catch (const std::system_error& e) {
    const bool threads = e.code() == std::errc::resource_unavailable_try_again;
    if (threads || e.code() == std::errc::not_enough_memory)
      return {ErrorKind::resource,
              fmt::format("{}: {}", threads ? "cannot start another thread" : "out of memory",
                          e.what())};
    return {ErrorKind::internal, e.what()};
  } catch (const std::exception& e) {
    return {ErrorKind::internal, e.what()};
  }
}

}  // namespace rankine
