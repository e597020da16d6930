#pragma once
#include <array>
#include <memory>
#include <span>
#include <vector>

#include "comm/link.h"
#include "comm/shared_memory.h"

namespace rankine {

struct GroupLinks;
struct SharedRing;

// What a process tells of its outgoing rings to the others of its host.
struct RingFile {
  int pid = 0, descriptor = -1;
};

// Of all rings of a group, which all its members agree on.
struct RingShape {
  size_t slots = 2, piece_bytes = 0;
};
// For a group whose `members` lie on one host: pieces that stay in caches, and little in all when
// there are many rings.
RingShape rings_of_one_host(size_t members);

// Rings between the processes of one host in one group. Every member makes one file of rings
// towards the others and maps theirs.
class HostRings {
 public:
  // `near`: which members are on this host, this process at place `mine` among them.
  HostRings(std::vector<bool> near, size_t mine, RingShape shape);

  // Makes the own file; descriptor -1 when the system refuses.
  RingFile make();
  // Maps the files of the members near this one; false when one cannot be reached.
  bool open(std::span<const RingFile> files);
  // The own links to a near member, to be appended to those of the group; none to this rank itself.
  void add_links(size_t member, GroupLinks& links) const;
  // The memory, which must outlive the links.
  std::vector<SharedMemory> take_memory() { return std::move(memory_); }

 private:
  size_t bytes() const;  // of one file
  SharedRing& ring(size_t owner, size_t to, size_t lane) const;

  std::vector<bool> near_;
  size_t mine_;
  RingShape shape_;
  std::vector<SharedMemory> memory_;  // by member
};

}  // namespace rankine
