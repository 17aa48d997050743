#include "ringlet/collectives/transport/messages.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace ringlet::collectives {

namespace {

#if defined(MSG_CMSG_CLOEXEC) && defined(MSG_NOSIGNAL)
constexpr int kSendFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
constexpr int kReceiveFlags = MSG_DONTWAIT | MSG_CMSG_CLOEXEC;
#else
constexpr int kSendFlags = MSG_DONTWAIT;
constexpr int kReceiveFlags = MSG_DONTWAIT;
#endif

union ControlBuffer {
  cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int))];
};

sync::Descriptor descriptor_in(msghdr& header) {
  sync::Descriptor found;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(part), sizeof fd);
    found = sync::Descriptor(fd);
  }
  return found;
}

}  // namespace

bool MessageSocket::try_send(const Message& message, int descriptor) {
  Message copy = message;
  iovec data{.iov_base = &copy, .iov_len = sizeof copy};
  ControlBuffer control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (descriptor >= 0) {
    header.msg_control = control.bytes;
    header.msg_controllen = sizeof control.bytes;
    cmsghdr* const part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(part), &descriptor, sizeof descriptor);
  }
  for (;;) {
    if (sendmsg(socket_.get(), &header, kSendFlags) >= 0) return true;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
    if (errno == ENOBUFS ||
        errno == ETOOMANYREFS) {  // until other processes receive descriptors in transit, which poll does not report
      usleep(1000);
      return false;
    }
    if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN) return true;
    if (errno != EINTR) throw std::system_error(errno, std::generic_category());
  }
}

std::optional<ReceivedMessage> MessageSocket::try_receive() {
  for (;;) {
    ReceivedMessage received;
    iovec data{.iov_base = &received.message, .iov_len = sizeof received.message};
    ControlBuffer control{};
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control.bytes;
    header.msg_controllen = sizeof control.bytes;
    const auto bytes = recvmsg(socket_.get(), &header, kReceiveFlags);
    if (bytes > 0) received.descriptor = descriptor_in(header);
    received.is_cut = (header.msg_flags & MSG_CTRUNC) != 0;
    if (bytes == sizeof received.message) return received;
    if (bytes > 0) continue;                                             // unexpected data: ignored
    if (bytes < 0 && (errno == EINTR || errno == ECONNRESET)) continue;  // messages sent earlier are still delivered
    is_closed_ = is_closed_ || bytes == 0;
    return std::nullopt;
  }
}

bool MessageSocket::is_open() const noexcept {
#if defined(POLLRDHUP)
  constexpr short kClosed = POLLRDHUP;
#else
  constexpr short kClosed = 0;
#endif
  pollfd entry{.fd = socket_.get(), .events = kClosed, .revents = 0};
  return poll(&entry, 1, 0) == 0;
}

void MessageSocket::hang_up() const noexcept { (void)shutdown(socket_.get(), SHUT_RDWR); }

void MessageSocket::wait(bool to_send, int milliseconds) const noexcept {
  pollfd wanted{.fd = socket_.get(), .events = static_cast<short>(to_send ? POLLIN | POLLOUT : POLLIN), .revents = 0};
  (void)poll(&wanted, 1, milliseconds);
}

}  // namespace ringlet::collectives
