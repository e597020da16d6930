#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/engine.h"

namespace rankine {

// The loss of documents of any length, in windows of at most the model's context. Every document
// is by itself: windows of several are computed together, but none sees another.
class Evaluator {
 public:
  struct Setup {
    int64_t rows = 1;     // windows computed at a time
    int64_t context = 0;  // tokens a prediction can look back on, at most
    // From one window's beginning to the next one's; what was scored before is not scored again.
    int64_t stride = 0;
  };
  struct Document {
    int64_t tokens = 0;  // that were predicted
    double loss = 0;     // the sum over them, in nats
    bool operator==(const Document&) const = default;
  };

  // What messages call a document; by its number without such a function.
  using Name = std::function<std::string(size_t document)>;

  // `engine` is allocated, for inference without caches, of shape {rows, context}.
  Evaluator(Engine& engine, const Setup& setup, Name name = {});

  // Every one of `ids` but the first is predicted from those before it. Returns the document's
  // number; numbers ascend from 0.
  size_t add(std::span<const int32_t> ids);
  // Computes what is left, and returns all documents by number. Like add(), Error{data} that names
  // where it begins when a loss is not finite.
  const std::vector<Document>& finish();

 private:
  struct Window {
    size_t document;
    int64_t length;
  };
  void add_window(size_t document, std::span<const int32_t> ids, int64_t scored_before);
  void compute();
  [[noreturn]] void refuse(size_t document, int64_t longest);

  Engine& engine_;
  Setup setup_;
  Name name_;
  std::vector<Document> documents_;
  std::vector<Window> windows_;                         // waiting
  std::vector<int32_t> waiting_ids_, waiting_targets_;  // [rows][context]
  std::vector<int32_t> ids_, targets_;                  // as computed, [rows][longest]
  std::vector<float> losses_;
};

// The setup of an engine for that.
ExecutorSetup evaluation_setup(DType compute, const Evaluator::Setup& setup);

}  // namespace rankine
