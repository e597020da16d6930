#pragma once
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

// What a failing call reports.
namespace rankine::test {

// The Error that `call` throws; a test failure and an empty message when it throws none.
template <class Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error was thrown";
  return {ErrorKind::internal, ""};
}

template <class Call>
std::string message_of(Call&& call) {
  return error_of(call).what();
}

}  // namespace rankine::test
