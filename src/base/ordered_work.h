#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

// Items that are taken in order, worked on by several threads, and finished in order again. At most
// one item a thread is under way, so memory is bounded.
namespace rankine {

template <class Item, class Result>
struct OrderedWork {
  std::function<bool(Item&)> take;                // the next item, false at the end; one at a time
  std::function<Result(Item&, int thread)> work;  // by any thread
  std::function<void(Result&)> finish;            // one at a time, in the order of the items
};

// Returns when all is finished. Of several faults the one of the first item is thrown; no item
// behind it is finished.
template <class Item, class Result>
void run_in_order(int threads, const OrderedWork<Item, Result>& steps) {
  std::mutex taking, finishing;
  std::condition_variable turn;
  uint64_t taken = 0, finished = 0;
  bool ended = false;        // guarded by `taking`
  std::exception_ptr fault;  // guarded by `finishing`
  const auto one_thread = [&](int thread) {
    for (;;) {
      Item item{};
      Result result{};
      uint64_t number = 0;
      std::exception_ptr own;
      {
        const std::lock_guard lock(taking);
        if (ended) return;
        try {
          ended = !steps.take(item);
        } catch (...) {
          own = std::current_exception();
          ended = true;
        }
        if (ended && !own) return;
        number = taken++;
      }
      try {
        if (!own) result = steps.work(item, thread);
      } catch (...) {
        own = std::current_exception();
      }
      {
        std::unique_lock lock(finishing);
        turn.wait(lock, [&] { return finished == number; });
        try {
          if (own) std::rethrow_exception(own);
          if (!fault) steps.finish(result);
        } catch (...) {
          if (!fault) fault = std::current_exception();
        }
        own = fault;
        ++finished;
      }
      turn.notify_all();
      if (!own) continue;
      const std::lock_guard lock(taking);
      ended = true;
    }
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(one_thread, thread);
  one_thread(0);
  for (std::thread& other : others) other.join();
  if (fault) std::rethrow_exception(fault);
}

}  // namespace rankine
