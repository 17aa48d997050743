// Short messages between the processes of a group, optionally with a file descriptor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "ringlet/sync/process/process.hpp"

namespace ringlet::collectives {

enum class Subject : std::uint32_t {
  kHello = 1,  // identity of the sender, and an address for a trial read of its memory
  kVerdict,    // whether the sender can read the memory of all other processes
  kSegment,    // a segment of shared memory, with its descriptor
  kControl,    // name of the control block of a group
  kLook,       // a group has failed: check which
  kLeave,      // the sender leaves before the group is made; with the reason
  kStacks,     // the sender requests the stacks of the receiver's ranks
};

struct Message {
  Subject subject = Subject::kHello;
  std::uint32_t number = 0;
  std::array<std::uint64_t, 3> words{};
  std::array<std::byte, 128> bytes{};
};

struct ReceivedMessage {
  Message message;
  sync::Descriptor descriptor;  // set in a kSegment
  bool is_cut = false;          // the system could not give this process the descriptor
};

// One end of a connected SOCK_SEQPACKET socket, which keeps messages whole and in order.
class MessageSocket {
 public:
  MessageSocket() = default;
  explicit MessageSocket(int fd) : socket_(fd) {}  // takes ownership

  int fd() const noexcept { return socket_.get(); }
  bool is_closed() const noexcept { return is_closed_; }

  // False if the socket is full. Messages to an ended process are dropped silently. Throws std::system_error if the
  // system rejects it.
  bool try_send(const Message& message, int descriptor = -1);
  // Return the next message, if there is one.
  std::optional<ReceivedMessage> try_receive();
  // Return whether the other end is open, by a system call.
  bool is_open() const noexcept;
  // Shuts down sending: the other end reads end of file.
  void hang_up() const noexcept;
  // Sleeps until a message can be received or, if `to_send`, sent, or the other end is closed; at most for this time.
  void wait(bool to_send, int milliseconds) const noexcept;

 private:
  sync::Descriptor socket_;
  bool is_closed_ = false;  // whether the other end is closed
};

}  // namespace ringlet::collectives
