#include "data/byte_stream.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace rankine {
namespace {

class FileStream final : public ByteStream {
 public:
  explicit FileStream(const std::filesystem::path& path)
      : file_(File::open_read(path)), size_(file_.size()) {}
  size_t read(char* into, size_t bytes) override {
    const auto some = static_cast<size_t>(std::min<uint64_t>(bytes, size_ - at_));
    file_.read(into, some, at_);
    at_ += some;
    return some;
  }
  uint64_t position() const override { return at_; }
  uint64_t bytes() const { return size_; }

 private:
  File file_;
  uint64_t size_, at_ = 0;
};

// The compressed bytes that a decoder has not taken yet.
class Input {
 public:
  Input(std::unique_ptr<ByteStream> from, std::string name)
      : from_(std::move(from)), name_(std::move(name)), buffer_(256 * 1024) {}
  // Whether there are any; reads more when the last ones were taken.
  bool any() {
    if (begin_ < end_) return true;
    begin_ = 0;
    end_ = from_->read(buffer_.data(), buffer_.size());
    return end_ > 0;
  }
  char* data() { return buffer_.data() + begin_; }
  size_t size() const { return end_ - begin_; }
  void take(size_t bytes) { begin_ += bytes; }
  uint64_t position() const { return from_->position() - size(); }
  [[noreturn]] void refuse(std::string_view what) const {
    fail(ErrorKind::data, "'{}': {} at offset {}; the file is cut short or damaged", name_, what,
         position());
  }

 private:
  std::unique_ptr<ByteStream> from_;
  std::string name_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
};

class GzipStream final : public ByteStream {
 public:
  GzipStream(std::unique_ptr<ByteStream> from, std::string name)
      : input_(std::move(from), std::move(name)) {
    constexpr int only_gzip = 16;
    expect(inflateInit2(&state_, MAX_WBITS + only_gzip) == Z_OK, "zlib begins");
  }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;
  ~GzipStream() override { inflateEnd(&state_); }

  size_t read(char* into, size_t bytes) override {
    const auto wanted = static_cast<uInt>(std::min<size_t>(bytes, 1 << 30));
    state_.next_out = reinterpret_cast<Bytef*>(into);
    state_.avail_out = wanted;
    while (state_.avail_out == wanted) {
      if (!input_.any()) {
        if (within_) input_.refuse("gzip data end within a member");
        break;
      }
      inflate_some();
    }
    return wanted - state_.avail_out;
  }
  uint64_t position() const override { return input_.position(); }

 private:
  void inflate_some() {
    within_ = true;
    const auto given = static_cast<uInt>(input_.size());
    state_.next_in = reinterpret_cast<Bytef*>(input_.data());
    state_.avail_in = given;
    const int status = inflate(&state_, Z_NO_FLUSH);
    input_.take(given - state_.avail_in);
    if (status == Z_STREAM_END) {
      within_ = false;
      expect(inflateReset(&state_) == Z_OK, "zlib begins again");
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      input_.refuse(fmt::format("gzip data are wrong ({})",
                                state_.msg != nullptr ? state_.msg : "no reason given"));
    }
  }

  Input input_;
  z_stream state_{};
  bool within_ = false;  // a member
};

class ZstdStream final : public ByteStream {
 public:
  ZstdStream(std::unique_ptr<ByteStream> from, std::string name)
      : input_(std::move(from), std::move(name)), state_(ZSTD_createDStream(), ZSTD_freeDStream) {
    expect(state_ != nullptr, "zstd begins");
  }

  size_t read(char* into, size_t bytes) override {
    ZSTD_outBuffer out{into, bytes, 0};
    while (out.pos == 0) {
      // What it still holds comes out without more input.
      if (!input_.any() && !within_) break;
      const bool at_end = input_.size() == 0;
      ZSTD_inBuffer in{input_.data(), input_.size(), 0};
      const size_t status = ZSTD_decompressStream(state_.get(), &out, &in);
      if (ZSTD_isError(status) != 0)
        input_.refuse(fmt::format("Zstandard data are wrong ({})", ZSTD_getErrorName(status)));
      input_.take(in.pos);
      within_ = status != 0;
      if (at_end && out.pos == 0 && within_) input_.refuse("Zstandard data end within a frame");
    }
    return out.pos;
  }
  uint64_t position() const override { return input_.position(); }

 private:
  Input input_;
  std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> state_;
  bool within_ = false;  // a frame
};

// Refuses to go on when little has become very much.
class BoundedStream final : public ByteStream {
 public:
  BoundedStream(std::unique_ptr<ByteStream> from, std::string name, uint64_t file_bytes,
                double most_expansion)
      : from_(std::move(from)),
        name_(std::move(name)),
        file_bytes_(file_bytes),
        most_expansion_(most_expansion),
        most_(std::max(always_allowed, static_cast<double>(file_bytes) * most_expansion)) {}
  size_t read(char* into, size_t bytes) override {
    const size_t got = from_->read(into, bytes);
    given_ += static_cast<double>(got);
    require(given_ <= most_, ErrorKind::data,
            "'{}' has {} bytes and becomes more than {:.0f} when it is decompressed, beyond "
            "--max-expansion {:g}; give a larger one if that is right",
            name_, file_bytes_, most_, most_expansion_);
    return got;
  }
  uint64_t position() const override { return from_->position(); }

 private:
  static constexpr double always_allowed = 64 << 20;
  std::unique_ptr<ByteStream> from_;
  std::string name_;
  uint64_t file_bytes_;
  double most_expansion_, most_, given_ = 0;
};

}  // namespace

std::unique_ptr<ByteStream> open_stream(const std::filesystem::path& path, Compression compression,
                                        double most_expansion) {
  auto file = std::make_unique<FileStream>(path);
  const uint64_t bytes = file->bytes();
  auto stream = decompressed(std::move(file), compression, path.string());
  if (compression == Compression::none) return stream;
  return std::make_unique<BoundedStream>(std::move(stream), path.string(), bytes, most_expansion);
}

std::unique_ptr<ByteStream> decompressed(std::unique_ptr<ByteStream> compressed,
                                         Compression compression, std::string name) {
  if (compression == Compression::gzip)
    return std::make_unique<GzipStream>(std::move(compressed), std::move(name));
  if (compression == Compression::zstd)
    return std::make_unique<ZstdStream>(std::move(compressed), std::move(name));
  return compressed;
}

}  // namespace rankine
