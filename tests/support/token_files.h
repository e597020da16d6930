#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

// Token files as other programs write them.
namespace rankine::test {

template <class T>
void append(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

template <class T>
std::string raw_tokens(const std::vector<uint32_t>& tokens) {
  std::string out;
  for (const uint32_t token : tokens) append(out, static_cast<T>(token));
  return out;
}

inline std::string llmc_header(int32_t magic, int32_t version, int32_t count) {
  std::string out;
  append(out, magic);
  append(out, version);
  append(out, count);
  out.resize(1024, '\0');
  return out;
}

struct MegatronSequences {
  uint8_t code = 8;
  std::vector<int32_t> lengths{};
  std::vector<int64_t> pointers{};
  std::vector<int64_t> documents{};  // document index, begins at 0, ends at lengths.size()
};

inline std::string megatron_index(const MegatronSequences& s) {
  std::string out("MMIDIDX\0\0", 9);
  append(out, uint64_t{1});
  append(out, s.code);
  append(out, uint64_t{s.lengths.size()});
  append(out, uint64_t{s.documents.size()});
  for (const int32_t length : s.lengths) append(out, length);
  for (const int64_t pointer : s.pointers) append(out, pointer);
  for (const int64_t document : s.documents) append(out, document);
  return out;
}

}  // namespace rankine::test
