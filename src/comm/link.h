#pragma once
#include <cstddef>

#include "base/error.h"

// What carries bytes between two ranks, one way each. Collectives are written once over links.
namespace rankine {

// A message is cut into pieces of piece_bytes(), the last one shorter; both sides know its length.
// Messages arrive in the order in which they were sent. One thread uses a link at a time.
class Link {
 public:
  explicit Link(size_t piece_bytes) : piece_bytes_(piece_bytes) {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  virtual ~Link() = default;

  size_t piece_bytes() const { return piece_bytes_; }
  // Begins one message; the one before must be sent(). `data` must stay until then.
  void start_send(const void* data, size_t bytes) {
    expect(left_to_send_ == 0, "one message of a link at a time");
    data_ = static_cast<const std::byte*>(data);
    left_to_send_ = bytes;
  }
  // Moves the message on; true when its memory may be used again.
  virtual bool sent() = 0;
  // Where a message of one piece may be written in place, to be sent with publish(); null when
  // there is no such place now. The message before must be sent().
  virtual std::byte* room() { return nullptr; }
  virtual void publish() {}
  // Announces the length of the next message from the peer; the one before must be consumed.
  virtual void expect_message(size_t bytes) = 0;
  // The next piece of it, or null when it is not there yet. It stays until consume().
  virtual const std::byte* arrived() = 0;
  virtual void consume() = 0;
  // Says that what is under way is of no interest any more: afterwards the link neither reads nor
  // writes memory it was given, and nothing else may be called.
  virtual void give_up() { left_to_send_ = 0; }

 protected:
  const std::byte* data_ = nullptr;  // what is still to be sent
  size_t left_to_send_ = 0;

 private:
  size_t piece_bytes_;
};

}  // namespace rankine
